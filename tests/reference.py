"""The fields of the JSON, and the exit statuses, as docs/reference.md lists them: tests hold the program to it."""

from pathlib import Path

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference.md"


def rows(part: str) -> list[list[str]]:
    """The rows of the table in one part of the page, without its head."""
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def fields(part: str) -> dict[str, tuple[str, str]]:
    """By the path of a field, `[]` for each element of a list: what the value is, and what it means."""
    return {field.strip("`"): (value, meaning) for field, value, meaning in rows(part)}


FIRST, *MODES = REFERENCE.read_text().split("\n### ")
STATUSES, EVERY = FIRST.split("\n## JSON\n")
EXIT_STATUSES = tuple((status, meaning) for status, meaning in rows(STATUSES))
HEAD = fields(EVERY)  # of every object
FIELDS = {mode.split("`")[1].removesuffix(" --json"): fields(mode) for mode in MODES}
