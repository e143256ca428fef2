#!/usr/bin/env python3
"""Schemathesis asks every operation of the OpenAPI document what it should take, and what it should refuse."""
import json
import os
import pathlib
import subprocess
import sys
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from peer import check, done
from served import crawl, ingest, serve

crawl("crawl", pages=120, domains=6)
ingest("crawl", "crawl")
pathlib.Path("urls.txt").write_text("".join(f"http://example.com/{n}\n" for n in range(50)))
ingest("list", "urls.txt")
EXAMPLES = 20

with serve("--max-concurrent", "256", "--max-streams", "256") as at:
    with urllib.request.urlopen(f"{at}/openapi.json") as answer:
        document = json.load(answer)
    ran = subprocess.run(["schemathesis", "run", f"{at}/openapi.json", "--checks", "all", "--max-examples", str(EXAMPLES), "--seed", "7",
                          "--phases", "examples,coverage,fuzzing", "--workers", "2", "--no-color", "--generation-database", "none",
                          "--warnings", "off"], capture_output=True, text=True,
                         env={**os.environ, "SCHEMATHESIS_HOOKS": "serve_hooks", "PYTHONPATH": str(pathlib.Path(__file__).resolve().parent)})
    print("\n".join(ran.stdout.splitlines()[-40:]))
    check(ran.returncode == 0, f"{len(document['paths'])} operations are what the document says", ran.stdout[-6000:] + ran.stderr[-2000:])
done()
