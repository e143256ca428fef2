import pytest

import trawl

DOMAINS = ["example.com", "example.org", "b.co.uk", "xn--bcher-kva.example"]


@pytest.fixture(scope="module")
def lake(lake_dir):
    return trawl.Lake(lake_dir)


def test_domains_are_those_of_the_command_line(lake, lake_dir, trawl_cli):
    for name in DOMAINS + ["www.example.com", "NEWS.Example.COM"]:
        (said,) = trawl_cli("query", "domain", name, "--lake", lake_dir, "--json")
        assert lake.domain(name).to_dict() == said


def test_pages_are_those_of_the_command_line(lake, lake_dir, trawl_cli):
    for name in DOMAINS:
        for flags, filters in [
            ([], {}),
            (["--offset", "100", "--limit", "7"], {"offset": 100, "limit": 7}),
            (["--status", "404"], {"status": 404}),
            (["--path-prefix", "/docs/"], {"path_prefix": "/docs/"}),
            (["--from", "2026-01-10", "--until", "2026-01-12"], {"since": "2026-01-10", "until": "2026-01-12"}),
        ]:
            (said,) = trawl_cli("query", "urls", name, "monday", "--lake", lake_dir, "--json", *flags)
            assert lake.page(name, "monday", **filters) == said


def test_rows_of_a_domain_are_its_pages_one_after_another(lake):
    for name in DOMAINS:
        rows, cursor = [], None
        while True:
            page = lake.page(name, "monday", limit=500, cursor=cursor)
            rows += [item["url"] for item in page["items"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert [row["url"] for row in lake.urls(name, "monday")] == rows
        assert len(rows) == page["total_est"]


def test_one_url_and_two_datasets(lake, lake_dir, trawl_cli):
    url = next(iter(lake.urls("example.org", "monday")))["url"]
    (said,) = trawl_cli("query", "url", url, "--lake", lake_dir, "--json")
    assert lake.url(url) == said
    lines = trawl_cli("query", "diff", "monday", "tuesday", "--lake", lake_dir, "--json")
    summary = {k: v for k, v in lines[-1].items() if k != "type"}
    diff = lake.diff("monday", "tuesday")
    assert diff.summary() == summary
    only = diff.urls().to_list()
    assert sum(row["in"] == "a" for row in only) == summary["urls"]["only_a"]
    assert {row["domain"] for row in diff.domains()} == set(DOMAINS)


def test_a_scan_has_every_row_once(lake):
    count = {row["name"]: row["rows"] for row in lake.datasets()}
    assert count == {"monday": 3000, "tuesday": 3000}
    assert len(lake.scan("monday", columns=["url"]).to_list()) == 3000
    assert len(lake.scan("monday", limit=17).to_list()) == 17


def test_lookup_of_many_names(lake):
    found = lake.lookup(["www.example.com", "example.org", "nowhere.example", None, "not a name"]).to_list()
    assert {(row["name"], row["dataset_id"]) for row in found} == {
        (name, id) for name in ("www.example.com", "example.org") for id in (1, 2)
    }
    for row in found:
        counts = {d["dataset_id"]: d["url_count_est"] for d in lake.domain(row["name"]).datasets}
        assert counts[row["dataset_id"]] == row["rows"]


def test_what_is_not_there_is_an_error_with_a_class(lake, tmp_path):
    with pytest.raises(trawl.NotFound):
        lake.domain("nowhere.example")
    with pytest.raises(trawl.NotFound):
        lake.urls("example.com", "wednesday")
    with pytest.raises(trawl.Refused):
        lake.domain("not a name")
    with pytest.raises(trawl.Refused):
        lake.urls("example.com", "monday", columns=["nonsense"])
    with pytest.raises(trawl.Refused):
        lake.page("example.com", "monday", cursor="nonsense")
    with pytest.raises(trawl.Error):
        trawl.Lake(tmp_path / "no lake")


def test_a_lake_answers_from_its_version_until_it_is_refreshed(lake_dir, tmp_path, trawl_cli):
    import shutil

    copy = tmp_path / "lake"
    shutil.copytree(lake_dir, copy)
    lake = trawl.Lake(copy)
    before = lake.version
    source = tmp_path / "more.txt"
    source.write_text("https://new.example/\n")
    trawl_cli("lake", "ingest", "--lake", copy, "--dataset", "wednesday", source, "--json")
    assert lake.version == before
    with pytest.raises(trawl.NotFound):
        lake.domain("new.example")
    assert lake.refresh() != before
    assert lake.domain("new.example").name == "new.example"


def test_times_have_a_zone(lake):
    from datetime import datetime, timedelta, timezone

    since = datetime(2026, 1, 10, tzinfo=timezone(timedelta(hours=2)))
    given = [since, since.timestamp(), "2026-01-09T22:00:00Z"]
    counts = {len(lake.urls("example.com", "monday", since=one).to_list()) for one in given}
    assert len(counts) == 1 and 0 < counts.pop() < 1200
    with pytest.raises(trawl.Refused, match="zone"):
        lake.urls("example.com", "monday", since=datetime(2026, 1, 10))


def test_a_time_before_the_first_year_is_an_error_of_ours(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    lake = trawl.Lake(tmp_path / "lake", create=True)
    times = pyarrow.array([-62135596800001], pyarrow.timestamp("ms", "UTC"))
    lake.ingest(pyarrow.table({"url": ["https://a.example/"], "ts": times}), "old", source_id="old")
    with pytest.raises(trawl.Refused, match="0000-12-31"):
        lake.scan("old").to_list()
    assert lake.scan("old").to_arrow()["ts"].cast(pyarrow.int64()).to_pylist() == [-62135596800001]
