"""`trawl.spark` over Spark Connect. The engine is Sail; with SPARK_REMOTE set, the server that it names (`.ci/long spark`)."""

import json
import os
import pathlib
import re
import subprocess

import pytest

import trawl
from test_jobs import local, parts, rest  # noqa: F401

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")
spark_of = pytest.importorskip("trawl.spark")


@pytest.fixture(scope="session")
def spark():
    from pyspark.sql import SparkSession

    remote, server = os.environ.get("SPARK_REMOTE"), None
    if not remote:
        from pysail.spark import SparkConnectServer

        server = SparkConnectServer("127.0.0.1", 0)
        server.start(background=True)
        remote = f"sc://127.0.0.1:{server.listening_address[1]}"
    session = SparkSession.builder.remote(remote).getOrCreate()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    yield session
    session.stop()
    if server:
        server.stop()


def test_only_the_dataframe_api():
    for path in pathlib.Path(trawl.__file__).parent.glob("*.py"):
        assert not re.search(r"sparkContext|\.rdd", path.read_text()), path


@pytest.mark.parametrize("maps, digits", [(1, 0), (9, 1)])
def test_the_same_bytes_as_one_process(spark, tmp_path, lists, local, parts, maps, digits):
    sources = sorted(lists.glob("*.jsonl"))
    report = spark_of.ingest(
        spark, sources, tmp_path / "lake", "monday", map_tasks=maps, prefix_digits=digits, reduce_tasks=4, memory_bytes=64 << 20
    )
    assert (report["rows"], report["sources"]) == (6000, 2)
    assert parts(tmp_path / "lake") == local[digits]
    assert rest(tmp_path / "lake") == []
    assert spark_of.ingest(spark, sources, tmp_path / "lake", "monday")["rows"] == 0


def test_another_engine_finishes_a_job(spark, tmp_path, lists, local, parts):
    job = trawl.jobs.plan(tmp_path / "lake", "monday", sorted(lists.glob("*.jsonl")), map_tasks=3, prefix_digits=1)
    job.task("map", 1)
    spark_of.run(spark, job)
    assert parts(tmp_path / "lake") == local[1]


def test_a_dataframe(spark, tmp_path, lists):
    frame = spark.read.json([str(lists / "monday.jsonl")]).withColumnRenamed("timestamp", "ts").repartition(3)
    lake = trawl.Lake(tmp_path / "lake", create=True)
    assert spark_of.ingest(spark, frame, lake, "monday", source_id="frame")["rows"] == 3000
    lake.refresh()
    columns = ["url", "ts", "status"]
    other = trawl.Lake(tmp_path / "other", create=True)
    other.ingest(lists / "monday.jsonl", "monday")
    assert lake.scan("monday", columns=columns).to_list() == other.scan("monday", columns=columns).to_list()
    assert rest(tmp_path / "lake") == []
    assert spark_of.ingest(spark, frame, lake, "monday", source_id="frame")["rows"] == 0
    with pytest.raises(trawl.Refused, match="source_id"):
        spark_of.ingest(spark, frame, lake, "monday")
    with pytest.raises(trawl.Refused, match="source_id"):
        spark_of.ingest(spark, lists / "monday.jsonl", lake, "monday", source_id="x")


def test_archives(spark, warc, trawl_cli, tmp_path):
    for n in range(3):
        (tmp_path / f"{n}.warc.gz").write_bytes(warc.read_bytes())
    frame = spark_of.read_archive(spark, f"{tmp_path}/*.warc.gz")
    rows = sorted((row.asDict() for row in frame.collect()), key=lambda row: (row["url"], row["ts"]))
    wanted = trawl.archive.captures(warc).to_list()
    wanted = sorted((row for row in wanted for _ in range(3)), key=lambda row: (row["url"], row["ts"]))
    for row in rows:
        row["file"] = warc.name
    for row in wanted:
        row["ts"] = row["ts"].replace(tzinfo=None)
    assert rows == wanted
    said = trawl_cli("cat", warc, "--json")
    assert sorted(row["url"] for row in rows) == sorted(
        dict(one["fields"])["WARC-Target-URI"] for one in said if one["type"] == "response" for _ in range(3)
    )
    with pytest.raises(trawl.NotFound):
        spark_of.read_archive(spark, f"{tmp_path}/*.none")
    # `**` matches directories and what is in them: each capture comes once.
    (tmp_path / "in" / "deep").mkdir(parents=True)
    for n in range(3):
        (tmp_path / f"{n}.warc.gz").rename(tmp_path / "in" / ("deep" if n else "") / f"{n}.warc.gz")
    for pattern in ("in/**", "in/**/*", "in/*"):
        assert spark_of.read_archive(spark, f"{tmp_path}/{pattern}").count() == len(wanted), pattern


