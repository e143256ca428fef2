#!/usr/bin/env python3
"""Robots verdicts of ours beside those of Google's parser, over generated files and URLs.

    robots.py [CASES]      wants TRAWL, the binary

Google's parser is written here a second time, from what it is documented and known to do, without anything of ours. Where files
and URLs have nothing that RFC 9309 (2.2.2) wants compared as octets, verdicts must be equal. Where they have (escapes, other
than ASCII, a URL inside a query), ours may differ only towards what the RFC says, which is written here a second time as well.
"""
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "interop"))
from peer import TRAWL, check, done

CASES = int(sys.argv[1]) if len(sys.argv) > 1 else 120_000
URLS_PER_FILE = 40
UNRESERVED = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
RESERVED = set(":/?#[]@!&'()+,;=%")


def lines_of(text):
    """Keys and values, as Google's parser takes them out of a file."""
    for line in re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff")):
        line = line.split("#", 1)[0].strip()
        if ":" in line:
            key, value = line.split(":", 1)
        else:
            words = line.split()
            if len(words) != 2:
                continue
            key, value = words
        key, value = key.strip().lower(), value.strip()
        for name, spellings in (("agent", ("user-agent", "useragent", "user agent")), ("allow", ("allow",)),
                                ("disallow", ("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"))):
            if key.startswith(spellings):
                yield name, value
                break


def escaped(pattern):
    """Octets past ASCII escaped, digits of escapes in upper case."""
    out = "".join(c if ord(c) < 128 else "".join(f"%{b:02X}" for b in c.encode()) for c in pattern)
    return re.sub(r"%[0-9a-fA-F]{2}", lambda m: m.group().upper(), out)


def matches(pattern, path):
    """The positions that can be reached, one character of the pattern after another."""
    reached = {0}
    for i, c in enumerate(pattern):
        if c == "$" and i + 1 == len(pattern):
            return len(path) in reached
        if c == "*":
            reached = set(range(min(reached), len(path) + 1)) if reached else reached
        else:
            reached = {at + 1 for at in reached if at < len(path) and path[at] == c}
        if not reached:
            return False
    return True


def octets(text, is_pattern):
    """What RFC 9309 compares: escapes of unreserved octets, and of those that cannot stand in a URL, are the octets themselves.
    `*` and `$` that mean themselves are letters of a private area."""
    def octet(b):
        return {42: "\ue02a", 36: "\ue024"}.get(b, chr(b))
    out = ""
    for i, part in enumerate(re.split(r"(%[0-9a-fA-F]{2})", text)):
        if i % 2:
            b = int(part[1:], 16)
            out += part.upper() if chr(b) in RESERVED else octet(b)
        else:
            for j, c in enumerate(part):
                last = is_pattern and j + 1 == len(part) and i + 1 == len(re.split(r"(%[0-9a-fA-F]{2})", text))
                if c == "*" and is_pattern or c == "$" and last:
                    out += c
                else:
                    out += "".join(octet(b) for b in c.encode())
    return out


def plain(text, is_pattern):
    """As text, but for `*` and `$` of a path, which are no wildcards."""
    if is_pattern:
        body = re.sub(r"\$(?!$)", "\ue024", text)
        return body
    return re.sub(r"%[0-9a-fA-F]{2}", lambda m: m.group().upper(), text).replace("*", "\ue02a").replace("$", "\ue024")


def fits(pattern, path, rfc):
    if not rfc:
        return matches(plain(escaped(pattern), True), path.replace("*", "\ue02a").replace("$", "\ue024"))
    texts = [plain(escaped(pattern), True), octets(pattern, True)]
    query = [re.sub(r"(?<=\?).*", lambda m: re.sub(r"[:/?@]", lambda c: f"%{ord(c.group()):02X}", m.group()), t, count=1) for t in texts]
    return any(matches(t, p) for t in texts + query for p in (plain(path, False), octets(path, False)))


