"""Ask a lake of web captures, read and write web archives, normalise URLs.

    import trawl

    lake = trawl.Lake("lake")
    lake.domain("www.example.com").datasets
    for row in lake.urls("example.com", "news", limit=10):
        print(row["url"], row["status"])

Tables are `Rows`: pyarrow, pandas, Polars and DuckDB take them as they are, by Arrow's PyCapsule protocol. The package
itself depends on none of these.
"""

from . import archive, jobs, url
from ._trawl import (
    Capture,
    Captures,
    Column,
    Corrupt,
    Diff,
    Domain,
    Error,
    Gone,
    Lake,
    NotFound,
    Refused,
    Rows,
    __version__,
)

__all__ = [
    "Capture",
    "Captures",
    "Column",
    "Corrupt",
    "Diff",
    "Domain",
    "Error",
    "Gone",
    "Lake",
    "NotFound",
    "Refused",
    "Rows",
    "__version__",
    "archive",
    "jobs",
    "url",
]
