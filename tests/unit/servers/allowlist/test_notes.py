"""What is remembered of a box on tier `allowlist`: the journal, the line at the end, and what to allow.

And what is asked on the desktop: once for each host, and a yes counts from then on.
"""

from mmap import mmap
from pathlib import Path

import pytest

from claudebox.commands.show import NOT_REACHED, network_log_text, suggestion
from claudebox.model import Origin
from claudebox.servers.allowlist import END, MEMORY, Allowed, HostList
from claudebox.servers.allowlist.greeting import Refusal
from claudebox.servers.allowlist.notes import (
    MOST_LINES,
    MOST_NAMES,
    MOST_QUESTIONS,
    MOST_SHOWN,
    Asker,
    Notes,
    refused_text,
)
from claudebox.state.memory import read_journal
from claudebox.text import WIDTH
from patience import comes_true
from reference import FIELDS

pytestmark = pytest.mark.req("NAME-01")

A, AAAA = 1, 28
TYPED = Origin.of_option("--allow")
NOT_LISTED = Refusal("not in this box's list", is_lists=True)


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(str(tmp_path / "network.jsonl"), mmap(-1, MEMORY))


def said(notes: Notes) -> str:
    return bytes(notes.memory).partition(END)[0].decode()


def test_nothing_is_said_if_nothing_was_refused(notes: Notes) -> None:
    notes.carried("allowed.example", 443, 100, 2000, 7)
    notes.not_made("allowed.example", 443, Refusal("no answer", 0))
    assert said(notes) == ""


def test_line_at_the_end_says_what_would_allow_it(notes: Notes) -> None:
    for _ in range(3):
        notes.refused_lookup("tracker.example", AAAA)
        notes.refused_lookup("tracker.example", A)
    notes.not_made("git.example", 2222, NOT_LISTED)
    notes.not_made("2001:db8::1", 443, NOT_LISTED)
    notes.not_made("rebind.example", 80, Refusal("rebind.example leads to a private address"))
    assert said(notes) == (
        "claudebox: refused by --network allowlist: tracker.example (3 times),\n"
        "rebind.example:80, git.example:2222, [2001:db8::1]:443\n"
        "  to allow: --allow tracker.example --allow git.example:2222 --allow [2001:db8::1]:443\n"
    )


def test_line_at_the_end_stays_short_and_plain(notes: Notes) -> None:
    for number in range(1000):
        notes.refused_lookup(f"{'x' * 60}.{'y' * 60}.{number}.example", A)
    assert len(notes.refused) == MOST_NAMES
    text = said(notes)
    assert "and 18 more (--network-log)" in text.replace("\n", " ")
    *lines, to_paste = text.splitlines()
    assert all(len(line) <= WIDTH or " " not in line for line in lines)
    assert to_paste.count(" --allow ") == MOST_SHOWN, "what is to be pasted is whole"
    assert "\x1b" not in refused_text({"a\x1b[2J\nb": (1, True)})


@pytest.mark.parametrize("name", ["host", "x.local", "_dns.resolver.arpa", "4.3.2.1.in-addr.arpa", "a.lan"])
def test_what_programs_ask_on_their_own_is_not_counted(notes: Notes, name: str) -> None:
    notes.refused_lookup(name, A)
    assert said(notes) == ""
    assert read_journal(notes.path) == []


def test_journal_is_bounded(notes: Notes) -> None:
    for number in range(MOST_LINES):
        notes.carried("allowed.example", 443, number, 0, 0)
        notes.refused_lookup(f"x{number}.example", A)
    entries = read_journal(notes.path)
    # Who reads it knows that there was more.
    why = f"after {MOST_LINES} lines, nothing more of this box is noted"
    assert [entry["why"] for entry in entries if entry["verdict"] == "stopped"] == [why]
    assert len(entries) == MOST_LINES + 1
    assert network_log_text(entries).splitlines()[-1].endswith(f"stopped                    ({why})")
    assert suggestion(entries).count("stopped") == 0


def test_names_that_the_box_makes_up_take_no_memory(notes: Notes) -> None:
    for number in range(2 * MOST_LINES):
        notes.refused_lookup(f"x{number}.example", number)
    assert len(notes.looked_up) == MOST_LINES


