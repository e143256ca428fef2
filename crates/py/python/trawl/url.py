"""How Trawl sees URLs: one at a time, or a whole column.

A str gives a str, or raises `trawl.Refused`. A column (pyarrow, Polars, pandas 3, or any iterable of str) gives a
`trawl.Column`, null where a text is not a URL.
"""

from ._trawl import url_domain as domain
from ._trawl import url_id as id
from ._trawl import url_key as key
from ._trawl import url_normalise as normalise
from ._trawl import url_parse as parse
from ._trawl import url_surt as surt

__all__ = ["domain", "id", "key", "normalise", "parse", "surt"]
