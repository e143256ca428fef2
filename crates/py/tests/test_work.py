"""Long calls let other threads run, and Ctrl-C ends them."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import trawl


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "large.txt"
    with path.open("w") as out:
        for n in range(2_000_000):
            out.write(f"https://www.host{n * 7919 % 99991}.example/path/{n}?id={n * 31 % 1009}\n")
    return path


def test_other_threads_run_during_an_ingest(large, tmp_path):
    counted, done = 0, threading.Event()

    def work():
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert trawl.Lake(tmp_path / "lake", create=True).ingest(large, "large")["rows"] == 2_000_000
    finally:
        done.set()
        thread.join()
    # A call that held the interpreter would have let the other thread in once or twice.
    assert counted > 20


CALLS = {
    "ingest": "lake.ingest(sys.argv[2], 'large')",
    "normalise": "trawl.url.normalise(urls)",
    "iterate": "[None for _ in trawl.Lake(sys.argv[3]).scan('monday') if time.sleep(0.001)]",
}


@pytest.mark.parametrize("call", CALLS)
def test_ctrl_c_ends_a_call_and_leaves_the_lake_as_it_was(call, large, tmp_path, lake_dir):
    code = f"""
import signal, sys, time, trawl
signal.signal(signal.SIGINT, signal.default_int_handler)
lake = trawl.Lake(sys.argv[1], create=True)
urls = [line for line in open(sys.argv[2])] * 3 if {call == "normalise"} else []
print("ready", flush=True)
try:
    {CALLS[call]}
except KeyboardInterrupt:
    print("interrupted", len(lake.datasets().to_list()), flush=True)
"""
    args = [sys.executable, "-c", code, tmp_path / "lake", large, lake_dir]
    run = subprocess.Popen(args, stdout=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "ready\n"
    time.sleep(0.3)
    os.kill(run.pid, signal.SIGINT)
    sent = time.monotonic()
    out, _ = run.communicate(timeout=60)
    assert out == "interrupted 0\n"
    # It takes a tenth of a second; the machine may be busy.
    assert time.monotonic() - sent < 10
    assert trawl.Lake(tmp_path / "lake").verify()["faults"] == []