def test_archives_of_every_container_column_by_column(spark, mixed):
    for container, path in mixed.items():
        rows = [row.asDict() for row in spark_of.read_archive(spark, path).collect()]
        wanted = [row | {"ts": row["ts"].replace(tzinfo=None)} for row in trawl.archive.captures(path).to_list()]
        key = lambda row: (row["url"], row["kind"])
        assert sorted(rows, key=key) == sorted(wanted, key=key) and len(rows) >= 6, container


def test_reading_a_lake(spark, lake_dir):
    spark_of.register(spark)
    lake = trawl.Lake(lake_dir)
    read = spark.read.format("trawl")
    whole = read.load(str(lake_dir))
    assert whole.count() == 6000
    monday = read.option("dataset", "monday").option("partitions", "5").load(str(lake_dir))
    found = {(row["url"], row["status"]) for row in monday.collect()}
    assert found == {(row["url"], row["status"]) for row in lake.scan("monday")}
    (one,) = monday.where("domain = 'example.com'").groupBy("domain").count().collect()
    assert one["count"] == len(lake.urls("example.com", "monday").to_list())
    assert monday.where("domain = 'www.example.com'").count() == 0
    assert monday.where("domain = 'nobody.example'").count() == 0
    assert monday.where("domain in ('example.com', 'example.org') and status = 404").count() == sum(
        row["status"] == 404 for name in ("example.com", "example.org") for row in lake.urls(name, "monday")
    )
    (number,) = (d["dataset_id"] for d in lake.datasets() if d["name"] == "tuesday")
    assert whole.where(f"dataset_id = {number}").count() == 3000
    for parts_ in ("0", "257"):
        with pytest.raises(Exception, match="expected 1 to 256"):
            # A reader of its own: readers keep their options.
            spark.read.format("trawl").option("partitions", parts_).load(str(lake_dir)).count()
    with pytest.raises(Exception, match="no dataset"):
        read.option("dataset", "nobody").load(str(lake_dir)).count()


def registered(options):
    """The data source that `register` gives to a session, with these options."""

    class Session:
        class conf:
            @staticmethod
            def set(key, value):
                assert (key, value) == ("spark.sql.python.filterPushdown.enabled", "true")

        class dataSource:
            @staticmethod
            def register(source):
                Session.source = source

    spark_of.register(Session)
    return Session.source(options)


def test_what_a_condition_reads(tmp_path, trawl_cli):
    """Of 256 files `where domain = 'x'` reads one."""
    from pyspark.sql.datasource import EqualTo, GreaterThan, In

    (tmp_path / "list.txt").write_text("".join(f"https://h{n}.com/{n}\n" for n in range(3000)))
    trawl_cli("lake", "ingest", "--lake", tmp_path / "lake", "--dataset", "all", "--prefix-digits", 2, tmp_path / "list.txt")

    source = registered({"path": str(tmp_path / "lake"), "dataset": "all", "partitions": "256"})
    reader = source.reader(None)
    assert len(reader.partitions()) == 256
    rows = [sum(batch.num_rows for batch in reader.read(part)) for part in reader.partitions()]
    assert sum(rows) == 3000 and max(rows) < 40
    other = GreaterThan(("status",), 100)
    assert list(reader.pushFilters([EqualTo(("domain",), "h7.com"), other])) == [other]
    (part,) = reader.partitions()
    # Null is equal to nothing.
    nulls = source.reader(None)
    assert list(nulls.pushFilters([In(("domain",), ("h7.com", None, "h8.com"))])) == []
    assert sum(batch.num_rows for part in nulls.partitions() for batch in nulls.read(part)) == 2
    # Every other file may be gone.
    kept = [path for path in (tmp_path / "lake" / "urls").rglob("*.parquet")]
    prefix = f"domain_prefix={trawl.url.parse('https://h7.com/')['lake']['domain_prefix']}"
    assert len(kept) > 200
    for path in kept:
        if path.parent.name != prefix:
            path.unlink()
    assert sum(batch.num_rows for batch in reader.read(part)) == 1


