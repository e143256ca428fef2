"""Every answer of a lake of odd URLs, field by field as the command line gives it."""

import json
import random
from datetime import datetime

import pytest

import trawl

WORDS = ["alpha", "beta", "gamma", "delta", "über", "x%41y", "..", "", "a b", "%e9", "é"]
HOSTS = [
    "www.alpha.com", "blog.alpha.com", "ALPHA.com.", "beta.co.uk", "a.b.beta.co.uk", "bücher.example", "xn--bcher-kva.example", "192.0.2.7",
    "0xc0.0.2.8", "[2001:DB8:0:0::1]", "localhost", "my_host.example.org", "co.uk", "user.github.io", "www.ck", "kobe.jp",
]


def lines(seed, count):
    chance = random.Random(seed)
    for n in range(count):
        host = chance.choice(HOSTS) + chance.choice(["", "", "", ":80", ":8443"])
        user = "me:pw@" if n % 37 == 0 else ""
        path = "".join("/" + chance.choice(WORDS) for _ in range(chance.randrange(4)))
        query = f"?b={n % 9}&a=%7E" if n % 3 else ""
        row = {"url": f"{chance.choice(['http', 'https', 'HTTP', 'ftp'])}://{user}{host}{path}{query}{'#top' if n % 11 == 0 else ''}"}
        if n % 5:
            row["ts"] = f"20{n % 60:02}-0{1 + n % 9}-11T00:00:0{n % 10}.{n % 1000:03}Z"
        if n % 4:
            row |= {"status": chance.choice([200, 301, 404, 599]), "content_type": "text/html; charset=ä", "digest": f"sha1:{'ABCDEFGH234567'[n % 14] * 32}"}
        if n % 6 == 0:
            row |= {"body_length": n * 2**33, "warc_file": f"crawl-{n % 3}.warc.gz", "warc_offset": n * 2**40, "warc_length": n}
        if n % 7 == 0:
            row |= {"note": "tab\t\"ü\"\x00\u2028", "deep": {"list": [1, None, 2**64 - 1, -1, 0.5]}}
        if n % 13 == 0:
            row |= {"error": "dns_nxdomain"}
        yield row


@pytest.fixture(scope="module")
def odd(tmp_path_factory, trawl_cli):
    """A lake of two datasets, one of them taken in two parts; with a dataset that is dropped, and denials."""
    where = tmp_path_factory.mktemp("odd")
    for name, seed, count in [("one", 1, 900), ("more", 2, 400), ("two", 3, 700), ("gone", 4, 50)]:
        (where / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines(seed, count)))
    ingest = lambda dataset, name: trawl_cli("lake", "ingest", "--lake", where / "lake", "--dataset", dataset, where / f"{name}.jsonl", "-q")
    for dataset, name in [("one", "one"), ("one", "more"), ("two", "two"), ("gone", "gone")]:
        ingest(dataset, name)
    trawl_cli("lake", "drop", "gone", "--lake", where / "lake", "--yes", "-q")
    trawl_cli("lake", "deny", "add", "--domain", "www.ck", "--prefix", "https://www.alpha.com/beta", "--lake", where / "lake", "-q")
    return where / "lake"


@pytest.fixture(scope="module")
def ask(odd, trawl_cli):
    return lambda *args: trawl_cli("query", *args, "--lake", odd, "--json")


@pytest.fixture(scope="module")
def domains(odd, ask):
    (said,) = ask("domains")
    assert trawl.Lake(odd).domains() == said
    names = [one["domain"] for one in said["domains"]]
    assert len(names) >= 10 and "www.ck" not in names
    return names


COLUMNS = ["url", "ts", "status", "content_type", "digest", "body_length", "warc_file", "warc_offset", "warc_length"]


def as_row(item, dataset_id, domain):
    """A row of the API's JSON as `Rows` have it."""
    row = {"dataset_id": dataset_id, "domain": domain, "url_id": int(item["url_id"], 16)} | {name: item.get(name) for name in COLUMNS}
    row["ts"] = item.get("ts") and datetime.fromisoformat(item["ts"])
    return row | {"extras": item.get("extras")}


def rows_of(rows):
    return [row | {"extras": row["extras"] and json.loads(row["extras"])} for row in rows]


def test_every_domain_and_all_of_its_rows(odd, ask, domains):
    lake = trawl.Lake(odd)
    ids = {d["name"]: d["dataset_id"] for d in lake.datasets()}
    scanned = {name: [] for name in ids}
    for domain in domains:
        (said,) = ask("domain", domain)
        assert lake.domain(domain).to_dict() == said
        assert lake.domain(domain).datasets == said["datasets"]
        for one in said["datasets"]:
            dataset, wanted, cursor = one["name"], [], []
            while cursor is not None:
                (page,) = ask("urls", domain, dataset, "--limit", 300, *(["--cursor", cursor] if cursor else []))
                assert lake.page(domain, dataset, limit=300, cursor=cursor or None) == page
                wanted += [as_row(item, ids[dataset], domain) for item in page["items"]]
                cursor = page["next_cursor"]
            found = rows_of(lake.urls(domain, dataset))
            assert found == wanted, domain
            assert [list(row) for row in found[:1]] == [[*wanted[0]]]
            assert rows_of(lake.urls(domain, ids[dataset], limit=7)) == wanted[:7]
            scanned[dataset] += wanted
    key = lambda row: (row["domain"], row["url"], str(row))
    for dataset, wanted in scanned.items():
        assert sorted(rows_of(lake.scan(dataset)), key=key) == sorted(wanted, key=key)
        parts = [row for k in range(5) for row in rows_of(lake.scan(dataset, part=(k, 5)))]
        assert sorted(parts, key=key) == sorted(wanted, key=key)
    assert "extras" in lake.scan("one").columns and any(row["extras"] for row in scanned["one"])


