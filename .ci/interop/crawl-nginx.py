#!/usr/bin/env python3
"""A real server: nginx over a documentation tree. What `trawl crawl` captures is what `wget -r` fetches, bodies equal the disk,
and pywb replays ten pages byte for byte."""
import os
import pathlib
import subprocess
import sys
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import tree
from peer import check, done, run, trawl
from servers import free_port, responses, started

HOST = "docs.example"


nginx = tree.debian("nginx") / "usr/sbin/nginx"
root = pathlib.Path("tree").resolve()
made = tree.write(root)
port = free_port()
pathlib.Path("tmp").mkdir()
pathlib.Path("nginx.conf").write_text(f"""
daemon off; worker_processes 1; pid {os.getcwd()}/nginx.pid; error_log {os.getcwd()}/server.log;
{"user root;" if os.getuid() == 0 else ""}
events {{ worker_connections 256; }}
http {{
  access_log off; types {{ text/html html; text/css css; image/png png; text/plain txt; application/xhtml+xml xhtml; }}
  default_type application/octet-stream; gzip on; gzip_min_length 100; gzip_types text/css text/plain;
  client_body_temp_path tmp/a; proxy_temp_path tmp/b; fastcgi_temp_path tmp/c; uwsgi_temp_path tmp/d; scgi_temp_path tmp/e;
  server {{
    listen 127.0.0.1:{port}; server_name {HOST}; root {root}; autoindex on; absolute_redirect off;
    location /moved/ {{ return 301 /guide/; }}
    location /gone.html {{ return 410; }}
  }}
}}
""")
with started(nginx, "-p", os.getcwd(), "-c", os.path.abspath("nginx.conf"), port=port):
    trawl("crawl", f"http://{HOST}/", "--out", "crawl", "--depth", 50, "--scope", "host", "--embeds", "--delay", "0s", "--per-host", 4,
          "--connect-to", f"{HOST}:80:127.0.0.1:{port}", "--quiet")
    # wget has no --connect-to: it is told by a proxy, which nginx is good enough for.
    wget = subprocess.run(["wget", "-r", "-l", "50", "--page-requisites", "-e", "robots=on", "-e", "use_proxy=yes", "-e",
                           f"http_proxy=http://127.0.0.1:{port}/", "--no-verbose", "--directory-prefix", "mirror", f"http://{HOST}/"],
                          capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
log = wget.stderr
by_wget = tree.urls_of_wget(log, HOST)
captured = responses("crawl")

# Differences, each with its reason; everything else must be equal.
explained = {
    "wget keeps no error pages": lambda u: captured.get(u, (0,))[0] >= 400,
    "redirects are captures of their own here": lambda u: captured.get(u, (0,))[0] in (301, 302),
}
differ, reasons = set(captured) ^ by_wget, {}
for url in sorted(differ):
    why = next((why for why, holds in explained.items() if holds(url)), None)
    check(why is not None, f"a difference is explained: {url}", "only here" if url in captured else "only wget")
    reasons[why] = reasons.get(why, 0) + 1
for why, n in reasons.items():
    print(f"    {n} URLs: {why}")
same = set(captured) & by_wget
check(len(same) > 150, f"both have the same {len(same)} URLs")

wrong, compared = [], 0
for url, (status, body) in captured.items():
    path = root / urllib.parse.unquote(urllib.parse.urlsplit(url).path).lstrip("/")
    if status == 200 and path.is_file():
        compared += 1
        if path.read_bytes() != body:
            wrong.append(url)
check(compared > 150 and not wrong, f"{compared} bodies equal the files on disk", wrong[:3])
# The guide is linked by its directory.
names = {name.replace("guide/index.html", "guide/") for name in made}
missing = [name for name in names if f"http://{HOST}/{urllib.parse.quote(name)}" not in captured]
check(not missing, f"all {len(made)} linked files are captured", missing[:3])

# Replay.
run("wb-manager", "init", "docs")
run("wb-manager", "add", "docs", *sorted(pathlib.Path("crawl").glob("*.warc.gz")))
wayback = free_port()
with started("wayback", "-p", wayback, "--bind", "127.0.0.1", port=wayback):
    good = [u for u in sorted(same) if captured[u][0] == 200 and u.endswith(".html")][:10]
    for url in good:
        with urllib.request.urlopen(f"http://127.0.0.1:{wayback}/docs/mp_/{url}", timeout=60) as answer:
            replayed = answer.geturl()
        # `id_` is the page as captured, without pywb's own changes.
        raw = replayed.replace("mp_/", "id_/", 1)
        with urllib.request.urlopen(raw, timeout=60) as answer:
            body = answer.read()
        assert body == captured[url][1], url
    check(len(good) == 10, "pywb replays ten pages byte for byte")
done()
