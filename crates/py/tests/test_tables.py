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
