import json
import os
import subprocess

import pytest

import trawl

HOSTILE = [
    "HTTP://Example.COM:80/a/../b?utm_source=x&id=7#top",
    "https://bücher.example/ü?q=ä",
    "http://[::1]:8080/x",
    "http://192.168.0.1/",
    "example.com/no-scheme",
    "https://a.b.co.uk/%zz%41",
    "http://user:secret@host.example/",
    "",
    "   ",
    "http://",
    "javascript:alert(1)",
    "http://exa mple.com/",
    "http://host.example/" + "a" * 5000,
    "http://host.example/?" + "&".join(f"k{n}={n}" for n in range(500)),
]


def test_one_url_as_the_command_line_sees_it(trawl_cli):
    for url in HOSTILE:
        if not url.strip():
            continue
        done = subprocess.run([os.environ["TRAWL"], "url", "--json", "--credentials", "--", url], capture_output=True, text=True)
        said = json.loads(done.stdout)
        if "rejected" in said:
            with pytest.raises(trawl.Refused):
                trawl.url.parse(url)
        else:
            assert trawl.url.parse(url) == said
            assert trawl.url.normalise(url) == said["lake"]["url"]
            assert trawl.url.domain(url) == said["lake"]["domain"]
            assert trawl.url.surt(url) == said["lake"]["surt"]
            assert f"{trawl.url.id(url):016x}" == said["lake"]["url_id"]
            assert trawl.url.key(url) == said["key"]["host_key"] + said["key"]["path_key"]


def test_a_column_is_its_texts_one_by_one():
    texts = HOSTILE * 100 + [None]
    for of in (trawl.url.normalise, trawl.url.domain, trawl.url.surt, trawl.url.key):
        column = of(texts)
        assert len(column) == len(texts)
        for text, value in zip(texts, column):
            if text is None:
                assert value is None
                continue
            try:
                assert value == of(text)
            except trawl.Refused:
                assert value is None
    assert trawl.url.id(["a", None]).to_list() == [trawl.url.id("a"), None]


def test_a_column_of_something_else_is_refused():
    with pytest.raises((trawl.Refused, TypeError)):
        trawl.url.domain([1, 2])
    with pytest.raises(TypeError):
        trawl.url.domain(7)


def test_columns_that_are_none_are_refused():
    pyarrow = pytest.importorskip("pyarrow")

    class Taken:
        """Its capsules are given away twice."""

        capsules = pyarrow.array(["https://a.example/"]).__arrow_c_array__()

        def __arrow_c_array__(self, requested_schema=None):
            return self.capsules

    assert trawl.url.domain(Taken()).to_list() == ["a.example"]
    with pytest.raises(trawl.Refused, match="taken before"):
        trawl.url.domain(Taken())
    # By pyarrow, both are taken: this was a crash.
    Taken.capsules = pyarrow.array(["https://a.example/"]).__arrow_c_array__()
    pyarrow.array(Taken())
    with pytest.raises(trawl.Refused, match="taken before"):
        trawl.url.domain(Taken())
    bytes_ = pyarrow.array([b"https://a.example/\xff"], pyarrow.binary()).view(pyarrow.string())
    for of in (trawl.url.domain, trawl.url.id):
        with pytest.raises(trawl.Refused, match="UTF-8|UTF8"):
            of(bytes_)


def test_many_are_seen_as_the_command_line_sees_them():
    hosts = ["Example.COM:80", "bücher.example", "a.b.co.uk", "[::1]", "192.168.0.1", "exa mple.com", "user:p@host.example"]
    texts = [f"http{'s' * (n % 2)}://{hosts[n % len(hosts)]}/{'../' * (n % 3)}p/%{n % 256:02x}?id={n}#x" for n in range(200_000)]
    run = subprocess.run([os.environ["TRAWL"], "url", "--json", "-"], input="\n".join(texts), capture_output=True, text=True)
    assert run.returncode in (0, 1), run.stderr
    all_said = [json.loads(line).get("lake") for line in run.stdout.splitlines()]
    for column, of in (("url", trawl.url.normalise), ("domain", trawl.url.domain), ("surt", trawl.url.surt)):
        for text, value, said in zip(texts, of(texts), all_said, strict=True):
            assert value == (said and said[column]), text
