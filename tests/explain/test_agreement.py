"""What `--explain` says is what a program in the box finds, on the real kernel."""

import json
import os
import random
from pathlib import Path

import pytest

from claudebox.errors import Problem
from claudebox.host import find_person, read_host
from claudebox.host.tree import Tree
from claudebox.output.explanation import Answer
from conftest import Account, Box
from explain.asking import Asked, ask

RUN = ("--run", "true")  # a box with or without claude
PLANS = 6
# For each path: what is there, whether its file system is read-only, whether it is empty. Then every file that can be
# found anywhere, but for the system's own.
PROBE = """
import json, os, sys

def look(path):
    try:
        status, is_read_only = os.stat(path), bool(os.statvfs(path).f_flag & os.ST_RDONLY)
        is_empty = not os.listdir(path) if os.path.isdir(path) else not os.path.isfile(path) or not status.st_size
    except OSError:
        return None
    return [f"{status.st_dev}:{status.st_ino}", "ro" if is_read_only else "rw", is_empty]

found = set()
for top, names, files in os.walk("/"):
    if top == "/":
        names[:] = set(names) - {"proc", "usr", "nix", "dev", "lib", "lib64", "bin", "sbin"}
    for name in (".", *files):
        status = os.lstat(f"{top}/{name}")
        found.add(f"{status.st_dev}:{status.st_ino}")
print(json.dumps({"looks": {path: look(path) for path in sys.argv[1:]}, "found": sorted(found),
                  "environ": dict(os.environ)}))
"""
FILES = (
    *("code/library/a.py", "code/library/deep/er/b.py", "code/tools/run.sh", "notes/todo.txt", "notes/private/diary"),
    *(".ssh/id_ed25519", ".config/app.toml", ".config/gh/hosts.yml", ".aws/credentials", "media/x.png"),
)
NAMES = ("TERM", "LANG", "LC_ALL", "EDITOR", "HOME", "PATH", "PWD", "OLDPWD", "SHELL", "USER", "SSL_CERT_FILE")
OWN_NAMES = ("ALPHA", "BETA", "GAMMA", "DELTA", "GITHUB_TOKEN", "CLAUDEBOX_NETWORK", "LD_DEBUG_OUTPUT")
SYSTEM_PATHS = (
    *("/", "/etc", "/etc/passwd", "/etc/hosts", "/etc/os-release", "/etc/resolv.conf", "/etc/shadow", "/etc/nothing"),
    *("/usr", "/usr/bin/env", "/bin/sh", "/usr/nothing", "/tmp", "/var", "/var/tmp", "/var/lib", "/home", "/root"),
    *("/proc", "/dev/null", "/dev/shm", "/dev/kmsg", "/dev/mem", "/sys", "/boot", "/run", "/run/user", "/opt", "/mnt"),
)


@pytest.fixture
def places(account: Account, project: Path) -> list[Path]:
    """Everything that may be mounted, hidden or asked for."""
    home = account.home
    files = [account.write(home / name, f"{name}\n") for name in FILES]
    links = {
        home / "link": home / "code",
        home / "notes" / "out": home / "media",
        project / "in": home / "code/library",
    }
    links |= {
        project / "own": Path("README.md"),
        home / "code" / "keys": home / ".ssh",
        home / "dangling": Path("gone"),
    }
    for link, target in links.items():
        link.symlink_to(target)
        os.lchown(link, account.uid, account.gid)
    account.write(project / "src" / "main.py", "x\n")
    directories = {directory for file in files for directory in file.parents if directory.is_relative_to(home)}
    inner = [project / "src", project / "src" / "main.py", project / "README.md", project]
    return sorted({*files, *links, *directories, *inner, home / "nothing", project / "new", home / "link/library/a.py"})


def options(chance: random.Random, places: list[Path]) -> tuple[str, ...]:
    words: list[str] = []
    for _ in range(chance.randint(1, 5)):
        place = chance.choice(places)
        destination = chance.choice(["", "", f":/srv/{chance.choice('ab')}", f":{place.parents[1]}/elsewhere"])
        words += [chance.choice(["--mount-ro", "--mount-rw"]), f"{place}{destination}"]
    for place in chance.sample(places, chance.randint(0, 2)):
        words += ["--hide", str(place)]
    for name in chance.sample(OWN_NAMES, 4):
        words += chance.choice([("--env", name), ("--env", f"{name}=set"), ("--drop-env", name)])
    return tuple(words)


def ask_box(box: Box, words: tuple[str, ...], env: dict[str, str]) -> Asked:
    tree, account = Tree(), box.account
    environ = {**account.environ, **env}
    person = find_person(tree, account.uid, account.gid, environ["HOME"])
    host = read_host().replace(tree=tree, environ=environ, cwd=str(box.project), person=person)
    return ask(host, *words, *RUN)


