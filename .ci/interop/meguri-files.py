"""`.meguri` files of Trawl, read by a reader that shares no code with it and follows the rules of the original's: each page's own
codec, concatenated and skippable zstd frames, bit widths as the payload states them, unknown columns and sections skipped.
"""
import pathlib
import struct

import zstandard
from peer import check, trawl, trawl_json

POLY = 0x82F63B78
TABLE = []
for n in range(256):
    for _ in range(8):
        n = n >> 1 ^ (POLY if n & 1 else 0)
    TABLE.append(n)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


class Reader:
    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, n):
        self.at += n
        assert self.at <= len(self.data), "cut short"
        return self.data[self.at - n:self.at]

    def unpack(self, form):
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))

    def one(self, form):
        return self.unpack(form)[0]

    def uvarint(self):
        value = shift = 0
        while True:
            byte = self.one("B")
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value


def unzigzag(value):
    return value >> 1 ^ -(value & 1)


def bits(data, n, width):
    whole = int.from_bytes(data, "little")
    mask = (1 << width) - 1
    return [whole >> i * width & mask for i in range(n)]


def page(data, at):
    """The payload of a page and where the next one begins."""
    kind, encoding, codec, _, n, raw, stored, first, base, crc = struct.unpack_from("<BBBBIIIIQI", data, at)
    payload = data[at + 32:at + 32 + stored]
    assert crc32c(payload) == crc, f"page at {at}"
    if codec == 2 and payload:
        frames = zstandard.ZstdDecompressor().stream_reader(payload, read_across_frames=True)
        payload = frames.read()
    assert codec in (0, 2) and len(payload) == raw, f"page at {at}: {len(payload)} of {raw} bytes"
    return kind, encoding, n, base, payload, at + 32 + stored


def values(encoding, payload, n, width, base):
    r = Reader(payload)
    wide = lambda reader: int.from_bytes(reader.take(width), "little")
    if n == 0:
        return []
    if encoding == 0:
        return [wide(r) for _ in range(n)]
    if encoding == 4:
        out = []
        for _ in range(r.uvarint()):
            value = wide(r)
            out += [value] * r.uvarint()
        assert len(out) == n
        return out
    if encoding == 1:
        entries = [wide(r) for _ in range(r.uvarint())]
        width_of_codes = r.one("B")
        return [entries[code] for code in bits(payload[r.at:], n, width_of_codes)]
    if encoding == 3:
        width_of_values = r.one("B")
        return [base + v for v in bits(payload[r.at:], n, width_of_values)]
    out = [base]
    if encoding == 2:
        steps = [r.uvarint() for _ in range(n - 1)]
    else:
        assert encoding == 6, f"encoding {encoding}"
        width_of_steps, least = r.one("B"), r.uvarint()
        steps = [least + v for v in bits(payload[r.at:], n - 1, width_of_steps)]
    for step in steps:
        out.append(out[-1] + unzigzag(step) & 0xFFFFFFFFFFFFFFFF)
    return out


def directory(section, data):
    """Every column by id, decoded, its checksum checked."""
    r = Reader(section)
    columns = {}
    for _ in range(r.uvarint()):
        number = r.uvarint()
        first, _, _ = r.unpack("QQQ")
        rows, pages = r.uvarint(), r.uvarint()
        width, _, _, _, crc, _, _, _ = r.unpack("BBBQIBQQ")
        r.take(8 if pages <= 1 else 42 * pages)
        at, out = first, []
        for _ in range(pages):
            _, encoding, n, base, payload, at = page(data, at)
            out += [payload[i:i + 16] for i in range(0, len(payload), 16)] if width == 16 else values(encoding, payload, n, width, base)
        assert crc32c(data[first:at]) == crc and len(out) == rows, f"column {number}"
        columns[number] = out
    return columns


