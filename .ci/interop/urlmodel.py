"""What a lake must make of a URL, written from docs/urls.md and publicsuffix.org's rules alone: nothing of ours is called.

Covers what the checks generate: ASCII paths and queries with escapes, dot segments and double slashes, user information,
ports, names in any case, Unicode names, trailing dots, IPv4 in decimal, hex and octal, IPv6.
"""
import ipaddress
import re

UNRESERVED = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
DEFAULT_PORT = {"http": 80, "https": 443, "ftp": 21}


class SuffixList:
    """The algorithm of publicsuffix.org over a list's text: the longest rule wins, exceptions win over all."""

    def __init__(self, text):
        self.rules, self.exceptions = set(), set()
        for line in text.splitlines():
            rule = line.split()[0] if line.split() else ""
            if not rule or rule.startswith("//"):
                continue
            if rule.startswith("!"):
                self.exceptions.add(punycode(rule[1:]))
            else:
                self.rules.add("*." + punycode(rule[2:]) if rule.startswith("*.") else punycode(rule))

    def registrable(self, host):
        """The suffix plus one label; what has no such label, and every address, stands for itself."""
        if host.startswith("[") or is_ipv4(host) or "" in host.split("."):
            return host
        labels = host.split(".")
        suffix = 1  # the rule "*"
        for n in range(1, len(labels) + 1):
            tail = ".".join(labels[-n:])
            if tail in self.exceptions:
                suffix = n - 1
                break
            if tail in self.rules or n > 1 and "*." + ".".join(labels[-n + 1:]) in self.rules:
                suffix = n
        return ".".join(labels[-(suffix + 1):])


def punycode(name):
    return ".".join(label if label.isascii() else label.encode("idna").decode() for label in name.lower().split("."))


def is_ipv4(host):
    return re.fullmatch(r"\d+\.\d+\.\d+\.\d+", host) is not None


def ipv4(host):
    """The address that browsers take a numeric host for: 1 to 4 parts, each decimal, octal or hex; None for a name."""
    parts = host.rstrip(".").split(".")
    numbers = []
    for part in parts:
        if re.fullmatch(r"0[xX][0-9a-fA-F]*", part):
            numbers.append(int(part[2:] or "0", 16))
        elif re.fullmatch(r"0[0-7]+", part):
            numbers.append(int(part, 8))
        elif re.fullmatch(r"[0-9]+", part):
            numbers.append(int(part))
        else:
            return None
    if len(numbers) > 4 or any(number > 255 for number in numbers[:-1]) or numbers[-1] >= 256 ** (5 - len(numbers)):
        raise ValueError(host)
    value = numbers[-1]
    for i, number in enumerate(numbers[:-1]):
        value += number << (8 * (3 - i))
    return str(ipaddress.IPv4Address(value))


def respell(text):
    """Escapes of unreserved bytes decoded, others upper-cased, what is no ASCII escaped."""
    def one(match):
        char = chr(int(match[1], 16))
        return char if char in UNRESERVED else "%" + match[1].upper()
    text = "".join(c if c.isascii() else "".join(f"%{b:02X}" for b in c.encode()) for c in text)
    return re.sub(r"%([0-9a-fA-F]{2})", one, text)


def clean_path(path):
    out = []
    parts = respell(path or "/").split("/")[1:]
    for i, part in enumerate(parts):
        last = i == len(parts) - 1
        if part == "..":
            out = out[:-1]
            if last:
                out.append("")
        elif part == ".":
            if last:
                out.append("")
        else:
            out.append(part)
    return re.sub("/+", "/", "/" + "/".join(out))


def clean_query(query):
    pieces = sorted((respell(piece) for piece in query.split("&") if piece), key=lambda piece: piece.split("=")[0])
    return "?" + "&".join(pieces) if pieces else ""


class Url:
    """A URL as the lake stores it. `None` from `parse` is a URL that must be rejected."""

    @classmethod
    def parse(cls, raw, suffixes):
        try:
            return cls.read(raw, suffixes)
        except ValueError:  # no address
            return None

    @classmethod
    def read(cls, raw, suffixes):
        match = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", raw)
        if match is None:
            if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:(?!\d)", raw) or " " in raw:
                return None
            raw_rest, scheme = raw, "http"
        else:
            raw_rest, scheme = raw[match.end():], match[1].lower()
        if scheme not in DEFAULT_PORT:
            return None
        rest = raw_rest.split("#")[0]
        authority = re.split(r"[/?]", rest)[0]
        tail = rest[len(authority):]
        host, port = authority.rsplit("@", 1)[-1], None
        if match_port := re.search(r":(\d*)$", host):
            host, port = host[:match_port.start()], int(match_port[1]) if match_port[1] else None
        if not host.strip(".") or " " in host or port is not None and port > 65535:
            return None
        if host.startswith("["):
            host = "[" + str(ipaddress.IPv6Address(host[1:-1])) + "]"
        else:
            host = ipv4(host) or punycode(host).rstrip(".")
        url = cls()
        url.scheme, url.host = scheme, host
        url.port = None if port == DEFAULT_PORT[scheme] else port
        path, _, query = tail.partition("?")
        url.path_query = clean_path(path) + clean_query(query)
        url.domain = suffixes.registrable(host)
        url.text = f"{scheme}://{host}{'' if url.port is None else f':{url.port}'}{url.path_query}"
        named = "." in host and not host.startswith("[") and not is_ipv4(host)
        url.surt = (",".join(reversed(host.split("."))) if named else host) + ")" + url.path_query
        return url
