#!/usr/bin/env python3
"""Archives as others made them, read by us and by warcio, FastWARC and jwarc; indexes beside those of cdxj-indexer.

    compare.py FOLDER      wants TRAWL, the binary, and the peers' Python

Where all peers that can read a file read the same records, so must we; the exceptions are listed below, each with its reason,
and one that is no longer true fails. Then the same of files cut and flipped at random: whatever whole records warcio and
FastWARC both read, we read. Every file is also taken into a lake: each of its records is a row, a reject or counted by type.
"""
import collections
import hashlib
import io
import json
import pathlib
import random
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "interop"))
from cdxj_indexer.main import CDXJIndexer
from fastwarc.stream_io import GZipStream
from fastwarc.warc import ArchiveIterator as FastIterator
from peer import TRAWL, check, done
from warcio.archiveiterator import ArchiveIterator

folder = pathlib.Path(sys.argv[1]).resolve()
work = pathlib.Path.cwd()
ARCHIVE = (".warc", ".warc.gz", ".arc", ".arc.gz", ".wat.gz", ".open")
files = sorted(path for path in folder.iterdir() if path.name.endswith(ARCHIVE))
check(len(files) > 50, f"{len(files)} archives in {folder.name}")

# Files whose records we read differently from peers that agree, and why.
RECORDS = {}
# Files whose CDXJ lines differ from those of cdxj-indexer, and why.
NOT_UTF8 = "bytes of its URLs are not UTF-8: they are taken for Latin-1 there, and kept as if escaped here"
NO_HTTP = "a record without an HTTP message, whose first lines are taken for a head there"
SHARED = "several records in one gzip member: an error there, which leaves no line of the file"
GARBAGE = "bytes behind the last record that are none: an error there, which leaves no line of the file"
LINES = {
    "2-bad.arc": NO_HTTP,
    "bad.arc": NO_HTTP,
    "chardet_failure_url.arc.gz": NOT_UTF8,
    "l1.warc": NOT_UTF8,
    "non_ascii_url.arc.gz": NOT_UTF8,
    "example-bad-non-chunked.warc.gz": SHARED,
    "skip-non-open.warc.gz": SHARED,
    "invalid-arcfile-record-then-garbage.arc": GARBAGE,
    "invalid-warcfile-record-then-garbage.warc": GARBAGE,
    "example-bad-length.warc": "a record whose length is wrong is damage here, and cut there",
    "hex_instead_of_date.arc.gz": "a date that cannot be read: a time in the year 2999 there, 1970 here, and told",
    "valid-warcfile-upper-lower-case.warc": "types of records are read in any case here",
}


def sha1(data):
    return hashlib.sha1(data).hexdigest()


def by_warcio(stream):
    """(type, SHA-1 of the block, whether it is whole), and the error that ended it."""
    out = []
    try:
        for record in ArchiveIterator(stream, no_record_parse=True):
            block = record.raw_stream.read()
            kind = {"arc_header": "warcinfo"}.get(record.rec_type, (record.rec_type or "").strip().lower())
            whole = record.length is None or len(block) >= int(record.length)
            out.append((kind, sha1(block), whole))
    except Exception as error:  # noqa: BLE001: whatever stops it
        return out, repr(error)
    return out, None


def by_fastwarc(data):
    out = []
    try:
        for record in FastIterator(io.BytesIO(data), parse_http=False, strict_mode=False):
            block = record.reader.read()
            out.append((record.headers.get("WARC-Type", "").strip().lower(), sha1(block), len(block) >= record.content_length))
    except Exception as error:  # noqa: BLE001
        return out, repr(error)
    return out, None


def by_jwarc(paths):
    jar = next((pathlib.Path.home() / ".cache/trawl-ci/jwarc").glob("jwarc-*.jar"), None)
    if jar is None and shutil.which("mvn"):
        cache = pathlib.Path.home() / ".cache/trawl-ci/jwarc"
        subprocess.run(["mvn", "-q", "-B", "dependency:copy", "-Dartifact=org.netpreserve:jwarc:0.36.0", f"-DoutputDirectory={cache}"], check=True)
        jar = next(cache.glob("jwarc-*.jar"))
    check(jar is not None and shutil.which("java"), "jwarc and a Java to run it")
    printed = subprocess.run(["java", "-cp", jar, HERE / "Jwarc.java", *paths], capture_output=True, text=True, check=True).stdout
    found = {}
    for line in printed.splitlines():
        word, _, rest = line.partition(" ")
        if word == "file":
            records = []
            found[pathlib.Path(rest)] = (records, None)
            last = pathlib.Path(rest)
        elif word == "record":
            kind, digest = rest.rsplit(" ", 1)
            records.append((kind.strip().lower(), digest, True))
        elif rest != "ok":
            found[last] = (records, rest)
    return found


def by_us(path):
    """The records that `trawl cat` prints, and whether it found damage."""
    done = subprocess.run([TRAWL, "cat", path], capture_output=True)
    data, out, at = done.stdout, [], 0
    while at < len(data):
        fields = {}
        while True:
            end = data.index(b"\n", at) + 1
            line, at = data[at:end].rstrip(b"\r\n"), end
            if not line:
                break
            if line[:1] in (b" ", b"\t"):
                fields[name] += b" " + line.strip()
                continue
            name, _, value = line.partition(b":")
            name = name.strip().lower()
            fields.setdefault(name, value.strip())
        kind = fields.get(b"warc-type", b"").decode("latin-1").strip().lower()
        length = int(fields.get(b"content-length", b"").strip() or 0)
        out.append((kind, sha1(data[at:at + length]), True))
        at += length + 4
    return out, done.stderr.decode(errors="replace") if done.returncode else None


