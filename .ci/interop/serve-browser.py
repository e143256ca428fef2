#!/usr/bin/env python3
"""Chromium opens every view, on a desktop and on a phone; URLs and captures that attack it stay text, and nothing of them runs."""
import http.server
import json
import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from browser import DESKTOP, PHONE, browser
from peer import check, done, trawl
from served import ingest, serve

beacons = []


class Beacon(http.server.BaseHTTPRequestHandler):
    """Hears whatever a page that runs would send, and serves the control."""

    def do_GET(self):
        if self.path != "/control":
            beacons.append(self.path)
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(HOSTILE if self.path == "/control" else b"")

    do_POST = do_GET

    def log_message(self, *_):
        pass


listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Beacon)
threading.Thread(target=listener.serve_forever, daemon=True).start()
AT = f"http://127.0.0.1:{listener.server_port}"
HOSTILE = f"""<!doctype html><html><head><title>quiet</title>
<script>document.title = 'ran'; fetch('{AT}/fetch', {{mode: 'no-cors'}}); new Image().src = '{AT}/script';</script>
<meta http-equiv="refresh" content="0;url={AT}/refresh"><link rel="stylesheet" href="{AT}/style"><base href="{AT}/"></head>
<body onload="document.title = 'ran'"><img src="{AT}/image" onerror="document.title = 'ran'">
<svg onload="document.title = 'ran'"></svg><iframe src="{AT}/frame"></iframe>
<iframe srcdoc="<script>top.document.title = 'ran'</script>"></iframe><form action="{AT}/form" id="f"><input name="x"></form>
<script>document.getElementById('f').submit();</script><object data="{AT}/object"></object><script src="{AT}/js"></script>
</body></html>""".encode()
SVG = f"""<svg xmlns="http://www.w3.org/2000/svg" onload="document.title='ran'"><script>fetch('{AT}/svg')</script>
<image href="{AT}/svgimage"/></svg>""".encode()

# Captures that attack the browser that opens them.
types = {"page": (b"text/html", HOSTILE), "odd": (b"TEXT/HTML ;charset=utf-7", HOSTILE), "none": (None, HOSTILE), "svg": (b"image/svg+xml", SVG),
         "xhtml": (b"application/xhtml+xml", HOSTILE), "png": (b"image/png", HOSTILE), "plain": (b"text/plain", HOSTILE),
         "js": (b"text/javascript", b"document.title = 'ran'"), "json": (b"application/json", HOSTILE), "xml": (b"text/xml", SVG)}
with open("hostile.warc", "wb") as out:
    for number, (name, (kind, body)) in enumerate(types.items()):
        head = b"HTTP/1.1 200 OK\r\n" + (b"Content-Type: " + kind + b"\r\n" if kind else b"")
        # Headers of the capture must not become headers of the answer.
        head += f"Content-Security-Policy: default-src *\r\nRefresh: 0;url={AT}/header\r\nLink: <{AT}/link>; rel=preload\r\nSet-Cookie: a=b\r\n\r\n".encode()
        out.write(f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{number:012}>\r\n"
                  f"WARC-Date: 2026-06-24T01:02:03Z\r\nWARC-Target-URI: http://evil.example/{name}\r\n"
                  f"Content-Type: application/http;msgtype=response\r\nContent-Length: {len(head + body)}\r\n\r\n".encode() + head + body + b"\r\n\r\n")
ingest("captures", "hostile.warc")

# URLs that attack it, failures with a reason, and a dataset whose parts share domains.
urls = ["http://evil.example/<script>document.title='ran'</script>", "http://evil.example/\"><img src=x onerror=document.title='ran'>",
        "http://evil.example/\u202eexe.txt\u202c", "http://evil.example/a\u200bb\u2066c\u2069", "http://evil.example/tag\U000e0041\U000e007f",
        "http://evil.example/?q=';document.title='ran'//", "http://evil.example/%3Cscript%3E", "http://evil.example/{{7*7}}${7*7}",
        "http://evil.example/" + "long" * 500]
rows = [{"url": url, "status": 200, "ts": "2026-01-01T00:00:00Z"} for url in urls]
rows += [{"url": "http://evil.example/failed", "error_class": "dns_nxdomain", "error": "no \u202esuch name"},
         {"url": "http://evil.example/nothing", "status": 404}]
pathlib.Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
ingest("rows", "rows.jsonl")
for part in range(3):
    pathlib.Path(f"part{part}.txt").write_text("".join(f"http://shared{n}.example/{part}/{k}\n" for n in range(80) for k in range(2)))
    ingest("parts", f"part{part}.txt")

