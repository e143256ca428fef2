#!/usr/bin/env python3
"""CPU time, wall time and peak memory of `trawl crawl`, wget and scrapy for the same pages, archived by each as well as it can.

    python3 -m venv crawlers && crawlers/bin/pip install scrapy==2.19.0
    cargo build --release && cargo build --release --manifest-path bench/Cargo.toml --features crawl --bin crawl
    TRAWL=target/release/trawl SERVER=bench/target/release/crawl crawlers/bin/python bench/crawlers.py [PAGES] [BYTES]

The server is that of the benchmark `crawl`. No delay, no robots.txt, no links. wget writes a WARC with gzip; it has no concurrency and no
flag for its compression level. scrapy writes what our reference loop writes: SHA-1 of body and message, SHA-256, gzip level 1, one file.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

SPIDER = '''
import hashlib, logging, sys, zlib
import scrapy
from scrapy.crawler import CrawlerProcess

pages, port, out = int(sys.argv[1]), sys.argv[2], open(sys.argv[3], "wb")

class Pages(scrapy.Spider):
    name = "pages"

    async def start(self):
        for n in range(pages):
            yield scrapy.Request(f"http://127.0.0.1:{port}/{n}.html", dont_filter=True)

    def parse(self, response):
        head, body = response.headers.to_string(), response.body
        digests = hashlib.sha1(body).digest() + hashlib.sha1(head + body).digest() + hashlib.sha256(body).digest()
        packer = zlib.compressobj(1, zlib.DEFLATED, 31)
        out.write(packer.compress(b"h" * 500 + digests + head + body) + packer.flush())
        self.crawler.stats.inc_value("pages")

process = CrawlerProcess(SETTINGS)
crawler = process.create_crawler(Pages)
process.crawl(crawler)
process.start()
assert crawler.stats.get_value("pages") == pages, crawler.stats.get_stats()
'''
SCRAPY = dict(CONCURRENT_REQUESTS=256, CONCURRENT_REQUESTS_PER_DOMAIN=256, ROBOTSTXT_OBEY=False, LOG_ENABLED=False, RETRY_ENABLED=False,
              COOKIES_ENABLED=False, REDIRECT_ENABLED=False, TELNETCONSOLE_ENABLED=False, REFERER_ENABLED=False,
              REACTOR_THREADPOOL_MAXSIZE=20, DOWNLOAD_DELAY=0)


def measure(name, command, pages, **options):
    begun = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, **options)
    _, status, used = os.wait4(process.pid, 0)
    wall, cpu = time.monotonic() - begun, used.ru_utime + used.ru_stime
    failed = "" if status == 0 else f"   FAILED: {status}"
    print(f"{name:<22} {pages / wall:>7.0f} pages/s  {cpu / pages * 1000:>7.3f} CPU s per 1000 pages  {used.ru_maxrss // 1024:>5} MiB{failed}", flush=True)
    return cpu


def main():
    pages, size = (int(text) for text in (sys.argv[1:] + ["20000", "84000"][len(sys.argv) - 1:]))
    trawl, server = os.environ["TRAWL"], os.environ["SERVER"]
    work = pathlib.Path(tempfile.mkdtemp(prefix="crawlers-"))
    serving = subprocess.Popen([server, "serve", str(size)], stdout=subprocess.PIPE, text=True)
    try:
        port = serving.stdout.readline().strip()
        (work / "names.txt").write_text("".join(f"http://h{n % 500}.test/{n}.html\n" for n in range(pages)))
        (work / "urls.txt").write_text("".join(f"http://127.0.0.1:{port}/{n}.html\n" for n in range(pages)))
        (work / "spider.py").write_text(SPIDER.replace("SETTINGS", repr(SCRAPY)))
        for tool in ([trawl, "--version"], ["wget", "--version"], [sys.executable, "-m", "scrapy", "version"]):
            print(subprocess.run(tool, capture_output=True, text=True).stdout.splitlines()[0])
        flags = ["--delay", "0s", "--ignore-robots", "--per-host", "8", "--per-ip", "0", "--workers", "256", "--connect-to", f"::127.0.0.1:{port}"]
        print("trawl", *flags[:-2])
        ours = measure("trawl", [trawl, "crawl", "-q", *flags, "--out", work / "crawl", work / "names.txt"], pages)
        flags = ["--warc-file=wget", "--no-warc-keep-log", "--delete-after", "--no-directories", "-e", "robots=off"]
        print("wget", *flags)
        wget = measure("wget", ["wget", "-q", *flags, "-i", work / "urls.txt"], pages, cwd=work, stderr=subprocess.DEVNULL)
        print("scrapy", SCRAPY)
        scrapy = measure("scrapy", [sys.executable, work / "spider.py", str(pages), port, work / "scrapy.gz"], pages, cwd=work)
        print(f"wget takes {wget / ours:.1f}x, scrapy {scrapy / ours:.1f}x the CPU time of trawl")
    finally:
        serving.kill()
        serving.wait()
        shutil.rmtree(work)


main()
