#!/usr/bin/env python3
"""WACZ: ours under Python's zipfile and py-wacz's validator, py-wacz's read by us."""
import hashlib
import json
import pathlib
import shutil
import sys
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from peer import check, done, run, trawl
from warcio.archiveiterator import ArchiveIterator

RUNS = pathlib.Path(__file__).resolve().parents[2] / "crates/formats/captures/tests/specimen/runs"
warcs = sorted(RUNS.glob("*/*.warc.gz"))
trawl("convert", "--overwrite", *warcs, "ours.wacz")
with zipfile.ZipFile("ours.wacz") as archive:
    check(archive.testzip() is None, "zipfile finds every checksum right")
    check(all(i.compress_type == zipfile.ZIP_STORED for i in archive.infolist()), "everything is stored")
    package = json.loads(archive.read("datapackage.json"))
    for resource in package["resources"]:
        data = archive.read(resource["path"])
        assert len(data) == resource["bytes"] and resource["hash"] == "sha256:" + hashlib.sha256(data).hexdigest(), resource
    check(len(package["resources"]) == 5, "datapackage.json describes every file")
    for warc in warcs:
        check(archive.read(f"archive/{warc.name}") == warc.read_bytes(), f"{warc.name} is in it, byte for byte")
    pages = [json.loads(line) for line in archive.read("pages/pages.jsonl").splitlines()]
    check(pages[0]["format"] == "json-pages-1.0" and any(p.get("url") == "http://www.example.org/" for p in pages), "the list of pages")
run("wacz", "validate", "-f", "ours.wacz")
check(True, "wacz validate passes")
# Heritrix and Common Crawl write such names; a data package does not accept them for its resources.
shutil.copy(warcs[0], "WEB-2024.warc.gz")
trawl("convert", "--overwrite", "WEB-2024.warc.gz", "capitals.wacz")
run("wacz", "validate", "-f", "capitals.wacz")
check(True, "wacz validate passes where the names of archives have capital letters")
trawl("verify", "ours.wacz")
check(True, "trawl verify passes")


def ids(path):
    with open(path, "rb") as stream:
        return [r.rec_headers.get_header("WARC-Record-ID") for r in ArchiveIterator(stream)]


run("wacz", "create", "-f", *warcs, "-o", "theirs.wacz", "--detect-pages")
trawl("verify", "theirs.wacz")
for name in ("ours.wacz", "theirs.wacz"):
    trawl("convert", "--overwrite", name, "back.warc.gz")
    check(sorted(ids("back.warc.gz")) == sorted(i for w in warcs for i in ids(w)), f"every record comes out of {name}")
done()
