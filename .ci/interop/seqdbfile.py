"""seqdb containers in plain Python, written from docs/formats/seqdb.md alone: a second opinion on every byte.

Reads and writes whole files in memory; for checks, not for use.
"""
import hashlib
import struct

MAGIC = b"#!WINKME"
FREE, DELETED = 0, 2**64 - 1


def h64(key):
    return int.from_bytes(hashlib.md5(key).digest()[:8], "big")


def up(x, a):
    return x if a <= 1 else -(-x // a) * a


class Superblock:
    def __init__(self, data):
        assert data[:8] == MAGIC, data[:8]
        self.data, self.vars, at = data, {}, 8
        self.size = struct.unpack_from(">q", data, 16)[0]
        while at + 16 <= self.size and data[at : at + 8] != bytes(8):
            name = data[at : at + 8].rstrip(b"\0").decode("ascii")
            assert name not in self.vars, f"{name} twice"
            self.vars[name] = struct.unpack_from(">q", data, at + 8)[0]
            at += 16
        assert list(self.vars)[:3] == ["SBSIZE", "FORMAT", "PURPOSE"], list(self.vars)
        assert not any(data[at : self.size]), "zeros after the variables"

    def __getitem__(self, name):
        return self.vars[name]

    def get(self, name, otherwise=0):
        return self.vars.get(name, otherwise)

    def purpose(self):
        return struct.pack(">q", self["PURPOSE"]).rstrip(b"\0").decode()

    def body(self):
        """The bytes that count."""
        assert self["FILESIZE"] <= len(self.data) and self["SYNCSIZE"] == self["FILESIZE"], "closed properly"
        return self.data[: self["FILESIZE"]]


def pack_superblock(size, variables):
    slots = b"".join(name.encode().ljust(8, b"\0") + struct.pack(">q", value) for name, value in variables)
    return (MAGIC + slots).ljust(size, b"\0")


def purpose_value(text):
    return struct.unpack(">q", text.encode().ljust(8, b"\0"))[0]


def read_string(data, at, r):
    """A string in representation r: it and where it ends."""
    if r < 4:
        width = 1 << r
        n = int.from_bytes(data[at : at + width], "big")
        at, end = at + width, at + width + n
    elif r < 260:
        n, end = r - 4, at + r - 4
    else:
        n, at, end = data[at], at + 1, at + 1 + r - 259
        assert n <= r - 259 and not any(data[at + n : end]), "a lim8 string and its zeros"
    assert end <= len(data), "an entry within the file"
    return data[at : at + n], end


def pack_string(s, r):
    if r < 4:
        return len(s).to_bytes(1 << r, "big") + s
    if r < 260:
        assert len(s) == r - 4
        return s
    return bytes([len(s)]) + s.ljust(r - 259, b"\0")


def entries(data):
    """(pointer, deleted, key, value) of every entry of a kvseq; the counters are compared on the way."""
    sb = Superblock(data)
    assert sb["FORMAT"] == 0x10
    data, align, flags = sb.body(), sb.get("ALIGN"), sb.get("KVDELFL") == 1
    at, end, out = up(sb.size, align), sb.size, []
    while at < len(data):
        assert not any(data[end:at]), "zeros between entries"
        ptr, deleted = at, False
        if flags:
            assert data[at] in (0, 1)
            deleted, at = data[at] == 1, at + 1
        key, at = read_string(data, at, sb["KEYREPR"])
        value, end = read_string(data, at, sb["VALREPR"])
        out.append((ptr, deleted, key, value))
        at = up(end, align)
    assert len(out) == sb["ENTRIES"] and sum(not e[1] for e in out) == sb["AENTRIES"], "counters"
    return out


def cells(data):
    sb = Superblock(data)
    assert sb["FORMAT"] == 0x20 and sb["HTALGO"] == 1
    n, words, body = sb["HTSIZE"], sb["CELLSZ"], sb.body()
    assert len(body) == sb.size + 8 * words * n
    rows = [struct.unpack_from(f">{words}Q", body, sb.size + 8 * words * i) for i in range(n)]
    live = [r for r in rows if r[0] not in (FREE, DELETED)]
    assert sb["ENTRIES"] == sum(r[0] != FREE for r in rows) and sb["AENTRIES"] == len(live), "counters"
    return rows


def find(rows, key, key_at):
    """The pointer of a key, by linear probing; nothing if a free cell comes first."""
    home = h64(key) % len(rows)
    for step in range(len(rows)):
        row = rows[(home + step) % len(rows)]
        if row[0] == FREE:
            return None
        if row[0] != DELETED and (len(row) == 1 or row[1] == h64(key)) and key_at(row[0]) == key:
            return row[0]
    return None


def pairs(data):
    sb = Superblock(data)
    assert sb["FORMAT"] == 0x30
    body = sb.body()
    assert len(body) == sb.size + 16 * sb["PERMSIZE"]
    return [struct.unpack_from(">qq", body, sb.size + 16 * i) for i in range(sb["PERMSIZE"])]


class Filesys:
    """NAME.data, NAME.idx and NAME.time: {name: (type, mtime, contents)}, in disk order."""

    def __init__(self, base):
        data, idx = (open(f"{base}.{suffix}", "rb").read() for suffix in ("data", "idx"))
        self.sb, self.isb = Superblock(data), Superblock(idx)
        assert (self.sb.purpose(), self.isb.purpose()) == ("FSYSDATA", "FSYSIDX")
        assert self.sb["FSGEN"] == self.isb["FSGEN"] > 0
        self.entries = {e[0]: e for e in entries(data)}
        self.inodes = {p: self.inode(e) for p, e in self.entries.items() if e[2][:3] == b"FSI"}
        rows = cells(idx)
        name_at = lambda p: self.inodes[p]["name"] if p in self.inodes else None
        self.files, itot, dtot = {}, 0, 0
        for ptr, node in self.inodes.items():
            found = find(rows, node["name"], name_at)
            alive = found == ptr if self.sb.get("HAVEDUPS") == 1 else not node["deleted"]
            if not alive:
                continue
            assert found == ptr, f"{node['name']} by the index"
            contents, start = b"", 0
            for p in node["pointers"]:
                _, deleted, key, value = self.entries[p]
                assert key == b"FSD" + struct.pack(">QQ", node["id"], start) and not deleted, "data of the file"
                contents, start = contents + value, start + len(value)
            assert node["size"] <= len(contents)
            itot += 29 + 23 + node["area"]
            dtot += len(contents)
            self.files[node["name"]] = (node["type"], node["mtime"], contents[: node["size"]])
        assert len(self.files) == self.isb["AENTRIES"], "as many files as names"
        assert (itot, dtot) == (self.sb["ITOTSZ"], self.sb["DTOTSZ"]), "totals"
        self.marks = []
        if self.sb.get("HAVEAO") == 1:
            time = open(f"{base}.time", "rb").read()
            tsb = Superblock(time)
            assert (tsb.purpose(), tsb["FSGEN"]) == ("FSYSTIME", self.sb["FSGEN"])
            self.marks = [struct.unpack(">qq", k + v) for _, _, k, v in entries(time)]
            assert self.marks == self.expected_marks(tsb["TIMEMP"]), "marks"

    def inode(self, entry):
        _, deleted, key, value = entry
        kind, n, p, mtime, size = struct.unpack_from(">cHIqq", value)
        area = value[23:]
        assert len(area) % 8 == 0 and 8 * p + n <= len(area)
        name = area[len(area) - n :]
        assert key[11:] == struct.pack(">Q", h64(name)) and len(key) == 19, "the key of an inode"
        assert not any(area[8 * p : len(area) - n]), "zeros between pointers and name"
        pointers = struct.unpack_from(f">{p}Q", area)
        ident = struct.unpack(">Q", key[3:11])[0]
        return dict(deleted=deleted, type=kind.decode(), name=name, mtime=mtime, size=size, area=len(area), pointers=pointers, id=ident)

    def expected_marks(self, timemp):
        marks = []
        for ptr, node in self.inodes.items():
            if not marks or node["mtime"] >= marks[-1][0] + max(timemp, 1):
                marks.append((node["mtime"], ptr))
        return marks


def pack_kvseq(pairs, keyrepr=0, valrepr=3, flags=True, align=0, deleted=(), sbsize=4096, purpose="", synctime=0, extra=(), hint=True):
    """The bytes of a kvseq, and where each entry is."""
    body, pointers, end = b"", [], sbsize
    for i, (key, value) in enumerate(pairs):
        start = up(sbsize + len(body), align)
        body = body.ljust(start - sbsize, b"\0")
        pointers.append(start)
        flag = bytes([i in deleted]) if flags else b""
        body += flag + pack_string(key, keyrepr) + pack_string(value, valrepr)
        end = sbsize + len(body)
    variables = [("SBSIZE", sbsize), ("FORMAT", 0x10), ("PURPOSE", purpose_value(purpose)), ("FILESIZE", end)]
    variables += [("FILEINCR", 0), ("SYNCSIZE", end), ("SYNCTIME", synctime), ("KEYREPR", keyrepr), ("VALREPR", valrepr)]
    variables += [("KVDELFL", 1)] if flags else []
    variables += [("ALIGN", align), ("ENTRIES", len(pairs)), ("AENTRIES", len(pairs) - len(deleted))]
    variables += ([("HTALGO", 1)] if hint else []) + list(extra)
    return pack_superblock(sbsize, variables) + body, pointers


def pack_hindex(keys, htsize, cellsz, sbsize=4096, purpose="", synctime=0, deleted=(), extra=()):
    """The bytes of an index of (key, pointer); keys of `deleted` are entered and deleted again, last."""
    rows = [(FREE, 0)] * htsize
    where = {}
    for key, ptr in keys:
        cell = h64(key) % htsize
        while rows[cell][0] != FREE:
            cell = (cell + 1) % htsize
        rows[cell], where[key] = (ptr, h64(key)), cell
    for key in deleted:
        rows[where[key]] = (DELETED, 0)
    end = sbsize + 8 * cellsz * htsize
    variables = [("SBSIZE", sbsize), ("FORMAT", 0x20), ("PURPOSE", purpose_value(purpose)), ("FILESIZE", end)]
    variables += [("SYNCSIZE", end), ("SYNCTIME", synctime), ("HTSIZE", htsize), ("CELLSZ", cellsz), ("HTALGO", 1)]
    variables += [("ENTRIES", len(keys)), ("AENTRIES", len(keys) - len(deleted)), *extra]
    return pack_superblock(sbsize, variables) + b"".join(struct.pack(">QQ", *row)[: 8 * cellsz] for row in rows)


def pack_perm(rows, sbsize=4096, purpose="", synctime=0):
    end, modulus = sbsize + 16 * len(rows), 2**63 - 1
    rows = sorted((h64(key) % modulus, key, ptr) for key, ptr in rows)
    variables = [("SBSIZE", sbsize), ("FORMAT", 0x30), ("PURPOSE", purpose_value(purpose)), ("FILESIZE", end), ("FILEINCR", 0)]
    variables += [("SYNCSIZE", end), ("SYNCTIME", synctime), ("HTALGO", 1), ("HTSIZE", modulus), ("PERMSIZE", len(rows))]
    return pack_superblock(sbsize, variables) + b"".join(struct.pack(">QQ", ptr, h) for h, _, ptr in rows)


def pack_filesys(base, files, isz=512, htsize=101, timemp=None, sbsize=4096, small=4096, synctime=0, fsgen=0x0123456789ABCDEF):
    """Writes BASE.data, BASE.idx and, append-only, BASE.time: files are (name, type, mtime, contents)."""
    pairs, names, at, itot, dtot, marks = [], [], sbsize, 0, 0, []
    for name, kind, mtime, contents in files:
        area = isz
        while 8 + len(name) > area:
            area *= 2
        data_at = at + 29 + 23 + area
        pointers = [data_at] if contents else []
        packed = b"".join(struct.pack(">Q", p) for p in pointers)
        value = struct.pack(">cHIqq", kind.encode(), len(name), len(pointers), mtime, len(contents))
        value += packed + bytes(area - len(packed) - len(name)) + name
        pairs.append((b"FSI" + struct.pack(">QQ", at, h64(name)), value))
        names.append((name, at))
        if not marks or mtime >= marks[-1][0] + max(timemp or 0, 1):
            marks.append((mtime, at))
        if contents:
            pairs.append((b"FSD" + struct.pack(">QQ", at, 0), contents))
        itot, dtot = itot + 29 + 23 + area, dtot + len(contents)
        at = data_at + (29 + len(contents) if contents else 0)
    extra = [("ISZ", isz), ("HAVEDUPS", 0), ("HAVEAO", int(timemp is not None)), ("DTOTSZ", dtot), ("ITOTSZ", itot), ("FSGEN", fsgen)]
    data, _ = pack_kvseq(pairs, sbsize=sbsize, purpose="FSYSDATA", synctime=synctime, extra=extra)
    idx = pack_hindex(names, htsize, 2, sbsize=small, purpose="FSYSIDX", synctime=synctime, extra=[("FSGEN", fsgen)])
    out = {"data": data, "idx": idx}
    if timemp is not None:
        rows = [(struct.pack(">q", mark), struct.pack(">q", ptr)) for mark, ptr in marks]
        extra = [("TIMEMP", timemp), ("FSGEN", fsgen)]
        out["time"], _ = pack_kvseq(rows, 12, 12, False, 0, (), small, "FSYSTIME", synctime, extra, hint=False)
    for suffix, content in out.items():
        with open(f"{base}.{suffix}", "wb") as f:
            f.write(content)
    return out
