"""`@imports` of CLAUDE.md that lead out of the box are named; words of claude that change its installation refused."""

from pathlib import Path

import pytest

from claudebox.errors import Problem
from claudebox.features.claude.imports import imports
from hosts.machine import debian

NOTES = "~/notes/style.md: be brief\n"


def named(root: Path, special: str, *words: str) -> list[str]:
    plan = debian(root, special).plan(*words)
    return [one.text for one in plan.findings if one.subject == "left out"]


@pytest.mark.parametrize(
    ("special", "said"),
    [
        (f"~/.claude/CLAUDE.md: see @~/notes/style.md\n{NOTES}", "~/.claude/CLAUDE.md imports ~/notes/style.md"),
        ("~/.claude/CLAUDE.md: @more.md\n~/.claude/more.md: x", "~/.claude/CLAUDE.md imports ~/.claude/more.md"),
        (f"~/shop/CLAUDE.md: - @../notes/style.md\n{NOTES}", "~/shop/CLAUDE.md imports ~/notes/style.md"),
        (f"~/shop/CLAUDE.local.md: @~/notes/style.md#top\n{NOTES}", "~/shop/CLAUDE.local.md imports ~/notes/style.md"),
        (f"~/shop/CLAUDE.md: @docs/a.md\n~/shop/docs/a.md: @~/notes/style.md\n{NOTES}", "~/shop/CLAUDE.md imports"),
    ],
)
def test_import_that_leads_out_is_named(tmp_path: Path, special: str, said: str) -> None:
    (text,) = named(tmp_path, special)
    assert text.startswith(said)
    assert text.endswith(": not in the box; --mount-ro PATH shows it")


@pytest.mark.parametrize(
    "special",
    [
        "~/shop/CLAUDE.md: @docs/a.md @/etc/services mail @alice or me@example.org\n~/shop/docs/a.md: @../CLAUDE.md",
        "~/shop/CLAUDE.md: @~/notes/missing.md",
        f"~/shop/CLAUDE.md: `@~/notes/style.md`\n{NOTES}",
        f"~/shop/CLAUDE.md: ```\\n@~/notes/style.md\\n```\\n\n{NOTES}",
        "~/.claude/CLAUDE.md: @rules/brief.md\n~/.claude/rules/brief.md: x",
    ],
)
def test_what_is_in_the_box_or_no_import_is_not_named(tmp_path: Path, special: str) -> None:
    assert named(tmp_path, special) == []


def test_files_that_import_each_other_cost_nothing(tmp_path: Path) -> None:
    files = [f"~/shop/{name}.md: " + " ".join(f"@{other}.md" for other in range(60)) for name in range(60)]
    assert named(tmp_path, "\n".join([*files, "~/shop/CLAUDE.md: @0.md"])) == []


def test_import_that_is_mounted_is_not_named(tmp_path: Path) -> None:
    special = f"~/shop/CLAUDE.md: @~/notes/style.md\n{NOTES}"
    assert named(tmp_path, special, "--mount-ro", "~/notes/style.md") == []


def test_imports_are_words_behind_an_at() -> None:
    assert imports("a @b.md c\n@/d (@e)\n~~~\n@f\n~~~\n@ @g#h") == ["b.md", "/d", "g"]


@pytest.mark.req("FAIL-01", "ARGS-01")
@pytest.mark.parametrize("words", [("update",), ("install", "stable"), ("upgrade",), ("--", "update")])
def test_words_that_change_the_installation_are_for_outside(tmp_path: Path, words: tuple[str, ...]) -> None:
    with pytest.raises(Problem, match="installation of claude") as caught:
        debian(tmp_path).plan(*words)
    word = words[-1] if words[0] == "--" else words[0]
    assert (caught.value.status, caught.value.hint) == (125, f"outside of the box: claude {word}")


@pytest.mark.req("ARGS-01")
@pytest.mark.parametrize(
    "words",
    [
        *((one,) for one in ("doctor", "mcp", "agents", "setup-token", "updates")),
        ("plugin", "update"),
        ("-p", "update"),
    ],
)
def test_every_other_word_is_claudes(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert debian(tmp_path).plan(*words).program.argv[-len(words) :] == words


@pytest.mark.req("ARGS-01")
def test_words_of_another_program_are_its_own(tmp_path: Path) -> None:
    assert debian(tmp_path, "/usr/bin/codex*").plan("--program", "codex", "update").program.argv[-1] == "update"
    assert debian(tmp_path / "run").plan("--run", "update").program.argv[-1] == "update"
