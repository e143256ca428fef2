"""An ingest as a job: by any executor the files of `trawl lake ingest`, once."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest

import trawl


@pytest.fixture(scope="session")
def parts():
    """All Parquet and index files of a lake, by hash."""

    def of(lake):
        done = subprocess.run([os.environ["TRAWL"], "lake", "parts", "--hashes", "--lake", str(lake)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return of


@pytest.fixture(scope="session")
def local(tmp_path_factory, lists, trawl_cli, parts):
    """The files that one process writes, by digits of the prefix."""

    def made(digits):
        where = tmp_path_factory.mktemp("local") / "lake"
        trawl_cli("lake", "ingest", "--lake", where, "--dataset", "monday", "--prefix-digits", digits, *sorted(lists.glob("*.jsonl")))
        return parts(where)

    return {digits: made(digits) for digits in (0, 1, 2)}


def rest(lake):
    """What a job must not leave."""
    return [path for path in (pathlib.Path(lake) / "jobs").rglob("*") if path.is_file()]


def by_cli(job):
    run = lambda *args: subprocess.run([os.environ["TRAWL"], "lake", *args, "-q"], check=True, capture_output=True)
    for stage, numbers in job.missing().items():
        if stage == "index":
            run("commit", "--lake", job.lake, "--job", job.name)
        for number in numbers:
            run("task", "--lake", job.lake, "--job", job.name, stage, str(number))
    run("commit", "--lake", job.lake, "--job", job.name)


@pytest.mark.parametrize("maps, digits, memory, threads", [(1, 0, 64, 1), (2, 1, 1024, 2), (9, 1, 64, 2), (9, 2, 64, 2)])
def test_the_same_bytes_by_every_executor(tmp_path, lists, local, parts, maps, digits, memory, threads):
    with ProcessPoolExecutor(2) as processes, ThreadPoolExecutor(2) as pool:
        ways = {"processes": processes, "threads": pool, "none": None, "cli": by_cli}
        for name, way in ways.items():
            if digits == 2 and name != "processes":
                continue
            job = trawl.jobs.plan(
                tmp_path / name, "monday", sorted(lists.glob("*.jsonl")), map_tasks=maps, reduce_tasks=4, prefix_digits=digits,
                memory_bytes=memory << 20, threads=threads,
            )
            assert len(job.missing()["map"]) == maps
            if way is by_cli:
                by_cli(job)
            else:
                report = trawl.jobs.run(job, way)
                assert (report["rows"], report["version"]) == (6000, trawl.Lake(tmp_path / name).version)
            assert parts(tmp_path / name) == local[digits], name
            assert rest(tmp_path / name) == []
            assert trawl.Lake(tmp_path / name).verify()["faults"] == []


def test_a_job_is_planned_once(tmp_path, lists):
    lake = trawl.Lake(tmp_path / "lake", create=True)
    job = trawl.jobs.plan(lake, "monday", lists / "monday.jsonl", name="mine")
    with pytest.raises(trawl.Refused, match="already"):
        trawl.jobs.plan(lake, "monday", lists / "monday.jsonl", name="mine")
    other = trawl.jobs.plan(lake, "monday", lists / "monday.jsonl")
    trawl.jobs.run(job)
    # Two jobs with the same source: one commit, the other says so.
    with pytest.raises(trawl.Error, match="monday.jsonl"):
        trawl.jobs.run(other)
    lake.refresh()
    assert len(lake.scan("monday").to_list()) == 3000
    assert trawl.jobs.plan(lake, "monday", lists / "monday.jsonl") is None
    with pytest.raises(trawl.Refused, match="has ended"):
        trawl.jobs.resume(lake, "mine")
    with pytest.raises(trawl.Refused, match="from 0 to"):
        other.task("map", 99)
    pyarrow = pytest.importorskip("pyarrow")
    with pytest.raises(trawl.Refused, match="only by this process"):
        trawl.jobs.plan(lake, "table", pyarrow.table({"url": ["https://a.example/"]}))


def test_a_table_is_known_whichever_way_it_came(tmp_path):
    table = pytest.importorskip("pyarrow").table({"url": ["https://a.example/"]})
    lake = trawl.Lake(tmp_path / "lake", create=True)
    lake.ingest(table, "one", source_id="t")
    assert trawl._trawl.job_knows(lake, "one", "t") and not trawl._trawl.job_knows(lake, "one", "o")
    path = trawl._trawl.job_spool(lake.path, "spooled", table)
    trawl.jobs.run(trawl.jobs.plan(lake, "two", [path], name="spooled", source_id="t"))
    assert trawl._trawl.job_knows(lake, "two", "t")
    with pytest.raises(trawl.Refused, match="other rows"):
        lake.ingest(table, "two", source_id="t")


def test_two_drivers_of_one_job(tmp_path, lists, local, parts):
    job = trawl.jobs.plan(tmp_path / "lake", "monday", sorted(lists.glob("*.jsonl")), map_tasks=3, prefix_digits=1)
    with ThreadPoolExecutor(2) as drivers:
        ended = [drivers.submit(trawl.jobs.run, job) for _ in range(2)]
        errors = [one.exception() for one in ended]
    # The slower one may find that the job has ended.
    assert sum(error is None for error in errors) >= 1
    assert all(error is None or isinstance(error, trawl.Error) for error in errors), errors
    assert parts(tmp_path / "lake") == local[1]


@pytest.mark.parametrize("what", ["source", "suffix list", "deny list", "version"])
def test_what_changes_meanwhile_is_refused_by_name(tmp_path, what, trawl_cli):
    path = tmp_path / "list.txt"
    path.write_text("".join(f"https://h{n}.example/{n}\n" for n in range(100)))
    lake = trawl.Lake(tmp_path / "lake", create=True)
    job = trawl.jobs.plan(lake, "monday", path)
    if what == "source":
        path.write_text("https://other.example/\n")
        wanted = "list.txt"
    elif what == "suffix list":
        (tmp_path / "list.dat").write_text("com\nexample\nh1.example\n")
        trawl_cli("lake", "rebuild", "--lake", tmp_path / "lake", "--psl", tmp_path / "list.dat")
        wanted = "suffix list"
    elif what == "deny list":
        job.task("map", 0)
        lake.deny(domain="h7.example")
        wanted = "deny list"
    else:
        (file,) = (tmp_path / "lake" / "jobs").glob("*/job.json")
        text, count = re.subn(r'"program":"[^"]*"', '"program":"9.9.9"', file.read_text())
        assert count == 1
        # Without its checksum the changed file counts as whole: what refuses it is the release, not the damage.
        text, count = re.subn(r',\n  "checksum": "[0-9a-f]{16}"\n\}\n\Z', "}\n", text)
        assert count == 1
        file.write_text(text)
        wanted = rf"a job of this release, {re.escape(trawl.__version__)}, found one of 9\.9\.9"
        for stage in ("map", "reduce", "index"):
            with pytest.raises(trawl.Refused, match=wanted):
                job.task(stage, 0)
        with pytest.raises(trawl.Refused, match=wanted):
            job.commit()
        with pytest.raises(trawl.Refused, match=wanted):
            trawl.jobs.resume(lake, job.name)
    with pytest.raises(trawl.Error, match=wanted):
        trawl.jobs.run(job)
    lake.refresh()
    assert lake.datasets().to_list() == [] or lake.datasets().to_list()[0]["rows"] == 0


def test_a_killed_driver_is_resumed(tmp_path, lists, local, parts):
    """The driver dies after each of its steps in turn; another one continues."""
    driver = """
