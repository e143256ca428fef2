#!/usr/bin/env python3
"""seqdb containers: ours read by a second implementation and by file(1), its files read by us, the vectors by both."""
import os
import pathlib
import random
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import seqdbfile as seqdb
from peer import TRAWL, check, done, run, trawl, trawl_json

ROOT = pathlib.Path(__file__).resolve().parents[2]
VECTORS = ROOT / "crates/formats/seqdb/tests/data"
MAGIC = ROOT / "docs/formats/seqdb.magic"
WHEN = 1200913506
rng = random.Random(7)
vector = {path.name: path.read_bytes() for path in VECTORS.iterdir()}


def feed(data, *args):
    subprocess.run([TRAWL, *map(str, args)], input=data, check=True, stdout=subprocess.DEVNULL)


def netstrings(pairs):
    return b"".join(b"%d:%s," % (len(s), s) for pair in pairs for s in pair)


def save(name, data):
    pathlib.Path(name).write_bytes(data)


# The vectors, written by the second implementation.
v1, pointers = seqdb.pack_kvseq([(b"apple", b"red"), (b"pear", b"green"), (b"fig", b"")], valrepr=1, deleted={1}, sbsize=256, purpose="TEST", synctime=WHEN)
check(v1 == vector["v1.kvseq"], "V1, byte for byte")
keys = list(zip([b"apple", b"pear", b"fig"], pointers))
for name, cellsz in (("v2.hindex", 1), ("v3.hindex", 2)):
    packed = seqdb.pack_hindex(keys, 5, cellsz, 256, "TESTIDX", WHEN, [b"pear"])
    check(packed == vector[name], f"{name}, byte for byte")
check(seqdb.pack_perm([keys[0], keys[2]], 256, "TESTPRM", WHEN) == vector["v4.perm"], "V4, byte for byte")
seqdb.pack_filesys("v", [(b"a.txt", "f", WHEN, b"hello\n")], isz=64, htsize=3, timemp=60, sbsize=512, small=256, synctime=WHEN)
for suffix, name in (("data", "v5.data"), ("idx", "v6.idx"), ("time", "v7.time")):
    check(pathlib.Path(f"v.{suffix}").read_bytes() == vector[name], f"{name}, byte for byte")

# file(1) tells them apart, and ours.
check(shutil.which("file"), "there is a file(1)")
tell = lambda path: run("file", "-b", "-m", MAGIC, path).strip()
for name, said in {"v1.kvseq": "kvseq format, TEST", "v2.hindex": "hindex format, TESTIDX", "v4.perm": "perm format, TESTPRM",
                   "v5.data": "kvseq format, FSYSDATA", "v6.idx": "hindex format, FSYSIDX", "v7.time": "kvseq format, FSYSTIME"}.items():
    check(tell(VECTORS / name) == f"seqdb container, {said}", f"file says what {name} is", tell(VECTORS / name))
check("seqdb" not in tell(__file__), "and what is none")

