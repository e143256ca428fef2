import json

import pytest

import trawl

# What two runs over the same source may say differently.
VARYING = {"version", "read_seconds", "write_seconds", "commit_seconds"}


def plain(answer):
    if isinstance(answer, dict):
        return {key: plain(value) for key, value in answer.items() if key not in VARYING}
    return [plain(one) for one in answer] if isinstance(answer, list) else answer


@pytest.fixture
def lake(tmp_path):
    return trawl.Lake(tmp_path / "lake", create=True)


def test_the_same_rows_and_report_as_the_command_line(lake, lists, tmp_path, trawl_cli):
    (said,) = trawl_cli(
        "lake", "ingest", "--lake", tmp_path / "other", "--dataset", "monday", lists / "monday.jsonl", "--json"
    )
    report = lake.ingest(lists / "monday.jsonl", "monday")
    assert report.pop("waits") is False and report["version"] == lake.version
    assert plain(report) == plain(said)
    other = trawl.Lake(tmp_path / "other")
    assert lake.scan("monday").to_list() == other.scan("monday").to_list()
    assert plain(lake.domain("example.com").to_dict()) == plain(other.domain("example.com").to_dict())
    assert lake.verify() == {"faults": [], "damaged": [], "unread_files": 0, "unread_bytes": 0}


def test_a_source_is_taken_once(lake, lists):
    first = lake.ingest([lists / "monday.jsonl"], "monday", source="a list of Monday's")
    again = lake.ingest([str(lists / "monday.jsonl"), lists / "tuesday.jsonl"], "monday")
    assert (first["rows"], again["rows"], len(again["skipped"])) == (3000, 3000, 1)
    (dataset,) = lake.datasets()
    assert (dataset["name"], dataset["rows"], dataset["source"]) == ("monday", 6000, "a list of Monday's")
    assert lake.ingest(lists / "tuesday.jsonl", "monday", mode="replace")["rows"] == 3000
    assert len(lake.scan("monday").to_list()) == 3000


def test_patterns_and_formats(lake, tmp_path, warc):
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "a.txt").write_text("https://a.example/\nnot a url\n")
    (tmp_path / "in" / "deep" / "b.txt").write_text("https://b.example/\n")
    report = lake.ingest(f"{tmp_path}/in/**/*.txt", "lists")
    assert (report["sources"], report["rows"], report["rejected"]) == (2, 2, 1)
    (tmp_path / "in" / "c").write_text('{"url": "https://c.example/"}\n')
    assert lake.ingest(tmp_path / "in" / "c", "lists", format="jsonl")["rows"] == 1
    assert lake.ingest(warc, "pages")["rows"] == 100
    # The dataset knows where its archive is.
    assert lake.capture("https://example.com/7", "pages") == b"<p>page 7</p>" * 8


def test_tables(lake):
    pyarrow = pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    pandas = pytest.importorskip("pandas")
    duckdb = pytest.importorskip("duckdb")
    rows = {
        "url": [f"https://www.example.com/{n}" for n in range(5000)],
        "ts": [f"2026-03-{1 + n % 28:02}T00:00:00Z" for n in range(5000)],
        "status": [200 if n % 2 else 404 for n in range(5000)],
        "note": ["x"] * 5000,
    }
    arrow = pyarrow.table(rows)
    givers = {
        "pyarrow": arrow,
        "polars": polars.DataFrame(rows),
        "pandas": pandas.DataFrame(rows),
        "duckdb": duckdb.sql("select * from arrow"),
        "times": arrow.set_column(1, "ts", pyarrow.compute.strptime(arrow["ts"], "%Y-%m-%dT%H:%M:%SZ", "us")),
    }
    wanted = None
    for name, given in givers.items():
        report = lake.ingest(given, name, source_id="rows")
        assert (report["rows"], report["rejected"]) == (5000, 0), name
        found = lake.urls("example.com", name, columns=["url", "ts", "status", "extras"]).to_list()
        assert json.loads(found[0]["extras"]) == {"note": "x"}
        wanted = wanted or found
        assert found == wanted, name
    assert len(lake.ingest(arrow, "pyarrow", source_id="rows")["skipped"]) == 1
    with pytest.raises(trawl.Refused, match="source_id"):
        lake.ingest(arrow, "pyarrow")
    # What one lake gives another takes.
    assert lake.ingest(lake.scan("pyarrow"), "copy", source_id="scan")["rows"] == 5000


