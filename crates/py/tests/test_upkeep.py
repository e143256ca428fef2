import pytest

import trawl


@pytest.fixture
def lake(tmp_path, lists):
    lake = trawl.Lake(tmp_path / "lake", create=True)
    for name in ("monday", "tuesday"):
        lake.ingest(lists / f"{name}.jsonl", name)
    return lake


def test_compact_and_collect(lake):
    before = lake.scan("monday").to_list()
    assert lake.compact() == []
    would = lake.compact(full=True, dry_run=True)
    assert [fact["type"] for fact in would] == ["segments"] and would[0]["segments"] == 2
    version = lake.version
    (merged,) = [fact for fact in lake.compact(full=True) if fact["type"] == "segments"]
    assert len(merged["merged"]) == 2 and merged["version"] == lake.version != version
    with pytest.raises(TypeError):
        lake.gc()
    would = lake.gc(dry_run=True, keep_versions=1, keep_states=1, grace_seconds=0)
    assert would["dry_run"] and would["objects"] == len(would["gone"]) > 0
    assert lake.gc(dry_run=False, keep_versions=1, keep_states=1, grace_seconds=0)["objects"] > 0
    assert lake.scan("monday").to_list() == before
    assert lake.verify()["faults"] == []
    assert lake.publish()["version"] is None


def test_a_version_that_was_collected_is_gone(lake, lists):
    old = trawl.Lake(lake_path(lake))
    lake.compact(full=True)
    lake.gc(dry_run=False, keep_versions=1, keep_states=1, grace_seconds=0)
    with pytest.raises(trawl.Gone):
        # Pages may be cached; every domain of two datasets is not.
        for dataset in ("monday", "tuesday"):
            old.scan(dataset).to_list()
            for name in ("example.com", "example.org", "b.co.uk"):
                old.domain(name)
                old.page(name, dataset)
    old.refresh()
    assert len(old.scan("monday").to_list()) == 3000


def lake_path(lake):
    return repr(lake).split('"')[1]


def test_damage_is_found(lake):
    import pathlib

    part = next(pathlib.Path(lake_path(lake)).glob("urls/**/*.parquet"))
    whole = bytearray(part.read_bytes())
    whole[len(whole) // 2] ^= 1
    part.chmod(0o644)
    part.write_bytes(whole)
    assert any(part.name in fault for fault in lake.verify()["faults"])


def test_deny_purge_drop(lake):
    assert lake.denied() == []
    (entry,) = lake.deny(domain="example.com", reason="ticket 7")
    assert (entry["domain"], entry["reason"]) == ("example.com", "ticket 7")
    assert lake.deny(domain="example.com") == [] and len(lake.denied()) == 1
    with pytest.raises(trawl.NotFound):
        lake.domain("example.com")
    with pytest.raises(trawl.Refused, match="suffix"):
        lake.deny(domain="com")
    with pytest.raises(trawl.Refused, match="one of"):
        lake.deny(domain="a.example", url="https://a.example/")
    would = lake.purge(dry_run=True)
    assert [fact["dataset"] for fact in would] == ["monday", "tuesday"] and would[0]["rows"] == 1200
    lake.purge(dry_run=False)
    assert len(lake.allow(domain="example.com")) == 1 and lake.allow(domain="example.com") == []
    with pytest.raises(trawl.NotFound):
        lake.domain("example.com")
    assert lake.drop("tuesday", dry_run=True)["rows"] == 1800
    assert [row["name"] for row in lake.datasets()] == ["monday", "tuesday"]
    assert lake.drop("tuesday", dry_run=False)["dry_run"] is False
    assert [row["name"] for row in lake.datasets()] == ["monday"]
    assert lake.verify()["faults"] == []
