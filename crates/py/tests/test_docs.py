"""Every block of docs/python.md, as it is printed."""

import pathlib
import re

import trawl

DOCS = pathlib.Path(__file__).resolve().parents[3] / "docs" / "python.md"


def test_the_blocks_run_as_printed(tmp_path, monkeypatch, trawl_cli, warc):
    monkeypatch.chdir(tmp_path)
    for name in ("news", "archive"):
        source = tmp_path / f"{name}.jsonl"
        lines = [
            f'{{"url": "https://www.example.com/docs/{n}", "timestamp": "2026-02-01", "status": {404 if n % 2 else 200}}}'
            for n in range(20 if name == "news" else 10)
        ]
        source.write_text("\n".join(lines + ['{"url": "https://example.org/"}']) + "\n")
        trawl_cli("lake", "ingest", "--lake", "lake", "--dataset", name, source, "--json")
    (tmp_path / "pages.warc.gz").write_bytes(warc.read_bytes())
    blocks = re.findall(r"^```python\n(.*?)^```$", DOCS.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert len(blocks) >= 4
    names = {}
    for block in blocks:
        exec(compile(block, str(DOCS), "exec"), names)
    # What the comments promise.
    assert trawl.url.normalise("HTTP://Example.COM:80/a/../b?id=7#top") == "http://example.com/b?id=7"
    assert trawl.url.domain("https://www.example.co.uk/") == "example.co.uk"
    assert trawl.url.surt("https://www.example.com/a") == "com,example,www)/a"
    assert trawl.url.domain(["https://a.example/", "not a url", None]).to_list() == ["a.example", None, None]
    assert len(list(trawl.archive.read("copy.wacz"))) == 101
