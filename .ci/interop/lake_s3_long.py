#!/usr/bin/env python3
"""A lake in a bucket: the same answers as in a directory, copied there and back, served, and under a server that misbehaves."""
import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from peer import TRAWL, check, done, run, trawl, trawl_json, wait_for
from servers import free_port, started

port = free_port()
env = {
    "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true",
    "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "TRAWL_CACHE_DIR": str(pathlib.Path("cache").absolute()), "TRAWL_TEST_S3_OPEN": "1",
}
os.environ.update(env)
S3_PYTHON = os.environ.get("S3_PYTHON", sys.executable)
BUCKET = "s3://trawl/lake"


def queries(lake):
    """What a lake answers, without what tells one lake from another."""
    out = []
    for domain in ["example0.com", "example7.com", "example19.com", "nobody.org"]:
        answer = subprocess.run([TRAWL, "--json", "query", "domain", domain, "--lake", lake], capture_output=True, text=True)
        out.append((answer.returncode, answer.stdout))
        for dataset in ("first", "second"):
            page = subprocess.run([TRAWL, "--json", "query", "urls", domain, dataset, "--lake", lake, "--limit", "100"], capture_output=True, text=True)
            out.append((page.returncode, [line for line in page.stdout.splitlines() if '"version"' not in line]))
    return out


def ingest(lake):
    trawl("lake", "ingest", "--lake", lake, "--dataset", "first", "a.txt", "-q", status=1)
    trawl("lake", "ingest", "--lake", lake, "--dataset", "second", "b.jsonl", "-q")
    trawl("lake", "ingest", "--lake", lake, "--dataset", "first", "c.txt", "-q")
    trawl("lake", "deny", "add", "--lake", lake, "--domain", "example7.com", "-q")


pathlib.Path("a.txt").write_text("".join(f"http://h{i % 7}.example{i % 40}.com/{i}\n" for i in range(3000)) + "mailto:x\n")
pathlib.Path("b.jsonl").write_text("".join(f'{{"url":"http://example{i % 9}.com/c{i}","ts":{1_700_000_000 + i},"status":200}}\n' for i in range(500)))
pathlib.Path("c.txt").write_text("".join(f"http://example{i % 11}.com/more/{i}\n" for i in range(700)))

with started(S3_PYTHON, HERE / "moto_one.py", port, port=port):
    urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/trawl", method="PUT")).read()
    begun = time.monotonic()
    if os.environ.get("S3_CONFORMANCE", "1") == "1":
        run("cargo", "test", "--locked", "-p", "trawl-store", "--test", "s3", cwd=HERE.parent.parent, env={**os.environ, "TRAWL_TEST_S3": "s3://trawl/conformance"})
        check(True, f"the conformance suite of stores, {time.monotonic() - begun:.0f} s")
    ingest("local")
    ingest(BUCKET)
    check(queries("local") == queries(BUCKET), "a lake in a bucket answers as one in a directory")
    check(trawl("lake", "verify", "--lake", BUCKET, "-q") is not None, "lake verify finds no fault in it")
    blocks = list(pathlib.Path("cache").glob("*.block"))
    check(blocks, f"{len(blocks)} blocks are in the cache")
    for block in blocks:
        data = bytearray(block.read_bytes())
        data[len(data) // 2] ^= 1
        block.write_bytes(data)
    check(queries("local") == queries(BUCKET), "damaged blocks of the cache are read again")

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

    # Archives on servers.
    run(TRAWL, "lake", "ingest", "--lake", "remote-sources", "--dataset", "web", f"http://127.0.0.1:{port}/trawl/lists/c.txt", status=2)
    urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/trawl/lists/c.txt", data=pathlib.Path("c.txt").read_bytes(), method="PUT")).read()
    trawl("lake", "ingest", "--lake", "remote-sources", "--dataset", "s3", "s3://trawl/lists/c.txt", "-q")
    check(trawl_json("lake", "stats", "--lake", "remote-sources")[0]["rows"] == 700, "a list is read from s3://")

    # Served.
    with subprocess.Popen([TRAWL, "--json", "serve", "--lake", BUCKET, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True) as server:
        url = json.loads(server.stdout.readline())["url"]
        page = json.load(urllib.request.urlopen(url + "v1/domain/example1.com"))
        check(page["domain"] == "example1.com" and len(page["datasets"]) == 2, "serve over a bucket")
        trawl("lake", "deny", "add", "--lake", BUCKET, "--domain", "example1.com", "-q")

        def denied():
            try:
                urllib.request.urlopen(url + "v1/domain/example1.com")
                return False
            except urllib.error.HTTPError as error:
                return error.code == 404

        asked = time.monotonic()
        wait_for(denied, 30, "the deny list")
        check(True, f"what is denied is gone {time.monotonic() - asked:.1f} s later")
        trawl("lake", "deny", "remove", "--lake", BUCKET, "--domain", "example1.com", "-q")
        server.terminate()

    # A server that misbehaves: slower, never wrong.
    trouble = free_port()
    os.environ["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{trouble}"
    os.environ["TRAWL_CACHE_SIZE"] = "0"
    with open("proxy.log", "wb") as log:
        proxy = subprocess.Popen([sys.executable, HERE / "s3proxy.py", str(trouble), str(port), "15", "0", "7"], stdout=log, stderr=log)
    time.sleep(0.5)
    wrong, lake = 0, "s3://trawl/trouble"

    def settled(*args):
        """Run until it is done: an error says that nothing was done or that it is not known, and to run it again is right."""
        for _ in range(30):
            result = subprocess.run([TRAWL, *args], capture_output=True, text=True)
            if result.returncode in (0, 1):
                return result.stdout
            check("s3://trawl/trouble" in result.stderr, "an error names the store: " + result.stderr.strip()[-150:])
        sys.exit("not ok: never settled " + " ".join(args) + result.stderr)

    for _ in range(2):
        for dataset, source in [("first", "a.txt"), ("second", "b.jsonl"), ("first", "c.txt")]:
            settled("lake", "ingest", "--lake", lake, "--dataset", dataset, source, "-q")
        settled("lake", "deny", "add", "--lake", lake, "--domain", "example7.com", "-q")
        settled("lake", "publish", "--lake", lake, "-q")
        settled("lake", "gc", "--lake", lake, "--keep-versions", "1", "--yes", "-q")
    proxy.terminate()
    proxy.wait(timeout=60)
    os.environ["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{port}"
    print("    " + pathlib.Path("proxy.log").read_text().strip())
    check(queries(lake) == queries(BUCKET), "after all that trouble the same answers")
    trawl("lake", "verify", "--lake", lake, "-q")
    check(True, "and lake verify finds no fault")
    down = subprocess.run([TRAWL, "lake", "stats", "--lake", lake], capture_output=True, text=True, env={**os.environ, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}"})
    check(down.returncode == 2 and lake in down.stderr and "attempts" in down.stderr, "a server that is down: " + down.stderr.strip()[:200])
done()
