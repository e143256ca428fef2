"""What the checks of lakes in buckets share: the sources, a lake made of them, what it answers, and a server with a bucket."""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
from peer import TRAWL, check, run, trawl, trawl_json
from servers import free_port, started

S3_PYTHON = os.environ.get("S3_PYTHON", sys.executable)


@contextlib.contextmanager
def bucket():
    """The bucket `trawl`: of the server that the environment names, or of moto for the time of the block. Yields its port."""
    os.environ["TRAWL_CACHE_DIR"] = str(pathlib.Path("cache").absolute())
    if os.environ.get("TRAWL_TEST_SERVER"):
        yield int(os.environ["AWS_ENDPOINT_URL"].rsplit(":", 1)[1])
        return
    port = free_port()
    os.environ.update({
        "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "TRAWL_TEST_S3_OPEN": "1",
    })
    with started(S3_PYTHON, HERE / "moto_one.py", port, port=port):
        urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/trawl", method="PUT")).read()
        yield port


def put(key, path):
    """An object in the bucket, put there by another program."""
    code = "import boto3, os, sys; boto3.client('s3', endpoint_url=os.environ['AWS_ENDPOINT_URL']).put_object(Bucket='trawl', Key=sys.argv[1], Body=open(sys.argv[2], 'rb').read())"
    run(S3_PYTHON, "-c", code, key, path)


def plain(value):
    """An answer without what tells one lake from another: the version, and whatever names files of it."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if key not in ("version", "next_cursor", "locator")}
    return [plain(item) for item in value] if isinstance(value, list) else value


def ask(lake, *args):
    answer = subprocess.run([TRAWL, "--json", "query", *args, "--lake", lake], capture_output=True, text=True)
    if answer.returncode == 2:
        sys.exit(f"not ok: {args} of {lake}: {answer.stderr[-500:]}")
    return answer.returncode, [plain(json.loads(line)) for line in answer.stdout.splitlines()]


def queries(lake):
    """What a lake answers."""
    out = []
    for domain in ["example0.com", "example7.com", "example19.com", "nobody.org"]:
        out.append(ask(lake, "domain", domain))
        out.extend(ask(lake, "urls", domain, dataset, "--limit", "100") for dataset in ("first", "second"))
    return out


def ingest(lake):
    trawl("lake", "ingest", "--lake", lake, "--dataset", "first", "a.txt", "-q", status=1)
    trawl("lake", "ingest", "--lake", lake, "--dataset", "second", "b.jsonl", "-q")
    trawl("lake", "ingest", "--lake", lake, "--dataset", "first", "c.txt", "-q")
    trawl("lake", "deny", "add", "--lake", lake, "--domain", "example7.com", "-q")


def write_sources():
    pathlib.Path("a.txt").write_text("".join(f"http://h{i % 7}.example{i % 40}.com/{i}\n" for i in range(3000)) + "mailto:x\n")
    pathlib.Path("b.jsonl").write_text("".join(f'{{"url":"http://example{i % 9}.com/c{i}","ts":{1_700_000_000 + i},"status":200}}\n' for i in range(500)))
    pathlib.Path("c.txt").write_text("".join(f"http://example{i % 11}.com/more/{i}\n" for i in range(700)))


def as_in_a_directory(lake):
    """A lake in a bucket answers as one in a directory, also when blocks of its cache are damaged."""
    ingest("local")
    ingest(lake)
    check(queries("local") == queries(lake), "a lake in a bucket answers as one in a directory")
    check(trawl("lake", "verify", "--lake", lake, "-q") is not None, "lake verify finds no fault in it")
    blocks = list(pathlib.Path("cache").glob("*.block"))
    check(blocks, f"{len(blocks)} blocks are in the cache")
    for block in blocks:
        data = bytearray(block.read_bytes())
        data[len(data) // 2] ^= 1
        block.write_bytes(data)
    check(queries("local") == queries(lake), "damaged blocks of the cache are read again")


def trouble(port, lake, percent, rounds, seed, expected):
    """Writers, a collector and readers through a proxy that misbehaves: slower, never wrong."""
    proxy_port = free_port()
    endpoint = os.environ["AWS_ENDPOINT_URL"]
    os.environ["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{proxy_port}"
    os.environ["TRAWL_CACHE_SIZE"] = "0"
    with open("proxy.log", "wb") as log:
        proxy = subprocess.Popen([sys.executable, HERE / "s3proxy.py", str(proxy_port), str(port), str(percent), "0", str(seed)], stdout=log, stderr=log)
    time.sleep(0.5)

    def settled(*args):
        """Run until it is done: an error says that nothing was done or that it is not known, and to run it again is right."""
        for _ in range(30):
            result = subprocess.run([TRAWL, *args], capture_output=True, text=True)
            if result.returncode in (0, 1):
                return result.stdout
            check(lake in result.stderr, "an error names the store: " + result.stderr.strip()[-150:])
        sys.exit("not ok: never settled " + " ".join(args) + result.stderr)

    for _ in range(rounds):
        for dataset, source in [("first", "a.txt"), ("second", "b.jsonl"), ("first", "c.txt")]:
            settled("lake", "ingest", "--lake", lake, "--dataset", dataset, source, "-q")
        settled("lake", "deny", "add", "--lake", lake, "--domain", "example7.com", "-q")
        settled("lake", "publish", "--lake", lake, "-q")
        settled("lake", "gc", "--lake", lake, "--keep-versions", "1", "--yes", "-q")
    proxy.terminate()
    proxy.wait(timeout=60)
    os.environ["AWS_ENDPOINT_URL"] = endpoint
    os.environ.pop("TRAWL_CACHE_SIZE")
    print("    " + pathlib.Path("proxy.log").read_text().strip())
    check(queries(lake) == expected, "after all that trouble the same answers")
    trawl("lake", "verify", "--lake", lake, "-q")
    check(True, "and lake verify finds no fault")
