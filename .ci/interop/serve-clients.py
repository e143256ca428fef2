#!/usr/bin/env python3
"""cdx_toolkit and pywb, as they come, ask the lake: pywb by its three kinds of remote index."""
import pathlib
import sys
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cdx_toolkit
from docs import blocks
from peer import check, done, run
from served import crawl, ingest, serve
from servers import free_port, responses, started

crawl("crawl")
ingest("crawl", "crawl")
truth = responses("crawl")
pages = {url: body for url, (status, body) in truth.items() if status == 200 and body}
host = urllib.parse.urlsplit(next(iter(pages))).hostname
mine = sorted(url for url in truth if urllib.parse.urlsplit(url).hostname == host)

with serve() as at:
    fetcher = cdx_toolkit.CDXFetcher(source=f"{at}/cdx")
    found = sorted(capture["url"] for capture in fetcher.iter(f"{host}/*", limit=10000) if not capture["url"].endswith("/robots.txt"))
    check(found == mine, f"cdx_toolkit lists the {len(mine)} captures of a host", (found[:3], mine[:3]))
    good = sorted(c["url"] for c in fetcher.iter(f"{host}/*", filter=["status:200"]) if not c["url"].endswith("/robots.txt"))
    check(good == sorted(u for u in mine if truth[u][0] == 200), "and those with a status", len(good))

    (script,) = blocks("api.md", "Web-archive clients", "python")
    printed = run(sys.executable, "-c", script.replace("http://127.0.0.1:8080", at).replace("example.com/*", f"{host}/*"))
    check(len(printed.splitlines()) == min(10, len(mine) + 1) and host in printed, "the lines of docs/api.md print captures", printed)

    port = free_port()
    # As docs/api.md prints it: the CDX server with what it replays; its lines as CDXJ, with the WARC files that pywb reads itself;
    # TimeGate, TimeMap and mementos below one address.
    (config,) = blocks("api.md", "Web-archive clients", "yaml")
    pathlib.Path("config.yaml").write_text(config.replace("http://127.0.0.1:8080", at).replace("/data/warcs", str(pathlib.Path("crawl").resolve())))
    with started("wayback", "-p", port, "--bind", "127.0.0.1", port=port):
        def ask(path):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=60) as answer:
                return answer.read()
        sample = sorted(pages)[:: max(1, len(pages) // 12)][:12]
        for way in ("by-cdx", "by-cdxj", "by-memento"):
            for url in sample:
                # `id_` is the page as captured, without pywb's own changes.
                body = ask(f"{way}/20991231235959id_/{url}")
                assert body == pages[url], (way, url, body[:80])
            listed = ask(f"{way}/timemap/link/{sample[0]}").decode()
            assert listed.count('rel="memento"') == 1 and sample[0] in listed, (way, listed)
            shown = ask(f"{way}/mp_/{sample[0]}")
            assert b"wombat" in shown or len(shown) > 0, way
            check(True, f"pywb by {way}: {len(sample)} pages byte for byte, and a TimeMap")
done()
