"""What every mode prints with `--json` is what docs/reference.md says: each field, with such a value, and no other."""

import json
import re
from collections.abc import Callable, Iterator
from mmap import mmap
from pathlib import Path
from typing import Any

import pytest

from claudebox.servers.allowlist import MEMORY
from claudebox.servers.allowlist.greeting import Refusal
from claudebox.servers.allowlist.notes import Notes
from claudebox.servers.broker.usage import Allowance, Meter
from claudebox.settings.words import JSON_MODES, PROFILES
from claudebox.state import State
from conftest import CLAUDEBOX, Account, make_repository
from hosts.machine import SYSTEMD
from reference import FIELDS, HEAD
from screens.boxes import SCREENS, debian
from shown import audit_json, dry_run_json

pytestmark = [pytest.mark.req("UX-01", "UX-04", "UX-05", "INST-03"), pytest.mark.box, pytest.mark.attributes]


def is_string(value: Any) -> bool:
    return type(value) is str


def is_number(value: Any) -> bool:
    return type(value) is int


def or_null(of: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or of(value)


def listed(of: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: type(value) is list and all(map(of, value))


def by_name(of: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: type(value) is dict and all(map(of, value.values()))


KINDS: dict[str, Callable[[Any], bool]] = {
    "string": is_string,
    "number": is_number,
    "true or false": lambda value: type(value) is bool,
    "string or null": or_null(is_string),
    "object or null": or_null(lambda value: type(value) is dict),
    "list of strings": listed(is_string),
    "list of numbers": listed(is_number),
    "list of lists": listed(lambda value: type(value) is list),
    "list of strings or nulls": listed(or_null(is_string)),
    "list of strings, or null": or_null(listed(is_string)),
    "object of strings": by_name(is_string),
    "object of numbers": by_name(is_number),
    "object of strings or nulls": by_name(or_null(is_string)),
}
NOTHING: tuple[Any, ...] = (None, [], {})


class Documented:
    """The fields of one option, and which of them were printed with a value that is not nothing."""

    def __init__(self, option: str) -> None:
        self.known = HEAD | FIELDS[option]
        self.seen: set[str] = set()
        self.faults: list[str] = []

    def look(self, value: Any, path: str = "") -> None:
        kind, meaning = self.known.get(path, ("", ""))
        if kind:
            self.seen |= {path} if value not in NOTHING else set()
            self.faults += [] if KINDS[kind](value) else [f"{path}: not a {kind}: {value!r}"]
            # If the meaning begins with the words that there are, it is one of them.
            words = re.findall(r"`(.+?)`", meaning) if meaning.startswith("`") else []
            self.faults += [f"{path}: {value!r}"] if words and value not in (None, *words) else []
        if isinstance(value, dict) and kind in ("", "object or null"):
            for name, inner in value.items():
                self.look(inner, f"{path}.{name}".lstrip("."))
        elif isinstance(value, list) and not kind and any(known.startswith(f"{path}[]") for known in self.known):
            for inner in value:
                self.look(inner, f"{path}[]")
        elif not kind:
            self.faults.append(f"{path}: is not documented")


@pytest.fixture
def project(user: Account) -> Path:
    project = user.home / "shop"
    for name in ("README.md", ".github/ci.yml", ".vscode/tasks.json", ".envrc"):
        user.write(project / name, "x\n")
    (project / ".mcp.json").symlink_to("README.md")
    return make_repository(user, project)


def invented(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """What only other machines have: a network of the box's own, packages of Nix, a key, no layers."""
    for name, make in SCREENS.items():
        plan = make(debian(tmp_path / name))
        yield "--audit", audit_json(plan)
        yield "--dry-run", dry_run_json(plan)
    machine = debian(tmp_path / "key", ANTHROPIC_API_KEY="x")
    yield "--audit", audit_json(machine.plan("--auth", "broker", "--auth-limit", "requests=3"))
    machine.plant("/proc/sys/kernel/osrelease: 5.10.0-33-amd64\n~/shop/.vscode/tasks.json")
    yield "--audit", audit_json(machine.plan("--run", "true"))
    machine = debian(tmp_path / "limits").plant(f"~/.cache/pip/x\n{SYSTEMD}")
    yield "--audit", audit_json(machine.plan("--memory", "1G", "--pids", "50", "--cpu", "2"))


def printed(user: Account, project: Path) -> Iterator[tuple[str, str]]:
    """What the modes print for a project in which a box has left something."""

    def say(*words: str) -> str:
        done = user.run(CLAUDEBOX, "--json", *words, cwd=project)
        assert done.stdout, done.stderr
        return done.stdout

    left = "ln -s README.md link; echo y >> README.md; echo y >> .envrc; mkfifo pipe; chmod 700 .github"
    kept = user.run(CLAUDEBOX, "--yes", "--review", "--run", "sh", "-c", left, cwd=project)
    assert "kept as review 1" in kept.stderr, kept.stderr
    user.write(project / "README.md", "meanwhile\n")
    user.write(user.home / ".claudebox/config.toml")
    instance = State(str(user.home)).instance(str(project))
    user.write(Path(instance.layers) / "9/layer.json", "damaged")
    write_journals(user, instance.journal, instance.network_journal)
    for words in ((), ("--review",), ("--writable", ".vscode/tasks.json", "--writable", ".envrc")):
        yield "--audit", say("--audit", *words, "--run", "true")
    yield "--dry-run", say("--dry-run", "--run", "true")
    for thing in ("README.md", "HOME", "~/.ssh", "169.254.169.254", "git"):
        yield "--explain", say("--explain", thing, "--run", "true")
    for path in ("README.md", "~/nothing"):
        yield "--law", say("--law", path, "--run", "true")
    for mode in ("--check", "--prove", "--instances", "--profile", "--version"):
        yield mode, say(mode)
    yield "--prove", say("--prove", "--against", "env")
    yield "--review list", say("--review", "list")
    yield "--review show", say("--review", "show", "1")
    for mode in ("--auth-log", "--network-log"):
        yield mode, say(mode)


def write_journals(user: Account, broker: str, network: str) -> None:
    """As those do who write them: boxes that use them are in other tests."""
    journal = Meter(Allowance(), broker)
    journal.note_refusal("/v1/files", 403)
    journal.note(path="/v1/messages", status=200, model="x", input_tokens=1, output_tokens=2, ms=3)
    notes = Notes(network, mmap(-1, MEMORY))
    notes.carried("a.example", 443, 1, 2, 3)
    notes.refused_lookup("b.example", 1)
    notes.not_made("c.example", 80, Refusal("no answer", 0))
    user.own(Path(broker))
    user.own(Path(network))


def test_json_is_as_the_reference_says(user: Account, project: Path, tmp_path: Path) -> None:
    modes = {option.split()[0].removeprefix("--").replace("-", "_") for option in FIELDS}
    assert modes - {"profile"} | {PROFILES} == set(JSON_MODES)
    documented = {option: Documented(option) for option in FIELDS}
    for option, text in (*invented(tmp_path), *printed(user, project)):
        documented[option].look(json.loads(text))
    assert {option: one.faults for option, one in documented.items() if one.faults} == {}
    missing = {option: sorted(one.known.keys() - one.seen) for option, one in documented.items()}
    assert {option: names for option, names in missing.items() if names} == {}
