#!/usr/bin/env python3
"""Every answer of a lake for every domain against a recomputation here, after each act that changes a lake.

Expected values come from the raw lists and urlmodel.py (docs/urls.md and the suffix list's own rules, written again);
actual ones from `trawl serve` on loopback and `trawl query`. After each step: the datasets of every domain, their counts,
times and top paths, every page in order by walking cursors, some by offset, totals, the list of all domains, and those that
must be unknown.
"""
import datetime
import gzip
import http.client
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import duckdb
from peer import TRAWL, check, done, run, trawl, trawl_json
from urlmodel import SuffixList, Url

rng = random.Random(6)
LAKE = pathlib.Path("lake")
WORDS = "alpha beta gamma delta nova terra luna orbit pixel cedar maple river stone cloud ember frost".split()
TAILS = ["com", "com", "org", "net", "de", "co.uk", "com.au", "github.io", "co.jp", "fr", "io", "ck", "kobe.jp", "city.kobe.jp",
         "blogspot.com", "internal", "test.invalid"]
NAMES = sorted({f"{rng.choice(WORDS)}{rng.choice(WORDS)}{rng.randrange(20)}.{rng.choice(TAILS)}" for _ in range(330)})
NAMES += ["www.ck", "xn--mnchen-3ya.de", "xn--bcher-kva.example", "github.io", "co.uk", "com", "kobe.jp", "localhost", "my_host.example.org"]
ADDRESSES = ["192.0.2.7", "0xc0.0.2.8", "3221225993", "[2001:DB8:0:0::1]", "[2001:db8::2]", "127.1"]
REJECTED = ["javascript:void(0)", "mailto:a@example.com", "gopher://example.com/", "data:text/plain,x", "file:///etc/hosts", "http://[::g]/",
            "http://a b.com/", "http://256.256.256.256/", "http://x.com:99999/", "http:///", "ws://example.com/"]


def make_url():
    if rng.random() < 0.06:
        host = rng.choice(ADDRESSES)
    else:
        name = NAMES[min(int(rng.paretovariate(0.8)) - 1, len(NAMES) - 1)] if rng.random() < 0.4 else rng.choice(NAMES)
        host = rng.choice(["", "", "", "www.", "blog.", "a.b."]) + name
        if rng.random() < 0.1:
            host = host.upper() if rng.random() < 0.5 else host.title()
        if rng.random() < 0.5:
            host = host.replace("xn--mnchen-3ya", "münchen").replace("xn--bcher-kva", "bücher")
        if rng.random() < 0.06:
            host += "."
    scheme = rng.choice(["http", "http", "https", "https", "HTTP", "ftp"])
    user = rng.choice(["user:pw@", "me@"]) if rng.random() < 0.03 else ""
    port = rng.choice([":80", ":443", ":8080", ":8443", ":21"]) if rng.random() < 0.15 else ""
    parts = [rng.choice(WORDS + ["..", ".", "", "%7Euser", "a%2fb", "%e9", "é", "x.html"]) for _ in range(rng.randrange(5))]
    path = "".join("/" + part for part in parts)
    query = "?" + "&".join(f"{rng.choice('xyzab')}={rng.choice(['1', '%41', 'q%20r', ''])}" for _ in range(rng.randrange(1, 4))) if rng.random() < 0.3 else ""
    fragment = "#top" if rng.random() < 0.05 else ""
    if not path and not query and rng.random() < 0.5:
        path = "/"
    return f"{scheme}://{user}{host}{port}{path}{query}{fragment}"


class Row:
    def __init__(self, raw, ts=None, status=None):
        self.raw, self.ts, self.status = raw, ts, status
        # What is before the @ of an authority is kept and not shown.
        self.shown = re.sub(r"^([^/?#]*//)[^/?#]*@", r"\1", raw)


def rows(count, times=False, statuses=False):
    return [Row(make_url(), rng.randrange(1_700_000_000, 1_700_500_000) * 1000 if times else None,
                rng.choice([200, 200, 301, 404]) if statuses else None) for _ in range(count)]