def allowed(text, agent, path, rfc):
    best = {"specific": {"allow": 0, "disallow": 0}, "global": {"allow": 0, "disallow": 0}}
    is_global = is_specific = ever_specific = separator = False
    for name, value in lines_of(text):
        if name == "agent":
            if separator:
                is_global = is_specific = separator = False
            token = re.match(r"[a-zA-Z_-]*", value).group()
            if value[:1] == "*" and (len(value) == 1 or value[1].isspace()):
                is_global = True
            elif token.lower() == agent.lower():
                is_specific = ever_specific = True
            continue
        if not (is_global or is_specific):
            continue
        separator = True
        kept = best["specific" if is_specific else "global"]
        rules = [value]
        slash = value.rfind("/")
        if name == "allow" and value[slash + 1:].startswith("index.htm") and slash >= 0:
            # Google's parser tries the directory only where the rule itself does not fit.
            rules.append(value[:slash + 1] + "$")
        for rule in rules:
            if rule and fits(rule, path, rfc):
                kept[name] = max(kept[name], len(escaped(rule)))
                if not rfc:
                    break
    for kind in ("specific", "global"):
        kept = best[kind]
        if kept["allow"] or kept["disallow"]:
            return kept["disallow"] <= kept["allow"]
        if kind == "specific" and ever_specific:
            return True
    return True


random.seed(9309)
PLAIN = ["a", "b", "a", "/", "/", "c", ".", "-", "_", "24", "2A", "price", "index.html", "x=1", "&", "?q"]
ODD = PLAIN + ["%24", "%2A", "%2F", "%2f", "%7E", "~", "%41", "é", "%C3%A9", "%c3%a9", "<", "%3C", "?u=http://h/"]
AGENTS = ["trawl", "Trawl", "TRAWL/1.0", "other", "trawlbot", "*", "* ", "a_b-c", "googlebot"]


def pattern(parts):
    text = "/" if random.random() < 0.95 else ""
    for _ in range(random.randrange(6)):
        text += random.choice(parts + ["*", "*", "$"])
    return text + random.choice(["", "", "", "$", "*", "*$"])


def path(parts):
    return "/" + "".join(random.choice(parts + ["$", "*"]) for _ in range(random.randrange(7)))


def robots(parts):
    out = []
    for _ in range(random.randrange(1, 5)):
        for _ in range(random.randrange(1, 3)):
            out.append(f"{random.choice(['User-agent', 'user-agent', 'USER-AGENT', 'useragent'])}: {random.choice(AGENTS)}")
        for _ in range(random.randrange(5)):
            key = random.choice(["Disallow", "Disallow", "Allow", "disallow", "allow", "Dissallow"])
            out.append(random.choice(["{}: {}", "{}:{}", " {} : {} # {}"]).format(key, pattern(parts), "x"))
        if random.random() < 0.3:
            out.append(random.choice(["", "Sitemap: https://h/s.xml", "Crawl-delay: 1", "nonsense", "# only this"]))
    if random.random() < 0.2:
        out.insert(0, "Disallow: /early")
    return random.choice(["\n", "\r\n", "\r"]).join(out) + random.choice(["", "\n"])


equal = towards_rfc = 0
with tempfile.TemporaryDirectory() as work:
    file = pathlib.Path(work) / "robots.txt"
    for parts, is_plain, cases in ((PLAIN, True, CASES), (ODD, False, CASES // 4)):
        for _ in range(cases // URLS_PER_FILE):
            text = robots(parts)
            file.write_text(text, newline="")
            paths = [p for p in (path(parts) for _ in range(URLS_PER_FILE)) if p != "/robots.txt"]
            # Only the path of `?` inside a path is a query; a fragment is never sent.
            printed = subprocess.run([TRAWL, "--json", "url", "robots", file, "--agent", "trawl", "--", *[f"https://h{p}" for p in paths]], capture_output=True, text=True)
            verdicts = [json.loads(line)["allowed"] for line in printed.stdout.splitlines()]
            assert len(verdicts) == len(paths), printed.stderr
            for p, ours in zip(paths, verdicts):
                google = allowed(text, "trawl", p, False)
                if ours == google:
                    equal += 1
                    continue
                told = f"{p!r}: ours {ours}, Google's {google}\n{text!r}"
                if is_plain and "?" not in text:
                    check(False, "a verdict of Google's parser", told)
                rfc = allowed(text, "trawl", p, True)
                if ours != rfc:
                    check(False, "a verdict of Google's parser, or of the RFC", told + f"\nRFC {rfc}")
                towards_rfc += 1
check(equal >= 100_000, f"{equal} verdicts are Google's, {towards_rfc} differ as RFC 9309 wants it")
done()
