#!/usr/bin/env python3
"""cdx_toolkit, as it comes, asks the lake."""
import pathlib
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cdx_toolkit
from peer import check, done
from served import crawl, ingest, serve
from servers import responses

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
done()
