#!/usr/bin/env python3
"""Files of others, read by us: warcio, wget, ARC; and what `trawl convert` makes of them, compared record by record."""
import gzip
import hashlib
import http.server
import io
import pathlib
import shutil
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from peer import check, done, run, trawl, trawl_json
from warcio.archiveiterator import ArchiveIterator
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter


def records(path):
    """Type, all header lines in order, digest of the block."""
    out = []
    with open(path, "rb") as stream:
        for record in ArchiveIterator(stream, no_record_parse=True):
            out.append((record.rec_type, [(k, v) for k, v in record.rec_headers.headers], hashlib.sha1(record.raw_stream.read()).hexdigest()))
    return out


def same_records(source, what):
    """Through every compression and back, nothing changes."""
    wanted = records(source)
    trawl("convert", "--overwrite", source, "c.warc.gz")
    check(records("c.warc.gz") == wanted, f"{what}: {len(wanted)} records recompressed, all equal")
    trawl("convert", "--overwrite", "c.warc.gz", "c.warc.zst")
    trawl("convert", "--overwrite", "c.warc.zst", "c.warc")
    check(records("c.warc") == wanted, f"{what}: the same after zstd and none")
    run("warcio", "check", "c.warc.gz")
    check(True, f"{what}: warcio check passes on the copy")


# warcio writes: every record type, both versions.
for version in ("1.0", "1.1"):
    with open("w.warc.gz", "wb") as out:
        writer = WARCWriter(out, gzip=True, warc_version=version)
        writer.write_record(writer.create_warcinfo_record("w.warc.gz", {"software": "warcio", "operator": "é"}))
        for n in range(40):
            url = f"http://w.example/{n}?é"
            head = StatusAndHeaders("200 OK", [("Content-Type", "text/html"), ("X-Odd", "caf\u00e9")], protocol="HTTP/1.1")
            chunked = n % 5 == 0
            body = b"%d " % n * 50
            if chunked:
                head.headers.append(("Transfer-Encoding", "chunked"))
                body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
            response = writer.create_warc_record(url, "response", payload=io.BytesIO(body), http_headers=head)
            asked = StatusAndHeaders(f"GET /{n} HTTP/1.1", [("Host", "w.example")], is_http_request=True)
            request = writer.create_warc_record(url, "request", http_headers=asked)
            writer.write_request_response_pair(request, response)
        writer.write_record(writer.create_warc_record("urn:x:meta", "metadata", payload=io.BytesIO(b"<m/>"), warc_content_type="text/xml"))
        writer.write_record(writer.create_warc_record("http://w.example/c", "conversion", payload=io.BytesIO(b"text"), warc_content_type="text/plain"))
        writer.write_record(writer.create_warc_record("http://w.example/r", "resource", payload=io.BytesIO(b""), warc_content_type="text/plain"))
        writer.write_record(writer.create_revisit_record("http://w.example/0?é", "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", "http://w.example/0", "2020-01-01T00:00:00Z"))
    trawl("verify", "w.warc.gz")
    check(True, f"trawl verify passes on warcio's WARC/{version}")
    facts = trawl_json("inspect", "w.warc.gz")
    check("warcinfo" in str(facts) and "40" in str(facts), "trawl inspect counts its records")
    same_records("w.warc.gz", f"warcio {version}")
with open("g.warc.gz", "wb") as whole:
    whole.write(gzip.compress(b"".join(gzip.decompress(part) for part in [pathlib.Path("w.warc.gz").read_bytes()])))
same_records("c.warc", "uncompressed")
trawl("convert", "--overwrite", "g.warc.gz", "g2.warc.gz")
check(records("g2.warc.gz") == records("w.warc.gz"), "one gzip member around a whole file")

# wget writes, from a server on this machine.
class Site(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = b"<html><a href='/b'>b</a><a href='/moved'>m</a></html>" if self.path == "/" else b"page " * 100
        status = 301 if self.path == "/moved" else 404 if self.path == "/robots.txt" else 200
        self.send_response(status)
        if status == 301:
            self.send_header("Location", "/b")
            body = b""
        if self.path == "/b":
            self.send_header("Transfer-Encoding", "chunked")
            body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        else:
            self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


if shutil.which("wget"):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    run("wget", "-q", "-r", "-l2", "--warc-file=wget", f"http://127.0.0.1:{server.server_port}/", "-P", "mirror")
    server.shutdown()
    trawl("verify", "wget.warc.gz")
    check(True, "trawl verify passes on wget's WARC")
    same_records("wget.warc.gz", "wget")
    trawl("captures", "rebuild", "wget.warc.gz", "--out", "wget.parquet")
    import duckdb
    rows = duckdb.sql("SELECT url, status, body_length, digest FROM 'wget.parquet' WHERE url LIKE '%/b'").fetchall()
    check(rows and all(r[1] == 200 and r[2] == 500 and r[3] == hashlib.sha1(b"page " * 100).hexdigest() for r in rows), "an index of wget's WARC, chunks taken apart", rows)
else:
    print("note: no wget here")

# ARC, both versions, plain and packed.
page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>arc</p>"
for version, tail in ((1, b"text/html %d\n"), (2, b"text/html 200 - - 0 a.arc %d\n")):
    block = b"%d 0 test\nURL IP-address Archive-date Content-type Archive-length\n" % version
    arc = b"filedesc://a.arc 0.0.0.0 20080430204825 text/plain %d\n%s\n" % (len(block), block)
    if version == 2:
        arc = b"filedesc://a.arc 0.0.0.0 20080430204825 text/plain 200 - - 0 a.arc %d\n%s\n" % (len(block), block)
    for n in range(5):
        arc += b"http://arc.example/%d 192.0.2.1 20080430204826 " % n + tail % len(page) + page + b"\n"
    pathlib.Path("a.arc").write_bytes(arc)
    pathlib.Path("a.arc.gz").write_bytes(gzip.compress(arc))
    for name in ("a.arc", "a.arc.gz"):
        trawl("convert", "--overwrite", name, "arc.warc.gz")
        run("warcio", "check", "arc.warc.gz")
        found = records("arc.warc.gz")
        check([r[0] for r in found] == ["warcinfo"] + ["response"] * 5 and all(r[2] == hashlib.sha1(page).hexdigest() for r in found[1:]), f"{name}, version {version}, becomes WARC")
    trawl("verify", "arc.warc.gz")
done()