def is_arc(path):
    return ".arc" in path.name


def without_types(records):
    """ARC knows no types, so each reader names them its own way; and of the first record warcio takes two lines for itself."""
    return [record[1:] for record in records if record[0] != "warcinfo"]


def cdxj(path):
    """Lines of both, without the order of equal keys."""
    ours = subprocess.run([TRAWL, "cdxj", "index", "--credentials", path], capture_output=True, text=True).stdout.splitlines()
    theirs = work / "theirs.cdxj"
    theirs.unlink(missing_ok=True)
    try:
        CDXJIndexer(output=str(theirs), inputs=[str(path)], sort=True).process_all()
        error = None
    except Exception as e:  # noqa: BLE001
        error = repr(e)
    return ours, theirs.read_text().splitlines() if theirs.exists() else [], error


jwarc = by_jwarc(files)
agreed, sound = 0, []
for path in files:
    data = path.read_bytes()
    ours, damage = by_us(path)
    peers = {"warcio": by_warcio(io.BytesIO(data)), "jwarc": jwarc[path]}
    if not is_arc(path):
        peers["FastWARC"] = by_fastwarc(data)
    strip = without_types if is_arc(path) else list
    lists = {name: strip(records) for name, (records, _) in peers.items()}
    complete = all(error is None for _, error in peers.values()) and all(whole for records, _ in peers.values() for *_, whole in records)
    agree = complete and len({tuple(records) for records in lists.values()}) == 1
    counts = ", ".join(f"{name} {len(records)}{' and an error' if error else ''}" for name, (records, error) in peers.items())
    if agree:
        same = strip(ours) == lists["warcio"]
        check(same != (path.name in RECORDS), f"{path.name}: {len(ours)} records, as all peers" if same else f"{path.name}: {len(ours)} records, peers {len(lists['warcio'])}: {RECORDS.get(path.name)}", counts)
        agreed += 1
        if same and not damage and len(data) < 60_000:
            sound.append(path)
    else:
        check(path.name not in RECORDS, f"{path.name}: {len(ours)} records{', damage told' if damage else ''}; peers differ: {counts}")
check(agreed > 40 and set(RECORDS) <= {path.name for path in files}, f"peers agree on {agreed} files, and so do we but for {len(RECORDS)}")

equal = 0
for path in files:
    ours, theirs, error = cdxj(path)
    same = ours == theirs
    equal += same
    first = next(((a, b) for a, b in zip(ours + [None], theirs + [None]) if a != b), None)
    check(same != (path.name in LINES), f"{path.name}: {len(ours)} lines, as cdxj-indexer" if same else f"{path.name}: lines differ: {LINES.get(path.name)}", f"\n  {first}\n  {error or ''}")
check(equal > 60 and set(LINES) <= {path.name for path in files}, f"{equal} files have the same CDXJ lines; {len(LINES)} differ, each for its reason")

random.seed(15)
damaged, wanted = [], {}
for path in sound:
    data = path.read_bytes()
    for n in range(12):
        changed = bytearray(data)
        if n % 2:
            changed[random.randrange(len(data))] ^= 1 << random.randrange(8)
        else:
            del changed[random.randrange(len(data)):]
        target = work / f"{n:02}-{path.name}"
        target.write_bytes(changed)
        warcio, fast = by_warcio(io.BytesIO(bytes(changed)))[0], by_fastwarc(bytes(changed))[0]
        both = [a for a, b in zip(warcio, fast if not is_arc(path) else warcio) if a == b and a[2] and a[1] != sha1(b"")]
        # They read a record whose member or header is cut behind its block, or before it has one.
        both = both[:-1] if n % 2 == 0 else both
        ours, _ = by_us(target)
        strip = without_types if is_arc(path) else list
        left = collections.deque(strip(ours))
        for record in strip(both):
            while left and left[0] != record:
                left.popleft()
            if not left:
                # A bit of a length or type may have flipped: then a whole record is one that was never written.
                original = strip(by_us(path)[0])
                check(record not in original, f"{target.name}: a whole record that warcio and FastWARC read", record)
                break
            left.popleft()
        damaged.append(target)
check(len(damaged) > 300, f"{len(damaged)} damaged files: we read every whole record that peers read")

for n, path in enumerate(files):
    verified = subprocess.run([TRAWL, "--json", "verify", path], capture_output=True, text=True).stdout.splitlines()
    records = json.loads(verified[-1])["checked"]["records"]
    taken = subprocess.run([TRAWL, "--json", "--quiet", "lake", "ingest", "--lake", work / f"lake{n}", "--dataset", "d", path], capture_output=True, text=True)
    if taken.returncode == 2 and not records:
        print(f"note: {path.name}: {taken.stderr.strip()[:150]}")
        continue
    report = json.loads(taken.stdout.splitlines()[-1])
    damage = report["rejected_by_code"].get("damage", 0)
    check(report["records"] - damage == records, f"{path.name}: {records} records: {report['rows']} rows, {report['rejected']} rejects, {sum(report['not_captures'].values())} not captures", report)
    shutil.rmtree(work / f"lake{n}")
done()
