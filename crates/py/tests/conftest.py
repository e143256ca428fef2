"""A small lake and a small archive, made by the `trawl` binary that the variable TRAWL names."""

import json
import os
import pathlib
import subprocess

import pytest


@pytest.fixture(scope="session")
def trawl_cli():
    binary = os.environ["TRAWL"]

    def run(*args):
        done = subprocess.run([binary, *map(str, args)], capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stderr
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    return run


HOSTS = ["www.example.com", "news.example.com", "example.org", "a.b.co.uk", "xn--bcher-kva.example"]


def urls(dataset):
    for n in range(3000):
        host = HOSTS[(n * 7 + dataset) % len(HOSTS)]
        yield f"https://{host}/{'docs' if n % 3 else 'blog'}/{n * (dataset + 1) % 2500}?id={n}"


@pytest.fixture(scope="session")
def lake_dir(tmp_path_factory, trawl_cli):
    where = tmp_path_factory.mktemp("lake")
    for dataset, name in enumerate(["monday", "tuesday"]):
        source = where / f"{name}.jsonl"
        with source.open("w") as out:
            for n, url in enumerate(urls(dataset)):
                row = {"url": url, "timestamp": f"2026-01-{1 + n % 28:02}T00:00:00Z", "status": 200 if n % 10 else 404}
                out.write(json.dumps(row) + "\n")
        trawl_cli("lake", "ingest", "--lake", where / "lake", "--dataset", name, source, "--json")
    return where / "lake"


@pytest.fixture(scope="session")
def warc(tmp_path_factory):
    import trawl

    path = tmp_path_factory.mktemp("warc") / "pages.warc.gz"
    with trawl.archive.Writer(path) as out:
        for n in range(100):
            body = f"<p>page {n}</p>".encode() * (n + 1)
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body)
            out.add(f"https://example.com/{n}", head, body, ts=f"2026-02-01T00:00:{n % 60:02}Z")
    return pathlib.Path(path)
