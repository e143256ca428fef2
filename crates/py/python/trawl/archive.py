"""Web archives of any container: WARC, ARC, WACZ, seqdb, Nutch segments.

    for capture in trawl.archive.read("crawl-0007.warc.gz"):
        print(capture.url, capture.status, len(capture.body()))

    trawl.archive.captures("crawl/").to_polars()          # a table, no bodies
    trawl.archive.at("crawl-0007.warc.gz", 81920)         # one capture by its place
    with trawl.archive.Writer("out.warc.gz") as out:      # appears when the block ends without an error
        out.write(capture)
"""

from ._trawl import Capture, Captures, Writer
from ._trawl import archive_at as at
from ._trawl import archive_captures as captures
from ._trawl import archive_read as read

__all__ = ["Capture", "Captures", "Writer", "at", "captures", "read"]
