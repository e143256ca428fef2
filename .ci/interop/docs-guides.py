#!/usr/bin/env python3
"""Every command of the guides runs as printed and prints what they say.

A guide is a page of docs/ with blocks ```console: a line `$ command` is run, the lines below it are its output. `…` stands for
anything within a line, a line `…` for any number of lines, a last line `(exit 1)` for an exit code. Each guide runs in one shell, from its top to its end, in a
directory of its own; port 8080 is replaced by one that is free. Of README.md the lines of the tour are run, and their exit
codes are compared.
"""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from docs import DOCS
from peer import TRAWL, check, done

GUIDES = ["../README.md", "tour.md", "cookbook.md", "api.md", "operating.md", "troubleshooting.md", "lake.md", "seqdb.md",
          "frontier.md", "crawling.md", "nutch.md", "testweb.md"]
END = "end of command"


def blocks(page):
    """(command, expected lines) in their order."""
    steps = []
    for block in re.findall(r"^```console\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M):
        for line in block.splitlines():
            if line.startswith("$ "):
                steps.append((line[2:], []))
            else:
                steps[-1][1].append(line)
    return steps


def tour(page):
    """The lines of README's tour; what they print is not shown there."""
    (block,) = re.findall(r"^## A tour in a dozen lines\n.*?^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M)
    lines = [re.sub(r" +# .*", "", line) for line in block.splitlines()]
    # A server runs until ctrl-c, and its own port may be taken here.
    return [(line + " --listen 8080 > serve.out &" if line.startswith("trawl serve") else line, ["…"]) for line in lines]


def exit_code(command):
    """What a line of README's tour ends with: differences are a finding."""
    return 1 if "query diff" in command else 0


def matches(expected, printed):
    """Whether the lines that a command printed are those of the guide."""
    pattern = "".join(
        r"(?:[^\n]*\n)*?" if line.strip() == "…" else re.escape(line.rstrip()).replace("…", "[^\n]*") + r"[ \t]*\n" for line in expected
    )
    return re.fullmatch(pattern, printed) is not None


def wait_for(port):
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise SystemExit(f"nothing listens on port {port}")


def run(page, port, tools):
    directory = pathlib.Path(page.stem)
    directory.mkdir()
    if page.stem == "nutch":
        shutil.copytree(DOCS.parent / "crates/formats/nutch/tests/fixtures/crawl-e2e/crawldb", directory / "crawldb")
    env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "COLUMNS": "100", "LC_ALL": "C.UTF-8"}
    shell = subprocess.Popen(
        ["bash"], cwd=directory, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        is_readme = page.stem == "README"
        for command, expected in (tour if is_readme else blocks)(page):
            command, expected = command.replace("8080", str(port)), [line.replace("8080", str(port)) for line in expected]
            # `$?` of the next command is still this one's.
            shell.stdin.write(f"{command}\ncode=$?; echo '{END}' $code; (exit $code)\n")
            shell.stdin.flush()
            printed = ""
            while END not in (line := shell.stdout.readline()):
                if not line:
                    raise SystemExit(f"{page.name}: the shell ended at: {command}")
                printed += line
            # Output that has no newline at its end stands before the marker.
            printed += line[: line.index(END)] and line[: line.index(END)] + "\n"
            if command.endswith("&") and "--listen" in command:
                wait_for(port)
            wanted = re.fullmatch(r"\(exit (\d+)\)", expected[-1]) if expected else None
            if wanted:
                expected.pop()
            detail = "\nexpected:\n" + "\n".join(expected) + "\nprinted:\n" + printed
            check(matches(expected, printed), f"{page.name}: {command[:90]}", detail)
            if is_readme or wanted:
                code = int(wanted[1]) if wanted else exit_code(command)
                check(int(line.split()[-1]) == code, f"{page.name}: exit code {line.split()[-1]}", detail)
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


tools = pathlib.Path("bin").absolute()
tools.mkdir()
(tools / "trawl").symlink_to(pathlib.Path(TRAWL).absolute())
for name in sys.argv[1:] or GUIDES:
    run(DOCS / name, free_port(), tools)
done()