def test_log_and_suggestion(notes: Notes) -> None:
    assert network_log_text([]) == suggestion([]) == NOT_REACHED
    notes.carried("registry.npmjs.org", 443, 1234, 56_789_012, 300)
    notes.carried("github.com", 22, 5, 0, 1)
    notes.refused_lookup("tracker.example", A)
    notes.not_made("git.example", 2222, NOT_LISTED)
    notes.not_made("down.example", 80, Refusal("no answer", 0))
    entries = read_journal(notes.path)
    assert [line[16:] for line in network_log_text(entries).splitlines()] == [
        "           sent  received  host",
        "allowed      1K       54M  registry.npmjs.org:443",
        "allowed      5B        0B  github.com:22",
        "refused                    tracker.example",
        "refused                    git.example:2222",
        " failed                    down.example:80 (no answer)",
    ]
    assert suggestion(entries) == (
        'network = "allowlist"\n'
        "allow = [\n"
        '  "down.example",       # failed 1\n'
        '  "git.example:2222",   # refused 1\n'
        '  "github.com",         # allowed 1, in @github\n'
        '  "registry.npmjs.org", # allowed 1, in @npm\n'
        '  "tracker.example",    # refused 1\n'
        "]\n"
    )


@pytest.mark.parametrize(
    "name", ['a"b', "a\\b", "a\nb", "пример", "x", "192.168.1.5", "fe80::1", "127.0.0.1", '1.2.3.4"']
)
def test_suggestion_is_nothing_that_would_be_refused(name: str) -> None:
    assert suggestion([{"name": name, "port": 443, "verdict": "refused"}]) == NOT_REACHED


def test_fields_of_the_journal_are_those_that_the_reference_has(notes: Notes) -> None:
    notes.carried("allowed.example", 443, 100, 2000, 7)
    notes.not_made("allowed.example", 443, Refusal("no answer", 0))
    for number in range(MOST_LINES):
        notes.not_made(f"{number}.example", 443, NOT_LISTED)
    entries = read_journal(notes.path)
    assert {entry["verdict"] for entry in entries} == {"allowed", "failed", "refused", "stopped"}
    written = {f"network_log[].{field}" for entry in entries for field in entry}
    assert written == set(FIELDS["--network-log"])


def test_yes_counts_for_the_next_try() -> None:
    names, asked = HostList([]), list[str]()

    def says_yes(host: str) -> bool:
        asked.append(host)
        return not host.startswith("bad")

    notes = Notes("", mmap(-1, MEMORY), Asker("", names, says_yes))
    for _ in range(2):
        for name in ("good.example", "bad.example"):
            notes.refused_lookup(name, 1)
        notes.not_made("git.example", 2222, Refusal("not in the list", is_lists=True))
        notes.not_made("private.example", 80, Refusal("leads to a private address"))
    assert comes_true(lambda: names.permits("git.example", 2222))
    assert asked == ["good.example", "bad.example", "git.example:2222"]
    assert names.permits("good.example", 443)
    assert not names.permits("good.example", 22)
    assert not names.knows("bad.example")


def test_agent_cannot_nag() -> None:
    asked: list[str] = []

    def says_no(host: str) -> bool:
        asked.append(host)
        return False

    asker = Asker("", HostList([Allowed("a.example", (80,), TYPED)]), says_no)
    for number in range(100):
        asker.about(f"x{number}.example", 0)
    assert comes_true(lambda: len(asked) == MOST_QUESTIONS)
    assert len(asker.asked) == MOST_QUESTIONS


@pytest.mark.parametrize(
    ("script", "is_allowed"), [("echo allow", True), ("echo no", False), ("echo allow; exit 1", False), ("", False)]
)
def test_program_is_believed_only_if_it_says_so(tmp_path: Path, script: str, is_allowed: bool) -> None:
    program = tmp_path / "notify-send"
    program.write_text(f'#!/bin/sh\necho "$DBUS_SESSION_BUS_ADDRESS $@" >{tmp_path}/said\n{script}\n')
    program.chmod(0o755)
    names = HostList([])
    Asker(str(program), names).answer("a.example", 0)
    assert names.permits("a.example", 443) == is_allowed
    said = (tmp_path / "said").read_text()
    assert said.startswith("unix:path=/run/user/")
    assert "A box wants to reach a.example" in said


def test_program_that_is_missing_says_no() -> None:
    names = HostList([])
    Asker("/nowhere/notify-send", names).answer("a.example", 443)
    assert not names.knows("a.example")
