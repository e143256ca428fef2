#!/usr/bin/env python3
"""A lake in a bucket, the part of the checks that takes a minute or two; lake_s3_long.py has all of them."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from peer import check, done, trawl_json
from s3lake import as_in_a_directory, bucket, queries, trouble, write_sources

write_sources()
with bucket() as port:
    as_in_a_directory("s3://trawl/lake")
    there = trawl_json("lake", "copy", "local", "s3://trawl/copy")[0]
    back = trawl_json("lake", "copy", "s3://trawl/copy", "back")[0]
    check(there["version"] == back["version"] and queries("back") == queries("local"), "copied to a bucket and back")
    trouble(port, "s3://trawl/trouble", 10, 1, 7, queries("local"))
done()
