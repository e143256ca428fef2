"""The captures of an archive as its records say them: `trawl cat --json`, read anew."""

import base64
import json
import os
import pathlib
import subprocess
from datetime import datetime

KINDS = {"response": "response", "resource": "response", "conversion": "response", "revisit": "revisit"}


def rows_of_cat(path):
    """A dict for each capture: the columns of `trawl.archive.captures` but for `length`, which no single record says."""
    command = [os.environ["TRAWL"], "cat", "--json", "--credentials", str(path)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [row for row in map(row_of, map(json.loads, filter(None, said.split("\n")))) if row]


def row_of(record):
    fields = {name.lower(): value for name, value in reversed(record["fields"])}
    block = base64.b64decode(record["base64"]) if "base64" in record else record["text"].encode()
    kind, error = KINDS.get(record["type"]), None
    if record["type"] == "metadata":
        facts = dict(line.split(": ", 1) for line in record["text"].splitlines() if ": " in line)
        kind, error = ("failure", facts["errorClass"]) if "errorClass" in facts else (None, None)
    if kind is None:
        return None
    status, *head = (record.get("http_head") or "\n").splitlines()
    types = [line.split(":", 1)[1].strip() for line in head if line.lower().startswith("content-type:")]
    return {
        "url": fields["warc-target-uri"].strip("<>"),
        "ts": datetime.fromisoformat(fields["warc-date"]),
        "kind": kind,
        "status": int(status.split()[1]) if status else None,
        "content_type": types[0] if types else None,
        "digest": fields.get("warc-payload-digest") if kind != "failure" else None,
        "body_length": len(block) if kind == "response" else None,
        "error": error,
        "file": pathlib.Path(record["file"]).name,
        "offset": record["offset"],
    }
