"""Code blocks of the documentation, so that what users are shown is what gets run."""
import pathlib
import re

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


def blocks(page, heading, language):
    """The blocks of a language under a heading, up to the next one."""
    text = (DOCS / page).read_text(encoding="utf-8")
    section = re.split(rf"^#+ {re.escape(heading)}\n", text, flags=re.M)[1]
    section = re.split(r"^#+ ", section, flags=re.M)[0] if language != "python" else section.split("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, flags=re.M | re.S)
