"""A lake of a small crawl, served for the time of a test."""
import contextlib
import json
import signal
import subprocess
import urllib.error
import urllib.request

from peer import TRAWL, testweb, trawl


def crawl(out, *more, pages=400, domains=20):
    """Crawls the synthetic web into `out`."""
    with crawling(out, *more, pages=pages, domains=domains):
        pass


@contextlib.contextmanager
def crawling(out, *more, pages, domains):
    """The same; the web answers on for the time of the block."""
    with testweb("--domains", domains, "--pages", pages, "--seeds-file", "seeds.txt", "--expected-file", "expected.txt",
                 "--depth", 4) as web:
        trawl("-q", "crawl", "seeds.txt", "--out", out, "--depth", 4, "--scope", "any", "--connect-to", web["connect_to"],
              "--delay", "2ms", *more)
        yield web


def ingest(dataset, *sources):
    trawl("-q", "lake", "ingest", "--lake", "lake", "--dataset", dataset, *sources)


@contextlib.contextmanager
def serve(*args, **how):
    """The lake, served; yields its address."""
    with open("serve.log", "ab") as log:
        process = subprocess.Popen([TRAWL, "--json", "serve", "--lake", "lake", "--listen", "127.0.0.1:0", *args],
                                   stdout=subprocess.PIPE, stderr=log, text=True, **how)
    serve.pid = process.pid
    try:
        yield json.loads(process.stdout.readline())["url"].rstrip("/")
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)


def fetch(url, headers={}):
    """Status, headers and body, whatever the status; redirects are not followed."""
    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_):
            return None
    try:
        with urllib.request.build_opener(Stay).open(urllib.request.Request(url, headers=headers), timeout=60) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()
