"""What `--explain` answers for each kind of thing, on a machine that does not exist."""

import json
import os
import re
from pathlib import Path

import pytest

from claudebox.errors import FAILED, Problem
from claudebox.output.explanation import Answer, explanation_json, explanation_text
from claudebox.text import WIDTH, Style, escape, width
from explain.asking import Asked, ask
from golden import Golden, difference
from hosts.machine import Machine, debian
from shapes import HEAD, either, faults, maybe

PLAIN = Style(False)
TOKEN = "ghp_" + "a1" * 18
ENVIRON = {
    "TERM": "xterm-256color",
    "LANG": "en_GB.UTF-8",
    "LC_ALL": "/srv/locale",
    "AWS_PROFILE": "shop",
    "GITHUB_TOKEN": TOKEN,
    "LD_API_KEY": "sdk-" + "0a1b2c3d" * 4,
    "http_proxy": "http://proxy:3128",
}
FILES = """
/tmp/of-the-host
/usr/bin/pasta*
/usr/bin/nft*
/srv/data/table.csv
/srv/data/private/salaries.csv
/srv/other/x
~/.config/app.toml
~/.config/gh/hosts.yml
~/.config/composer/auth.json
~/.claude/agents/reviewer.md
~/data -> /srv/data
~/shop/data -> /srv/data
~/shop/elsewhere -> /srv/other
~/shop/keys -> ~/.ssh
~/shop/3000
"""
# In the system, in the user's home, in the project, nowhere.
PROGRAMS = ("git", "docker", "kubectl", "gh", "rustc", "deploy", "lint", "hidden-tool", "registry")
PROGRAM_FILES = """
/usr/bin/docker*
/usr/bin/hidden-tool*
~/.cargo/bin/rustc*
~/scripts/deploy*
~/.kube/config
~/shop/node_modules/.bin/lint*
"""
MOUNTS = ("--mount-ro", "/srv/data", "--mount-rw", "/srv/data:/mnt/data", "--mount-ro", "~/.config/composer")
PATHS = (
    *("/srv/data/table.csv", "/mnt/data/table.csv", "/mnt/data", "~/data", "data", "elsewhere", "keys/id_ed25519"),
    *("~/.ssh/id_ed25519", "~/.pgpass", "~/.config", "~/.config/composer/auth.json", "~/.claude", "~/.claudebox"),
    *("~/.claude/agents/reviewer.md", "~/.claude/skills", "~/.gitconfig", "~/other/notes.txt", "~/nothing"),
    *(".", "README.md", "./new.txt", "..", "/", "/srv", "/srv/other", "/tmp", "/tmp/of-the-host", "/etc"),
    *("/etc/shadow",),
    *("/etc/passwd", "/etc/hosts", "/etc/os-release", "/etc/resolv.conf", "/usr", "/usr/bin/git", "/bin/bash"),
    *("/usr/nothing", "/proc", "/proc/1", "/dev/null", "/dev/sda", "/var/lib/docker"),
)
VARIABLES = (
    *("TERM", "$LANG", "${LC_ALL}", "EDITOR", "HOME", "PATH", "PWD", "SSL_CERT_FILE", "CLAUDE_CONFIG_DIR"),
    *("GITHUB_TOKEN", "AWS_PROFILE", "LD_API_KEY", "http_proxy", "SET", "TWICE", "PASSED", "NOT_SET", "ASKED_FOR"),
)
VARIABLE_OPTIONS = (
    *("--env", "SET=two words", "--env", "TWICE=one", "--env", "TWICE=two", "--env", "ASKED_FOR"),
    *("--env", "GITHUB_TOKEN", "--env", "PASSED=1"),
)
ADDRESSES = (
    *("example.org", "example.org:443", "https://alice:hunter2@git.example.org/shop.git?x#y", "localhost"),
    *("localhost:3000", "http://localhost", "[::1]:5432", "127.0.0.1:5432", "localhost:5432", "::1", "0.0.0.0"),
    *("127.1",),
    *("10.0.0.5", "192.168.1.5:22", "192.168.1.77", "169.254.169.254", "168.63.129.16", "100.100.100.100"),
    *("198.51.100.7", "198.51.100.7:443", "2606:4700::1111", "2001:db8:5::9", "fe80::1%eth0", "fd00::1", "ff02::1"),
    *("64:ff9b::a00:5", "64:ff9b::c633:6407", "::ffff:10.0.0.5", "2002:a00:5::1", "4000::1", "0x0a.5"),
    *("10.255.213.2", "10.255.213.3:53", "10.255.213.3:80", "registry", "claudebox", "somewhere"),
)
PORTS = ("5432", "8080", "80", "9000", ":443", "3000")
PORT_OPTIONS = ("--publish", "8080:80", "--publish", "9000", "--host-port", "5432", "--host-port", "9001")
NETWORKS: dict[str, tuple[str, ...]] = {
    "full": (),
    "inet": ("--network", "inet"),
    "inet-ports": ("--network", "inet", *PORT_OPTIONS),
    "none": ("--network", "none"),
    "none-ports": ("--network", "none", *PORT_OPTIONS),
}
# Their addresses are kept as what is different because of the ports.
NETWORK_WITHOUT_PORTS = {"inet-ports": "inet", "none-ports": "none"}
UNUSABLE = ("", "  ", "70000", "0", "a b", "--json", "$", "$a-b", "http://", "[::1", "host:port", "a:b:c", TOKEN)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return debian(tmp_path, FILES, environ=dict(ENVIRON))