def test_what_fails_leaves_nothing(lake, tmp_path, lists):
    with pytest.raises(trawl.NotFound) as missing:
        lake.ingest(tmp_path / "absent.txt", "absent")
    assert missing.value.path == str(tmp_path / "absent.txt")
    with pytest.raises(trawl.NotFound):
        lake.ingest(f"{tmp_path}/*.none", "absent")
    (tmp_path / "somewhere").mkdir()
    (tmp_path / "somewhere" / "a.txt").write_text("https://a.example/\n")
    with pytest.raises(trawl.Refused, match="directory"):
        lake.ingest(tmp_path / "somewhere", "absent")
    with pytest.raises(trawl.Refused):
        lake.ingest([], "absent")
    for wrong in ({"mode": "merge"}, {"format": "no such"}, {"zstd_level": 99}, {"memory_bytes": 5}, {"source_id": "x"}):
        with pytest.raises(trawl.Refused):
            lake.ingest(lists / "monday.jsonl", "absent", **wrong)
    assert lake.datasets().to_list() == []


def test_an_archive_without_a_capture_is_told(lake, tmp_path, trawl_cli):
    (tmp_path / "cut.warc.gz").write_bytes(b"\x1f\x8b\x08\0not gzip at all")
    report = lake.ingest(tmp_path / "cut.warc.gz", "cut")
    assert (report["rows"], report["rejected_by_code"]) == (0, {"damage": 1})
    only = tmp_path / "only.warc"
    head = ["WARC/1.1", "WARC-Type: warcinfo", "WARC-Date: 2026-02-01T00:00:00Z", "Content-Length: 4"]
    head += ["WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000000>", "Content-Type: application/warc-fields"]
    only.write_bytes("\r\n".join(head).encode() + b"\r\n\r\na: b\r\n\r\n")
    with pytest.warns(UserWarning, match="no capture"):
        report = lake.ingest(only, "only")
    (said,) = trawl_cli("lake", "ingest", "--lake", tmp_path / "other", "--dataset", "only", only, "--json")
    assert report["unreadable"] == said["unreadable"] == [str(only)]


def test_nothing_is_taken_twice(lake, tmp_path, trawl_cli):
    trawl_cli("crawl", "http://127.0.0.1:9/", "--out", tmp_path / "crawl", "--quiet")
    with pytest.raises(trawl.Refused, match="not both"):
        lake.ingest(f"{tmp_path}/crawl/[ct]*.[pw]a*", "crawl")
    (archive,) = (tmp_path / "crawl").glob("*.warc.gz")
    rows = lake.ingest(archive, "crawl")["rows"]
    assert rows > 0
    for mode in ("append", "replace_sources"):
        with pytest.raises(trawl.Refused, match="the dataset has taken"):
            lake.ingest(tmp_path / "crawl" / "captures.parquet", "crawl", mode=mode)
    assert lake.ingest(tmp_path / "crawl" / "captures.parquet", "crawl", mode="replace")["rows"] == rows
    with pytest.raises(trawl.Refused, match="would be added twice"):
        lake.ingest(archive, "crawl")
    pyarrow = pytest.importorskip("pyarrow")
    one, other = (pyarrow.table({"url": [f"https://{name}.example/"]}) for name in "ab")
    lake.ingest(one, "tables", source_id="t")
    with pytest.raises(trawl.Refused, match="other rows"):
        lake.ingest(other, "tables", source_id="t")
    lake.ingest(other, "tables", source_id="t", mode="replace_sources")
    assert [row["url"] for row in lake.scan("tables")] == ["https://b.example/"]
    (tmp_path / "list.txt").write_text("https://a.example/\n")
    lake.ingest(tmp_path / "list.txt", "lists")
    (tmp_path / "copy.txt").write_text("https://a.example/\n")
    (tmp_path / "list.txt").write_text("https://b.example/\n")
    with pytest.warns(UserWarning, match="has changed"):
        lake.ingest(tmp_path / "list.txt", "lists")
    with pytest.warns(UserWarning, match="same bytes"):
        lake.ingest(tmp_path / "copy.txt", "lists")


def test_lakes_are_made_where_asked(tmp_path):
    with pytest.raises(trawl.NotFound):
        trawl.Lake(tmp_path / "none")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(trawl.Refused):
        trawl.Lake(tmp_path / "full", create=True)
    assert trawl.Lake(tmp_path / "new", create=True).version == trawl.Lake(tmp_path / "new", create=True).version


def test_a_lake_in_a_bucket(bucket, lists, lake_dir, warc):
    lake = trawl.Lake(f"{bucket}/lake", create=True)
    for name in ("monday", "tuesday"):
        assert lake.ingest(lists / f"{name}.jsonl", name)["rows"] == 3000
    local = trawl.Lake(lake_dir)
    again = trawl.Lake(f"{bucket}/lake", cache_bytes=0)
    for one in (lake, again):
        assert one.scan("monday").to_list() == local.scan("monday").to_list()
        assert plain(one.domain("example.org").to_dict()) == plain(local.domain("example.org").to_dict())
        assert plain(one.diff("monday", "tuesday").summary()) == plain(local.diff("monday", "tuesday").summary())
    assert lake.verify()["faults"] == []
    with pytest.raises(trawl.NotFound):
        trawl.Lake(f"{bucket}/nothing")
