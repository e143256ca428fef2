"""Trawl on Spark: ingests as jobs of Spark tasks, lakes and archives as DataFrames.

    report = trawl.spark.ingest(spark, "s3://bucket/lists/a.txt.zst", "s3://bucket/lake", "monday")
    trawl.spark.read_archive(spark, ["crawl-0001.warc.gz", "crawl-0002.warc.gz"]).groupBy("status").count()
    trawl.spark.register(spark)
    spark.read.format("trawl").option("dataset", "monday").load("s3://bucket/lake").where("domain = 'example.com'")

Only the DataFrame API is used, so that Spark Connect will do: Spark 4 and Sail. Of an ingest from files Spark carries the number of each
task, and nothing else. Executors need pyarrow and this package; one whose Python lacks it takes it from `spark.archives`: the wheel, renamed to
`trawl.zip`, as `trawl.zip#trawl`.
"""

# Functions and classes that go to executors are defined inside of functions: pickle then carries their code, not the name of this
# module, which an executor cannot import before it has looked into its archives. For the same reason they import what they use.

from collections.abc import Iterable, Iterator
from os import PathLike
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from . import _trawl, jobs

__all__ = ["ingest", "read_archive", "register", "run"]

_Path = str | PathLike[str]

_CAPTURES = (
    "url string, ts timestamp, kind string, status int, content_type string, digest string, body_length bigint, error string,"
    " file string, offset bigint, length bigint"
)
_ROWS = (
    "dataset_id int, domain string, url_id bigint, url string, ts timestamp, status int, content_type string, digest string,"
    " body_length bigint, warc_file string, warc_offset bigint, warc_length bigint, extras string"
)
# Parts that a dataset is read in unless the option `partitions` says otherwise.
_PARTS = 16


def _imports() -> Any:
    """What a task calls first: this package, from where it is."""

    def package() -> Any:
        import importlib
        import os
        import sys

        # An executor unpacks its archives into the directory that it works in. On the driver, where the Python that plans the reading of a
        # lake needs the package, too, they are in a directory that Spark puts on sys.path.
        for place in (os.getcwd(), *sys.path):
            unpacked = os.path.join(place, "trawl")
            if os.path.isfile(os.path.join(unpacked, "trawl", "__init__.py")) and unpacked not in sys.path:
                sys.path.insert(0, unpacked)
                break
        importlib.import_module("trawl.jobs")
        return importlib.import_module("trawl")

    return package


def _exact() -> Any:
    """Batches with exactly the types that Spark has for a schema: it refuses all others."""

    def exact(rows: Any, schema: Any) -> Iterator[Any]:
        import pyarrow

        for batch in rows.reader():
            columns = []
            for field in schema:
                column = batch.column(field.name)
                # Spark has no unsigned numbers: the same 64 bits, as in its own hashes.
                column = column.view(field.type) if column.type == pyarrow.uint64() else column.cast(field.type)
                columns.append(column)
            yield pyarrow.RecordBatch.from_arrays(columns, schema=schema)

    return exact


def _schema(ddl: str) -> Any:
    import pyarrow

    types = {
        "string": pyarrow.string(),
        "int": pyarrow.int32(),
        "bigint": pyarrow.int64(),
        "timestamp": pyarrow.timestamp("us", "UTC"),
    }
    fields = (field.split() for field in ddl.split(","))
    return pyarrow.schema([(name, types[kind]) for name, kind in fields])