def transcript(asked: Asked, things: tuple[str, ...]) -> str:
    screens = (f"$ claudebox --explain '{thing}'\n{screen(asked, thing)}" for thing in things)
    return "\n".join(screens)


def screen(asked: Asked, thing: str) -> str:
    return explanation_text(asked.explain(thing), PLAIN)


def test_paths(machine: Machine, golden: Golden) -> None:
    golden.check_scene("paths.txt", "paths", transcript(ask(machine.host(), *MOUNTS), PATHS))


def test_paths_that_are_hidden_in_spite_of_a_grant(machine: Machine, golden: Golden) -> None:
    machine.plant('~/.claudebox/config.toml: network = "full"\\n\\nhide = [\\n  "/usr/bin/git",\\n]\\n')
    machine.uid = os.geteuid() or machine.uid
    os.chown(machine.root / "home/alice/.claudebox", machine.uid, -1)
    options = ("--hide", "/srv/data/private", "--hide", "README.md", "--hide", "/srv/other")
    asked = ask(machine.host(), *MOUNTS, "--mount-ro", "/srv/other", *options)
    things = ("/srv/data/private/salaries.csv", "/srv/data", "README.md", "/srv/other/x", "/usr/bin/git")
    golden.check_scene("paths.txt", "hidden", transcript(asked, things))


def test_paths_for_root(machine: Machine, golden: Golden) -> None:
    machine.uid = 0
    machine.plant("/proc/sys/kernel/core_pattern\n/proc/kcore\n/usr/local/etc/secret.conf")
    (machine.root / "usr/local/etc/secret.conf").chmod(0o600)
    things = ("/proc/sys/kernel/core_pattern", "/proc/kcore", "/usr/local/etc/secret.conf")
    golden.check_scene("paths.txt", "root", transcript(ask(machine.host()), things))


def test_variables(machine: Machine, golden: Golden) -> None:
    machine.environ["CLAUDEBOX_EXTRA_ENV"] = "PASSED"
    machine.environ["PASSED"] = "0"
    golden.check_scene("variables.txt", "variables", transcript(ask(machine.host(), *VARIABLE_OPTIONS), VARIABLES))


def test_variables_that_are_kept_out(machine: Machine, golden: Golden) -> None:
    names = ("TERM", "AWS_PROFILE", "GITHUB_TOKEN", "NOT_SET")
    drops = [word for name in names for word in ("--drop-env", name)]
    asked = ask(machine.host(), "--env", "AWS_PROFILE", *drops)
    golden.check_scene("variables.txt", "dropped", transcript(asked, names))


@pytest.mark.req("NET-01", "NET-03")
@pytest.mark.parametrize("network", NETWORKS)
def test_addresses(machine: Machine, golden: Golden, network: str) -> None:
    text = transcript(ask(machine.host(), *NETWORKS[network]), ADDRESSES)
    if network in NETWORK_WITHOUT_PORTS:
        base = transcript(ask(machine.host(), *NETWORKS[NETWORK_WITHOUT_PORTS[network]]), ADDRESSES)
        text = difference(base, text)
    golden.check_scene("addresses.txt", network, text)


