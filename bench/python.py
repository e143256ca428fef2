#!/usr/bin/env python3
"""What the Python package costs: import, URLs by the column, archives beside warcio. CPU seconds of the whole process, all threads.

Wants a Python with trawl and warcio; `.ci/long python` has one. Exit code 1 when a promise of docs/python.md is not kept.
"""
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

PAGES = int(os.environ.get("PAGES", 20_000))

READ = {
    "trawl": """
import trawl
for capture in trawl.archive.read(sys.argv[1]):
    if capture.kind == "response" and capture.status == 200:
        pages += 1
        size += len(capture.body())
""",
    "warcio": """
from warcio.archiveiterator import ArchiveIterator
with open(sys.argv[1], "rb") as stream:
    for record in ArchiveIterator(stream):
        if record.rec_type == "response" and record.http_headers.get_statuscode() == "200":
            pages += 1
            size += len(record.content_stream().read())
""",
    "trawl, table": """
import trawl
rows = trawl.archive.captures(sys.argv[1], columns=["url", "status", "body_length"]).to_list()
pages, size = len(rows), sum(row["body_length"] for row in rows)
""",
}

URLS = {
    "trawl.url.domain": "import trawl; domains = trawl.url.domain(urls)",
    "urlsplit": "from urllib.parse import urlsplit; domains = [urlsplit(url).hostname for url in urls]",
}


def cpu(code, *args):
    """CPU seconds of a fresh interpreter, and what it prints."""
    before = os.times()
    done = subprocess.run([sys.executable, "-c", code, *map(str, args)], check=True, capture_output=True, text=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system, done.stdout


def best(code, *args):
    return min((cpu(code, *args) for _ in range(3)), key=lambda run: run[0])


def write_archive(path):
    import trawl

    chance = random.Random(7)
    words = [bytes(chance.choices(b"abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 11))) for _ in range(5000)]
    with trawl.archive.Writer(path) as out:
        for n in range(PAGES):
            body = b"<html><p>" + b" ".join(chance.choices(words, k=chance.randint(200, 4000))) + b"</p></html>"
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\nServer: x\r\n\r\n" % len(body)
            out.add(f"https://host{n % 97}.example/{n}", head, body)


def main():
    broken = []

    def promise(text, kept):
        print(f"{'ok' if kept else 'BROKEN'}: {text}")
        broken.extend([] if kept else [text])

    times = subprocess.run([sys.executable, "-X", "importtime", "-c", "import trawl"], check=True, capture_output=True, text=True)
    took = min(int(re.search(r"\| +(\d+) \| trawl$", line).group(1)) for line in times.stderr.splitlines() if line.endswith("| trawl")) / 1000
    promise(f"import trawl: {took:.1f} ms, at most 50", took < 50)

    idle, _ = best("")
    count = 500_000
    make = f"urls = [f'https://www.host{{n % 9973}}.example.co.uk/path/{{n}}?id={{n % 7}}' for n in range({count})]\n"
    made, _ = best(make)
    took = {name: (best(make + code)[0] - made) / count * 1e9 for name, code in URLS.items()}
    print(json.dumps({"ns a URL": {name: round(ns) for name, ns in took.items()}}))

    with tempfile.TemporaryDirectory() as work:
        path = pathlib.Path(work) / "pages.warc.gz"
        write_archive(path)
        found = {}
        for name, code in READ.items():
            seconds, out = best(f"import sys\npages = size = 0\n{code}\nprint(pages, size)", path)
            found[name] = (PAGES / (seconds - idle), out)
        print(json.dumps({"pages a CPU second": {name: round(rate) for name, (rate, _) in found.items()}}))
        assert found["trawl"][1] == found["warcio"][1]
        ratio = found["trawl"][0] / found["warcio"][0]
        promise(f"archives are read {ratio:.1f} times as fast as by warcio, at least 5 ({path.stat().st_size >> 20} MB, {PAGES} pages)", ratio >= 5)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