def test_every_filter(odd, ask, domains):
    lake = trawl.Lake(odd)
    asked = 0
    for domain in domains:
        for flags, filters in [
            (["--host", "blog.alpha.com"], {"host": "blog.alpha.com"}),
            (["--path-prefix", "/alpha"], {"path_prefix": "/alpha"}),
            (["--path-prefix", "/é"], {"path_prefix": "/é"}),
            (["--from", "2019-01-01"], {"since": "2019-01-01"}),
            (["--until", "2019-01-01T00:00:00Z"], {"until": datetime.fromisoformat("2019-01-01T00:00:00Z")}),
            (["--status", "599"], {"status": 599}),
            (["--error-class", "dns_nxdomain"], {"error_class": "dns_nxdomain"}),
            (["--status", "404", "--from", "2001-01-01", "--path-prefix", "/"], {"status": 404, "since": "2001-01-01", "path_prefix": "/"}),
        ]:
            (said,) = ask("urls", domain, "two", "--limit", 10000, *flags) or [None]
            if said is None or "items" not in said:
                with pytest.raises(trawl.NotFound):
                    lake.page(domain, "two", **filters)
                continue
            assert lake.page(domain, "two", limit=10000, **filters) == said
            assert [row["url"] for row in lake.urls(domain, "two", **filters)] == [item["url"] for item in said["items"]]
            asked += len(said["items"]) > 0
    assert asked > 20


def test_single_urls_names_and_comparisons(odd, ask, domains):
    lake = trawl.Lake(odd)
    some = [row["url"] for row in lake.scan("one")][::17]
    for url in some:
        (said,) = ask("url", url)
        assert lake.url(url) == said
    for flags, given in [
        (["--prefix", "b"], {"prefix": "b"}), (["--suffix", ".example"], {"suffix": ".example"}),
        (["--dataset", "two", "--limit", 3], {"dataset": "two", "limit": 3}), (["--after", "beta.co.uk"], {"after": "beta.co.uk"}),
    ]:
        (said,) = ask("domains", *flags)
        assert lake.domains(**given) == said
    with pytest.raises(trawl.NotFound):
        lake.diff("one", "two", domain="nowhere.example").summary()
    for domain in [None, "alpha.com"]:
        only = ["--domain", domain] if domain else []
        diff = lake.diff("one", "two", domain=domain)
        *urls, summary = ask("diff", "one", "two", "--list", "urls", "--both", *only)
        plain = lambda line: {name: value for name, value in line.items() if name != "type"}
        assert diff.summary() == plain(summary)
        assert diff.urls(both=True).to_list() == [plain(line) for line in urls]
        assert diff.urls().to_list() == [plain(line) for line in urls if line["in"] != "both"]
        *names, _ = ask("diff", "one", "two", "--list", "domains", "--both", *only)
        counts = [(line["domain"], line["in"], line["rows_a"], line["rows_b"], *line["urls"].values()) for line in names]
        assert [tuple(row.values()) for row in diff.domains()] == counts
    found = {(row["name"], row["dataset_id"]): row for row in lake.lookup(domains)}
    said = {(name, one["dataset_id"]): one for name in domains for one in lake.domain(name).datasets}
    assert found.keys() == said.keys()
    for key, row in found.items():
        times = [said[key].get(name) and datetime.fromisoformat(said[key][name]) for name in ("first_ts", "last_ts")]
        assert [row["rows"], row["first_ts"], row["last_ts"]] == [said[key]["url_count_est"], *times]


def test_datasets_and_what_is_not_there(odd, ask, trawl_cli):
    lake = trawl.Lake(odd)
    said = trawl_cli("lake", "datasets", "--lake", odd, "--json")
    names = ("dataset_id", "name", "rows", "domains")
    assert [[row[name] for name in names] for row in lake.datasets()] == [[one.get(name) for name in names] for one in said]
    for name in ("www.ck", "nowhere.example"):
        for call in (lake.domain, lambda name: lake.urls(name, "one"), lambda name: lake.page(name, "one")):
            with pytest.raises(trawl.NotFound):
                call(name)
    for dataset in ("gone", 3, 99):
        with pytest.raises(trawl.NotFound):
            lake.scan(dataset)
    assert lake.lookup(["www.ck", "nowhere.example"]).to_list() == []
    assert not [row for row in lake.scan("one") if row["domain"] == "www.ck" or row["url"].startswith("https://www.alpha.com/beta")]