@pytest.mark.req("NET-04")
@pytest.mark.parametrize("network", NETWORKS)
def test_ports(machine: Machine, golden: Golden, network: str) -> None:
    golden.check_scene("ports.txt", network, transcript(ask(machine.host(), *NETWORKS[network]), PORTS))


def test_word_that_is_several_things_gets_several_answers(machine: Machine) -> None:
    (machine.root / "home/alice/shop/TERM").touch()
    (machine.root / "home/alice/shop/10.0.0.5").touch()
    asked = ask(machine.host())
    kinds = {thing: [answer.kind for answer in asked.explain(thing)] for thing in ("TERM", "3000", "10.0.0.5")}
    assert kinds == {"TERM": ["path", "variable"], "3000": ["path", "port"], "10.0.0.5": ["path", "address"]}


def test_programs(machine: Machine, golden: Golden) -> None:
    machine.plant(PROGRAM_FILES)
    places = ("~/.cargo/bin", "~/scripts", "~/shop/node_modules/.bin", "/usr/bin", "/bin")
    machine.environ["PATH"] = ":".join(place.replace("~", "/home/alice") for place in places)
    asked = ask(machine.host(), "--hide", "/usr/bin/hidden-tool", "--run", "true")
    golden.check_scene("paths.txt", "programs", transcript(asked, PROGRAMS))


def test_word_that_names_nothing_is_a_host_only_if_it_looks_like_one(machine: Machine) -> None:
    machine.plant(PROGRAM_FILES)
    asked = ask(machine.host())
    assert (asked.answer("docker").kind, asked.answer("docker").place) == ("program", "/usr/bin/docker")
    assert (asked.answer("registry").kind, asked.answer("registry").verdict) == ("address", "reachable")
    for word in ("nosuch", "no-such-thing", "Nosuch"):
        assert screen(asked, word).startswith(f"{word}: no such program, file or variable\n")
    assert asked.answer("nosuch:443").kind == "address"
    assert [asked.answer(word).kind for word in ("nosuch.txt", "example.org")] == ["path", "address"]


def test_one_value_of_a_file_with_secrets(machine: Machine) -> None:
    machine.plant("~/shop/.env: API_TOKEN=hunter2hunter2\\nLEVEL=debug\\n")
    asked = ask(machine.host())
    said = {key: asked.answer(f".env:{key}").verdict for key in ("API_TOKEN", "LEVEL", "NONE")}
    assert said == {
        "API_TOKEN": "in, read-only, with a made-up value",
        "LEVEL": "in, read-only, as it is",
        "NONE": "no such key in this file",
    }
    assert "--reveal .env:API_TOKEN" in screen(asked, ".env:API_TOKEN")
    assert "hunter2" not in screen(asked, ".env:API_TOKEN")
    revealed = ask(machine.host(), "--reveal", ".env:API_TOKEN")
    assert revealed.answer(".env:API_TOKEN").verdict.startswith("in, ")
    assert "made-up" not in revealed.answer(".env:API_TOKEN").verdict
    assert asked.answer("README.md:anything").verdict == "in, writable"


def test_existing_file_is_not_a_host(machine: Machine) -> None:
    assert ask(machine.host()).answer("README.md").kind == "path"


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize("thing", UNUSABLE)
def test_what_cannot_be_explained_is_a_problem(machine: Machine, thing: str) -> None:
    with pytest.raises(Problem) as problem:
        ask(machine.host()).explain(thing)
    assert (problem.value.status, bool(problem.value.hint)) == (FAILED, True)
    assert TOKEN not in problem.value.message


def all_explanations(machine: Machine) -> dict[str, list[Answer]]:
    asked = ask(machine.host(), *MOUNTS, *VARIABLE_OPTIONS, *NETWORKS["inet-ports"])
    return {thing: asked.explain(thing) for thing in (*PATHS, *VARIABLES, *ADDRESSES, *PORTS, *PROGRAMS)}


@pytest.mark.req("UX-01")
def test_screens_are_narrow(machine: Machine) -> None:
    lines = [line for each in all_explanations(machine).values() for line in explanation_text(each, PLAIN).splitlines()]
    # What is to be copied stays whole.
    assert [line for line in lines if width(line) > WIDTH and "--" not in line] == []


