"""The page of what has to be trusted names the files as they are, and they stay few."""

import pytest

from conftest import CHECKOUT

MOST = 1500
FROM = ", from `"


@pytest.mark.req("JUDGE-01")
def test_reading_list_is_true_and_short() -> None:
    page = (CHECKOUT / "docs/trust.md").read_text()
    rows = [line.split("|")[1:3] for line in page.splitlines() if line.startswith("| `")]
    said = {name.strip(): int(lines) for name, lines in rows}
    counted = {}
    for name in said:
        path, _, part = name.partition(FROM)
        lines = (CHECKOUT / "src/claudebox" / path.strip("`")).read_text().splitlines()
        first = next((at for at, line in enumerate(lines) if line.startswith(part.partition("`")[0] + " = ")), 0)
        counted[name] = len(lines) - (first if part else 0)
    assert said == counted
    assert {"`sandbox/judge.py`", "`sandbox/law.py`", "`sandbox/gate.py`"} < said.keys()
    assert sum(said.values()) <= MOST


def test_judge_imports_nothing_but_the_error() -> None:
    lines = (CHECKOUT / "src/claudebox/sandbox/judge.py").read_text().split("TYPE_CHECKING = False")[0].splitlines()
    ours = [line for line in lines if line.startswith(("import", "from")) and "claudebox" in line]
    assert ours == ["from claudebox.errors import Problem, suppress"]
