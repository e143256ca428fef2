from urllib.parse import quote

import pytest

import trawl
from cat_rows import rows_of_cat


def test_what_was_written_is_read(warc, trawl_cli):
    captures = list(trawl.archive.read(warc))
    assert [capture.url for capture in captures] == [f"https://example.com/{n}" for n in range(100)]
    for n, capture in enumerate(captures):
        assert (capture.kind, capture.status, capture.content_type) == ("response", 200, "text/html")
        assert capture.body() == f"<p>page {n}</p>".encode() * (n + 1)
        assert dict(capture.headers)["Content-Type"] == "text/html"
    trawl_cli("verify", warc)


def test_one_by_its_place(warc):
    captures = list(trawl.archive.read(warc))
    for capture in captures[::10]:
        again = trawl.archive.at(warc, capture.offset)
        assert (again.url, again.ts, again.body()) == (capture.url, capture.ts, capture.body())
    with pytest.raises(trawl.Error):
        trawl.archive.at(warc, captures[3].offset + 1)


def test_the_table_says_what_the_captures_say(warc):
    table = trawl.archive.captures(warc).to_list()
    captures = list(trawl.archive.read(warc))
    assert [(r["url"], r["status"], r["offset"], r["body_length"]) for r in table] == [
        (c.url, c.status, c.offset, len(c.body())) for c in captures
    ]
    assert trawl.archive.captures(warc, columns=["status", "url"]).columns == ["status", "url"]


@pytest.mark.parametrize("container", ["warc", "warc.gz", "warc.zst", "wacz", "data"])
def test_every_column_as_the_records_say(container, mixed):
    path = mixed[container]
    rows, wanted = trawl.archive.captures(path).to_list(), rows_of_cat(path)
    by_url = lambda row: (row["url"], row["kind"])
    captures = sorted(trawl.archive.read(path), key=lambda c: (c.url, c.kind))
    rows.sort(key=by_url)
    assert len(rows) == 8 and {row["kind"] for row in rows} == {"response", "revisit", "failure"}
    for row, capture in zip(rows, captures, strict=True):
        # A length is what leads to the next capture; `at` finds what the row names.
        assert row.pop("length") == capture.length > 0
        again = trawl.archive.at(path.parent / row["file"] if container != "wacz" else path, row["offset"]) if container != "wacz" else capture
        assert (again.url, again.kind, again.length) == (row["url"], row["kind"], capture.length)
    assert rows == sorted(wanted, key=by_url)


def test_a_segment_of_nutch_has_the_captures_it_can_hold(mixed, tmp_path, trawl_cli):
    trawl_cli("convert", mixed["segment"], tmp_path / "back.warc")
    # The header of a WARC record has URLs in ASCII.
    ascii = lambda url: "".join(char if char.isascii() else quote(char) for char in url)
    wanted = {row["url"]: row for row in rows_of_cat(tmp_path / "back.warc")}
    rows = {ascii(row["url"]): row | {"url": ascii(row["url"])} for row in trawl.archive.captures(mixed["segment"]).to_list()}
    assert rows.keys() == wanted.keys() and len(rows) >= 6
    for url, row in rows.items():
        # Where it lies there, and what only records of a WARC have, is another thing.
        same = ("url", "ts", "kind", "status", "content_type", "body_length", "error")
        assert [row[name] for name in same] == [wanted[url][name] for name in same]


@pytest.mark.parametrize("name", ["copy.warc.gz", "copy.warc.zst", "copy.warc", "copy.wacz"])
def test_copies_in_other_containers(warc, tmp_path, name):
    with trawl.archive.Writer(tmp_path / name) as out:
        for capture in trawl.archive.read(warc):
            out.write(capture)
    copied = [(c.url, c.ts, c.status, c.body()) for c in trawl.archive.read(tmp_path / name)]
    assert copied == [(c.url, c.ts, c.status, c.body()) for c in trawl.archive.read(warc)]


def test_an_archive_that_was_not_finished_is_not_there(warc, tmp_path):
    with pytest.raises(RuntimeError):
        with trawl.archive.Writer(tmp_path / "half.warc.gz") as out:
            out.write(next(iter(trawl.archive.read(warc))))
            raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_damage_is_told(warc, tmp_path):
    bytes_ = bytearray(warc.read_bytes())
    captures = list(trawl.archive.read(warc))
    at = captures[50].offset + 40
    bytes_[at : at + 8] = b"\0" * 8
    damaged = tmp_path / "damaged.warc.gz"
    damaged.write_bytes(bytes_)
    reader = trawl.archive.read(damaged)
    urls = [capture.url for capture in reader]
    assert reader.damage and set(urls) < {capture.url for capture in captures} and len(urls) >= 98
    with pytest.raises(trawl.Corrupt) as told:
        trawl.archive.captures(damaged).to_list()
    error = told.value
    assert error.path.endswith("damaged.warc.gz") and error.offset == captures[50].offset
    assert error.expected and error.found and str(error).endswith(error.found)
    with pytest.raises(trawl.NotFound) as told:
        trawl.archive.read(tmp_path / "absent.warc.gz")
    assert (told.value.path, told.value.offset) == (str(tmp_path / "absent.warc.gz"), None)
    (tmp_path / "text").write_text("some text")
    with pytest.raises(trawl.Corrupt):
        trawl.archive.read(tmp_path / "text")


