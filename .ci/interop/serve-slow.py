#!/usr/bin/env python3
"""Clients that hold on to what they get: 10,000 idle connections, heads that come a byte at a time, exports that nobody reads.
Others are answered all the same, by a server that may have 1,024 descriptors."""
import os
import pathlib
import re
import resource
import signal
import socket
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from peer import check, done
from served import fetch, ingest, serve

IDLE, CHILDREN, SLOW = 10_000, 5, 300
pathlib.Path("urls.txt").write_text("".join(f"http://example.com/{n:060}\n" for n in range(150_000)))
ingest("list", "urls.txt")


def few_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))


def hold(address, count):
    """Opens idle connections in a process of its own, which holds them until it is killed: its id, and where it says that they
    are open."""
    said = os.pipe()
    pid = os.fork()
    if pid == 0:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        held = []
        for _ in range(count):
            one = socket.socket()
            one.connect(address)
            held.append(one)
        os.write(said[1], b"x")
        time.sleep(600)
        os._exit(0)
    return pid, said[0]


def times(at, path, count):
    """Each on a connection of its own."""
    took = []
    for _ in range(count):
        begun = time.monotonic()
        status, _, body = fetch(at + path)
        assert status == 200, (path, status, body[:200])
        took.append(time.monotonic() - begun)
    return sorted(took)


with serve("--head-timeout", "3s", "--idle-timeout", "120s", preexec_fn=few_descriptors) as at:
    url = urllib.parse.urlsplit(at)
    address = (url.hostname, url.port)
    alone = times(at, "/v1/domain/example.com", 50)
    children = [hold(address, IDLE // CHILDREN) for _ in range(CHILDREN)]
    for _, said in children:
        assert os.read(said, 1) == b"x", "a child ended"
    crowded = times(at, "/v1/domain/example.com", 100)
    print(f"    worst of 50 alone {1000 * alone[-1]:.1f} ms, worst of 100 beside {IDLE} idle connections {1000 * crowded[-1]:.1f} ms")
    _, _, metrics = fetch(f"{at}/metrics")
    count = int(re.search(rb"^trawl_connections (\d+)", metrics, re.M)[1])
    check(count <= 768, f"{IDLE} idle connections were made, {count} are held; others are answered")

    # Heads a byte at a time, from many at once: each is cut off when its time is up.
    head = b"GET /v1/stats HTTP/1.1\r\nHost: a-name-that-takes-a-while.example\r\nX: y\r\n\r\n"
    slow = [socket.create_connection(address) for _ in range(SLOW)]
    stop = threading.Event()

    def trickle():
        for byte in head:
            for one in slow:
                try:
                    one.send(bytes([byte]))
                except OSError:
                    pass
            if stop.wait(0.5):
                return

    feeder = threading.Thread(target=trickle)
    feeder.start()
    times(at, "/v1/domain/example.com", 30)
    time.sleep(5)
    times(at, "/v1/domain/example.com", 30)
    cut = 0
    for one in slow:
        one.settimeout(5)
        try:
            cut += one.recv(4096)[:12] in (b"", b"HTTP/1.1 408")
        except ConnectionError:
            cut += 1
        except TimeoutError:
            pass
    stop.set()
    feeder.join()
    check(cut == SLOW, f"{SLOW} heads of a byte at a time are cut off, others are answered", cut)
    for pid, _ in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    # Exports that nobody reads hold their places until the server loses patience, and questions do not wait for them.
    lazy = []
    for _ in range(8):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.connect(address)
        one.send(b"GET /v1/datasets/list/export HTTP/1.1\r\nHost: x\r\n\r\n")
        lazy.append(one)
    time.sleep(0.5)
    status, headers, body = fetch(f"{at}/v1/datasets/list/export")
    check(status == 503 and headers["Retry-After"] and b'"busy"' in body, "with all places for exports taken, the next one is told so", status)
    times(at, "/v1/domain/example.com", 30)
    check(True, "and questions are answered")
    for one in lazy:
        one.close()
    begun = time.monotonic()
    while fetch(f"{at}/v1/datasets/list/export")[0] != 200:
        assert time.monotonic() < begun + 20, "places of exports whose clients have left stay taken"
        time.sleep(0.1)
    check(True, "clients that leave give their places back")
done()