import sys, os, trawl
lake, steps = sys.argv[1], int(sys.argv[2])
class Dies:
    def submit(self, task, *args):
        global steps
        if steps == 0: os.kill(os.getpid(), 9)
        steps -= 1
        import concurrent.futures
        done = concurrent.futures.Future()
        done.set_result(task(*args))
        return done
job = trawl.jobs.plan(lake, "monday", sys.argv[3:], map_tasks=2, reduce_tasks=2, prefix_digits=1, name="job")
trawl.jobs.run(job, Dies())
"""
    sources = [str(path) for path in sorted(lists.glob("*.jsonl"))]
    for steps in range(6):
        lake = tmp_path / f"{steps}"
        done = subprocess.run([sys.executable, "-c", driver, lake, str(steps), *sources])
        assert done.returncode in (0, -signal.SIGKILL)
        if done.returncode:
            assert trawl.jobs.resume(lake, "job")["rows"] == 6000
        assert parts(lake) == local[1], steps
        assert rest(lake) == []


def test_killed_and_stopped_tasks(tmp_path, lists, local, parts):
    """Task processes are killed, and one is stopped until its twin has committed and continues after the end of the job."""
    job = trawl.jobs.plan(tmp_path / "lake", "monday", sorted(lists.glob("*.jsonl")), map_tasks=2, reduce_tasks=2, prefix_digits=1)

    def start(stage, number):
        code = f"import trawl; trawl.jobs.Job(*{tuple(job)!r}).task({stage!r}, {number})"
        return subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)

    zombies = []

    def do(stage, numbers):
        for number in numbers:
            killed, stopped = start(stage, number), start(stage, number)
            time.sleep(0.12)
            killed.kill()
            killed.wait()
            if stopped.poll() is None:
                stopped.send_signal(signal.SIGSTOP)
            zombies.append(stopped)
            job.task(stage, number)

    trawl.jobs.drive(job, do)
    for zombie in zombies:
        if zombie.poll() is None:
            zombie.send_signal(signal.SIGCONT)
    for zombie in zombies:
        zombie.wait(30)
    assert parts(tmp_path / "lake") == local[1]
    lake = trawl.Lake(tmp_path / "lake")
    assert lake.verify()["faults"] == []
    lake.gc(dry_run=False, keep_versions=1, keep_states=1, grace_seconds=0)
    assert rest(tmp_path / "lake") == []
    assert lake.gc(dry_run=True, keep_versions=1, keep_states=1, grace_seconds=0)["objects"] == 0
    named = {json.loads(line)["path"] for line in subprocess.run(
        [os.environ["TRAWL"], "lake", "parts", "--json", "--lake", str(tmp_path / "lake")], capture_output=True, text=True
    ).stdout.splitlines()}
    found = {str(path.relative_to(tmp_path / "lake")) for path in (tmp_path / "lake" / "urls").rglob("*.parquet")}
    assert found <= named
    shutil.rmtree(tmp_path / "lake")


def test_a_job_in_a_bucket(bucket, lists, local, parts):
    lake = f"{bucket}/jobs-{os.getpid()}"
    job = trawl.jobs.plan(lake, "monday", sorted(lists.glob("*.jsonl")), map_tasks=2, reduce_tasks=2, prefix_digits=1)
    with ProcessPoolExecutor(2) as pool:
        assert trawl.jobs.run(job, pool)["rows"] == 6000
    assert parts(lake) == local[1]
