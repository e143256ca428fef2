#!/usr/bin/env python3
"""Answers of a lake against DuckDB over the raw URL lists: memberships, counts, totals, pages, unknown domains.

The lists are made here from known domains, so that nothing of our URL code is needed to know the right answer.
"""
import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import duckdb
from peer import check, done, run, trawl, trawl_json, TRAWL

rng = random.Random(4)
words = "alpha beta gamma delta nova terra luna orbit pixel cedar maple river stone cloud ember frost".split()
suffixes = ["com", "org", "net", "de", "co.uk", "com.au", "github.io", "co.jp", "fr", "io"]
domains = sorted({f"{rng.choice(words)}{rng.choice(words)}{rng.randrange(30)}.{rng.choice(suffixes)}" for _ in range(400)})
domains += ["xn--mnchen-3ya.de", "192.0.2.7", "[2001:db8::1]"]
truth = []  # (dataset, raw url, domain, ts)


def urls(dataset, count):
    for _ in range(count):
        domain = domains[min(int(rng.paretovariate(0.7)) - 1, len(domains) - 1)] if rng.random() < 0.5 else rng.choice(domains)
        named = domain[0].isalpha()
        host = rng.choice(["", "", "www.", "blog."]) + domain if named else domain
        if rng.random() < 0.1 and named:
            host = host.upper()
        if domain.startswith("xn--mn") and rng.random() < 0.5:
            host = host.lower().replace("xn--mnchen-3ya", "münchen")
        if rng.random() < 0.05 and named:
            host += "."
        path = "/" + "/".join(rng.choice(words) for _ in range(rng.randrange(4)))
        query = f"?id={rng.randrange(50)}&a={rng.randrange(3)}" if rng.random() < 0.3 else ""
        port = rng.choice(["", "", "", ":8080", ":80"])
        url = f"{rng.choice(['http', 'https'])}://{host}{port}{path}{query}"
        truth.append((dataset, url, domain, 1_700_000_000_000 + rng.randrange(10**9)))
        yield truth[-1]


pathlib.Path("list.txt").write_text("# a list\n\n" + "".join(f"{url}\n" for _, url, _, _ in urls("list", 6000)), encoding="utf-8")
with open("rows.jsonl", "w", encoding="utf-8") as f:
    for _, url, _, ts in urls("rows", 5000):
        f.write(json.dumps({"url": url, "ts": ts, "tag": rng.randrange(9)}, ensure_ascii=False) + "\n")
with open("late.txt", "w", encoding="utf-8") as f:
    f.writelines(f"{url}\n" for _, url, _, _ in urls("late", 3000))
    f.write("not a url at all\njavascript:void(0)\n")

trawl("lake", "ingest", "--lake", "lake", "--dataset", "list", "list.txt", "--quiet")
trawl("lake", "ingest", "--lake", "lake", "--dataset", "rows", "rows.jsonl", "--quiet")
trawl("lake", "ingest", "--lake", "lake", "--dataset", "late", "late.txt", "--quiet", status=1)
check(True, "a list with two bad lines is ingested, with findings")
again = trawl("lake", "ingest", "--lake", "lake", "--dataset", "list", "list.txt", "--quiet")
check(True, "the same list again is no failure")

db = duckdb.connect()
db.execute("create table truth(dataset varchar, url varchar, domain varchar, ts bigint)")
db.executemany("insert into truth values (?, ?, ?, ?)", truth)
counts = {}
for domain, dataset, rows, distinct in db.sql(
        "select domain, dataset, count(*), count(distinct url) from truth group by all").fetchall():
    counts.setdefault(domain, {})[dataset] = (rows, distinct)

ids = {}
for domain in domains:
    if domain not in counts:
        continue
    [answer] = trawl_json("query", "domain", domain, "--lake", "lake")
    got = {d["name"]: (d["url_count_est"], d["distinct_urls"]) for d in answer["datasets"]}
    assert got == counts[domain], f"{domain}: {got}, expected {counts[domain]}"
    ids |= {d["name"]: d["dataset_id"] for d in answer["datasets"]}
check(len(ids) == 3, f"datasets and counts of {len(counts)} domains equal DuckDB's")

pages = 0
for domain in counts:
    for dataset, (rows, _) in counts[domain].items():
        if rng.random() > (1.0 if rows > 100 else 0.15):
            continue
        expected = sorted(db.execute("select url from truth where domain = ? and dataset = ?", [domain, dataset]).fetchall())
        got, offset = [], 0
        while offset is not None:
            [page] = trawl_json("query", "urls", domain, dataset, "--lake", "lake", "--offset", offset, "--limit", 97)
            assert page["total_est"] == rows and page["dataset_id"] == ids[dataset], f"{domain} {dataset}: {page['total_est']} != {rows}"
            got += [item["url"] for item in page["items"]]
            offset = page["next_offset"]
            pages += 1
        assert sorted((u,) for u in got) == expected, f"{domain} in {dataset}: other URLs than the list's"
check(pages > 50, f"{pages} pages of URLs hold exactly the lists' rows")

for stranger in ["nobody.example", "com", "co.uk", "alphaalpha.invalid", "192.0.2.8"]:
    if stranger not in counts:
        trawl("query", "domain", stranger, "--lake", "lake", status=1)
check(True, "unknown domains are findings, not answers")
some = next(d for d in counts if d.endswith(".com"))
[plain], [www] = trawl_json("query", "domain", some, "--lake", "lake"), trawl_json("query", "domain", "WWW." + some.upper() + ".", "--lake", "lake")
check(plain == www, "a host name is answered for its registrable domain")

total = db.sql("select count(*) from truth").fetchall()[0][0]
lake = db.sql("select count(*) from read_parquet('lake/urls/*/*/*.parquet', hive_partitioning = true)").fetchall()[0][0]
check(lake == total, f"DuckDB counts {total} rows in the lake's own Parquet")
trawl("lake", "verify", "--lake", "lake", "--quiet")
check(True, "trawl lake verify finds nothing wrong")
done()