class Model:
    """What the lake must hold: per dataset the batches that became one file each, in order."""

    def __init__(self):
        self.suffixes = None
        self.batches = {}      # name -> list of lists of Row
        self.ids = {}          # name -> id
        self.next_id = 1
        self.deny = {"url": set(), "prefix": set(), "domain": set(), "dataset": set()}
        self.cache = {}

    def parsed(self, raw):
        key = (id(self.suffixes), raw)
        if key not in self.cache:
            self.cache[key] = Url.parse(raw, self.suffixes)
        return self.cache[key]

    def add(self, name, batch, replace=False):
        if name not in self.ids:
            self.ids[name], self.next_id = self.next_id, self.next_id + 1
            self.batches[name] = []
        kept = [row for row in batch if self.parsed(row.raw)]
        self.batches[name] = ([] if replace else self.batches[name]) + [kept]
        return len(batch) - len(kept)

    def drop(self, name):
        del self.batches[name], self.ids[name]

    def merge(self, names=None):
        for name in names or self.batches:
            self.batches[name] = [[row for batch in self.batches[name] for row in batch]]

    def denied_row(self, row):
        url = self.parsed(row.raw)
        return url.text in self.deny["url"] or any(url.text.startswith(p) for p in self.deny["prefix"])

    def purge(self):
        for name in [n for n in self.batches if n in self.deny["dataset"]]:
            self.drop(name)
        gone = lambda row: self.denied_row(row) or self.parsed(row.raw).domain in self.deny["domain"]
        for name, batches in self.batches.items():
            kept = [batch for batch in batches if not any(map(gone, batch))]
            lost = [row for batch in batches if any(map(gone, batch)) for row in batch if not gone(row)]
            self.batches[name] = kept + ([lost] if len(kept) < len(batches) else [])

    def order(self, row):
        url = self.parsed(row.raw)
        raw = (0, b"") if row.raw == url.text else (1, row.raw.encode())
        ts = (0, 0) if row.ts is None else (1, row.ts)
        return url.domain, url.surt.encode(), ts, url.scheme, -1 if url.port is None else url.port, raw

    def answers(self):
        """domain -> dataset -> batches, each in order, without what is denied."""
        out, self.touched = {}, set()
        for name, batches in self.batches.items():
            if name in self.deny["dataset"]:
                continue
            for n, batch in enumerate(batches):
                for row in sorted(batch, key=self.order):
                    domain = self.parsed(row.raw).domain
                    if self.denied_row(row):
                        self.touched.add((domain, name))
                    elif domain not in self.deny["domain"]:
                        out.setdefault(domain, {}).setdefault(name, {}).setdefault(n, []).append(row)
        return out


class Server:
    def __init__(self):
        self.process = subprocess.Popen([TRAWL, "--json", "serve", "--lake", str(LAKE), "--listen", "127.0.0.1:0"],
                                        stdout=subprocess.PIPE, text=True)
        address = json.loads(self.process.stdout.readline())["address"]
        self.connection = http.client.HTTPConnection(*address.split(":"), timeout=120)

    def get(self, path, **params):
        query = urllib.parse.urlencode({k: v for k, v in params.items() if v is not None})
        self.connection.request("GET", path + ("?" + query if query else ""))
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=120)


model, server, asked = Model(), None, 0


def iso(ms):
    at = datetime.datetime.fromtimestamp(ms / 1000, datetime.timezone.utc)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03d}Z"


def quote(name):
    return urllib.parse.quote(name, safe="")


def expect(found, expected, *what):
    if found != expected:
        print("not ok:", *what, f"\n  found    {str(found)[:1500]}\n  expected {str(expected)[:1500]}")
        sys.exit(1)


