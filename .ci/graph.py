#!/usr/bin/env python3
"""Checks who uses whom: imports point down, sideways only where declared, format crates stay small.

Floors and sideways edges are those of ARCHITECTURE.md. Reads `cargo metadata`, so it sees what cargo sees.
"""
import json
import pathlib
import re
import subprocess
import sys

FLOORS = {"core": 0, "formats": 1, "crawl": 2, "lake": 2, "testweb": 2, "cli": 3, "py": 3}
# crate -> crates of its own floor it may use; "*" in the value is not allowed, every edge is named
SIDEWAYS = {
    "trawl-io": {"trawl-model"},
    "trawl-http": {"trawl-io"},
    "trawl-sort": {"trawl-io"},
    "trawl-nutch": {"trawl-hadoop"},
    "trawl-archive": {"trawl-warc", "trawl-captures", "trawl-seqdb", "trawl-meguri", "trawl-lists", "trawl-nutch"},
    "trawl-fetch": set(),
    "trawl-engine": {"trawl-frontier", "trawl-fetch", "trawl-parse"},
    "trawl-rows": {"trawl-store"},
    "trawl-ingest": {"trawl-store", "trawl-rows"},
    "trawl-index": {"trawl-store", "trawl-rows"},
    "trawl-maintain": {"trawl-store", "trawl-rows", "trawl-ingest", "trawl-index"},
    "trawl-query": {"trawl-store", "trawl-rows", "trawl-index"},
    "trawl-serve": {"trawl-query"},
}
# What a test may use in addition: the synthetic web for crawlers, the writer for those who read what it wrote.
SIDEWAYS_IN_TESTS = {
    "trawl-captures": {"trawl-warc"},
    "trawl-engine": {"trawl-testweb"},
    "trawl-fetch": {"trawl-testweb"},
    "trawl-index": {"trawl-ingest"},
    "trawl-query": {"trawl-ingest", "trawl-maintain"},
    "trawl-serve": {"trawl-ingest", "trawl-index", "trawl-store"},
}
# Containers are known to the room formats/archive and, outside of their floor, to nobody but the command line, for its
# verbs of one format. Tests may look into what was written.
CONTAINERS = {"trawl-warc", "trawl-captures", "trawl-seqdb", "trawl-hadoop", "trawl-nutch"}
WHO_NAMES_CONTAINERS = {"trawl"}
# Format crates are bytes only: no runtime, no network.
FORBIDDEN_IN_FORMATS = {"tokio", "mio", "async-std", "smol", "hyper", "reqwest", "ureq", "h2", "axum", "rustls", "object_store"}
# Modules that earned `unsafe`, with a proof beside it.
UNSAFE_ALLOWED = set(pathlib.Path(".ci/unsafe-allowed.txt").read_text().split())
LICENCES = {
    "MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib", "Unicode-3.0", "Unicode-DFS-2016", "0BSD", "BSL-1.0",
    "CC0-1.0", "Unlicense", "MIT-0", "bzip2-1.0.6", "Apache-2.0 WITH LLVM-exception", "CDLA-Permissive-2.0",
}


def metadata():
    out = subprocess.run(["cargo", "metadata", "--format-version", "1", "--locked"], check=True, capture_output=True)
    return json.loads(out.stdout)


def licence_ok(expression):
    """A small reading of SPDX: every AND part needs one acceptable OR part."""
    expression = expression.replace("/", " OR ").replace("(", " ( ").replace(")", " ) ")
    tokens = expression.split()
    merged = []
    for token in tokens:  # "X WITH Y" is one term
        if merged and merged[-1].endswith(" WITH"):
            merged[-1] += " " + token
        elif token == "WITH":
            merged[-1] += " WITH"
        else:
            merged.append(token)
    python = " ".join({"OR": "or", "AND": "and", "(": "(", ")": ")"}.get(t, str(t in LICENCES)) for t in merged)
    return eval(python)  # only True, False, and, or, brackets can be in it


