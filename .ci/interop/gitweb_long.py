#!/usr/bin/env python3
"""lighttpd with gitweb over a real repository: pages that differ only behind a semicolon of the query. What is captured is what
`wget -r` fetches."""
import os
import pathlib
import subprocess
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import tree
from peer import check, done, run, trawl
from servers import free_port, responses, started

HOST = "git.example"
peers = tree.debian("lighttpd", "git", "libcgi-pm-perl", "libhtml-parser-perl", "liburi-perl")
perl = f"{peers}/usr/share/perl5:{next(peers.glob('usr/lib/*/perl5/5.*'))}"
work = pathlib.Path.cwd()
repo = work / "repos/p.git"
source = work / "source"
run("git", "init", "-q", "--initial-branch=main", source)
env = dict(os.environ, GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@b", GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@b",
           GIT_AUTHOR_DATE="2026-01-01T00:00:00Z", GIT_COMMITTER_DATE="2026-01-01T00:00:00Z")
for n in range(6):
    for name in (f"file{n}.txt", f"dir/{n}.c", "README"):
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_text(f"{name} at {n}\n" * 5)
    run("git", "-C", source, "add", ".")
    run("git", "-C", source, "commit", "-q", "-m", f"change {n}", env=env)
run("git", "clone", "-q", "--bare", source, repo)
(work / "gitweb.conf").write_text(f'$projectroot = "{work}/repos"; @diff_opts = (); $feature{{"snapshot"}}{{"default"}} = [];\n')
port = free_port()
(work / "lighttpd.conf").write_text(f"""
server.modules = ("mod_cgi", "mod_alias", "mod_setenv")
server.document-root = "{peers}/usr/share/gitweb"
server.bind = "127.0.0.1"
server.port = {port}
server.errorlog = "{work}/server.log"
index-file.names = ("gitweb.cgi")
cgi.assign = (".cgi" => "/usr/bin/perl")
setenv.add-environment = ("GITWEB_CONFIG" => "{work}/gitweb.conf", "PERL5LIB" => "{perl}")
mimetype.assign = (".css" => "text/css", ".png" => "image/png", ".js" => "text/javascript")
""")
with started(peers / "usr/sbin/lighttpd", "-D", "-m", peers / "usr/lib/lighttpd", "-f", "lighttpd.conf", port=port):
    # Every page of gitweb says nofollow; this server is ours.
    trawl("crawl", f"http://{HOST}/gitweb.cgi", "--ignore-robots", "--out", "crawl", "--depth", 50, "--scope", "host", "--delay", "0s", "--per-host", 2,
          "--connect-to", f"{HOST}:80:127.0.0.1:{port}", "--quiet")
    wget = subprocess.run(["wget", "-r", "-l", "50", "-e", "robots=off", "-e", "use_proxy=yes", "-e", f"http_proxy=http://127.0.0.1:{port}/", "--no-verbose",
                           "--directory-prefix", "mirror", f"http://{HOST}/gitweb.cgi"], capture_output=True, text=True,
                          env={"PATH": os.environ["PATH"]})
captured = responses("crawl")
pages = {u for u, (status, _) in captured.items() if status == 200}
by_wget = tree.urls_of_wget(wget.stderr, HOST)
# wget also fetches what pages are made of, and spells escapes its own way.
plain = lambda urls: {urllib.parse.unquote(u) for u in urls if not u.endswith((".css", ".png", ".js", ".ico"))}
missing, extra = plain(by_wget) - plain(pages), plain(pages) - plain(by_wget)
check(len(pages) > 300, f"{len(pages)} pages")
check(not missing and not extra, "the captured set is wget's", f"missing {sorted(missing)[:3]} extra {sorted(extra)[:3]}")
done()