# A map of ours, with any bytes, replaced and deleted keys.
pairs = [(rng.randbytes(rng.randrange(0, 40)), rng.randbytes(rng.randrange(0, 3000))) for _ in range(3000)]
pairs += [(key, b"again") for key, _ in pairs[::7]]
model = dict(pairs)
for cellsz in (1, 2):
    kvseq, hindex, perm = (f"m{cellsz}.{suffix}" for suffix in ("kvseq", "hindex", "perm"))
    trawl("seqdb", "create", "kvseq", kvseq)
    trawl("seqdb", "create", "hindex", hindex, "--container", kvseq, "--htsize", 11, "--cellsz", cellsz)
    trawl("seqdb", "create", "perm", perm, "--container", kvseq)
    feed(netstrings(pairs), "seqdb", "add", kvseq, "--index", hindex, "--perm", perm, "--netstrings", "-")
    trawl("seqdb", "add", kvseq, "--index", hindex, "gone", "soon")
    trawl("seqdb", "delete", kvseq, "--index", hindex, "gone")
    trawl("seqdb", "group", perm, "--container", kvseq)
    found = seqdb.entries(pathlib.Path(kvseq).read_bytes())
    at = {ptr: (key, value, deleted) for ptr, deleted, key, value in found}
    check(len(found) == len(pairs) + 1 and [(k, v) for _, _, k, v in found][:-1] == pairs, f"CELLSZ {cellsz}: every entry, in order")
    check({k: v for k, v, deleted in at.values() if not deleted} == model, "live entries are the map")
    rows = seqdb.cells(pathlib.Path(hindex).read_bytes())
    key_at = lambda ptr: at[ptr][0]
    check(all(at[seqdb.find(rows, key, key_at)][1] == value for key, value in model.items()), "every key is found by the index")
    check(seqdb.find(rows, b"gone", key_at) is None and seqdb.find(rows, b"never", key_at) is None, "others are not")
    got = [(h, at[ptr][0], ptr) for ptr, h in seqdb.pairs(pathlib.Path(perm).read_bytes())]
    check(got == sorted(got) and len(got) == len(pairs), "pairs are grouped")
    check(all(h == seqdb.h64(key) % (2**63 - 1) for h, key, _ in got), "with the hashes of their keys")
    trawl("seqdb", "compact", kvseq, "--index", hindex, "--perm", perm)
    check({k: v for _, _, k, v in seqdb.entries(pathlib.Path(kvseq).read_bytes())} == model, "and after a compaction")

# Every class of representation, both ways.
for keyrepr, valrepr, align, flags in ((0, 1, 0, True), (1, 2, 16, True), (2, 0, 8, False), (3, 3, 512, True), (12, 6, 0, False), (264, 514, 32, True), (260, 259, 0, False)):
    def one(r, i):
        if r < 4:
            return rng.randbytes(rng.randrange(0, 200))
        return rng.randbytes(r - 4) if r < 260 else rng.randbytes(rng.randrange(0, r - 258))
    rows = [(one(keyrepr, i), one(valrepr, i)) for i in range(200)]
    name = f"r{keyrepr}-{valrepr}"
    more = ["--align", align] + ([] if flags else ["--no-delete"])
    trawl("seqdb", "create", "kvseq", f"{name}.ours", "--keyrepr", keyrepr, "--valrepr", valrepr, *more)
    feed(netstrings(rows), "seqdb", "add", f"{name}.ours", "--netstrings", "-")
    ours = seqdb.entries(pathlib.Path(f"{name}.ours").read_bytes())
    theirs, places = seqdb.pack_kvseq(rows, keyrepr, valrepr, flags, align)
    save(f"{name}.theirs", theirs)
    trawl("verify", f"{name}.theirs")
    same = [(p, False, *row) for p, row in zip(places, rows)]
    check(ours == same, f"representations {keyrepr} and {valrepr}: ours read by them")
    listed = [row["pointer"] for row in trawl_json("seqdb", "list", f"{name}.theirs", "--keys")]
    check(listed == places, "theirs listed by us")
    last = subprocess.run([TRAWL, "seqdb", "get", f"{name}.theirs", "--pointer", str(places[-1])], capture_output=True).stdout
    check(last == rows[-1][1], "and read by us")

# A map of theirs.
theirs, places = seqdb.pack_kvseq(list(model.items()), deleted={3})
save("t.kvseq", theirs)
live = [pair for i, pair in enumerate(zip(model, places)) if i != 3]
for cellsz in (1, 2):
    save("t.hindex", seqdb.pack_hindex(live, 2 * len(model) + 1, cellsz))
    trawl("seqdb", "check", "t.kvseq", "t.hindex")
    for key in rng.sample(list(model), 20):
        if b"\0" in key or key == list(model)[3] or key.startswith(b"-"):
            continue
        got = subprocess.run([os.fsencode(TRAWL), b"seqdb", b"get", b"t.kvseq", b"--index", b"t.hindex", b"--", key], capture_output=True)
        assert got.returncode == 0 and got.stdout == model[key], (key, got)
    check(True, f"their index, CELLSZ {cellsz}: sound, and every key tried is found by us")
