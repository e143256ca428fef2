#!/usr/bin/env python3
"""A lake in a bucket: the same answers as in a directory, copied there and back, served, and under a server that misbehaves.

On moto, or with TRAWL_TEST_SERVER=1 on the server that the AWS variables name (see radosgw.py)."""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from peer import TRAWL, check, done, run, trawl, trawl_json, wait_for
from s3lake import HERE, as_in_a_directory, bucket, put, queries, trouble, write_sources
from servers import free_port

LAKE = "s3://trawl/lake"
# The promises of stores, and every lake test that asks through its store; those that take longest begin first.
CONFORMANCE, TESTS = ["s3"], ["brute_force", "extremes", "rebuild", "compaction", "versions", "denied", "diff", "lost", "access"]


def compiled(names):
    """The test programs of these suites, with the directory of their crate."""
    begun, wanted = time.monotonic(), [arg for name in names for arg in ("--test", name)]
    # Of the whole workspace: two crates alone select other features, and everything is compiled again.
    command = ["cargo", "test", "--workspace", "--locked", "--no-run", "--message-format=json-render-diagnostics", *wanted]
    programs = {}
    for message in map(json.loads, run(*command, cwd=HERE.parent.parent).splitlines()):
        if message.get("executable") and (crate := pathlib.Path(message["manifest_path"]).parent).name in ("store", "query"):
            programs[message["target"]["name"]] = message["executable"], crate
    check(sorted(programs) == sorted(names), f"{len(names)} suites compiled in {time.monotonic() - begun:.0f} s", programs)
    return programs


def suites(names):
    """Runs all of them, whatever fails, and returns those that did. Tests wait for the server most of the time, so several run
    at once."""
    programs = compiled(names)
    env = {**os.environ, "TRAWL_TEST_S3": "s3://trawl/conformance", "TRAWL_TEST_STORE": "s3://trawl/tests", "RUST_TEST_THREADS": "4"}

    def one(name):
        begun, (program, cwd) = time.monotonic(), programs[name]
        done = subprocess.run([program], cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        return name, done, time.monotonic() - begun

    failed = []
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for answer in concurrent.futures.as_completed([pool.submit(one, name) for name in names]):
            name, done, seconds = answer.result()
            ran = next((line for line in done.stdout.splitlines() if line.startswith("test result:")), f"exit {done.returncode}")
            print(f"    {name}: {seconds:.0f} s, {ran}", flush=True)
            if done.returncode:
                failed.append(name)
                print(f"not ok: suite {name}\n{done.stdout[-8000:]}", flush=True)
    return failed


write_sources()
with bucket() as port:
    wanted = CONFORMANCE if os.environ.get("S3_CONFORMANCE", "1") == "1" else []
    wanted = wanted + (TESTS if os.environ.get("TRAWL_TEST_SERVER") else [])
    failed = suites(wanted) if wanted else []
    as_in_a_directory(LAKE)

    # An ingest by many processes, every task of it twice at the same time.
    trawl("lake", "ingest", "--lake", "alone", "--dataset", "d", "--prefix-digits", 1, "a.txt", "c.txt", "-q", status=1)
    plan = ["--map-tasks", 3, "--reduce-tasks", 4, "--prefix-digits", 1]
    tasks = trawl_json("lake", "plan", "--lake", "s3://trawl/job", "--dataset", "d", *plan, "a.txt", "c.txt")
    job = next(task["job"] for task in tasks if "stage" in task)
    for stage in ("map", "reduce", "commit", "index", "commit"):
        calls = [["task", json.dumps(task)] for task in tasks if task.get("stage") == stage]
        for call in calls or [["commit", "--lake", "s3://trawl/job", "--job", job]]:
            twins = [subprocess.Popen([TRAWL, "lake", *call, "-q"], stdout=subprocess.DEVNULL) for _ in range(2)]
            ended = sorted(twin.wait() for twin in twins)
            # Of two last commits the slower one may find that the job has ended.
            check(ended[0] in (0, 1) and (ended[1] in (0, 1) or stage == "commit"), f"{stage}: {ended}")
    hashes = lambda lake: trawl("lake", "parts", "--hashes", "--lake", lake)
    check(hashes("alone") == hashes("s3://trawl/job"), "a job in a bucket writes what one process writes")
    trawl("lake", "verify", "--lake", "s3://trawl/job", "-q")

    # There and back again, and incremental.
    there = trawl_json("lake", "copy", "local", "s3://trawl/copy")[0]
    back = trawl_json("lake", "copy", "s3://trawl/copy", "back")[0]
    check(there["version"] == back["version"] and queries("back") == queries("local"), "copied to a bucket and back")
    again = trawl_json("lake", "copy", "local", "s3://trawl/copy")[0]
    check(again["up_to_date"] and again["bytes"] < 400_000, f"a second copy: {again}")
    trawl("lake", "ingest", "--lake", "local", "--dataset", "third", "c.txt", "-q")
    more = trawl_json("lake", "copy", "local", "s3://trawl/copy")[0]
    check(not more["up_to_date"] and more["unchanged"] > 10, f"only what is new: {more}")
    check([d["name"] for d in trawl_json("lake", "datasets", "--lake", "s3://trawl/copy")] == ["first", "second", "third"], "the copy has the new dataset")
    trawl("lake", "gc", "--lake", "s3://trawl/copy", "--keep-versions", 1, "--grace", "0s", "--yes", "-q")
    trawl("lake", "verify", "--lake", "s3://trawl/copy", "-q")
    little = trawl_json("lake", "verify", "--lake", "s3://trawl/copy", "--max-read", "1")
    check([line for line in little if line.get("type") == "unread"], "verify fetches no more than it may, and says what it did not read")

    # Archives on servers.
    run(TRAWL, "lake", "ingest", "--lake", "remote-sources", "--dataset", "web", "s3://trawl/lists/c.txt", status=2)
    put("lists/c.txt", "c.txt")
    trawl("lake", "ingest", "--lake", "remote-sources", "--dataset", "s3", "s3://trawl/lists/c.txt", "-q")
    check(trawl_json("lake", "stats", "--lake", "remote-sources")[0]["rows"] == 700, "a list is read from s3://")

    # Served.
    with subprocess.Popen([TRAWL, "--json", "serve", "--lake", LAKE, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True) as server:
        url = json.loads(server.stdout.readline())["url"]
        page = json.load(urllib.request.urlopen(url + "v1/domain/example1.com"))
        check(page["domain"] == "example1.com" and len(page["datasets"]) == 2, "serve over a bucket")
        trawl("lake", "deny", "add", "--lake", LAKE, "--domain", "example1.com", "-q")

        def denied():
            try:
                urllib.request.urlopen(url + "v1/domain/example1.com")
                return False
            except urllib.error.HTTPError as error:
                return error.code == 404

        asked = time.monotonic()
        wait_for(denied, 30, "the deny list")
        check(True, f"what is denied is gone {time.monotonic() - asked:.1f} s later")
        trawl("lake", "deny", "remove", "--lake", LAKE, "--domain", "example1.com", "-q")
        server.terminate()

    expected = queries(LAKE)
    trouble(port, "s3://trawl/trouble", 15, 4, 7, expected)
    down = subprocess.run([TRAWL, "lake", "stats", "--lake", LAKE], capture_output=True, text=True, env={**os.environ, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}"})
    check(down.returncode == 2 and LAKE in down.stderr and "attempts" in down.stderr, "a server that is down: " + down.stderr.strip()[:200])
check(not failed, f"every suite passed, not {', '.join(failed)}" if failed else "every suite passed")
done()