def read(path):
    data = pathlib.Path(path).read_bytes()
    assert data[:4] == data[-4:] == b"MEG1" and crc32c(data[:60]) == struct.unpack_from("<I", data, 60)[0]
    urls, hosts, footer = struct.unpack_from("<QQQ", data, 32)
    length, crc = struct.unpack_from("<II", data, len(data) - 12)
    body = data[footer:-12]
    assert len(body) == length and crc32c(body) == crc, "footer"
    r, sections = Reader(body), {}
    while r.at < len(body):
        tag = r.uvarint()
        sections[tag] = r.take(r.uvarint())
    regions = Reader(sections[1])
    found = {}
    for _ in range(regions.uvarint()):
        number, offset, size, crc, _ = regions.unpack("BQQIB")
        assert crc32c(data[offset:offset + size]) == crc, f"region {number}"
        found[number] = page(data, offset)[4] if number >= 2 else None
    url_columns, host_columns = directory(sections[2], data), directory(sections[3], data)
    assert set(range(23)) <= set(url_columns) and set(range(20)) <= set(host_columns)
    assert all(len(c) == urls for c in url_columns.values()) and all(len(c) == hosts for c in host_columns.values())
    keys = list(zip(url_columns[0], url_columns[1]))
    assert keys == sorted(keys) and len(set(keys)) == len(keys), "order"
    return url_columns, host_columns, found


def text(arena, reference):
    if reference == 0:
        return ""
    r = Reader(arena, reference)
    return r.take(r.uvarint()).decode()


def schedule(payload, due):
    """The rows of every bucket are those whose hour falls into it."""
    r = Reader(payload)
    base, rows = r.unpack("II")
    counts = [r.uvarint() for _ in range(r.uvarint())]
    assert len(counts) == 283 and rows == len(due) and base == min(d for d in due if d)
    seen = set()
    for bucket, count in enumerate(counts):
        row = 0
        for _ in range(count):
            row += r.uvarint()
            seen.add(row)
            if bucket < 168:
                assert due[row] == base + bucket
    assert seen == {row for row, d in enumerate(due) if d}


def main():
    urls = [f"https://host{n % 37 if n % 2 else 0}.example/dir{n % 11}/page-{n}?id={n * n}" for n in range(12000)]
    pathlib.Path("urls.txt").write_text("".join(f"{url}\t2026-06-{n % 28 + 1:02}\n" for n, url in enumerate(urls)))
    trawl("-q", "frontier", "seed", "urls.txt", "--out", "a.meguri", "--created", "482817", "--key-policy", "exact")
    columns, hosts, regions = read("a.meguri")
    check(sorted(text(regions[4], ref) for ref in columns[6]) == sorted(urls), "every URL, through the arena's frames")
    names = {text(regions[4], ref) for ref in hosts[1]}
    check(names == {url.split("/")[2] for url in urls}, "every host")
    check(set(regions) == {0, 1, 3, 4} and regions[3][:2] == b"\x01\x01", "a ribbon filter, and no schedule as nothing is due")
    check(len(columns) == 23 + 3, "extension columns are there to be skipped")
    hours = {text(regions[4], ref): hour for ref, hour in zip(columns[6], columns[7])}
    first = trawl_json("frontier", "diff", "a.meguri", "a.meguri")[-1]
    check(first["same"] == len(urls) and len(set(hours.values())) == 28, "hours of discovery")

    trawl("-q", "frontier", "merge", "a.meguri", "a.meguri", "--out", "b.meguri", "--pack")
    packed, _, regions = read("b.meguri")
    check(all(packed[number] == columns[number] for number in range(23) if number != 6), "a packed file has the same rows")
    check(sorted(text(regions[4], ref) for ref in packed[6]) == sorted(urls), "and the same texts")

    golden = pathlib.Path(__file__).parent.parent.parent / "crates/formats/meguri/tests/data"
    for name in ["ours-plain-1", "ours-zstd-1", "v1", "v2"]:
        columns, _, regions = read(golden / f"{name}.meguri")
        if 2 in regions:
            schedule(regions[2], columns[10])
        check(len(columns[0]) in (6, 300), f"{name}: {len(columns[0])} rows")


main()
