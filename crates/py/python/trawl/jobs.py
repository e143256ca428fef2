"""An ingest that many processes share, run by any `concurrent.futures` executor.

    job = trawl.jobs.plan("s3://bucket/lake", "monday", "s3://bucket/lists/a.txt.zst")
    with ProcessPoolExecutor() as pool:                    # or Dask's client.get_executor(), mpi4py's, loky's
        report = trawl.jobs.run(job, pool)

An executor carries a `Job` (a few strings) and numbers. Rows, runs and reports pass through the lake, which every process must
see under the same name, as well as the sources. A task may fail, be repeated and run twice at the same time: its first report
counts. After a failure `trawl.jobs.resume` continues, in another process and with another executor if need be.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _trawl

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from os import PathLike

    _Path = str | PathLike[str]

__all__ = ["Job", "drive", "plan", "resume", "run"]


class Job(NamedTuple):
    """A job, and what a process that does one of its tasks may use: no byte of the files depends on that."""

    lake: str
    name: str
    memory_bytes: int = 1 << 30
    threads: int = 2
    temp_dir: str | None = None

    def missing(self) -> dict[str, list[int]]:
        """The tasks of each stage that have no report yet."""
        return _trawl.job_missing(self.lake, self.name)

    def task(self, stage: str, number: int) -> dict[str, Any]:
        """Does one task in this process; gives its report."""
        return _trawl.job_task(self.lake, self.name, stage, number, **self._room())

    def commit(self) -> dict[str, Any]:
        """Commits what is next: rows after map and reduce, a version after the index."""
        return _trawl.job_commit(self.lake, self.name, **self._room())

    def _room(self) -> dict[str, Any]:
        return {"memory_bytes": self.memory_bytes, "threads": self.threads, "temp_dir": self.temp_dir}


def plan(
    lake: "_trawl.Lake | _Path",
    dataset: str,
    sources: "_Path | Iterable[_Path]",
    *,
    memory_bytes: int = 1 << 30,
    threads: int = 2,
    temp_dir: "_Path | None" = None,
    **settings: Any,
) -> Job | None:
    """Cuts an ingest into tasks; None if the dataset has all sources already.

    `settings`: map_tasks, reduce_tasks; mode, allow_empty, format, source as in `Lake.ingest`; prefix_digits, store_ids, zstd_level,
    on which the bytes of the files depend. A lake that is not there is made.
    """
    if not isinstance(lake, _trawl.Lake):
        lake = _trawl.Lake(lake, create=True)
    name = _trawl.job_plan(lake, dataset, sources, **settings)
    if name is None:
        return None
    return Job(_shared(lake.path), name, memory_bytes, threads, None if temp_dir is None else str(temp_dir))


def _shared(path: str) -> str:
    """The lake's name for processes that may work in another directory."""
    import os

    return path if "://" in path else os.path.abspath(path)


def run(job: Job, executor: "Executor | None" = None) -> dict[str, Any]:
    """Does all tasks that are not done, commits, and gives the report of the ingest. Without an executor this process does them."""
    return drive(job, lambda stage, numbers: _each(job, executor, stage, numbers))


def resume(lake: "_trawl.Lake | _Path", name: str, executor: "Executor | None" = None, **room: Any) -> dict[str, Any]:
    """Continues a job whose driver has ended, by its name (`Job.name`)."""
    import os

    path = lake.path if isinstance(lake, _trawl.Lake) else os.fspath(lake)
    return run(Job(_shared(path), name, **room), executor)


def _each(job: Job, executor: "Executor | None", stage: str, numbers: list[int]) -> None:
    if executor is None:
        for number in numbers:
            job.task(stage, number)
        return
    from concurrent.futures import as_completed

    tasks = [executor.submit(Job.task, job, stage, number) for number in numbers]
    try:
        for task in as_completed(tasks):
            task.result()
    finally:
        # After a failure the rest of the stage is not worth doing: another driver decides.
        for task in tasks:
            task.cancel()


def drive(job: Job, do: Callable[[str, list[int]], None]) -> dict[str, Any]:
    """Runs a job by `do(stage, numbers)`, which has these tasks of a stage done by whatever it likes.

    What `do` returns does not count: the reports in the lake do.
    """
    report: dict[str, Any] = {}
    stages = list(job.missing())
    rows, index = stages[:-1], stages[-1:]
    for group in (rows, index):
        for stage in group:
            numbers = job.missing()[stage]
            if numbers:
                do(stage, numbers)
                left = job.missing()[stage]
                if left:
                    raise _trawl.Error(f"{stage} tasks of job {job.name} ended without a report: {left[:10]}")
        done = job.commit()
        report.update(done)
        if done["type"] == "version":
            break
    del report["type"]
    return report
