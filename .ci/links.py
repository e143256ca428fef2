#!/usr/bin/env python3
"""Checks that every relative link in the documents leads somewhere, anchors included."""
import pathlib
import re
import subprocess
import sys


def anchors(text):
    found = set()
    for line in re.sub(r"```.*?```", "", text, flags=re.S).splitlines():
        heading = re.match(r"#+\s+(.*)", line)
        if heading:
            plain = re.sub(r"[`*_\[\]()]", "", heading.group(1)).strip().lower()
            found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found


def main():
    files = subprocess.run(["git", "ls-files", "*.md"], check=True, capture_output=True, text=True).stdout.split()
    faults, links = [], 0
    for name in files:
        path = pathlib.Path(name)
        text = path.read_text()
        prose = re.sub(r"```.*?```", "", text, flags=re.S)
        for target in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", prose):
            if re.match(r"[a-z]+:", target):
                continue
            links += 1
            file, _, anchor = target.partition("#")
            there = (path.parent / file) if file else path
            if not there.exists():
                faults.append(f"{name}: link to {target}, which does not exist")
            elif anchor and there.suffix == ".md" and anchor not in anchors(there.read_text()):
                faults.append(f"{name}: link to {target}, which has no such heading")
    for fault in faults:
        print(f"links: {fault}")
    print(f"links: {len(files)} documents, {links} links, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
