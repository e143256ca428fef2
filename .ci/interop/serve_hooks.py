"""What an OpenAPI document cannot say of our parameters, for Schemathesis."""
from datetime import datetime

import schemathesis
from hypothesis import strategies as st

FIELDS = ["urlkey", "timestamp", "original", "url", "mimetype", "statuscode", "status", "digest", "length", "offset", "filename", "dataset"]
label = st.from_regex(r"[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,5})?", fullmatch=True)
host = st.builds(lambda labels, top: ".".join([*labels, top]), st.lists(label, min_size=1, max_size=3), st.sampled_from(["com", "org", "example", "co.uk"]))
path = st.from_regex(r"(/[A-Za-z0-9._~%!$'()*+,;:@=-]{0,12}){0,3}(\?[a-z0-9=&;+%]{0,12})?", fullmatch=True)
schemathesis.openapi.format("idn-hostname", host | st.sampled_from(["example.com", "WWW.Example.COM.", "b\u00fccher.example", "127.0.0.1", "[::1]"]))
schemathesis.openapi.format("trawl-url", st.builds("{}{}{}".format, st.sampled_from(["http://", "https://", "HTTP://", ""]), host, path))
schemathesis.openapi.format("trawl-digits", st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2099, 1, 1)).map(lambda t: t.strftime("%Y%m%d%H%M%S")))
# A field and a regular expression that can be compiled.
schemathesis.openapi.format("trawl-cdx-filter", st.builds("{}{}{}:{}".format, st.sampled_from(["", "!"]), st.sampled_from(["", "=", "~"]),
                                                          st.sampled_from(FIELDS), st.sampled_from(["200", "text/.*", "[a-z]+", "", "4..", "(a|b)?"])))
# Keys of earlier answers are not made up: a made-up one is refused, rightly, and good ones are tested where there are answers.
schemathesis.openapi.format("trawl-key", st.just("made-up"))
KEYS = {"cursor", "locator", "resumeKey"}
FILTERS = {"host", "path_prefix", "from", "until", "status", "error_class"}


@schemathesis.hook
def before_call(context, case, kwargs):
    """Keys are left out, and so is one of two parameters that exclude each other, which the document can only say in words."""
    if case.meta and case.meta.generation.mode.is_negative:
        return
    query = dict(case.query or {})
    for key in KEYS & set(query):
        del query[key]
    if FILTERS & set(query):
        query.pop("offset", None)
    if case.path.startswith("/v1/capture/"):
        query.setdefault("url", "http://example.com/1")
    case.query = query