def test_writing(spark, tmp_path):
    spark_of.register(spark)
    frame = spark.createDataFrame([(f"https://a.example/{n}", n) for n in range(100)], "url string, n int")
    write = lambda mode: frame.write.format("trawl").option("dataset", "d").option("source_id", "s").mode(mode).save(str(tmp_path / "lake"))
    write("append")
    write("append")
    assert len(trawl.Lake(tmp_path / "lake").scan("d").to_list()) == 100
    assert rest(tmp_path / "lake") == [] or os.environ.get("SPARK_REMOTE")


def test_a_writer_whose_first_attempts_fail_commits_once(tmp_path):
    """Spark gives the driver the messages of the attempts that succeeded; what the others wrote is in no commit."""
    import pyarrow

    lake = tmp_path / "lake"
    source = registered({"path": str(lake), "dataset": "d", "source_id": "s"})
    rows = [pyarrow.RecordBatch.from_pydict({"url": [f"https://a.example/{part}/{n}" for n in range(100)]}) for part in range(2)]
    writer = source.writer(None, False)
    for batch in rows:
        writer.write(iter([batch]))  # its executor is lost, and its message with it
    writer.commit([writer.write(iter([batch])) for batch in rows] + [None])
    assert len(trawl.Lake(lake).scan("d").to_list()) == 200
    # The same source again adds nothing.
    again = source.writer(None, False)
    again.commit([again.write(iter([batch])) for batch in rows])
    assert len(trawl.Lake(lake).scan("d").to_list()) == 200
    trawl.Lake(lake).gc(dry_run=False, keep_versions=1, keep_states=1, grace_seconds=0)
    assert rest(lake) == []
    # To write nothing over rows is an error: it did nothing.
    with pytest.raises(trawl.Refused, match="no rows"):
        source.writer(None, True).commit([None])
    source.writer(None, False).commit([None])
    assert len(trawl.Lake(lake).scan("d").to_list()) == 200


def test_a_lost_file_is_no_answer(tmp_path, trawl_cli):
    """A part of a lake that is damaged ends the job: it was read as a domain without rows."""
    from pyspark.sql.datasource import EqualTo

    (tmp_path / "list.txt").write_text("https://a.example/\n")
    trawl_cli("lake", "ingest", "--lake", tmp_path / "lake", "--dataset", "all", tmp_path / "list.txt")
    reader = registered({"path": str(tmp_path / "lake"), "dataset": "all"}).reader(None)
    assert list(reader.pushFilters([EqualTo(("domain",), "a.example")])) == []
    (part,) = reader.partitions()
    assert sum(batch.num_rows for batch in reader.read(part)) == 1
    for path in (tmp_path / "lake" / "index").glob("*/postings/**/*"):
        if path.is_file():
            path.unlink()
    with pytest.raises(trawl.Corrupt):
        list(reader.read(part))


def test_a_job_in_a_bucket(spark, bucket, lists, local, parts):
    if os.environ.get("SPARK_REMOTE"):
        pytest.skip("its executors were started before the bucket")
    lake = f"{bucket}/spark-{os.getpid()}"
    spark_of.ingest(spark, sorted(lists.glob("*.jsonl")), lake, "monday", map_tasks=2, prefix_digits=1, reduce_tasks=2)
    assert parts(lake) == local[1]