def acceptable(box: Box, words: tuple[str, ...], env: dict[str, str]) -> tuple[str, ...]:
    """As many of the options as go together."""
    kept: tuple[str, ...] = ()
    for option, value in zip(words[::2], words[1::2], strict=True):
        try:
            ask_box(box, (*kept, option, value), env)
        except Problem:
            continue
        kept = (*kept, option, value)
    return kept


class Probed:
    """What a program in the box found."""

    def __init__(self, box: Box, words: tuple[str, ...], env: dict[str, str], paths: list[str]) -> None:
        result = box.inside("/usr/bin/python3", "-c", PROBE, *paths, options=words, env=env)
        assert result.returncode == 0, (words, result.stderr)
        seen = json.loads(result.stdout)
        self.looks = {path: tuple(look) if look else None for path, look in seen["looks"].items()}
        self.found = frozenset(seen["found"])
        self.environ: dict[str, str] = seen["environ"]


def identity(path: str) -> str:
    try:
        status = os.stat(path)
    except OSError:
        return ""
    return f"{status.st_dev}:{status.st_ino}"


def disagreement(answer: Answer, path: str, probed: Probed) -> str:
    """How an answer about a path differs from what was found; "" if it does not."""
    look = probed.looks[path]
    on_host = identity(path)
    if answer.state == Answer.IN:
        shown = probed.looks[answer.place]
        return "" if shown is not None and shown[:2] == (on_host, answer.access) else f"found {shown} not {on_host}"
    if on_host in probed.found and not path.startswith(("/usr", "/bin", "/dev")):
        return "it can be found"
    if answer.state in (Answer.OTHER, Answer.MADE):
        return "" if look is not None and look[1] == answer.access and on_host != look[0] else f"found {look}"
    if answer.state == Answer.HIDDEN:
        return "" if look is None or look[2] else f"found {look}"
    return "" if answer.state == Answer.OUT and look is None else f"found {look}"


@pytest.mark.req("SAND-02", "SAND-04", "EXT-02", "ENV-01")
@pytest.mark.parametrize("seed", range(PLANS))
def test_what_is_said_of_files_and_variables_is_what_is_found(box: Box, places: list[Path], seed: int) -> None:
    chance = random.Random(seed)
    env = {"ALPHA": "a", "BETA": "b", "GITHUB_TOKEN": "t", "EDITOR": "vi", "CLAUDEBOX_EXTRA_ENV": "BETA"}
    words = acceptable(box, options(chance, places), env)
    asked = ask_box(box, words, env)
    destinations = [value.split(":")[-1] for value in words[1::2] if "/" in value]
    things = [*map(str, places), *SYSTEM_PATHS, *destinations]
    answers = {thing: asked.answer(thing) for thing in things}
    extra = [answer.place for answer in answers.values() if answer.place]
    probed = Probed(box, words, env, [*things, *extra])
    wrong = {
        thing: (answer.verdict, why)
        for thing, answer in answers.items()
        if not (thing.startswith("/dev/") and answer.state == Answer.MADE)
        and (why := disagreement(answer, thing, probed))
    }
    assert (wrong, words) == ({}, words)
    names = [*NAMES, *OWN_NAMES]
    said = {name: asked.answer(f"${name}").state == Answer.IN for name in names}
    assert said == {name: name in probed.environ for name in names}


@pytest.mark.req("EXT-02")
def test_options_that_are_proposed_do_what_they_promise(box: Box, places: list[Path]) -> None:
    asked = ask_box(box, (), {})
    for place in (str(place) for place in places):
        for change in asked.answer(place).changes:
            if change.option[:1] in (("--mount-ro",), ("--mount-rw",)) and os.path.exists(place):
                answer = ask_box(box, change.option, {}).answer(place)
                assert (answer.state, answer.access) == (Answer.IN, change.option[0][-2:]), (change.option, answer)


@pytest.mark.req("FAIL-01")
def test_command_answers_and_starts_nothing(box: Box) -> None:
    inside = box.claudebox("--explain", "README.md", *RUN)
    assert (inside.returncode, inside.stdout.splitlines()[0]) == (0, "~/src/shop/README.md: in, writable")
    outside = json.loads(box.claudebox("--json", "--explain", "/boot", *RUN).stdout)
    assert [answer["state"] for answer in outside["answers"]] == [Answer.OUT]
    nothing = box.claudebox("--explain", "", *RUN)
    assert (nothing.returncode, nothing.stdout) == (125, "")