def top_paths(batch):
    counts = {}
    for row in batch:
        path = model.parsed(row.raw).path_query.split("?")[0]
        first = path.split("/")[1]
        key = f"/{first}/" if path.count("/") > 1 else "/"
        counts[key] = counts.get(key, 0) + 1
    return sorted(({"path": p, "rows": n} for p, n in counts.items()), key=lambda e: (-e["rows"], e["path"]))[:8]


def walk(domain, dataset_id, **params):
    """All items by cursor, and the total of each page."""
    global asked
    items, cursor, limit = [], None, rng.choice([1000, 1000, 97, 23])
    while True:
        status, page = server.get(f"/v1/domain/{quote(domain)}/datasets/{dataset_id}/urls", limit=limit, cursor=cursor, **params)
        asked += 1
        expect(status, 200, domain, dataset_id, page)
        items += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return items, page["total_est"]


def verify_step(what, exact=False):
    """Compares every answer for every domain that was ever seen."""
    global asked
    answers = model.answers()
    names = {model.ids[n]: n for n in model.ids}
    known = set(answers)
    # A name that was a domain under another suffix list may be a host of one now.
    domains = {model.suffixes.registrable(name) for name in seen}
    expect(known - domains, set(), what, "names asked for cover all domains")
    batch = subprocess.run([TRAWL, "--json", "query", "domain", "-", "--lake", str(LAKE)], input="\n".join(sorted(seen)), text=True, capture_output=True)
    by_command = {a["domain"]: a for a in map(json.loads, batch.stdout.splitlines()) if "domain" in a}
    expect(batch.returncode, 1 if domains - known else 0, what, "exit code of trawl query domain", batch.stderr)
    expect(set(by_command), known, what, "domains known to trawl query")
    listed, after = [], None
    while True:
        status, names_page = server.get("/v1/domains", limit=100, after=after)
        expect(status, 200, what, "the list of domains", names_page)
        listed += [(d["domain"], d["datasets"], d["rows"]) for d in names_page["domains"]]
        after = names_page["next_after"]
        if after is None:
            break
    expect(listed, sorted((d, len(ds), sum(len(b) for bs in ds.values() for b in bs.values())) for d, ds in answers.items()), what, "the list of domains")
    for domain in sorted(seen):
        status, answer = server.get(f"/v1/domain/{quote(domain)}")
        asked += 1
        if (mapped := model.suffixes.registrable(domain)) != domain:
            expect((status, answer.get("domain", mapped)), (200 if mapped in known else 404, mapped), what, domain)
            continue
        if domain not in known:
            expect((status, answer.get("error")), (404, "unknown_domain"), what, domain)
            continue
        expect(status, 200, what, domain, answer)
        expect(by_command[domain], answer, what, domain, "command and server")
        expect([(d["dataset_id"], d["name"]) for d in answer["datasets"]],
               sorted((model.ids[n], n) for n in answers[domain]), what, domain, "datasets")
        for found in answer["datasets"]:
            batches = list(answers[domain][names[found["dataset_id"]]].values())
            rows = [row for batch in batches for row in batch]
            place = (what, domain, found["name"])
            expect(found["url_count_est"], len(rows), *place, "rows")
            distinct = len({row.raw for row in rows})
            if found["distinct_exact"]:
                expect(found["distinct_urls"], distinct, *place, "distinct URLs")
            elif exact or not distinct <= found["distinct_urls"] <= len(rows):
                expect(found["distinct_urls"], distinct, *place, "distinct URLs, exact after full compaction")
            times = [row.ts for row in rows if row.ts is not None]
            expect((found.get("first_ts"), found.get("last_ts")), (iso(min(times)), iso(max(times))) if times else (None, None), *place, "times")
            if (domain, found["name"]) in model.touched:
                expect(found["top_paths"], [], *place, "top paths while some rows are denied")
            elif len(batches) == 1:
                expect(found["top_paths"], top_paths(rows) if len(rows) >= 16 else [], *place, "top paths")
            items, total = walk(domain, found["dataset_id"])
            expect(total, len(rows), *place, "total")
            expect([(i["url"], i.get("ts")) for i in items], [(r.shown, None if r.ts is None else iso(r.ts)) for r in rows], *place, "pages in order")
            if rng.random() < 0.05 and (domain, found["name"]) not in model.touched:
                offset, limit = rng.randrange(len(rows) + 2), rng.randrange(1, 50)
                status, page = server.get(f"/v1/domain/{quote(domain)}/datasets/{found['dataset_id']}/urls", offset=offset, limit=limit)
                end = offset + limit if offset + limit < len(rows) else None
                expect((status, [i["url"] for i in page["items"]], page["next_offset"]), (200, [r.shown for r in rows[offset:offset + limit]], end), *place, "by offset", offset, limit)
            expect(sorted((i["url"], i.get("ts") or "", i.get("status") or 0) for i in items),
                   sorted((r.shown, iso(r.ts) if r.ts else "", r.status or 0) for r in rows), *place, "rows of all pages")
    check(True, f"{what}: {len(known)} domains answered, {len(domains - known)} unknown, {sum(len(b) for bs in model.batches.values() for b in bs)} rows")


