"""DuckDB's side of the `peers` benchmark: same rows, same columns, its own clocks. Prints one JSON object.

Queries go through the C interface that the Python package exports (prepared statements, materialised results that
nobody converts), so what is timed is DuckDB and some microseconds of calls, not Python.

duck.py WORK_DIR ZSTD_LEVEL FILE...     FILE: the lake's Parquet files, the truth both sides start from
"""
import ctypes
import glob
import json
import os
import resource
import sys
import time

import duckdb

work, level, files = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
# Times in milliseconds, as the lake has them; DuckDB would make microseconds of them.
COLUMNS = "dataset_id, domain, scheme, host, port, path_query, ts::TIMESTAMP_MS AS ts"
ORDER = "domain, dataset_id, host, path_query, ts"
listed = "[" + ", ".join(f"'{f}'" for f in files) + "]"
out = {"version": duckdb.__version__}


def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def timed(sql):
    began, before = time.perf_counter(), cpu()
    con.execute(sql)
    return {"wall": time.perf_counter() - began, "cpu": cpu() - before}


database = os.path.join(work, "duck.db")
con = duckdb.connect(database)
con.execute(f"SET temp_directory = '{work}/duck.tmp'")
con.execute("SET threads = 2")
# A table in no order: what a sort starts from. Held by DuckDB itself, so reading it costs next to nothing.
con.execute(f"CREATE TABLE shuffled AS SELECT {COLUMNS} "
            f"FROM read_parquet({listed}, hive_partitioning = false) ORDER BY hash(path_query, ts, host)")
out["rows"] = con.execute("SELECT count(*) FROM shuffled").fetchone()[0]

# Sort and write, one thread: per core. Version 2 pages use the delta encodings ours use, so both are tried.
con.execute("SET threads = 1")
parquet = os.path.join(work, "sorted.parquet")
for version in ("V1", "V2"):
    target = parquet if version == "V1" else os.path.join(work, "sorted-v2.parquet")
    options = f"FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL {level}, PARQUET_VERSION {version}"
    best = min((timed(f"COPY (SELECT * FROM shuffled ORDER BY {ORDER}) TO '{target}' ({options})") for _ in range(2)),
               key=lambda t: t["cpu"])
    out[f"write_{version}"] = {**best, "bytes": os.path.getsize(target)}
# As the lake has it: a file for each dataset.
by_dataset = 0
for (dataset,) in con.execute("SELECT DISTINCT dataset_id FROM shuffled").fetchall():
    target = os.path.join(work, f"dataset-{dataset}.parquet")
    con.execute(f"COPY (SELECT * FROM shuffled WHERE dataset_id = {dataset} ORDER BY {ORDER}) TO '{target}' "
                f"(FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL {level})")
    by_dataset += os.path.getsize(target)
out["bytes_by_dataset"] = by_dataset

con.execute("SET threads = 2")
out["native"] = timed(f"CREATE TABLE urls AS SELECT * FROM shuffled ORDER BY {ORDER}")
con.execute("DROP TABLE shuffled")
out["aggregate"] = timed("CREATE TABLE agg AS SELECT domain, dataset_id, count(*) AS n, count(DISTINCT "
                         "(scheme, host, port, path_query)) AS d, min(ts) AS a, max(ts) AS b FROM urls "
                         "GROUP BY domain, dataset_id ORDER BY domain, dataset_id")
out["art"] = timed("CREATE INDEX agg_domain ON agg (domain)")
con.execute("CHECKPOINT")
out["settings"] = dict(con.execute("SELECT name, value FROM duckdb_settings() WHERE name IN "
                                   "('threads', 'memory_limit', 'preserve_insertion_order')").fetchall())
con.close()
out["database_bytes"] = os.path.getsize(database)

# The C interface, from the same shared object.
lib = ctypes.CDLL(glob.glob(os.path.join(os.path.dirname(os.path.dirname(duckdb.__file__)), "_duckdb*.so"))[0])
P = ctypes.c_void_p


class Result(ctypes.Structure):
    _fields_ = [("columns", ctypes.c_uint64), ("rows", ctypes.c_uint64), ("changed", ctypes.c_uint64),
                ("column_data", P), ("error", ctypes.c_char_p), ("internal", P)]


lib.duckdb_row_count.restype = ctypes.c_uint64
lib.duckdb_row_count.argtypes = [ctypes.POINTER(Result)]
lib.duckdb_result_error.restype = ctypes.c_char_p
lib.duckdb_result_error.argtypes = [ctypes.POINTER(Result)]
lib.duckdb_bind_varchar.argtypes = [P, ctypes.c_uint64, ctypes.c_char_p]
lib.duckdb_bind_int32.argtypes = [P, ctypes.c_uint64, ctypes.c_int32]
lib.duckdb_execute_prepared.argtypes = [P, ctypes.POINTER(Result)]
lib.duckdb_destroy_result.argtypes = [ctypes.POINTER(Result)]
db, link = P(), P()
assert lib.duckdb_open(database.encode(), ctypes.byref(db)) == 0
assert lib.duckdb_connect(db, ctypes.byref(link)) == 0


def query(sql):
    result = Result()
    assert lib.duckdb_query(link, sql.encode(), ctypes.byref(result)) == 0, lib.duckdb_result_error(result)
    lib.duckdb_destroy_result(ctypes.byref(result))


def ask(sql, questions):
    statement = P()
    assert lib.duckdb_prepare(link, sql.encode(), ctypes.byref(statement)) == 0, sql
    times, rows, result = [], 0, Result()
    before = 0.0
    for turn in range(2):  # the first turn warms
        times, rows, before = [], 0, cpu()
        for question in questions if turn else questions[:200]:
            began = time.perf_counter_ns()
            lib.duckdb_bind_varchar(statement, 1, question[0])
            if len(question) > 1:
                lib.duckdb_bind_int32(statement, 2, question[1])
            state = lib.duckdb_execute_prepared(statement, ctypes.byref(result))
            times.append(time.perf_counter_ns() - began)
            assert state == 0, lib.duckdb_result_error(ctypes.byref(result))
            rows += lib.duckdb_row_count(ctypes.byref(result))
            lib.duckdb_destroy_result(ctypes.byref(result))
    spent = (cpu() - before) * 1e6 / len(times)
    times.sort()
    at = lambda share: times[int((len(times) - 1) * share)] / 1000
    return {"p50": at(0.5), "p95": at(0.95), "p99": at(0.99), "cpu": spent, "found": rows}


with open(os.path.join(work, "asked.txt"), "rb") as lines:
    asked = [(line.rstrip(b"\n"),) for line in lines]
with open(os.path.join(work, "pairs.txt"), "rb") as lines:
    pairs = [(d, int(n)) for d, n in (line.split() for line in lines)]
PAGE = "SELECT scheme, host, port, path_query, ts FROM {} WHERE domain = ? AND dataset_id = ? LIMIT 1000"
for threads in (1, 2):
    query(f"SET threads = {threads}")
    out[f"datasets_art_{threads}"] = ask("SELECT dataset_id, n, d, a, b FROM agg WHERE domain = ?", asked)
    out[f"urls_native_{threads}"] = ask(PAGE.format("urls"), pairs)
    query("SET parquet_metadata_cache = true")
    out[f"urls_parquet_{threads}"] = ask(PAGE.format(f"read_parquet('{parquet}')"), pairs[:500])
print(json.dumps(out))
