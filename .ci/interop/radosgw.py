#!/usr/bin/env python3
"""Ceph's S3 server on loopback, for as long as the command that follows runs: `radosgw.py COMMAND…`.

One monitor, one object store in memory, one gateway, all in a temporary directory; a user and the bucket `trawl`. COMMAND gets
the AWS variables of the endpoint. Wants Debian's `ceph-mon ceph-osd radosgw`. Unlike moto it is what people run: of racing
creates exactly one wins.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))


def free_port():
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


for needed in ("ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "ceph-authtool", "monmaptool"):
    if not shutil.which(needed):
        sys.exit(f"not ok: {needed} is missing: apt-get install ceph-mon ceph-osd radosgw")

work = pathlib.Path(tempfile.mkdtemp(prefix="radosgw-"))
fsid, mon_port, web_port = uuid.uuid4(), free_port(), free_port()
conf, keyring = work / "ceph.conf", work / "keyring"
conf.write_text(f"""[global]
fsid = {fsid}
mon host = v2:127.0.0.1:{mon_port}
mon initial members = a
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
keyring = {keyring}
run dir = {work}
admin socket = {work}/$name.asok
log file = {work}/$name.log
pid file = {work}/$name.pid
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd pool default pg autoscale mode = off
mon allow pool size one = true
mon max pg per osd = 2000
osd crush chooseleaf type = 0
mon data avail crit = 1
mon data avail warn = 1
ms bind ipv4 = true
public addr = 127.0.0.1
cluster addr = 127.0.0.1
[mon.a]
mon data = {work}/mon
[osd.0]
osd data = {work}/osd
osd objectstore = memstore
memstore device bytes = 4294967296
osd class load list = *
osd class default list = *
[client.rgw]
rgw frontends = beast endpoint=127.0.0.1:{web_port}
rgw thread pool size = 64
rgw crypt require ssl = false
rgw enable ops log = false
""")
processes = []


def run(*args, **kwargs):
    result = subprocess.run([str(a) for a in args], capture_output=True, text=True, timeout=120, **kwargs)
    if result.returncode:
        raise RuntimeError(f"{args[0]}: {result.stdout[-800:]}{result.stderr[-800:]}")
    return result.stdout


def start(*args):
    log = open(work / f"{args[0]}.out", "wb")
    processes.append(subprocess.Popen([str(a) for a in args], stdout=log, stderr=log))


def wait_for(what, condition, seconds=120):
    end = time.monotonic() + seconds
    while True:
        try:
            if condition():
                return
        except (RuntimeError, OSError, urllib.error.URLError, subprocess.TimeoutExpired):
            pass
        if time.monotonic() > end:
            raise RuntimeError(f"waited {seconds} s for {what}")
        for process in processes:
            if process.poll() is not None:
                raise RuntimeError(f"{process.args[0]} ended: {(work / (process.args[0] + '.out')).read_text()[-1500:]}")
        time.sleep(0.2)


begun = time.monotonic()
status = 1
try:
    admin = ["--cap", "mon", "allow *", "--cap", "osd", "allow *", "--cap", "mds", "allow *", "--cap", "mgr", "allow *"]
    run("ceph-authtool", "--create-keyring", keyring, "--gen-key", "-n", "mon.", "--cap", "mon", "allow *")
    run("ceph-authtool", keyring, "--gen-key", "-n", "client.admin", *admin)
    run("ceph-authtool", keyring, "--gen-key", "-n", "osd.0", "--cap", "mon", "allow profile osd", "--cap", "osd", "allow *")
    run("ceph-authtool", keyring, "--gen-key", "-n", "client.rgw", "--cap", "mon", "allow rw", "--cap", "osd", "allow rwx")
    run("monmaptool", "--create", "--addv", "a", f"[v2:127.0.0.1:{mon_port}]", "--fsid", fsid, work / "monmap")
    (work / "mon").mkdir()
    (work / "osd").mkdir()
    run("ceph-mon", "-c", conf, "--mkfs", "-i", "a", "--monmap", work / "monmap", "--keyring", keyring)
    start("ceph-mon", "-c", conf, "-i", "a", "-f")
    osd_id = str(uuid.uuid4())
    wait_for("the monitor", lambda: run("ceph", "-c", conf, "--connect-timeout", "5", "osd", "new", osd_id) is not None)
    run("ceph-osd", "-c", conf, "-i", "0", "--mkfs", "--osd-uuid", osd_id)
    start("ceph-osd", "-c", conf, "-i", "0", "-f")
    wait_for("the object store", lambda: json.loads(run("ceph", "-c", conf, "--connect-timeout", "5", "osd", "stat", "-f", "json"))["num_up_osds"] == 1)
    start("radosgw", "-c", conf, "-n", "client.rgw", "-f")
    endpoint = f"http://127.0.0.1:{web_port}"
    wait_for("the gateway", lambda: urllib.request.urlopen(endpoint, timeout=5).status == 200)
    keys = ["--access-key", "test", "--secret-key", "secretsecret"]
    run("radosgw-admin", "-c", conf, "-n", "client.rgw", "user", "create", "--uid", "trawl", "--display-name", "trawl", *keys)
    env = {
        **os.environ, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "secretsecret", "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true", "AWS_ENDPOINT_URL": endpoint, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1",
    }
    bucket = "import boto3, sys; boto3.client('s3', endpoint_url=sys.argv[1]).create_bucket(Bucket='trawl')"
    run(os.environ.get("S3_PYTHON", sys.executable), "-c", bucket, endpoint, env=env)
    print(f"    radosgw answers after {time.monotonic() - begun:.0f} s", flush=True)
    status = subprocess.run(sys.argv[1:], env=env).returncode
finally:
    for process in reversed(processes):
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    shutil.rmtree(work, ignore_errors=True)
sys.exit(status)
