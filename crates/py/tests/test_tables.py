"""Rows as others take them. Each of the others may be absent here; the gate installs all of them."""

import gc
import resource
import subprocess
import sys

import pytest

import trawl


@pytest.fixture(scope="module")
def rows(lake_dir):
    return trawl.Lake(lake_dir).scan("monday")


def plain(rows):
    return [(row["url"], row["status"], row["ts"]) for row in rows.to_list()]


def test_pyarrow(rows):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(rows)
    assert table.num_rows == 3000
    assert list(zip(*(table[name].to_pylist() for name in ("url", "status", "ts")))) == plain(rows)
    assert rows.reader().read_all().equals(table)
    assert trawl.url.domain(table["url"]).to_list() == table["domain"].to_pylist()
    assert pyarrow.array(trawl.url.domain(table["url"])).to_pylist() == table["domain"].to_pylist()


def test_polars(rows):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(rows)
    assert frame.height == 3000
    assert frame["url"].to_list() == [row[0] for row in plain(rows)]
    assert polars.Series(trawl.url.domain(frame["url"])).to_list() == frame["domain"].to_list()


def test_polars_and_duckdb_do_not_need_pyarrow(lake_dir):
    code = """
import sys
sys.modules["pyarrow"] = None
import duckdb, polars, trawl
rows = trawl.Lake(sys.argv[1]).scan("monday")
assert polars.DataFrame(rows).height == 3000 == rows.to_polars().height
assert duckdb.sql("select count(*) from rows").fetchall() == [(3000,)]
"""
    subprocess.run([sys.executable, "-c", code, lake_dir], check=True)


def test_pandas(rows):
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = rows.to_pandas()
    assert list(frame["url"]) == [row[0] for row in plain(rows)]
    import pandas

    assert pandas.DataFrame.from_arrow(rows).equals(frame)
    assert trawl.url.domain(frame["url"]).to_list() == list(frame["domain"])
    assert trawl.url.domain(frame["url"].to_numpy()).to_list() == list(frame["domain"])


def test_duckdb(rows):
    duckdb = pytest.importorskip("duckdb")
    counted = duckdb.sql("select domain, count(*) from rows group by all order by all").fetchall()
    wanted = {}
    for row in rows.to_list():
        wanted[row["domain"]] = wanted.get(row["domain"], 0) + 1
    assert counted == sorted(wanted.items())


@pytest.fixture(scope="module")
def every_type(lake_dir, warc):
    """A table for each kind of column that the package gives: texts, times, flags, numbers with and without a sign, nulls."""
    lake = trawl.Lake(lake_dir)
    tables = {
        "datasets": lake.datasets(),
        "scan": lake.scan("monday", limit=9000),
        "lookup": lake.lookup(["example.com", "example.org", "nowhere.example"]),
        "domains": lake.diff("monday", "tuesday").domains(),
        "urls": lake.diff("monday", "tuesday").urls(both=True),
        "captures": trawl.archive.captures(warc),
        "empty": lake.urls("example.com", "monday", status=599),
    }
    wanted = {name: [tuple(row.values()) for row in table.to_list()] for name, table in tables.items()}
    assert all(wanted[name] for name in tables if name != "empty") and not wanted["empty"]
    return tables, wanted


def test_equal_values_in_pyarrow(every_type):
    pyarrow = pytest.importorskip("pyarrow")
    for name, table in every_type[0].items():
        taken = pyarrow.table(table)
        assert taken.column_names == table.columns
        assert list(zip(*(column.to_pylist() for column in taken.columns))) == every_type[1][name], name
        taken.validate(full=True)


def test_equal_values_in_polars(every_type):
    polars = pytest.importorskip("polars")
    for name, table in every_type[0].items():
        taken = polars.DataFrame(table)
        assert taken.columns == table.columns and taken.rows() == every_type[1][name], name


def test_equal_values_in_duckdb(every_type):
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("polars")
    duckdb.sql("set timezone = 'UTC'")
    for name, given in every_type[0].items():
        # By way of Polars: for times with a zone as Python's values DuckDB wants pytz.
        taken = duckdb.sql("select * from given").pl()
        assert taken.columns == given.columns and taken.rows() == every_type[1][name], name


def test_equal_values_in_pandas(every_type):
    pandas = pytest.importorskip("pandas")
    for name, table in every_type[0].items():
        taken = table.to_pandas()
        assert list(taken.columns) == table.columns
        # Its nulls are NaN and NaT, and make numbers floats.
        rows = [tuple(None if pandas.isna(value) else value for value in row) for row in taken.itertuples(index=False, name=None)]
        assert rows == every_type[1][name], name


def test_a_table_that_fails_is_an_error_of_ours_whoever_reads_it(warc, tmp_path):
    damaged = tmp_path / "damaged.warc.gz"
    whole = bytearray(warc.read_bytes())
    whole[len(whole) // 2 : len(whole) // 2 + 8] = b"\0" * 8
    damaged.write_bytes(whole)
    table = trawl.archive.captures(damaged)
    for read in (table.to_list, table.to_arrow, table.to_pandas, table.to_polars):
        with pytest.raises(trawl.Corrupt) as told:
            read()
        assert told.value.path.endswith("damaged.warc.gz") and told.value.offset
    pyarrow = pytest.importorskip("pyarrow")
    with pytest.raises(Exception, match="damaged.warc.gz"):
        pyarrow.table(table)


def test_batches_are_bounded_by_bytes(tmp_path):
    pytest.importorskip("pyarrow")
    with (tmp_path / "large.jsonl").open("w") as out:
        for n in range(60):
            out.write(f'{{"url": "https://a.example/{n}", "note": "{"x" * (1 << 20)}"}}\n')
    lake = trawl.Lake(tmp_path / "lake", create=True)
    lake.ingest(tmp_path / "large.jsonl", "large")
    sizes = [batch.nbytes for batch in lake.scan("large").reader()]
    assert sum(sizes) > 60 << 20 and max(sizes) < 20 << 20


def test_a_stream_dropped_half_way_leaks_nothing(rows):
    pyarrow = pytest.importorskip("pyarrow")
    for _ in range(50):
        pyarrow.RecordBatchReader.from_stream(rows).read_next_batch()
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(500):
        pyarrow.RecordBatchReader.from_stream(rows).read_next_batch()
    gc.collect()
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    # 500 batches of 3,000 rows are 200 MB.
    assert grown_kib < 50_000
    # The threads that made them are gone, too, or about to go.
    assert threads() < 20


def threads():
    import os

    return len([name for name in os.listdir("/proc/self/task") if "trawl" in open(f"/proc/self/task/{name}/comm").read()])
