"""Every screen as the user sees it, on machines that do not exist."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from claudebox import cli, consent, start
from claudebox.commands.help import whole_help
from claudebox.consent import find_news
from claudebox.errors import Problem
from claudebox.features.guard import RULE as GUARD
from claudebox.features.table import SETTINGS
from claudebox.model import Finding, Plan
from claudebox.output.audit import news_text
from claudebox.text import WIDTH, Style, escape, width
from golden import Golden, difference
from hosts.machine import Machine
from saying import parse
from screens.boxes import SCREENS, TOKEN, debian, flagged
from shown import audit, audit_json, dry_run_json, first_screen, sandbox_md, shell_command

PLAIN = Style(False)
SMALL_SCREEN = 24  # lines, one of which is the question
# What the others show differs from these in nothing that the first screen shows in another way.
FIRST_SCREENS = ("plain", "flagged", "many-mounts", "long-paths", "hostile-names", "inet-and-ports", "allowlist")
# Kept whole. Every other screen is kept as what is different from a whole one.
WHOLE_AUDITS = ("plain", "flagged", "inet-and-ports", "packages")
WHOLE_COMMANDS = ("plain", "inet-and-ports")
LIKE_INET = ("inet", "inet-without-names", "none-but-ports")


@pytest.mark.req("UX-01", "SEC-01")
def test_audit_is_exactly_this(screen: str, plan: Plan, golden: Golden, plans: Callable[[str], Plan]) -> None:
    text = audit(plan, PLAIN)
    if screen in WHOLE_AUDITS:
        golden.check(f"audit/{screen}.txt", text)
    else:
        golden.check_scene("audit/unlike-plain.txt", screen, difference(audit(plans("plain"), PLAIN), text))


@pytest.mark.req("UX-01")
def test_audit_gives_every_reason(plan: Plan) -> None:
    text = "".join(audit(plan, PLAIN).split())
    reasons = {mount.origin.reason for mount in plan.mounts if not mount.origin.is_rule(GUARD)}
    reasons |= {place.reason for place in plan.outside.places} | {guarded.reason for guarded in plan.guard.held}
    assert [reason for reason in reasons if "".join(reason.split()) not in text] == []


@pytest.mark.req("UX-04")
def test_dry_run_is_exactly_this(screen: str, plan: Plan, golden: Golden, plans: Callable[[str], Plan]) -> None:
    text = shell_command(plan)
    if screen in WHOLE_COMMANDS:
        golden.check(f"dry-run/{screen}.txt", text)
    else:
        base = "inet-and-ports" if screen in LIKE_INET else "plain"
        golden.check_scene(f"dry-run/unlike-{base}.txt", screen, difference(shell_command(plans(base)), text))


@pytest.mark.req("AWARE-02")
def test_what_the_agent_is_told_is_exactly_this(
    screen: str, plan: Plan, golden: Golden, plans: Callable[[str], Plan]
) -> None:
    text = sandbox_md(plan)
    if screen == "plain":
        golden.check("sandbox/plain.md", text)
    else:
        golden.check_scene("sandbox/unlike-plain.txt", screen, difference(sandbox_md(plans("plain")), text))


@pytest.mark.req("UX-01", "SEC-01")
@pytest.mark.parametrize("screen", FIRST_SCREENS)
def test_first_screen_is_exactly_this(screen: str, plan: Plan, golden: Golden) -> None:
    golden.check_scene("first-screen.txt", screen, first_screen(plan, PLAIN, SMALL_SCREEN, asks=True))


@pytest.mark.req("UX-01")
@pytest.mark.parametrize(("columns", "height"), [(80, 24), (60, 24), (80, 50), (80, 16), (40, 20)])
def test_first_screen_fits_the_terminal_with_the_question(plan: Plan, columns: int, height: int) -> None:
    lines = first_screen(plan, Style(False, columns), height, asks=True).splitlines()
    assert [line for line in lines if width(line) > columns] == []
    needed = sum(bool(line) for line in first_screen(plan, Style(False, columns), 1, asks=True).splitlines())
    assert len(lines) < height or len(lines) - 1 <= needed
    if columns >= 60 and height >= SMALL_SCREEN:
        assert len(lines) < height


@pytest.mark.req("UX-01", "SEC-01")
def test_first_screen_has_what_matters_whatever_its_size(plan: Plan) -> None:
    for columns, height in ((80, 24), (60, 10), (40, 5)):
        text = first_screen(plan, Style(False, columns), height, asks=True)
        assert f"{plan.network.tier}:" in text
        assert all(label in text for label in ("runs", "writable", "variables", "outside"))
        assert all(variable.name in "".join(text.split()) for variable in plan.environment if variable.secret)
        for finding in plan.flagged:
            assert "".join(f"{escape(finding.subject)}: {escape(finding.text)}".split()) in "".join(text.split())


@pytest.mark.req("UX-01")
def test_first_screen_shortens_notes_and_never_what_is_grave(tmp_path: Path) -> None:
    notes = tuple(Finding(Finding.NOTE, f"note{number}", "something to know") for number in range(40))
    grave = tuple(Finding(Finding.RISK, f"risk{number}", "something to fear") for number in range(30))
    plan = SCREENS["plain"](debian(tmp_path)).replace(findings=notes[:20])
    text = first_screen(plan, PLAIN, SMALL_SCREEN, asks=True)
    shown = text.count("something to know")
    assert len(text.splitlines()) == SMALL_SCREEN - 2, "a line for the question, and one for the command"
    assert f"· and {20 - shown} more notes\n" in text
    assert first_screen(plan, PLAIN, 60, asks=True).count("something to know") == 20
    worse = first_screen(plan.replace(findings=(*notes, *grave)), PLAIN, SMALL_SCREEN, asks=True)
    assert (worse.count("something to fear"), "· and 40 more notes\n" in worse) == (30, True)


@pytest.mark.req("UX-01")
def test_first_screen_in_colour_is_the_same(plan: Plan) -> None:
    coloured = first_screen(plan, Style(True), SMALL_SCREEN, asks=True)
    plain = first_screen(plan, PLAIN, SMALL_SCREEN, asks=True)
    assert re.sub("\x1b\\[[0-9]+m", "", coloured) == plain
    assert plain.replace("\n", "").isprintable()


@pytest.mark.req("UX-01")
@pytest.mark.parametrize("screen", sorted(set(SCREENS) - {"hostile-names"}))
def test_no_screen_shows_a_code_instead_of_a_colour(plan: Plan) -> None:
    """It would if a text was painted before it was escaped. Only hostile names have codes to be spelled out."""
    news, colour = find_news(plan, (frozenset({"nothing"}),)), Style(True)
    for text in (
        audit(plan, colour),
        first_screen(plan, colour, SMALL_SCREEN, asks=True),
        news_text(plan, news, colour),
    ):
        assert "\x1b[1m" in text
        assert "\\x1b" not in text


@pytest.mark.req("UX-02")
@pytest.mark.parametrize(
    ("screen", "answers"), [("flagged", "y/N"), ("inet", "Y/n"), ("inet-and-ports", "Y/n"), ("none", "Y/n")]
)
def test_question_comes_below_the_first_screen(
    answers: str,
    plan: Plan,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def answer(asked: str) -> str:
        sys.stderr.write(asked + "y\n")
        return "y"

    monkeypatch.setattr(consent, "ask", answer)
    monkeypatch.setattr(consent, "is_first_use", lambda _: False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    start.confirm(Machine(tmp_path).host(), plan, parse([]))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == f"{first_screen(plan, PLAIN, SMALL_SCREEN, asks=True)}Start? [{answers}] y\n"


@pytest.mark.req("UX-01")
def test_audit_fits_the_screen(plan: Plan) -> None:
    title, *lines = audit(plan, PLAIN).splitlines()
    assert [line for line in lines if width(line) > WIDTH] == []
    # The project's own path is never broken.
    assert width(title) <= WIDTH or len(plan.project) > WIDTH - 20


@pytest.mark.req("UX-01")
def test_nothing_shown_can_move_the_cursor(plan: Plan) -> None:
    text = audit(plan, PLAIN) + audit_json(plan) + dry_run_json(plan)
    assert text.replace("\n", "").isprintable()


@pytest.mark.req("UX-01", "SEC-01")
def test_no_secret_is_ever_shown(tmp_path: Path) -> None:
    plan = flagged(debian(tmp_path))
    for text in (audit(plan, PLAIN), shell_command(plan), audit_json(plan), dry_run_json(plan)):
        assert TOKEN not in text
        assert "hunter2" not in text
        assert "sk-ant-" not in text


@pytest.mark.req("SAND-02", "SEC-01")
def test_secret_that_the_loader_might_obey_is_not_in_the_arguments(tmp_path: Path) -> None:
    # What bwrap sets inside the box is in its arguments, which every user of the host can read.
    machine = debian(tmp_path, LD_SDK_KEY="sdk-" + "0a1b2c3d" * 4)
    try:
        plan = machine.plan("--env", "LD_SDK_KEY")
    except Problem:
        return
    for text in (shell_command(plan), dry_run_json(plan)):
        assert "0a1b2c3d" not in text


@pytest.mark.req("UX-01")
def test_colour_changes_nothing_but_colour(plan: Plan) -> None:
    coloured = audit(plan, Style(True))
    assert re.sub("\x1b\\[[0-9]+m", "", coloured) == audit(plan, PLAIN)


def test_audit_in_colour_is_exactly_this(tmp_path: Path, golden: Golden) -> None:
    golden.check("audit-in-colour.txt", audit(flagged(debian(tmp_path)), Style(True)))


@pytest.mark.req("UX-01")
def test_everything_that_enters_is_shown(plan: Plan) -> None:
    text = "".join(audit(plan, PLAIN).split())
    for variable in plan.environment:
        assert variable.name in text
    for mount in plan.mounts:
        if mount.origin.is_rule(GUARD):
            continue  # a part of the project
        name = mount.path.removeprefix("/etc/").removeprefix(plan.person.home)
        assert "".join(escape(name).split()) in text


@pytest.mark.req("UX-04")
def test_dry_run_is_a_valid_script(plan: Plan, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_bytes(shell_command(plan).encode(errors="surrogateescape"))
    subprocess.run(["/bin/sh", "-n", str(script)], check=True)


@pytest.mark.req("UX-04", "GIT-01")
def test_name_that_is_not_utf8_can_be_shown(tmp_path: Path) -> None:
    machine = debian(tmp_path)
    (tmp_path / "home/alice/.gitconfig").write_bytes(b"[user]\n\tname = Andr\xe9\n\temail = a@example.org\n")
    plan = machine.plan()
    for show in (shell_command, audit_json, dry_run_json):
        assert "Andr" in show(plan)
    assert "Andr" in audit(plan, PLAIN)


@pytest.mark.req("UX-03")
@pytest.mark.parametrize("words", ["-h", "--help all"])
def test_help_is_exactly_this(golden: Golden, capfd: pytest.CaptureFixture[str], words: str) -> None:
    assert cli.run(words.split()) == 0
    shown = capfd.readouterr()
    lines = shown.out.splitlines()
    assert (shown.err, [line for line in lines if width(line) > WIDTH]) == ("", [])
    assert words != "-h" or len(lines) < SMALL_SCREEN
    golden.check("help.txt" if words == "-h" else "help-all.txt", shown.out)


def test_whole_help_has_every_option() -> None:
    rows = [line.split()[:2] for line in whole_help().splitlines() if line.startswith("  -")]
    shown = {word.rstrip(",") for row in rows for word in row if word.startswith("-")}
    assert shown == set(SETTINGS.by_option)


def test_every_golden_text_is_used(golden: Golden) -> None:
    assert golden.names() == {"help.txt", "help-all.txt", "audit-in-colour.txt", "first-screen.txt"}
    assert golden.scenes("first-screen.txt") == set(FIRST_SCREENS)
    assert golden.names("audit") == {*(f"{name}.txt" for name in WHOLE_AUDITS), "unlike-plain.txt"}
    assert golden.scenes("audit/unlike-plain.txt") == set(SCREENS) - set(WHOLE_AUDITS)
    assert golden.names("dry-run") == {f"{how}{name}.txt" for how in ("", "unlike-") for name in WHOLE_COMMANDS}
    assert golden.scenes("dry-run/unlike-inet-and-ports.txt") == set(LIKE_INET)
    assert golden.scenes("dry-run/unlike-plain.txt") == set(SCREENS) - {*LIKE_INET, *WHOLE_COMMANDS}
    assert golden.names("sandbox") == {"plain.md", "unlike-plain.txt"}
    assert golden.scenes("sandbox/unlike-plain.txt") == set(SCREENS) - {"plain"}
