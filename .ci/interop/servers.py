"""Real servers for the time of a test, and what a crawl of them captured."""
import contextlib
import pathlib
import socket
import subprocess
import sys

from peer import wait_for
from warcio.archiveiterator import ArchiveIterator


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def started(*args, port):
    """A server for the time of the block."""
    with open("server.log", "ab") as log:
        process = subprocess.Popen([str(a) for a in args], stdout=log, stderr=log)
    try:
        def answers():
            if process.poll() is not None:
                print(pathlib.Path("server.log").read_text()[-2000:])
                sys.exit(f"not ok: {args[0]} ended")
            with socket.socket() as s:
                return s.connect_ex(("127.0.0.1", port)) == 0
        wait_for(answers, 60, str(args[0]))
        yield
    finally:
        process.terminate()
        process.wait(timeout=60)


def responses(out):
    """URL to (status, body without codings), of every capture that is not a robots.txt."""
    found = {}
    for path in sorted(pathlib.Path(out).glob("*.warc.gz")):
        with open(path, "rb") as stream:
            for record in ArchiveIterator(stream):
                url = record.rec_headers.get_header("WARC-Target-URI")
                if record.rec_type == "response" and not url.endswith("/robots.txt"):
                    assert url not in found, f"{url} twice"
                    found[url] = (int(record.http_headers.get_statuscode()), record.content_stream().read())
    return found
