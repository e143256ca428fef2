"""Every Python block of docs/python.md and docs/spark.md, as it is printed: it runs, and its types are right."""

import os
import pathlib
import re
import subprocess
import sys

import trawl

DOCS = pathlib.Path(__file__).resolve().parents[3] / "docs"


def blocks(name):
    found = re.findall(r"^```python\n(.*?)^```$", (DOCS / name).read_text(encoding="utf-8"), flags=re.M | re.S)
    assert len(found) >= 6
    return found


def run(name, tmp_path, warc):
    (tmp_path / "lists").mkdir()
    lines = [
        f'{{"url": "https://www.example.com/docs/{n}", "timestamp": "2026-02-01", "status": {404 if n % 2 else 200}}}'
        for n in range(20)
    ]
    (tmp_path / "lists" / "news.jsonl").write_text("\n".join(lines + ['{"url": "https://example.org/"}']) + "\n")
    (tmp_path / "pages.warc.gz").write_bytes(warc.read_bytes())
    names = {}
    for block in blocks(name):
        exec(compile(block, str(DOCS / name), "exec"), names)
    return names


def test_the_guide_to_engines(tmp_path, monkeypatch, warc):
    monkeypatch.chdir(tmp_path)
    names = run("spark.md", tmp_path, warc)
    assert names["report"]["rows"] == 21
    lists = [
        subprocess.run([os.environ["TRAWL"], "lake", "parts", "--hashes", "--dataset", "news", "--lake", lake], capture_output=True, check=True).stdout
        for lake in ("laptop", "shared", "cluster")
    ]
    assert lists[0] and lists[0] == lists[1] == lists[2]


def test_the_blocks_run_as_printed(tmp_path, monkeypatch, warc):
    monkeypatch.chdir(tmp_path)
    names = run("python.md", tmp_path, warc)
    # What the comments promise.
    assert names["report"]["rows"] == 21
    assert trawl.url.normalise("HTTP://Example.COM:80/a/../b?id=7#top") == "http://example.com/b?id=7"
    assert trawl.url.domain("https://www.example.co.uk/") == "example.co.uk"
    assert trawl.url.surt("https://www.example.com/a") == "com,example,www)/a"
    assert trawl.url.domain(["https://a.example/", "not a url", None]).to_list() == ["a.example", None, None]
    assert len(list(trawl.archive.read("copy.wacz"))) == 101


def test_the_types_of_the_blocks_and_of_the_package(tmp_path):
    for name in ("python", "spark"):
        (tmp_path / f"docs_{name}.py").write_text("\n".join(blocks(f"{name}.md")))
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache"]
    # Others' packages are taken at their word: reading all of pandas and Polars takes half a minute.
    for name in ("duckdb", "pandas", "polars", "pyarrow", "pysail/spark", "pyspark/sql/datasource"):
        (tmp_path / "stubs" / name).mkdir(parents=True)
        for part in ("", *pathlib.PurePath(name).parents[:-1]):
            (tmp_path / "stubs" / (part or name) / "__init__.pyi").write_text("from typing import Any\ndef __getattr__(name: str) -> Any: ...\n")
    for what in (["docs_python.py"], ["docs_spark.py"], ["-p", "trawl"]):
        done = subprocess.run(
            [*command, *what], cwd=tmp_path, env={"MYPYPATH": str(tmp_path / "stubs")}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
