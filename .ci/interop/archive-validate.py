#!/usr/bin/env python3
"""The specimen archives under others' validators: warcio, FastWARC, jwarc.

The files are golden: a test of trawl-captures holds the writer to them, so what is shown here holds for what it writes.
"""
import io
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from fastwarc.warc import ArchiveIterator as FastIterator
from peer import check, done, run, trawl
from warcio.archiveiterator import ArchiveIterator

RUNS = pathlib.Path(__file__).resolve().parents[2] / "crates/formats/captures/tests/specimen/runs"
warcs = sorted(RUNS.glob("*/*.warc.gz"))
check(len(warcs) == 2, "the specimens are there")

for path in warcs:
    name = path.name
    run("warcio", "check", "-v", path)
    check(True, f"warcio check passes on {name}")
    index = run("warcio", "index", "-f", "offset,length,warc-type", path).splitlines()
    records = []
    with open(path, "rb") as stream:
        iterator = ArchiveIterator(stream)
        for record in iterator:
            records.append((record.rec_type, record.rec_headers.get_header("WARC-Record-ID"), iterator.get_record_offset(), record))
    check(len(index) == len(records) > 40, f"warcio index lists all {len(records)} records of {name}")
    check(len({r[1] for r in records}) == len(records), "every record has an id of its own")

    data = path.read_bytes()
    offsets = [r[2] for r in records] + [len(data)]
    for i, (kind, record_id, offset, _) in enumerate(records):
        alone = list(ArchiveIterator(io.BytesIO(data[offset:offsets[i + 1]])))
        assert [r.rec_headers.get_header("WARC-Record-ID") for r in alone] == [record_id], (kind, offset)
    check(True, "each member inflates alone to one record")

    ids = {r[1] for r in records}
    linked = [r[3].rec_headers.get_header("WARC-Concurrent-To") for r in records if r[0] == "request"]
    check(all(link in ids for link in linked), "every request names a record of its file")

    blocks = payloads = 0
    for record in FastIterator(str(path), parse_http=False):
        if record.headers.get("WARC-Block-Digest"):
            assert record.verify_block_digest(), record.record_id
            blocks += 1
        if record.headers.get("WARC-Payload-Digest") and record.headers["WARC-Type"] == "response":
            record.parse_http()
            assert record.verify_payload_digest(), record.record_id
            payloads += 1
    check(blocks == len(records) and payloads > 8, f"FastWARC verifies {blocks} block and {payloads} payload digests of {name}")

trawl("verify", *warcs)
check(True, "trawl verify finds nothing wrong")


def jwarc():
    """The jar from Maven Central, if this machine has Java and Maven; a build without them is not held up by it."""
    if not (shutil.which("java") and shutil.which("mvn")):
        return None
    cache = pathlib.Path.home() / ".cache/trawl-ci/jwarc"
    if not list(cache.glob("jwarc-*.jar")):
        got = subprocess.run(["mvn", "-q", "-B", "dependency:copy", "-Dartifact=org.netpreserve:jwarc:LATEST", f"-DoutputDirectory={cache}"])
        if got.returncode:
            return None
    return next(iter(cache.glob("jwarc-*.jar")), None)


jar = jwarc()
if jar is None:
    print("note: no Java or no Maven here, so jwarc did not look at the files")
else:
    for path in warcs:
        out = run("java", "-jar", jar, "validate", "--forbid-extensions", "-v", path)
        bad = [line for line in out.splitlines() if any(word in line.lower() for word in ("fail", "invalid", "error", "violat"))]
        check(not bad, f"jwarc validate --forbid-extensions passes on {path.name}", bad[:3])
done()