def filters(count):
    """Host, path prefix, time and status, against the same done here."""
    answers = model.answers()
    pairs = [(d, n) for d in answers for n in answers[d]]
    hits = 0
    for domain, name in rng.sample(pairs, count):
        rows = [row for batch in answers[domain][name].values() for row in batch]
        one = model.parsed(rng.choice(rows).raw)
        middle = 1_700_250_000_000
        for params, keep in [
            ({"host": one.host}, lambda r: model.parsed(r.raw).host == one.host),
            ({"path_prefix": one.path_query[:4]}, lambda r: model.parsed(r.raw).path_query.startswith(one.path_query[:4])),
            ({"host": one.host, "path_prefix": one.path_query}, lambda r: model.parsed(r.raw).host == one.host and model.parsed(r.raw).path_query.startswith(one.path_query)),
            ({"from": iso(middle)}, lambda r: r.ts is not None and r.ts >= middle),
            ({"until": iso(middle)}, lambda r: r.ts is not None and r.ts < middle),
            ({"status": 404}, lambda r: r.status == 404),
        ]:
            items, _ = walk(domain, model.ids[name], **params)
            expected = [r.shown for r in rows if keep(r)]
            expect([i["url"] for i in items], expected, domain, name, params)
            flags = [word for key, value in params.items() for word in (f"--{key.replace('_', '-')}", str(value))]
            if rng.random() < 0.1:
                [page] = trawl_json("query", "urls", domain, name, "--lake", LAKE, *flags)
                expect([i["url"] for i in page["items"]], expected, domain, name, flags)
            hits += len(expected)
    check(hits > 100, f"filters by host, path prefix, time and status on {count} pairs: {hits} rows")


def lookups(count):
    """One URL across all datasets."""
    visible = [(n, r) for ds in model.answers().values() for n, bs in ds.items() for b in bs.values() for r in b]
    for _, row in rng.sample(visible, count):
        text = model.parsed(row.raw).text
        [answer] = trawl_json("query", "url", row.raw, "--lake", LAKE)
        expect(sorted((i["dataset"], i["url"]) for i in answer["items"]),
               sorted((n, r.shown) for n, r in visible if model.parsed(r.raw).text == text), "query url", row.raw)
    trawl("query", "url", "http://nobody.example/", "--lake", LAKE, status=1)
    check(True, f"{count} URLs looked up across datasets")