def features(package):
    """The crates that are linked into a package, each with its features; build scripts may ask for others."""
    command = ["cargo", "tree", "--locked", "-e", "normal", "--prefix", "none", "-f", "{p}\t{f}", "-p", package]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return {tuple(line.removesuffix(" (*)").split("\t")) for line in lines if "\t" in line}


def main():
    faults = []
    meta = metadata()
    root = pathlib.Path(meta["workspace_root"])
    members = {p["id"]: p for p in meta["packages"] if p["id"] in set(meta["workspace_members"])}
    floor = {}
    for package in members.values():
        parts = pathlib.Path(package["manifest_path"]).relative_to(root).parts
        floor[package["name"]] = FLOORS[parts[1]]
        room = parts[1] if parts[1] not in ("core", "formats", "crawl", "lake") else f"{parts[1]}/{parts[2]}"
        if f"crates/{room}" not in (root / "ARCHITECTURE.md").read_text():
            faults.append(f"ARCHITECTURE.md has no paragraph that links crates/{room}")
    edges = 0
    for package in members.values():
        name = package["name"]
        for dep in package["dependencies"]:
            if dep["name"] not in floor:
                continue
            edges += 1
            allowed = SIDEWAYS.get(name, set())
            if dep["kind"] == "dev":
                allowed = allowed | SIDEWAYS_IN_TESTS.get(name, set())
            if floor[dep["name"]] > floor[name]:
                faults.append(f"{name} uses {dep['name']}, which is a floor above it")
            elif floor[dep["name"]] == floor[name] and dep["name"] not in allowed:
                faults.append(f"{name} uses {dep['name']} on its own floor, which ARCHITECTURE.md does not list")

    for container in sorted(CONTAINERS):
        uses = lambda package: any(d["name"] == container and d["kind"] is None for d in package["dependencies"])
        users = sorted(p["name"] for p in members.values() if floor[p["name"]] > 1 and uses(p))
        print(f"graph: {container} is used outside formats/ by {', '.join(users) or 'nobody'}")
        for name in set(users) - WHO_NAMES_CONTAINERS:
            faults.append(f"{name} names the container {container}: it should go through formats/archive")

    # What format crates pull in, following normal dependencies only.
    nodes = {n["id"]: n for n in meta["resolve"]["nodes"]}
    names = {p["id"]: p["name"] for p in meta["packages"]}
    for pid, package in members.items():
        if floor[package["name"]] > 1:
            continue
        seen, todo = set(), [pid]
        while todo:
            node = todo.pop()
            if node in seen:
                continue
            seen.add(node)
            todo += [d["pkg"] for d in nodes[node]["deps"] if any(k["kind"] is None for k in d["dep_kinds"])]
        for bad in sorted({names[s] for s in seen} & FORBIDDEN_IN_FORMATS):
            faults.append(f"{package['name']} pulls in {bad}: core and format crates have no runtime and no network")

    # The Python package shares what the release build of the binary compiled, which asks for equal features.
    binary = features("trawl")
    for crate, found in sorted(features("trawl-py") - binary):
        for expected in [other for name, other in binary if name == crate]:
            faults.append(f"crates/py/Cargo.toml: expected {crate} with the features {expected}, as in trawl, found {found}")

    for package in meta["packages"]:
        if package["id"] in members:
            continue
        licence = package.get("license")
        if not licence or not licence_ok(licence):
            faults.append(f"{package['name']} {package['version']}: licence {licence!r} is not on the list")

    for path in sorted(root.glob("crates/**/*.rs")):
        relative = str(path.relative_to(root))
        if re.search(r"(allow|expect)\(unsafe_code", path.read_text()) and relative not in UNSAFE_ALLOWED:
            faults.append(f"{relative} allows unsafe code without being listed in .ci/unsafe-allowed.txt")

    for fault in faults:
        print(f"graph: {fault}")
    print(f"graph: {len(members)} crates, {edges} edges, {len(meta['packages']) - len(members)} dependencies, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