@pytest.mark.req("UX-01")
def test_colour_changes_nothing_but_colour(machine: Machine) -> None:
    for each in all_explanations(machine).values():
        coloured = explanation_text(each, Style(True))
        assert re.sub("\x1b\\[[0-9]+m", "", coloured) == explanation_text(each, PLAIN)


@pytest.mark.req("UX-01", "SEC-01")
def test_no_secret_is_ever_shown(machine: Machine) -> None:
    for thing, each in all_explanations(machine).items():
        for text in (explanation_text(each, PLAIN), explanation_json(thing, each)):
            assert TOKEN not in text
            assert "hunter2" not in text
            assert "0a1b2c3d" not in text


@pytest.mark.req("UX-01")
def test_nothing_shown_can_move_the_cursor(machine: Machine, golden: Golden) -> None:
    name = "x\x1b[2J\r\ny: in, writable \u202etxt"
    (machine.root / "srv" / name).mkdir()
    machine.environ["EVIL"] = "\x1b]0;title\x07"
    asked = ask(machine.host(), "--mount-ro", f"/srv/{name}", "--env", "EVIL")
    things = (f"/srv/{name}", f"/srv/{name}/none", f"/srv/other/{name}", "EVIL")
    text = "\n".join(screen(asked, thing) for thing in things)
    assert text.replace("\n", "").isprintable()
    golden.check_scene("paths.txt", "hostile", text)


ANSWER = {
    "kind": either("path", "variable", "address", "port", "nix", "package", "program"),
    "subject": str,
    "state": either("in", "out", "hidden", "other", "made", "masked", "depends"),
    "verdict": str,
    "access": either("ro", "rw", None),
    "place": maybe(str),
    "because": [{"text": str, "rule": maybe(str), "reason": maybe(str)}],
    "changes": [{"option": maybe([str]), "effect": str}],
}


def test_json_has_this_shape_and_says_what_the_screen_says(machine: Machine) -> None:
    for thing, each in all_explanations(machine).items():
        text = explanation_json(thing, each)
        assert text.isascii()
        told = json.loads(text)
        assert faults({**HEAD, "thing": str, "answers": [ANSWER]}, told) == []
        assert told["thing"] == (each[0].subject if len(each) == 1 else thing)
        screen = "".join(explanation_text(each, PLAIN).split())
        for answer in told["answers"]:
            words = [answer["subject"], answer["verdict"]]
            words += [because["text"] for because in answer["because"]] + [way["effect"] for way in answer["changes"]]
            assert [word for word in words if "".join(escape(word).split()) not in screen] == []


@pytest.mark.parametrize(
    ("thing", "expected"),
    [
        ("/srv/data", {"kind": "path", "state": "in", "access": "ro", "place": "/srv/data"}),
        ("~/.ssh/id_ed25519", {"kind": "path", "state": "out", "access": None, "place": None}),
        ("TERM", {"kind": "variable", "state": "in", "access": None, "place": None}),
        ("10.0.0.5", {"kind": "address", "state": "out", "access": None, "place": None}),
    ],
)
def test_json_of_one_answer(machine: Machine, thing: str, expected: dict[str, object]) -> None:
    answers = ask(machine.host(), *MOUNTS, *NETWORKS["inet"]).explain(thing)
    (answer,) = json.loads(explanation_json(thing, answers))["answers"]
    assert {key: answer[key] for key in expected} == expected


def test_json_of_several_answers_is_exactly_this(machine: Machine, golden: Golden) -> None:
    answers = ask(machine.host(), *MOUNTS, *NETWORKS["inet"]).explain("3000")
    golden.check("several.json", explanation_json("3000", answers))


def test_every_golden_text_is_used(golden: Golden) -> None:
    assert golden.names() == {"paths.txt", "variables.txt", "addresses.txt", "ports.txt", "several.json"}
    assert golden.scenes("paths.txt") == {"paths", "hidden", "root", "hostile", "programs"}
    assert golden.scenes("variables.txt") == {"variables", "dropped"}
    assert golden.scenes("addresses.txt") == golden.scenes("ports.txt") == set(NETWORKS)