def diff(a, b):
    answers = model.answers()
    urls = {n: {model.parsed(r.raw).text for ds in answers.values() for batch in ds.get(n, {}).values() for r in batch} for n in (a, b)}
    lines = trawl_json("query", "diff", a, b, "--lake", LAKE, "--list", "urls", "--both", "--quiet", status=1)
    found = {side: {l["url"] for l in lines if l["type"] == "url" and l["in"] == side} for side in ("a", "b", "both")}
    expect(found, {"a": urls[a] - urls[b], "b": urls[b] - urls[a], "both": urls[a] & urls[b]}, "diff", a, b)
    expect(sum(l["type"] == "url" for l in lines), len(urls[a] | urls[b]), "diff", a, b, "each URL once")
    domains = {n: {d for d, ds in answers.items() if n in ds} for n in (a, b)}
    expect(lines[-1]["domains"], {"only_a": len(domains[a] - domains[b]), "only_b": len(domains[b] - domains[a]), "both": len(domains[a] & domains[b])}, "diff")
    check(True, f"diff of {a} and {b}: {len(found['a'])} and {len(found['b'])} URLs in one only, {len(found['both'])} in both")
    same = trawl_json("query", "diff", a, a, "--lake", LAKE, "--quiet")
    expect((same[-1]["urls"]["only_a"], same[-1]["urls"]["only_b"]), (0, 0), "a dataset against itself")


def ingest(name, batch, file, *flags, replace=False):
    rejected = model.add(name, batch, replace)
    [report] = trawl_json("lake", "ingest", "--lake", LAKE, "--dataset", name, file, "--quiet", *flags, *(["--replace"] if replace else []), status=1 if rejected else 0)
    expect((report["rows"], report["rejected"]), (len(batch) - rejected, rejected), "ingest", name)
    expect(report["dataset_id"], model.ids[name], "id of", name)
    if rejected:
        kept = [json.loads(line) for line in (LAKE / report["rejects_file"]).read_text().splitlines()]
        expect((len(kept), all(line["code"] and line["text"] for line in kept)), (rejected, True), "rejects file")


def write_lines(path, batch, opener=open):
    with opener(path, "wt", encoding="utf-8") as f:
        f.write("# a list\n\n")
        f.writelines(f"{r.raw}\n" if r.ts is None else f"{r.raw}\t{iso(r.ts)}\n" for r in batch)


def write_cdxj(path, batch):
    with open(path, "w", encoding="utf-8") as f:
        for r in batch:
            stamp = datetime.datetime.fromtimestamp(r.ts / 1000, datetime.timezone.utc).strftime("%Y%m%d%H%M%S")
            f.write(f"com,key)/ {stamp} " + json.dumps({"url": r.raw, "status": str(r.status), "mime": "text/html"}, ensure_ascii=False) + "\n")


def write_parquet(path, batch):
    """With the column names of Common Crawl's index."""
    db = duckdb.connect()
    db.execute("create table t(url varchar, fetch_time timestamp, fetch_status int, url_host_name varchar)")
    db.executemany("insert into t values (?, make_timestamp(?), ?, 'ignored.example')", [[r.raw, r.ts * 1000, r.status] for r in batch])
    db.execute(f"copy t to '{path}' (format parquet)")


# Three datasets of three formats, each with things that must be rejected.
first = rows(2600) + [Row(raw) for raw in REJECTED]
rng.shuffle(first)
write_lines("list.txt", first)
trawl("lake", "ingest", "--lake", LAKE, "--dataset", "none", "missing.txt", status=2)
check(not LAKE.exists(), "a source that is not there makes no lake")
pathlib.Path("empty.txt").write_text("")
trawl("lake", "ingest", "--lake", LAKE, "--dataset", "list", "empty.txt", "--quiet")
[suffix_file] = (LAKE / "index/suffix_lists").iterdir()
model.suffixes = SuffixList(suffix_file.read_text(encoding="utf-8"))
expect([model.suffixes.registrable(h) for h in ["a.b.co.uk", "x.github.io", "github.io", "a.b.ck", "www.ck", "x.city.kobe.jp", "a.b.c.kobe.jp", "com", "a.internal"]],
       ["b.co.uk", "x.github.io", "github.io", "a.b.ck", "www.ck", "city.kobe.jp", "b.c.kobe.jp", "com", "a.internal"], "the suffix rules as written here")