ALIGNED = """(() => { for (const table of document.querySelectorAll('table')) {
  const heads = [...table.querySelectorAll('th')].filter(e => e.offsetParent);
  for (const row of table.querySelectorAll('tbody tr')) {
    const cells = [...row.children].filter(e => e.offsetParent);
    if (heads.length && cells.length !== heads.length) return `${cells.length} cells under ${heads.length} headings`;
    for (let i = 0; i < heads.length; i++) if (Math.abs(heads[i].getBoundingClientRect().left - cells[i].getBoundingClientRect().left) > 1)
      return `column ${i} is not under ${heads[i].textContent}`; } }
  return ''; })()"""
VISIBLE_BIDI = r"""/[\u202a-\u202e\u2066-\u2069\u200b-\u200f\u{e0000}-\u{e007f}]/u.test(document.documentElement.outerHTML + document.title)"""

with serve() as at, browser() as chrome:
    views = {
        "home": ("#/", "80"), "domain": ("#/d/evil.example", "captures"), "urls": ("#/d/evil.example/2", "dns_nxdomain"),
        "captures": ("#/d/evil.example/1", "http://evil.example/svg"), "path": ("#/d/shared1.example/3?path=/0/", "under /0/"),
        "deep-bad-escape": ("#/d/%zz", "not"), "deep-unknown": ("#/d/absent.example", "No dataset holds absent.example"),
        "deep-bad-dataset": ("#/d/evil.example/99", "That did not work"), "deep-bad-number": ("#/d/evil.example/x%2f..", "That did not work"),
        "deep-bad-offset": ("#/d/evil.example/2?offset=-5", "That did not work"), "deep-nonsense": ("#/nonsense/there", "The lake"), "docs": ("docs", "GET /v1/domain/{domain}"),
    }
    for size, device in ((DESKTOP, "desktop"), (PHONE, "phone")):
        page = chrome.page(size)
        for name, (address, expected) in views.items():
            page.goto(f"{at}/{address}")
            page.until(f"document.body.innerText.includes({json.dumps(expected)})", f"{device} {name}")
            page.screenshot(f"{device}-{name}.png")
            misplaced = page.evaluate(ALIGNED)
            assert misplaced == "", f"{device} {name}: {misplaced}"
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{device} {name}: {wide} pixels too wide"
            assert not page.complaints(), (device, name, page.complaints())
            assert page.evaluate("document.title") != "ran" and not page.evaluate(VISIBLE_BIDI), (device, name)
        check(True, f"{device}: {len(views)} views, headings over their columns")
        page.goto(f"{at}/#/d/evil.example/2")
        page.until("document.body.innerText.includes('dns_nxdomain')")
        text = page.text()
        check("<script>document.title='ran'</script>" in text and "\\u{202e}exe.txt" in text, f"{device}: hostile URLs are shown as they are written")
        check("none" not in [cell for line in text.splitlines() for cell in line.split("\t")], f"{device}: no row without a reason")
        page.goto(f"{at}/#/")
        page.until("document.body.innerText.includes('Datasets')")
        # Three parts hold the same 80 names, and evil.example is one.
        check("≤" not in page.text() and "81" in page.text(), f"{device}: exact counts are shown as exact", page.text())
        for typed in ("HTTPS://user@www.evil.example:8080/a/b?c#d", "www.evil.example/path", "evil.example"):
            page.goto(f"{at}/#/")
            page.evaluate(f"document.getElementById('box').value = {json.dumps(typed)}")
            page.evaluate("document.getElementById('search').requestSubmit()")
            page.until("document.querySelector('h1')?.innerText === 'evil.example'", typed)
        check(True, f"{device}: a pasted URL finds its domain")

    # The test can fail: the same page from an ordinary server does all of it.
    page = chrome.page()
    page.goto(f"{AT}/control")
    page.until("true")
    time.sleep(1)
    check(len(beacons) >= 3, f"without protection {len(set(beacons))} things run", beacons)
    beacons.clear()
    opened = 0
    for name in types:
        for address in (f"web/20260624010203id_/http://evil.example/{name}", f"v1/capture/1?url=http://evil.example/{name}&part=body",
                        f"v1/capture/1?url=http://evil.example/{name}&part=http", f"v1/capture/1?url=http://evil.example/{name}"):
            page.call("Page.navigate", url=f"{at}/{address}")
            time.sleep(0.15)
            assert page.evaluate("document.title") != "ran", address
            opened += 1
    time.sleep(1)
    check(not beacons, f"of {opened} hostile captures nothing runs and nothing is loaded", beacons)
done()
