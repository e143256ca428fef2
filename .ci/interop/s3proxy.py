#!/usr/bin/env python3
"""A proxy in front of an S3 server that makes trouble: `s3proxy.py PORT UPSTREAM PERCENT DELAY_MS SEED`.

Of all requests PERCENT go wrong, each in one of these ways: dropped before it is passed on; passed on and the answer dropped;
late; cut in the middle of the body; reset; 500; 503 SlowDown; a list of a moment ago; a slow body. DELAY_MS is added to every answer.
Says on exit how many requests there were, and how many went wrong in which way.
"""
import collections
import http.client
import http.server
import random
import signal
import socket
import struct
import sys
import threading
import time

PORT, UPSTREAM, PERCENT, DELAY, SEED = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]) / 1000, int(sys.argv[5])
WAYS = ["before", "after", "late", "cut", "reset", "500", "503", "stale", "slow"]
chance = random.Random(SEED)
lock = threading.Lock()
counts = collections.Counter()
lists = {}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, *args):
        pass

    def trouble(self):
        with lock:
            counts["requests"] += 1
            way = chance.choice(WAYS) if chance.randrange(100) < PERCENT else None
            if way:
                counts[way] += 1
        return way

    def end(self, reset=False):
        if reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def upstream(self, body):
        connection = http.client.HTTPConnection("127.0.0.1", UPSTREAM, timeout=60)
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, answer.getheaders(), data

    def answer(self, status, headers, data, cut=False, slow=False):
        self.send_response_only(status)
        length = None
        for name, value in headers:
            if name.lower() == "content-length":
                length = value
            elif name.lower() not in ("transfer-encoding", "connection", "keep-alive"):
                self.send_header(name, value)
        self.send_header("Content-Length", length if self.command == "HEAD" and length else str(len(data)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if cut and data:
            self.wfile.write(data[: len(data) // 2])
            self.wfile.flush()
            self.end()
        elif slow and data:
            half = len(data) // 2
            self.wfile.write(data[:half])
            self.wfile.flush()
            time.sleep(0.05)
            self.wfile.write(data[half:])
        else:
            self.wfile.write(data)

    def serve(self):
        try:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            way = self.trouble()
            if way in ("before", "reset"):
                return self.end(reset=way == "reset")
            if way in ("500", "503"):
                code = "InternalError" if way == "500" else "SlowDown"
                text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>trouble</Message></Error>".encode()
                return self.answer(int(way), [("Content-Type", "application/xml")], text)
            is_list = self.command == "GET" and "list-type=2" in self.path
            if way == "stale" and is_list and self.path in lists:
                return self.answer(*lists[self.path])
            time.sleep(DELAY + (0.05 if way == "late" else 0))
            status, headers, data = self.upstream(body)
            if is_list and status == 200:
                lists[self.path] = (status, headers, data)
            if way == "after":
                return self.end()
            self.answer(status, headers, data, cut=way == "cut", slow=way == "slow")
        except (OSError, http.client.HTTPException):
            self.close_connection = True

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = serve


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


server = Server(("127.0.0.1", PORT), Handler)
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
server.serve_forever()
print(dict(counts), flush=True)
