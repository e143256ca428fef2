#!/usr/bin/env python3
"""Prints the licences of the crates that are linked into the binary, for TARGET: who ships them has to ship these texts."""
import collections
import json
import pathlib
import subprocess
import sys


# What is in the binary and is no crate.
OTHERS = """\
The Public Suffix List, as compiled in: Mozilla Public License 2.0 (https://mozilla.org/MPL/2.0/).
Its source form: https://publicsuffix.org/list/public_suffix_list.dat

The GNU C Library, linked statically: GNU Lesser General Public License 2.1 or later (https://www.gnu.org/licenses/).
Its source form: https://www.gnu.org/software/libc/. Trawl's own source, under MIT or Apache-2.0, can be linked with another version of it."""


def cargo(*args):
    return subprocess.run(["cargo", *args, "--locked"], check=True, capture_output=True, text=True).stdout


def main():
    target = sys.argv[1]
    tree = cargo("tree", "-p", "trawl", "-e", "normal", "--target", target, "--prefix", "none", "-f", "{p}")
    linked = {tuple(line.split(" ")[:2]) for line in tree.splitlines()}
    packages = json.loads(cargo("metadata", "--format-version", "1", "--filter-platform", target))["packages"]
    texts, without = collections.defaultdict(list), []
    for package in sorted(packages, key=lambda package: package["name"]):
        if package["source"] is None or (package["name"], f"v{package['version']}") not in linked:
            continue
        name = f"{package['name']} {package['version']} ({package['license'] or 'see its licence file'})"
        root = pathlib.Path(package["manifest_path"]).parent
        found = [path for path in sorted(root.iterdir()) if path.is_file() and path.name.upper().startswith(("LICEN", "COPYING", "NOTICE"))]
        for path in found:
            texts[path.read_text(errors="replace").strip()].append(name)
        without.extend([] if found else [name])
    for text, names in sorted(texts.items(), key=lambda item: item[1]):
        print("=" * 80, *dict.fromkeys(names), "=" * 80, "", text, "", sep="\n")
    print("=" * 80, OTHERS, "", sep="\n")
    print("=" * 80, "Crates whose packages hold no licence text; their licence is the one named here.", *without, "=" * 80, sep="\n")


if __name__ == "__main__":
    main()
