#!/usr/bin/env python3
"""Trouble that lasts minutes, in namespaces of this test's own: ports used up, no network for a minute, no DNS for ten, a full disk.
Each time the crawl waits, says so, and ends with the same set. Run it as `unshare -rnm python3 trouble_long.py`."""
import json
import pathlib
import socket
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from peer import TRAWL, check, done, lines, run, testweb, trawl

run("ip", "link", "set", "lo", "up")
WEB = ("--domains", 60, "--pages", 600, "--seeds-file", "seeds.txt", "--expected-file", "expected.txt", "--depth", 3)


def crawl(out, *extra):
    """Starts a crawl; its progress goes to OUT.log."""
    log = open(f"{out.replace('/', '-')}.log", "w")
    return subprocess.Popen([TRAWL, "crawl", "seeds.txt", "--out", out, "--depth", "3", "--scope", "any", "--delay", "20ms", "--backoff",
                             "2s", *map(str, extra)], stdout=subprocess.DEVNULL, stderr=log)


def pages(out):
    import duckdb
    rows = duckdb.sql(f"select url from '{out}/captures.parquet' where status = 200 and robots is not null").fetchall()
    return sorted(url for (url,) in rows)


def same(out, what):
    report = json.loads(pathlib.Path(out, "run.json").read_text())
    check(report["complete"] and report["counts"]["given_up"] == 0, f"{what}: complete, nothing given up", report["urls"])
    check(pages(out) == sorted(lines("expected.txt")), f"{what}: every page once")


class Names(threading.Thread):
    """A name server that answers 127.0.0.1 for every name, once it is told to."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port, self.awake = self.socket.getsockname()[1], False

    def run(self):
        while True:
            question, peer = self.socket.recvfrom(1500)
            if not self.awake:
                continue
            end = question.index(b"\0", 12) + 5
            is_a = question[end - 4:end - 2] == b"\0\1"
            head = question[:2] + b"\x85\x80" + struct.pack(">HHHH", 1, int(is_a), 0, 0)
            answer = b"\xc0\x0c\0\1\0\1" + struct.pack(">IH", 60, 4) + bytes([127, 0, 0, 1]) if is_a else b""
            self.socket.sendto(head + question[12:end] + answer, peer)


with testweb(*WEB) as web:
    port = web["connect_to"].rsplit(":", 1)[1]

    # Fifty ports, each busy for a minute after use.
    run("sysctl", "-q", "-w", "net.ipv4.ip_local_port_range=20000 20050")
    busy = crawl("ports", "--connect-to", web["connect_to"])
    check(busy.wait(timeout=1800) == 0, "ports used up: exit 0")
    run("sysctl", "-q", "-w", "net.ipv4.ip_local_port_range=32768 60999")
    same("ports", "ports used up")

    down = crawl("network", "--connect-to", web["connect_to"])
    time.sleep(1)
    run("ip", "link", "set", "lo", "down")
    time.sleep(60)
    run("ip", "link", "set", "lo", "up")
    check(down.wait(timeout=1800) == 0, "network down for a minute: exit 0")
    # A network that is down refuses or swallows, as the kernel likes.
    told = open("network.log").read()
    check("this machine is in trouble" in told or "no server has answered for" in told, "network down: it says so")
    same("network", "network down for a minute")

    names = Names()
    names.start()
    silent = crawl("names", "--connect-to", f":::{port}", "--resolver", f"127.0.0.1:{names.port}")
    time.sleep(600)
    check(silent.poll() is None, "no DNS: it waits")
    names.awake = True
    check(silent.wait(timeout=1800) == 0, "no DNS for ten minutes: exit 0")
    check("no name server answered" in open("names.log").read(), "no DNS: it says so")
    same("names", "no DNS for ten minutes")

    pathlib.Path("disk").mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=3m", "none", "disk")
    full = crawl("disk/out", "--connect-to", web["connect_to"])
    check(full.wait(timeout=600) == 2, "a full disk: exit 2")
    run("mount", "-o", "remount,size=200m", "disk")
    trawl("crawl", "--resume", "--out", "disk/out", "--quiet", status=0)
    same("disk/out", "a full disk, then room and --resume")
done()
