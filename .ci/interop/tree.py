"""A documentation tree for real servers, and what installs those."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile


def debian(*packages):
    """A directory with Debian packages unpacked in it: nothing of the system is changed, and no server is started. It is kept
    outside the clone, as the other peers are. A package that is there already must not be fetched again."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "trawl-ci/debian"
    cache.mkdir(parents=True, exist_ok=True)
    for package in packages:
        if (cache / f"{package}.ready").exists():
            continue
        with tempfile.TemporaryDirectory() as work:
            # The lists of packages may be missing on a fresh machine.
            for attempt in (["true"], ["apt-get", "update", "-qq"]):
                subprocess.run(attempt, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                got = subprocess.run(["apt-get", "download", "-qq", package], cwd=work, capture_output=True, text=True)
                if got.returncode == 0:
                    break
            else:
                sys.exit(f"not ok: cannot download the Debian package {package}: {got.stderr}")
            for file in pathlib.Path(work).glob("*.deb"):
                subprocess.run(["dpkg", "-x", str(file), str(cache)], check=True)
        (cache / f"{package}.ready").touch()
    return cache


def write(root):
    """Writes the tree; returns the names of all files that pages link."""
    names = set()

    def put(name, content):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        names.add(name)

    def page(title, *links):
        items = "".join(f"<li><a href=\"{link}\">{title}</a></li>\n" for link in links)
        return (f"<!DOCTYPE html><html><head><title>{title}</title><link rel=stylesheet href=/style.css></head>\n"
                f"<body><h1>{title}</h1><p>{'Words about ' + title + '. ' * 40}</p><ul>\n{items}</ul></body></html>\n")

    sections = [f"part{n}" for n in range(12)]
    put("index.html", page("Contents", "guide/", "moved/", "gone.html", "missing.html", "index.html?x=1;y=2", "index.html?x=1;y=3",
                           *[f"{s}/index.html" for s in sections], "files/"))
    put("style.css", "body { color: black }\n")
    for s in sections:
        put(f"{s}/index.html", page(s, "../index.html", *[f"chapter%20{n}.html" for n in range(12)], "sub/a.xhtml"))
        for n in range(12):
            put(f"{s}/chapter {n}.html", page(f"{s} chapter {n}", "index.html", f"chapter%20{(n + 1) % 12}.html#top",
                                              "../style.css?v=2", "javascript:void(0)", "mailto:docs@docs.example"))
        put(f"{s}/sub/a.xhtml", "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><head><script src='s.js'/>"
                                "<title/></head><body><a href='after-script.html'>x</a></body></html>\n")
        put(f"{s}/sub/after-script.html", page("after", "../index.html"))
        (root / f"{s}/sub/s.js").write_text("// nothing\n")
        names.add(f"{s}/sub/s.js")
    put("guide/index.html", page("Guide", "picture.html"))
    put("guide/picture.html", page("Picture").replace("</body>", "<img src=p.png srcset='p.png 1x, p-2x.png 2x'></body>"))
    png = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8
    put("guide/p.png", png)
    put("guide/p-2x.png", png + b"2")
    # Listed by the server itself.
    for n in range(20):
        put(f"files/note {n} %.txt", f"note {n}\n" * 50)
    put("files/caf\u00e9.txt", "coffee\n" * 30)
    (root / "robots.txt").write_text("User-agent: *\nDisallow: /closed/\n")
    return names


def urls_of_wget(log, host):
    """The URLs that wget says it fetched (`-nv`)."""
    return {m.group(1) for m in re.finditer(r"URL:\s*(http://\S+)", log) if host in m.group(1) and not m.group(1).endswith("/robots.txt")}