save("t.perm", seqdb.pack_perm(live))
check(trawl_json("seqdb", "check", "t.perm")[-1]["counted"] == {"pairs": len(live), "grouped": True}, "their perm is sound and grouped")

# A filesys of ours: written, grown, renamed, cut, deleted; read by them.
for kind in ([], ["--plain"], ["--dups"], ["--ao", "60"]):
    base = "fs" + "".join(kind).replace("-", "")
    trawl("seqdb", "fs", "create", base, "--isz", 64, *kind)
    want = {}
    ao = "--ao" in kind
    for i in range(40):
        name, contents = f"file {i} " + "x" * (i * 3), rng.randbytes(rng.randrange(0, 5000))
        feed(contents, "seqdb", "fs", "put", base, name, "--mtime", WHEN + 20 * i)
        want[name.encode()] = ("f", WHEN + 20 * i, contents)
    if not ao:
        for name in list(want)[::3]:
            more = rng.randbytes(3000)
            feed(more, "seqdb", "fs", "append", base, name.decode())
            want[name] = ("f", None, want[name][2] + more)
        trawl("seqdb", "fs", "truncate", base, "file 3 " + "x" * 9, 100)
        name = ("file 3 " + "x" * 9).encode()
        want[name] = ("f", None, want[name][2][:100])
        trawl("seqdb", "fs", "mv", base, "file 5 " + "x" * 15, "a much longer name " * 20)
        want[("a much longer name " * 20).encode()] = want.pop(("file 5 " + "x" * 15).encode())
    for name in list(want)[1::5]:
        trawl("seqdb", "fs", "rm", base, name.decode())
        del want[name]
    fs = seqdb.Filesys(base)
    check(set(fs.files) == set(want), f"{base}: the names")
    for name, (kind_, mtime, contents) in want.items():
        found = fs.files[name]
        assert (found[0], found[2]) == (kind_, contents) and mtime in (None, found[1]), name
    check(True, f"{base}: types, times and contents of {len(want)} files")
    check(bool(fs.marks) == ao, f"{base}: {len(fs.marks)} time marks")
    trawl("seqdb", "fs", "compact", base)
    compacted = seqdb.Filesys(base)
    check({n: f[2] for n, f in compacted.files.items()} == {n: f[2] for n, f in want.items()}, f"{base}: and compacted")

# A filesys of theirs: read, checked and written on by us.
files = [(f"n{i}/".encode() + rng.randbytes(i % 60), "fcx"[i % 3], WHEN + 7 * i, rng.randbytes(rng.randrange(0, 4000))) for i in range(60)]
for base, timemp in (("their", None), ("theirao", 60)):
    seqdb.pack_filesys(base, files, htsize=199, timemp=timemp)
    check(trawl_json("seqdb", "fs", "check", base)[-1]["faults"] == 0, f"{base}: sound")
    trawl("verify", base)
    listed = trawl_json("seqdb", "fs", "ls", base)
    check([(row["type"], row["mtime"], row["bytes"]) for row in listed] == [(f[1], f[2], len(f[3])) for f in files], f"{base}: listed by us")
    whole = subprocess.run([TRAWL, "cat", base], capture_output=True).stdout
    check(whole == b"".join(f[3] for f in files), f"{base}: contents read by us")
    later = trawl_json("seqdb", "fs", "ls", base, "--since", WHEN + 7 * 30)
    check(len(later) == 30, f"{base}: from a time on")
    feed(b"added by us", "seqdb", "fs", "put", base, "ours")
    trawl("seqdb", "fs", "rm", base, "ours")
    feed(b"added again", "seqdb", "fs", "put", base, "ours")
    fs = seqdb.Filesys(base)
    check(fs.files[b"ours"][2] == b"added again" and len(fs.files) == 61, f"{base}: written on by us, read by them")
done()