def _spread(spark: SparkSession, items: list[Any], work: Any, schema: str) -> DataFrame:
    """A DataFrame of what `work` yields for each item, one task an item."""

    def tasks(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from work(items[number])

    return spark.range(0, len(items), 1, max(1, len(items))).mapInArrow(tasks, schema)


def run(spark: SparkSession, job: jobs.Job) -> dict[str, Any]:
    """Does all tasks of a job that are not done as Spark tasks, commits, and gives the report. May be repeated after a failure.

    A task uses `job.memory_bytes` outside of the JVM: leave that much `spark.executor.memoryOverhead` for each core.
    """
    package, settings = _imports(), tuple(job)

    def do(stage: str, numbers: list[int]) -> None:
        def work(number: int) -> Iterator[Any]:
            package().jobs.Job(*settings).task(stage, number)
            import pyarrow

            yield pyarrow.RecordBatch.from_arrays([pyarrow.array([number], pyarrow.int64())], ["task"])

        _spread(spark, numbers, work, "task bigint").collect()

    return jobs.drive(job, do)


def ingest(
    spark: SparkSession,
    sources: "_Path | Iterable[_Path] | DataFrame",
    lake: "_trawl.Lake | _Path",
    dataset: str,
    *,
    source_id: str | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Ingests files, or the rows of a DataFrame, into a dataset; gives the report. `settings` are those of `trawl.jobs.plan`.

    Rows of files do not pass through Spark. Those of a DataFrame do, once; it needs a `source_id`, and a dataset that has it skips
    the DataFrame.
    """
    if not isinstance(lake, _trawl.Lake):
        lake = _trawl.Lake(lake, create=True)
    if hasattr(sources, "mapInArrow"):
        if source_id is None:
            raise _trawl.Refused("a DataFrame has no name of its own: give a source_id, by which a repeated ingest knows it")
        job = _plan_rows(sources, lake, dataset, source_id, settings)
    elif source_id is not None:
        raise _trawl.Refused("source_id names a DataFrame: files are known by their paths")
    else:
        job = jobs.plan(lake, dataset, sources, **settings)
    return {"rows": 0, "version": lake.refresh()} if job is None else run(spark, job)


def _spooler() -> Any:
    """Writes the batches of a task where every task of the job can read them; gives the paths."""
    package = _imports()

    def spool(lake: str, name: str, batches: Iterator[Any]) -> Iterator[str]:
        import pyarrow

        first = next(batches, None)
        if first is not None:

            def all_of_them() -> Iterator[Any]:
                yield first
                yield from batches

            table = pyarrow.RecordBatchReader.from_batches(first.schema, all_of_them())
            yield package()._trawl.job_spool(lake, name, table)

    return spool


def _plan_rows(
    frame: DataFrame, lake: _trawl.Lake, dataset: str, source_id: str, settings: dict[str, Any]
) -> "jobs.Job | None":
    if settings.get("mode", "append") == "append" and _trawl.job_knows(lake, dataset, source_id):
        return None
    import secrets

    name = secrets.token_hex(16)
    spool, shared = _spooler(), jobs._shared(lake.path)

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        for path in spool(shared, name, batches):
            yield pyarrow.RecordBatch.from_arrays([pyarrow.array([path], pyarrow.string())], ["path"])

    paths = sorted(row["path"] for row in frame.mapInArrow(work, "path string").collect())
    if not paths:
        if settings.get("mode", "append") != "append" and any(d["name"] == dataset and d["rows"] for d in lake.datasets()):
            raise _trawl.Refused(f"the DataFrame holds no rows to put in the place of those of {dataset}")
        return None
    return jobs.plan(lake, dataset, paths, name=name, source_id=source_id, **settings)


def read_archive(spark: SparkSession, paths: "_Path | Iterable[_Path]") -> DataFrame:
    """The captures of archives as a DataFrame without bodies, one task an archive: the columns of `trawl.archive.captures`."""
    import glob
    import os
    from pathlib import PurePath

    given = [paths] if isinstance(paths, str | PathLike) else list(paths)
    found: list[str] = []
    for one in given:
        path = os.fspath(one)
        if "://" in path or os.path.exists(path):
            found.append(path if "://" in path else os.path.abspath(path))
        else:
            matches = sorted({os.path.abspath(match) for match in glob.glob(path, recursive=True)})
            if not matches:
                raise _trawl.NotFound(f"nothing matches {path}")
            # What `**` matches has directories in it, and the archives in them once more.
            whole = set(matches)
            found += [path for path in matches if whole.isdisjoint(map(str, PurePath(path).parents))]
    package, exact, schema = _imports(), _exact(), _schema(_CAPTURES)

    def work(path: str) -> Iterator[Any]:
        yield from exact(package().archive.captures(path), schema)

    return _spread(spark, found, work, _CAPTURES)


def register(spark: SparkSession) -> None:
    """Makes `spark.read.format("trawl")` read lakes, and `df.write.format("trawl")` add to them.

    Options of reading: `dataset` (a name; all datasets without it), `version`, `partitions` (1 to 256, 16 unless given). Conditions on `domain`
    and `dataset_id` (equal, in) are answered by the index: `domain = 'x'` reads the pages of that domain, and of its file alone.
    Options of writing: `dataset` and `source_id`; the driver does the job, so `trawl.spark.ingest` is better for large tables.
    Sets `spark.sql.python.filterPushdown.enabled` for this session: unless it is true, Spark refuses a source that takes conditions.
    """
    from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, DataSourceReader, InputPartition
    from pyspark.sql.datasource import EqualTo, In, WriterCommitMessage

    package, exact, schema, ddl, default_parts = _imports(), _exact(), _schema(_ROWS), _ROWS, _PARTS

    class Part(InputPartition):  # type: ignore[misc]
        """A domain of a dataset, or a part of all its domains."""

        def __init__(self, dataset: int, domain: str | None, part: tuple[int, int] | None) -> None:
            self.dataset, self.domain, self.part = dataset, domain, part

    class Reader(DataSourceReader):  # type: ignore[misc]
        def __init__(self, options: dict[str, str], given: Any) -> None:
            import pyarrow

            # Sail gives the Arrow schema that it wants, in which times have no zone; Spark gives its own types.
            self.schema = given if isinstance(given, pyarrow.Schema) else schema
            self.path, self.parts = options["path"], int(options.get("partitions", default_parts))
            if not 1 <= self.parts <= 256:
                # None at all would read as a lake without rows.
                raise package().Refused(f"partitions: expected 1 to 256, found {self.parts}")
            lake = package().Lake(self.path, version=options.get("version"))
            self.version = lake.version
            wanted = options.get("dataset")
            self.datasets = [d["dataset_id"] for d in lake.datasets() if wanted in (None, d["name"])]
            if wanted is not None and not self.datasets:
                raise package().NotFound(f"there is no dataset {wanted!r} in {self.path}")
            self.domains: set[str] | None = None

        def pushFilters(self, filters: list[Any]) -> Any:
            for one in filters:
                values = (one.value,) if isinstance(one, EqualTo) else one.value if isinstance(one, In) else None
                if values is None or one.attribute not in (("domain",), ("dataset_id",)):
                    yield one
                elif one.attribute == ("domain",):
                    # No row is equal to null, which a list of values may have in it.
                    names = set(values) - {None}
                    self.domains = names if self.domains is None else self.domains & names
                else:
                    self.datasets = [d for d in self.datasets if d in values]

        def partitions(self) -> list[Any]:
            if self.domains is not None:
                return [Part(d, domain, None) for d in self.datasets for domain in sorted(self.domains)]
            return [Part(d, None, (k, self.parts)) for d in self.datasets for k in range(self.parts)]

        def read(self, part: Any) -> Iterator[Any]:
            if part is None:
                return
            trawl = package()
            lake = trawl.Lake(self.path, version=self.version)
            if part.domain is None:
                yield from exact(lake.scan(part.dataset, part=part.part), self.schema)
                return
            try:
                if lake.domain(part.domain).name != part.domain:
                    return  # a host is not a value of this column
                rows = lake.urls(part.domain, part.dataset)
            except (trawl.NotFound, trawl.Refused):
                return
            yield from exact(rows, self.schema)

    class Message(WriterCommitMessage):  # type: ignore[misc]
        def __init__(self, paths: list[str]) -> None:
            self.paths = paths

    # The function inside of `_spooler`: the name of that one would have executors import this module.
    spool = _spooler()

    class Writer(DataSourceArrowWriter):  # type: ignore[misc]
        def __init__(self, options: dict[str, str], overwrite: bool) -> None:
            import secrets

            trawl = package()
            for name in ("path", "dataset", "source_id"):
                if name not in options:
                    raise trawl.Refused(f"expected the option {name}, found none")
            self.options, self.overwrite, self.name = dict(options), overwrite, secrets.token_hex(16)
            self.path = trawl.jobs._shared(trawl.Lake(options["path"], create=True).path)
            lake = trawl.Lake(self.path)
            self.known = not overwrite and trawl._trawl.job_knows(lake, options["dataset"], options["source_id"])

        def write(self, batches: Iterator[Any]) -> Any:
            return Message([] if self.known else list(spool(self.path, self.name, batches)))

        def commit(self, messages: list[Any]) -> None:
            trawl = package()
            paths = sorted(path for message in messages if message is not None for path in message.paths)
            mode = "replace" if self.overwrite else "append"
            dataset, source_id = self.options["dataset"], self.options["source_id"]
            if not paths:
                if self.overwrite and any(d["name"] == dataset and d["rows"] for d in trawl.Lake(self.path).datasets()):
                    raise trawl.Refused(f"the DataFrame holds no rows to put in the place of those of {dataset}")
                return
            job = trawl.jobs.plan(self.path, dataset, paths, name=self.name, source_id=source_id, mode=mode)
            if job is not None:
                trawl.jobs.run(job)

        def abort(self, messages: list[Any]) -> None:
            """What was written lies below a job that never began: `trawl lake gc` takes it."""

    class TrawlSource(DataSource):  # type: ignore[misc]
        @classmethod
        def name(cls) -> str:
            return "trawl"

        def schema(self) -> str:
            return ddl

        def reader(self, schema: Any) -> Any:
            return Reader(dict(self.options), schema)

        def writer(self, schema: Any, overwrite: bool) -> Any:
            return Writer(dict(self.options), overwrite)

    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(TrawlSource)
