"""Helpers of the interop checks: run trawl, run a peer, say what was found."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

TRAWL = os.environ["TRAWL"]
passed = 0


def check(condition, what, detail=""):
    """One line per check; the first that fails ends the script."""
    global passed
    if not condition:
        print(f"not ok: {what} {detail}", flush=True)
        sys.exit(1)
    passed += 1
    print(f"ok: {what}", flush=True)


def run(*args, status=0, **kwargs):
    result = subprocess.run([str(a) for a in args], capture_output=True, text=True, **kwargs)
    if result.returncode != status:
        print(f"not ok: {' '.join(map(str, args))}: exit {result.returncode}\n{result.stdout[-2000:]}{result.stderr[-2000:]}")
        sys.exit(1)
    return result.stdout


def trawl(*args, **kwargs):
    return run(TRAWL, *args, **kwargs)


def trawl_json(*args, **kwargs):
    return [json.loads(line) for line in trawl("--json", *args, **kwargs).splitlines()]


@contextlib.contextmanager
def testweb(*args):
    """The synthetic web for the time of the block; yields what it says of itself."""
    process = subprocess.Popen([TRAWL, "--json", "testweb", *map(str, args)], stdout=subprocess.PIPE, text=True)
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=120)


def lines(path):
    return pathlib.Path(path).read_text().splitlines()


def wait_for(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            print(f"not ok: waited {seconds} s for {what}")
            sys.exit(1)
        time.sleep(0.02)


def done():
    print(f"{passed} passed, 0 failed", flush=True)