def test_warcio_reads_what_was_written(warc):
    archiveiterator = pytest.importorskip("warcio.archiveiterator")
    with warc.open("rb") as stream:
        read = [
            (record.rec_headers.get_header("WARC-Target-URI"), record.content_stream().read())
            for record in archiveiterator.ArchiveIterator(stream)
            if record.rec_type == "response"
        ]
    assert read == [(c.url, c.body()) for c in trawl.archive.read(warc)]


def test_an_archive_on_a_server(warc, bucket):
    import os
    import urllib.request

    put = urllib.request.Request(
        f"{os.environ['AWS_ENDPOINT_URL']}/trawl/pages.warc.gz",
        warc.read_bytes(),
        headers={"Content-Type": "application/octet-stream"},
        method="PUT",
    )
    urllib.request.urlopen(put).read()
    assert [c.url for c in trawl.archive.read(f"{bucket}/pages.warc.gz")] == [c.url for c in trawl.archive.read(warc)]


def test_only_heads_are_taken(tmp_path):
    with trawl.archive.Writer(tmp_path / "x.warc.gz") as out:
        with pytest.raises(trawl.Refused):
            out.add("https://example.com/", b"not a head", b"")
        out.add("https://example.com/", b"HTTP/1.1 204 No Content\r\n\r\n", b"", ts=0)
    (only,) = trawl.archive.read(tmp_path / "x.warc.gz")
    assert (only.ts, only.status) == ("1970-01-01T00:00:00.000Z", 204)
    with pytest.raises(trawl.Refused):
        trawl.archive.Writer(tmp_path / "x.unknown")


def test_what_is_not_a_plain_response_is_copied_as_it_is(tmp_path):
    def record(kind, url, block, *fields):
        head = [
            "WARC/1.1", f"WARC-Type: {kind}", f"WARC-Target-URI: {url}", "WARC-Date: 2026-02-01T00:00:00Z",
            f"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{abs(hash(url)) % 10**12:012}>", f"Content-Length: {len(block)}",
            "Content-Type: application/http; msgtype=response", *fields,
        ]
        return "\r\n".join(head).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"

    profile = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
    (tmp_path / "in.warc").write_bytes(
        record("response", "https://a.example/", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", "WARC-Truncated: length")
        + record(
            "revisit", "https://b.example/", b"HTTP/1.1 200 OK\r\n\r\n", f"WARC-Profile: {profile}",
            "WARC-Payload-Digest: sha1:VL2MMHO4YXUKFWV63YHTWSBM3GXKSQ2N", "WARC-Refers-To-Target-URI: https://a.example/",
        )
    )
    read = lambda path: [(c.url, c.kind, c.status, c.truncated, c.digest) for c in trawl.archive.read(path)]
    for copy in (tmp_path / "copy.warc.gz", tmp_path / "copy.wacz"):
        with trawl.archive.Writer(copy) as out:
            for capture in trawl.archive.read(tmp_path / "in.warc"):
                out.write(capture)
        (first, second) = read(copy)
        assert first[:4] == ("https://a.example/", "response", 200, "length")
        assert second == read(tmp_path / "in.warc")[1] and second[1] == "revisit"
    with pytest.raises(trawl.NotFound):
        list(trawl.archive.read(copy))[1].body()


def test_failed_fetches_are_copied(tmp_path, trawl_cli):
    # Nothing is asked of the network: an address of this machine is refused before.
    trawl_cli("crawl", "http://127.0.0.1:9/", "--out", tmp_path / "crawl", "--quiet")
    (source,) = (tmp_path / "crawl").glob("*.warc.gz")
    with trawl.archive.Writer(tmp_path / "copy.warc.gz") as out:
        for capture in trawl.archive.read(source):
            out.write(capture)
    failed = [(c.url, c.error) for c in trawl.archive.read(tmp_path / "copy.warc.gz") if c.kind == "failure"]
    assert ("http://127.0.0.1:9/", "private_address") in failed


def test_an_index_alone_is_not_an_archive_without_captures(tmp_path, trawl_cli):
    trawl_cli("crawl", "http://127.0.0.1:9/", "--out", tmp_path / "crawl", "--quiet")
    assert len(trawl.archive.captures(tmp_path / "crawl").to_list()) > 0
    index = tmp_path / "crawl" / "captures.parquet"
    for read in (trawl.archive.read, lambda path: trawl.archive.captures(path).to_list()):
        with pytest.raises(trawl.Corrupt, match="an index of captures"):
            read(index)


def test_a_body_that_is_too_large_is_left_out(warc):
    *_, last = trawl.archive.read(warc, max_body=100)
    assert last.url == "https://example.com/99"
    with pytest.raises(trawl.Refused, match="max_body"):
        last.body()
