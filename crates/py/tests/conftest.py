"""A small lake and a small archive, made by the `trawl` binary that the variable TRAWL names."""

import contextlib
import gzip
import json
import os
import pathlib
import socket
import subprocess
import time
import urllib.request
import uuid

import pytest

INTEROP = pathlib.Path(__file__).resolve().parents[3] / ".ci" / "interop"


@pytest.fixture(scope="session")
def trawl_cli():
    binary = os.environ["TRAWL"]

    def run(*args):
        done = subprocess.run([binary, *map(str, args)], capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stderr
        # Not splitlines: texts may have U+2028 in them.
        return [json.loads(line) for line in done.stdout.split("\n") if line.startswith("{")]

    return run


HOSTS = ["www.example.com", "news.example.com", "example.org", "a.b.co.uk", "xn--bcher-kva.example"]


def urls(dataset):
    for n in range(3000):
        host = HOSTS[(n * 7 + dataset) % len(HOSTS)]
        yield f"https://{host}/{'docs' if n % 3 else 'blog'}/{n * (dataset + 1) % 2500}?id={n}"


@pytest.fixture(scope="session")
def lists(tmp_path_factory):
    """Two lists of URLs, monday.jsonl and tuesday.jsonl."""
    where = tmp_path_factory.mktemp("lists")
    for dataset, name in enumerate(["monday", "tuesday"]):
        with (where / f"{name}.jsonl").open("w") as out:
            for n, url in enumerate(urls(dataset)):
                row = {"url": url, "timestamp": f"2026-01-{1 + n % 28:02}T00:00:00Z", "status": 200 if n % 10 else 404}
                out.write(json.dumps(row) + "\n")
    return where


@pytest.fixture(scope="session")
def lake_dir(tmp_path_factory, lists, trawl_cli):
    where = tmp_path_factory.mktemp("lake") / "lake"
    for name in ("monday", "tuesday"):
        trawl_cli("lake", "ingest", "--lake", where, "--dataset", name, lists / f"{name}.jsonl", "--json")
    return where


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


def record(kind, url, block, *fields, type_="application/http; msgtype=response"):
    head = ["WARC/1.1", f"WARC-Type: {kind}", f"WARC-Date: 2026-02-01T00:00:00.{len(url):03}Z", f"Content-Length: {len(block)}", f"Content-Type: {type_}"]
    head += [f"WARC-Record-ID: <urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, kind + url)}>", *([f"WARC-Target-URI: {url}"] if url else []), *fields]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


@pytest.fixture(scope="session")
def mixed(tmp_path_factory, trawl_cli):
    """The same captures of every kind in every container: a dict of paths by container."""
    where = tmp_path_factory.mktemp("mixed")
    profile = "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
    digest = "WARC-Payload-Digest: sha1:VL2MMHO4YXUKFWV63YHTWSBM3GXKSQ2N"
    ok = b"HTTP/1.1 200 OK\r\n"
    gzipped = gzip.compress(b"<p>hello</p>" * 50, mtime=0)
    fields = lambda text: text.replace("\n", "\r\n").encode()
    records = [
        record("warcinfo", "", b"software: test\r\n", type_="application/warc-fields"),
        record("response", "https://a.example/", ok + b"Content-Type: text/html; charset=utf-8\r\nContent-Length: 5\r\n\r\nhello", digest),
        record("request", "https://a.example/", b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", type_="application/http; msgtype=request"),
        record("response", "https://a.example/\u00fc?q=%ff", b"HTTP/1.1 404 Not Found\r\ncontent-type:\ttext/plain\r\nX: \xff\r\n\r\nno\xff"),
        record("response", "http://b.example/gzip", ok + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(gzipped) + gzipped),
        record("response", "http://b.example/moved", b"HTTP/1.1 301 Moved\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"),
        record("response", "http://b.example/cut", ok + b"Content-Type: image/png\r\nContent-Length: 9\r\n\r\ncut", "WARC-Truncated: length"),
        record("revisit", "https://c.example/", ok + b"Content-Type: text/html\r\n\r\n", profile, digest, "WARC-Refers-To-Target-URI: https://a.example/"),
        record("response", "https://c.example/large", ok + b"Content-Type: text/css\r\n\r\n" + bytes(range(256)) * 3000),
        record("metadata", "https://d.example/", fields("trawlCapture: 1\nfetchedAt: 2026-02-01T00:00:00.018Z\nerrorClass: dns_nxdomain\nerror: none\n"), type_="application/warc-fields"),
    ]
    (where / "in.warc").write_bytes(b"".join(records))
    made = {"warc": where / "in.warc"}
    for name in ("pages.warc.gz", "pages.warc.zst", "pages.wacz", "pages.data", "pages.segment"):
        trawl_cli("convert", where / "in.warc", where / name)
        made[name.removeprefix("pages.")] = where / name
    return made


@pytest.fixture(scope="session")
def bucket(tmp_path_factory):
    """The bucket `trawl` of a server on this machine, for as long as the tests run."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([os.environ["S3_PYTHON"], INTEROP / "moto_one.py", str(port)], stderr=subprocess.DEVNULL)
    os.environ.update({
        "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "TRAWL_CACHE_DIR": str(tmp_path_factory.mktemp("cache")),
        "no_proxy": "127.0.0.1",
    })
    try:
        make = urllib.request.Request(f"http://127.0.0.1:{port}/trawl", method="PUT")
        for _ in range(300):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(make).read()
                break
            time.sleep(0.1)
        else:
            pytest.fail("the S3 server did not start")
        yield "s3://trawl"
    finally:
        server.terminate()
        server.wait()