ingest("list", first, "list.txt")
second = rows(2000, times=True, statuses=True)
write_cdxj("captures.cdxj", second)
ingest("cdx", second, "captures.cdxj")
third = rows(1500, times=True, statuses=True)
write_parquet("index.parquet", third)
ingest("columns", third, "index.parquet")
fourth = rows(600, times=True)
with open("extra.jsonl", "w", encoding="utf-8") as f:
    f.writelines(json.dumps({"url": r.raw, "ts": r.ts, "tag": 1}) + "\n" for r in fourth)
ingest("extra", fourth, "extra.jsonl")

server = Server()
try:
    seen = set(model.answers()) | {"nobody.example", "alpha.invalid", "192.0.2.99", "uk", "org", "frost.internal"}
    verify_step("four datasets")
    filters(40)
    lookups(25)
    diff("list", "cdx")

    [again] = trawl_json("lake", "ingest", "--lake", LAKE, "--dataset", "list", "./list.txt", "--quiet")
    expect((again["rows"], len(again["skipped"])), (0, 1), "the same source again")
    day = rows(900, times=True)
    write_lines("day2.txt.gz", day, gzip.open)
    ingest("list", day, "day2.txt.gz")
    late = rows(300, times=True, statuses=True)
    write_cdxj("day2.cdxj", late)
    ingest("cdx", late, "day2.cdxj")
    seen |= set(model.answers())
    verify_step("a day appended to two datasets")

    newer = rows(700, times=True)
    write_lines("newer.txt", newer)
    ingest("extra", newer, "newer.txt", replace=True)
    seen |= set(model.answers())
    verify_step("a dataset replaced")

    trawl("lake", "drop", "extra", "--lake", LAKE, status=2)
    verify_step("a drop without --yes changes nothing")
    trawl("lake", "drop", "extra", "--lake", LAKE, "--yes", "--quiet")
    model.drop("extra")
    verify_step("a dataset dropped")
    ingest("extra", fourth, "extra.jsonl")
    verify_step("its name used again, under another number")

    answers = model.answers()
    big = max(answers, key=lambda d: sum(len(b) for bs in answers[d].values() for b in bs.values()))
    others = sorted(d for d in answers if d != big and sum(len(bs) for bs in answers[d].values()) > 1)
    url = model.parsed(rng.choice([r for bs in answers[big].values() for b in bs.values() for r in b]).raw).text
    prefix = model.parsed(next(r for bs in answers[others[0]].values() for b in bs.values() for r in b).raw)
    prefix = f"{prefix.scheme}://{prefix.host}{'' if prefix.port is None else f':{prefix.port}'}/"
    for kind, value, flag in [("url", url, url.replace("http", "HTTP", 1)), ("prefix", prefix, prefix), ("domain", others[1], others[1]), ("dataset", "extra", "extra")]:
        trawl("lake", "deny", "add", f"--{kind}", flag, "--lake", LAKE, "--quiet")
        model.deny[kind].add(value)
        verify_step(f"a {kind} denied")
    trawl("query", "url", url, "--lake", LAKE, status=1)
    urls = [model.parsed(r.raw) for bs in model.answers()[others[3]].values() for b in bs.values() for r in b]
    roots = {u.text[:-len(u.path_query)] + "/" for u in urls}
    model.deny["prefix"] |= roots
    roots = [word for root in roots for word in ("--prefix", root)]
    trawl("lake", "deny", "add", *roots, "--lake", LAKE, "--quiet")
    check(others[3] not in model.answers(), "all rows of a domain are denied, one by one")
    verify_step("then it is unknown")
    trawl("lake", "deny", "remove", *roots, "--lake", LAKE, "--quiet")
    model.deny["prefix"] = {prefix}
    trawl("lake", "deny", "add", "--domain", others[2], "--lake", LAKE, "--quiet")
    trawl("lake", "deny", "remove", "--domain", others[2], "--lake", LAKE, "--quiet")
    verify_step("a denial taken back")
    filters(20)
    diff("list", "columns")

    trawl("lake", "compact", "--lake", LAKE, "--full", "--only", "segments", "--quiet")
    verify_step("index compacted", exact=True)
    trawl("lake", "compact", "--lake", LAKE, "--full", "--quiet")
    model.merge([n for n, b in model.batches.items() if len(b) > 1])
    verify_step("files compacted", exact=True)

    trawl("lake", "purge", "--lake", LAKE, "--yes", "--quiet")
    model.purge()
    verify_step("purged", exact=True)
    model.deny["dataset"].clear()
    trawl("lake", "gc", "--lake", LAKE, "--keep-versions", 1, "--keep-states", 1, "--grace", "0s", "--yes", "--quiet")
    verify_step("collected", exact=True)
    db = duckdb.connect()
    stored = f"read_parquet('{LAKE}/urls/*/*/*.parquet', hive_partitioning = true, union_by_name = true)"
    text = "scheme || '://' || host || coalesce(':' || port, '') || path_query"
    left = db.execute(f"select count(*), count(*) filter (domain = ? or {text} = ? or starts_with({text}, ?)) from {stored}", [others[1], url, prefix]).fetchone()
    expect(left, (sum(len(b) for bs in model.batches.values() for b in bs), 0), "rows in the bytes that are left")
    needles = [n.encode() for n in (others[1], url, prefix)]
    for path in LAKE.rglob("*"):
        # The deny list itself stays: in the manifest, and in its record.
        if path.is_file() and not {"suffix_lists", "deny"} & set(path.parts) and "manifest" not in str(path):
            content = path.read_bytes()
            expect([n for n in needles if n in content], [], "denied text in", path)
    check(True, "DuckDB and a search of all files find nothing of what was purged")

    trawl("lake", "rebuild", "--lake", LAKE, "--quiet")
    verify_step("rebuilt", exact=True)
    [version] = json.loads((LAKE / "index/manifest.json").read_text())["versions"][-1:]
    (LAKE / version["domains_txt"]).write_bytes(b"damage")
    os.remove(LAKE / version["d2d_roar"])
    found = run(TRAWL, "lake", "verify", "--lake", LAKE, "--quiet", status=1)
    check("fault" in found, "verify finds a damaged and a missing file")
    server.stop()
    trawl("lake", "rebuild", "--lake", LAKE, "--quiet")
    server = Server()
    verify_step("rebuilt from a damaged index", exact=True)
    # The version before still names the damaged files, until it is collected.
    trawl("lake", "gc", "--lake", LAKE, "--keep-versions", 1, "--keep-states", 1, "--grace", "0s", "--yes", "--quiet")
    verify_step("collected with what was damaged", exact=True)

    text = suffix_file.read_text(encoding="utf-8")
    other = "".join(line + "\n" for line in text.splitlines() if line not in ("github.io", "co.uk", "blogspot.com")) + "\nalphaalpha.com\nde.fr\nexample.org\n"
    pathlib.Path("other.dat").write_text(other, encoding="utf-8")
    trawl("lake", "rebuild", "--lake", LAKE, "--psl", "other.dat", "--quiet")
    model.suffixes = SuffixList(other)
    model.merge()
    seen |= set(model.answers())
    verify_step("rebuilt under another suffix list", exact=True)
    trawl("lake", "deny", "remove", "--domain", others[1], "--lake", LAKE, "--quiet")
    model.deny["domain"].clear()
    last = rows(400)
    write_lines("last.txt", last)
    ingest("list", last, "last.txt")
    seen |= set(model.answers())
    verify_step("a day appended under that list")
    trawl("lake", "verify", "--lake", LAKE, "--quiet")
    check(True, "trawl lake verify finds nothing wrong")
finally:
    server.stop()
print(f"{asked} questions asked of the server")
done()
