"""Packages of Nix: what may be asked for, what is kept of the answers, and how Nix is asked."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudebox import pinned, remembered
from claudebox.agreement import agreement, find_news
from claudebox.explain import explain
from claudebox.features.nix.fetch import Progress, readable
from claudebox.features.nix.output import find_reason, is_store_path, read_paths, read_version
from claudebox.features.nix.packages import (
    FORM,
    find_meaning,
    give_up,
    plan_errand,
    plan_packages,
    read_record,
    record_lines,
    store_name,
    to_resolve,
)
from claudebox.features.nix.program import find_nix
from claudebox.features.nix.references import Reference, may_change, read_reference, short_name
from claudebox.model import Finding, Origin, Package, Plan
from claudebox.plan import make_plan
from claudebox.problem import Problem
from claudebox.settings.gather import gather
from claudebox.settings.values import Named, Settings
from claudebox.settings.words import parse
from claudebox.state import State
from claudebox.view.audit import audit
from claudebox.view.explain import explanation_text
from claudebox.view.text import Style
from hosts.machine import EVERYONE, TREES, Machine

pytestmark = pytest.mark.req("EXT-04")

HOME = "/home/alice"
PROJECT = f"{HOME}/shop"
SAID = Origin.of_option("--package")
HASH = "0a1b2c3d" * 4
HELLO = f"/nix/store/{HASH}-hello-2.12"
GLIBC = f"/nix/store/{HASH}-glibc-2.40"


def read(text: str) -> Reference:
    return read_reference(Named(text, SAID), PROJECT, HOME)


def is_refused(text: str) -> bool:
    try:
        read(text)
    except Problem:
        return True
    return False


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path).plant((TREES / "debian12.txt").read_text()).plant(EVERYONE.read_text())
    machine.environ["PATH"] = "/usr/bin:/bin"  # without claude: its state has to be the user's own
    return machine.plant("/usr/bin/nix*\n/nix/store/x/")


def planned(machine: Machine, *names: str) -> Plan:
    return machine.plan(*(word for name in names for word in ("--package", name)), "--run", "make")


# What may be asked for


@pytest.mark.parametrize("name", ["ripgrep", "python3Packages.requests", "_7zz", "gtk+", "hello^out,man", "nodejs_20"])
def test_name_means_nixpkgs(name: str) -> None:
    assert read(name) == Reference(f"nixpkgs#{name}", registered="nixpkgs")
    assert short_name(read(name).text) == name


@pytest.mark.parametrize(
    "text",
    [
        "github:owner/repository",
        "github:owner/repository/branch?dir=sub#tool",
        "gitlab:group%2Fsub/repository#tool",
        "git+https://example.org/x.git?ref=main#tool",
        "git+ssh://git@example.org/x#tool",
        "https://example.org/x.tar.gz",
        "sourcehut:~owner/x",
    ],
)
def test_reference_to_elsewhere_stays_as_it_is(text: str) -> None:
    assert read(text) == Reference(text)
    assert not may_change(text)


@pytest.mark.parametrize("text", ["nixpkgs#hello", "nixpkgs/nixos-24.05#hello", "flake:nixpkgs#hello", "nixpkgs/a/b"])
def test_registered_flake_keeps_its_name(text: str) -> None:
    assert read(text) == Reference(text, registered="nixpkgs")


@pytest.mark.parametrize(
    ("text", "place", "for_nix"),
    [
        (".", PROJECT, PROJECT),
        (".#x", PROJECT, f"{PROJECT}#x"),
        ("#x", PROJECT, f"{PROJECT}#x"),
        ("?dir=sub#x", PROJECT, f"{PROJECT}?dir=sub#x"),
        ("./tools#x", f"{PROJECT}/tools", f"{PROJECT}/tools#x"),
        ("../tools#x", f"{HOME}/tools", f"{HOME}/tools#x"),
        (".hidden#x", f"{PROJECT}/.hidden", f"{PROJECT}/.hidden#x"),
        ("~/tools#x", f"{HOME}/tools", f"{HOME}/tools#x"),
        ("/srv/tools?dir=a#x^out", "/srv/tools", "/srv/tools?dir=a#x^out"),
        ("/srv/../srv/tools#x", "/srv/tools", "/srv/tools#x"),
        ("path:/srv/tools#x", "/srv/tools", "path:/srv/tools#x"),
        ("path:tools#x", f"{PROJECT}/tools", f"path:{PROJECT}/tools#x"),
        ("path:.", PROJECT, f"path:{PROJECT}"),
        ("git+file:///srv/tools?rev=0#x", "/srv/tools", "git+file:///srv/tools?rev=0#x"),
        ("git+file:.#x", PROJECT, f"git+file://{PROJECT}#x"),
        ("file:///srv/x.tar", "/srv/x.tar", "file:///srv/x.tar"),
    ],
)
def test_path_is_known_to_be_one(text: str, place: str, for_nix: str) -> None:
    """However it is written: it is judged by its place, and Nix is not started in the project."""
    assert read(text) == Reference(for_nix, place=place)
    assert may_change(for_nix)


@pytest.mark.parametrize(
    "text",
    [
        *("", "-foo", "--impure", "-", "a b", "a\nb", "a\x1b[2J", "a\x00b", "a\u202eb", "\udcff", "x" * 1001),
        *("ext::sh -c", "ext::sh", "unknown:x#y", "git+ext://x", "javascript:x", "PATH:/srv/x", "Path:x"),
        *("git+ssh://-oProxyCommand=x/y", "https:-x", "git+file://host/x", "file://host/x", "path://host", "//srv/x"),
        # To Nix, which is started in the root, these would be paths.
        *("_x/../home/alice/shop#x", "0/home/alice/shop", "home/../home/alice/shop", "ho.me/alice", "x/.."),
        *("github:x{/../../home/alice/shop#x", "https:x/../home/alice/shop", "github:o/r<", "git:\\/..", "github:é/r"),
        *("home/_x", "home/.x", "home/-x", "home/", "a+b/x", "home/a+b", "home/a@b", "a@b/x", "x//y", "home/é"),
        *("path:/srv/%2e%2e/x", "git+file:///srv/%73", "a:b", "flake:", "flake:../x", "flake:/x", "é#x"),
    ],
)
def test_what_is_not_known_to_be_a_reference_is_refused(text: str) -> None:
    assert is_refused(text)


@given(st.text(st.sampled_from("ab/.:#?~-+_%^ \n\\\x1b@"), max_size=12))
def test_nothing_reaches_nix_unjudged(text: str) -> None:
    """Whatever is let through has a form that cannot be a path to Nix, or it is one that was judged."""
    if is_refused(text):
        return
    reference = read(text)
    assert reference.text.isprintable()
    assert not reference.text.startswith("-")
    assert " " not in reference.text
    location = reference.text.partition("#")[0].partition("?")[0]
    if reference.place:
        assert reference.place in location
        assert reference.place.startswith("/")
        assert ".." not in reference.place.split("/")
    elif reference.registered:
        assert location.removeprefix("flake:").partition("/")[0] == reference.registered
        assert reference.registered[0].isalpha()
        assert ".." not in location.split("/")
    else:
        raise AssertionError("none of these characters makes a scheme that is known")


@pytest.mark.parametrize("name", ["git+file:///srv/tools#x", "/srv/tools#x", "path:/srv/tools"])
def test_flake_of_the_user_may_be_evaluated(machine: Machine, name: str) -> None:
    """It is no place of an agent's."""
    machine.plant("/srv/tools/flake.nix\n/srv/tools/.git/config")
    assert [package.paths for package in planned(machine, name).packages] == [()]


def test_registry_may_lead_to_a_flake_through_others(machine: Machine) -> None:
    flakes = [
        {"from": {"type": "indirect", "id": "tools"}, "to": {"type": "indirect", "id": "mine"}},
        {"from": {"type": "indirect", "id": "mine"}, "to": {"type": "git", "url": f"file://{PROJECT}"}},
        {"from": {"type": "indirect", "id": "nixpkgs"}, "to": {"type": "github", "owner": "o", "repo": "r"}},
    ]
    file = machine.plant("/etc/nix/").root / "etc/nix/registry.json"
    file.write_text(json.dumps({"flakes": flakes, "version": 2}))
    planned(machine, "nixpkgs#hello")
    with pytest.raises(Problem, match="evaluated on this host"):
        planned(machine, "tools#hello")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"flakes": 1}', '{"flakes": [{"from": 1}]}', "[" * 100_000])
def test_registry_that_cannot_be_read_is_left_to_nix(machine: Machine, text: str) -> None:
    (machine.plant("/etc/nix/").root / "etc/nix/registry.json").write_text(text)
    planned(machine, "hello")


def test_symlink_of_an_agent_is_no_way_to_a_flake(machine: Machine) -> None:
    machine.plant("/srv/tools/flake.nix\n~/shop/tools -> /srv/tools\n~/tools -> shop/tools")
    for name in ("./tools#x", "~/tools#x"):
        with pytest.raises(Problem, match="evaluated on this host"):
            planned(machine, name)


@pytest.mark.parametrize(
    "repository",
    [
        "/srv/tools/.git: gitdir: ~/shop/.git/worktrees/tools\\n\n~/shop/.git/worktrees/tools/commondir: ../..\\n",
        "/srv/tools/.git: gitdir: /srv/data\\n\n/srv/data/commondir: ~/shop/.git\\n\n~/shop/.git/config",
        "/srv/tools/.git -> ~/shop/.git\n~/shop/.git/config",
    ],
    ids=["worktree", "common directory", "symlink"],
)
def test_repository_of_an_agent_is_not_used_by_git(machine: Machine, repository: str) -> None:
    """Its configuration can name programs, and Nix starts git."""
    machine.plant(f"/srv/tools/flake.nix\n{repository}")
    with pytest.raises(Problem, match="evaluated on this host"):
        planned(machine, "/srv/tools#x")


# What is kept


def keep(machine: Machine, reference: str = "nixpkgs#hello", *, meaning: str = "") -> Path:
    """As if Nix had been asked before."""
    host = machine.plant(f"{HELLO}/bin/hello*").host()
    file = machine.root / State(host.person.home).package(reference).lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = record_lines(reference, meaning or find_meaning(host), [HELLO], [GLIBC, HELLO])
    file.write_bytes(remembered.write(FORM, lines))
    return file


def resolved(machine: Machine, *names: str) -> tuple[Package, ...]:
    host, request = machine.host(), parse([word for name in names for word in ("--package", name)])
    return plan_packages(host, gather(host, request).settings, None)


def test_answer_is_recalled(machine: Machine) -> None:
    keep(machine)
    packages = resolved(machine, "hello", "nixpkgs#hello")
    assert packages == (Package("nixpkgs#hello", (HELLO,), (GLIBC, HELLO), SAID),)
    assert to_resolve(packages) == ()


def test_flake_on_this_host_is_asked_for_each_time(machine: Machine) -> None:
    machine.plant("/srv/tools/flake.nix")
    keep(machine, "/srv/tools#hello")
    packages = resolved(machine, "/srv/tools#hello")
    assert packages[0].paths == (HELLO,)
    assert to_resolve(packages) == packages


@pytest.mark.parametrize(
    "file",
    ["~/.config/nix/registry.json", "~/.config/nix/nix.conf", "/etc/nix/registry.json", "/etc/nix/nix.conf"],
)
def test_other_configuration_of_nix_may_mean_another_package(machine: Machine, file: str) -> None:
    keep(machine)
    machine.plant(f"{file}: x")
    assert to_resolve(resolved(machine, "hello"))


def test_garbage_collected_package_is_asked_for_again(machine: Machine) -> None:
    keep(machine)
    path = machine.root / HELLO.lstrip("/")
    path.rename(path.with_name("gone"))
    assert to_resolve(resolved(machine, "hello"))


@given(st.data())
def test_damaged_answer_is_none(data: st.DataObject) -> None:
    whole = remembered.write(FORM, record_lines("nixpkgs#hello", "meaning", [HELLO], [GLIBC, HELLO]))
    assert read_record(remembered.read(whole, FORM), "nixpkgs#hello", "meaning", SAID) is not None
    start = data.draw(st.integers(0, len(whole) - 1))
    cut = data.draw(st.integers(1, len(whole) - start))
    damaged = whole[:start] + data.draw(st.binary(max_size=3)) + whole[start + cut :]
    found = read_record(remembered.read(damaged, FORM), "nixpkgs#hello", "meaning", SAID)
    assert found is None or all(map(is_store_path, (*found.paths, *found.closure)))
    assert read_record(remembered.read(whole[:-cut], FORM), "nixpkgs#hello", "meaning", SAID) is None


def test_answer_to_another_question_is_none() -> None:
    whole = remembered.write(FORM, record_lines("nixpkgs#hello", "meaning", [HELLO], [GLIBC, HELLO]))
    assert read_record(remembered.read(whole, FORM), "nixpkgs#jq", "meaning", SAID) is None
    assert read_record(remembered.read(whole, FORM), "nixpkgs#hello", "other", SAID) is None


@pytest.mark.parametrize(
    "path",
    [
        *("", "/", "/nix/store", "/nix/store/", f"{HELLO}/bin", f"/nix/store/{HASH}-", f"/nix/store/{HASH}", HASH),
        *(f"/home/alice/{HASH}-hello", f"/nix/store/{'e' * 32}-hello", f"/nix/store/{HASH}-a:b", f"{HELLO}\n"),
        *(f"/nix/store/../home/{HASH}-x", f"/nix/store/{HASH}-a b", f"/nix/store/{HASH[1:]}-hello"),
    ],
)
def test_nothing_else_passes_for_a_store_path(path: str) -> None:
    assert is_store_path(HELLO)
    assert not is_store_path(path)
    assert store_name(path) == path


# In the plan


def test_programs_come_after_the_users_path_and_before_the_system(machine: Machine) -> None:
    keep(machine)
    machine.plant("~/.claudebox/config.toml: path = ['~/bin']")
    (path,) = (one.value for one in planned(machine, "hello").environment if one.name == "PATH")
    first, second, third, *_ = [place for place in path.split(":") if place != f"{HOME}/.local/bin"]
    assert (first, second) == (f"{HOME}/bin", f"{HELLO}/bin")
    assert third.startswith("/usr/")


def test_unresolved_package_is_noted_and_not_on_the_path(machine: Machine) -> None:
    plan = planned(machine, "hello")
    assert "store" not in next(one.value for one in plan.environment if one.name == "PATH")
    assert [finding.subject for finding in plan.findings if "at the start" in finding.text] == ["hello"]


def test_failed_package_is_left_out_with_its_reason(machine: Machine) -> None:
    keep(machine)
    host, request = machine.host(), parse(["--run", "x"])
    settings = Settings(packages=(Named("hello", SAID), Named("nosuch", SAID)))
    left = give_up(host, settings, {"nixpkgs#nosuch": "it is not there"})
    plan = make_plan(host, request, left)
    assert [package.reference for package in plan.packages] == ["nixpkgs#hello"]
    assert Finding(Finding.NOTE, "nosuch", "not in the box: it is not there") in plan.findings


def test_host_without_nix_works_without_packages(tmp_path: Path) -> None:
    machine = Machine(tmp_path).plant((TREES / "debian12.txt").read_text()).plant(EVERYONE.read_text())
    assert machine.plan().packages == ()


# How Nix is asked


def test_nix_is_never_one_that_an_agent_can_write(machine: Machine) -> None:
    machine.plant(
        "~/shop/bin/nix*\n~/other/nix*\n~/.claudebox/instances/x/project: ~/other\\n\n~/links/nix -> ../other/nix"
    )
    machine.environ["PATH"] = f"bin:{PROJECT}/bin:{HOME}/other:{HOME}/links:/usr/bin"
    assert find_nix(machine.host()) == "/usr/bin/nix"
    (machine.root / "usr/bin/nix").unlink()
    assert find_nix(machine.host()) == ""


@pytest.mark.parametrize("place", ["/nix/var/nix/profiles/default/bin", "/run/current-system/sw/bin"])
def test_nix_is_found_where_path_does_not_look(machine: Machine, place: str) -> None:
    (machine.root / "usr/bin/nix").unlink()
    machine.plant(f"{place}/nix*")
    machine.environ["PATH"] = "/usr/bin"
    assert find_nix(machine.host()) == f"{place}/nix"


def test_nix_of_the_flake_comes_first(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(pinned.PROGRAMS, "nix", f"{HELLO}/bin/nix")
    assert find_nix(machine.host()) == f"{HELLO}/bin/nix"


def test_no_variable_of_a_project_changes_what_nix_does(machine: Machine) -> None:
    known = plan_errand(machine.host(), ()).environment
    machine.plant("~/shop/ca.pem: -----BEGIN CERTIFICATE-----")
    hostile = {
        **dict.fromkeys(("NIX_CONFIG", "NIX_PATH", "NIX_REMOTE", "NIX_CONF_DIR", "NIX_USER_CONF_FILES"), "x"),
        **dict.fromkeys(
            ("NIX_STORE_DIR", "NIX_STATE_DIR", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_CACHE_HOME"), "x"
        ),
        **dict.fromkeys(("GIT_SSH_COMMAND", "GIT_CONFIG_COUNT", "GIT_DIR", "LD_PRELOAD", "TMPDIR", "EDITOR"), "x"),
        **dict.fromkeys(("NIX_SSL_CERT_FILE", "SSL_CERT_FILE"), f"{PROJECT}/ca.pem"),
        "PATH": f"{PROJECT}/bin:/usr/bin",
    }
    machine.environ |= hostile
    assert plan_errand(machine.host(), ()).environment == known
    assert known["HOME"] == HOME


def test_a_proxy_and_the_users_certificates_count(machine: Machine) -> None:
    machine.plant("/srv/ca.pem: -----BEGIN CERTIFICATE-----")
    machine.environ |= {"https_proxy": "http://proxy:3128", "NIX_SSL_CERT_FILE": "/srv/ca.pem"}
    environment = plan_errand(machine.host(), ()).environment
    assert environment["https_proxy"] == "http://proxy:3128"
    assert environment["NIX_SSL_CERT_FILE"] == "/srv/ca.pem"


# What Nix says


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("nix (Nix) 2.8.0\n", (2, 8)),
        ("nix (Nix) 2.18.1\n", (2, 18)),
        ("nix (Lix, like Nix) 2.91.0-dev\n", (2, 91)),
        ("nix (Determinate Nix 3.0.0) 2.26.2\n", (2, 26)),
        ("nix (Nix) 2.9pre20220512_d354fc3\n", (2, 9)),
        *((text, (0, 0)) for text in ("", "nix", "nix (Nix) x.y", "2.", "²7.3")),
    ],
)
def test_version_is_read(text: str, version: tuple[int, int]) -> None:
    assert read_version(text) == version


@pytest.mark.parametrize(
    ("output", "paths"),
    [
        (b'[{"drvPath":"x","outputs":{"man":"/m","out":"/o"}}]', ["/m", "/o"]),
        (b'[{"path":"/o"}]', ["/o"]),
        (b'["/o"]', ["/o"]),
        *((text, []) for text in (b"", b"{", b"null", b"[1]", b"[" * 100_000, b"\xff")),
    ],
)
def test_paths_are_read_from_json(output: bytes, paths: list[str]) -> None:
    assert read_paths(output, is_json=True) == paths


def test_paths_are_read_from_lines() -> None:
    assert read_paths(b"/a\n/b\n", is_json=False) == ["/a", "/b"]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["warning: x", "error: flake 'y' does not provide z"], "flake 'y' does not provide z"),
        (
            ["error:", "… while calling", "error: Package 'x' has an unfree license"],
            "Package 'x' has an unfree license",
        ),
        (
            ["error: builder for 'x' failed with exit code 1;", "last 1 log lines:", "> no"],
            "builder for 'x' failed with exit code 1",
        ),
        (
            ["error: Cannot build 'x'.", "Reason: builder failed.", "Output:"],
            "Cannot build 'x'. Reason: builder failed.",
        ),
        (["killed"], "killed"),
        ([], "Nix failed without a word"),
        (
            ["error: cannot connect to socket at '/nix/x': Connection refused"],
            "the Nix daemon does not answer: sudo systemctl start nix-daemon",
        ),
    ],
)
def test_reason_is_the_last_error(lines: list[str], reason: str) -> None:
    assert find_reason(lines) == reason


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("error: cannot connect to socket at '/nix/x': Permission denied", "nix-users"),
        ("error: unrecognised flag '--extra-experimental-features'", "2.4"),
        ("error: experimental Nix feature 'nix-command' is disabled; use '--extra'", "disabled"),
    ],
)
def test_reason_says_what_to_do(line: str, word: str) -> None:
    assert word in find_reason([line])


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_one_line_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen = Screen()
    progress = Progress(screen, ["hello", "jq"])
    progress.show([("hello", f"building '{HELLO}.drv'...\x1b[2J")])
    progress.note("hello", [HELLO], "")
    progress.show([("jq", "x" * 200)])
    progress.clear()
    lines = screen.getvalue().split("\r\x1b[K")
    assert lines[1] == "claudebox: packages 0 of 2, 0 s: hello: building 'hello-2.12.drv'...\\x1b[2J"
    assert lines[2].startswith("claudebox: packages 1 of 2, 0 s: jq: xxx")
    assert len(lines[2]) == 79
    assert lines[3:] == [""]


def test_progress_is_plain_lines_elsewhere() -> None:
    screen = io.StringIO()
    progress = Progress(screen, ["hello", "nosuch"])
    progress.show([("hello", "building")])
    progress.note("hello", [HELLO], "")
    progress.note("nosuch", [], "it is \x1b[1mnot there")
    progress.clear()
    assert screen.getvalue().splitlines() == [
        "claudebox: asking Nix for hello, nosuch",
        "claudebox: hello: hello-2.12 (1 of 2)",
        "claudebox: warning: nosuch is not in the box: it is \\x1b[1mnot there",
    ]


def test_hashes_are_left_out_of_what_nix_says() -> None:
    assert readable(f"copying path '{HELLO}' from 'x' to {GLIBC}") == "copying path 'hello-2.12' from 'x' to glibc-2.40"
    assert readable("/nix/store/short and /nix/store/") == "/nix/store/short and /nix/store/"
    assert readable("") == ""


# What the user agrees to


@pytest.mark.req("UX-02")
def test_new_package_is_shown_as_new_and_another_version_is_not(machine: Machine) -> None:
    keep(machine)
    without, with_hello = planned(machine), planned(machine, "hello")
    news = find_news(with_hello, (frozenset(agreement(without)),))
    assert news.packages == with_hello.packages
    assert not news.is_grave
    new = audit(with_hello, Style(False), news=news).partition("New since you agreed")[2]
    assert new.split() == ["--package", "hello", "(hello-2.12)"]
    newer = with_hello.packages[0].replace(paths=(GLIBC,))
    agreed = (frozenset(agreement(with_hello)),)
    assert find_news(with_hello.replace(packages=(newer,)), agreed).amount == 0


def explained(machine: Machine, thing: str) -> str:
    host, request = machine.host(), parse(["--package", "hello", "--package", "jq", "--run", "make"])
    settings = gather(host, request).settings
    return explanation_text(explain(make_plan(host, request, settings), host, settings, thing), Style(False))


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        ("hello", ("hello: in the box, on PATH", "--package asks for hello", HELLO, "leave out --package hello")),
        ("nixpkgs#hello", ("hello: in the box, on PATH",)),
        (f"{HELLO}/bin/hello", (f"{HELLO}/bin/hello: in, read-only", "package hello: in the box, on PATH")),
        (GLIBC, ("package hello: in the box", "hello needs it")),
        ("jq", ("jq: not resolved yet", "when a box starts")),
    ],
)
def test_explanation_says_who_asked_for_it(machine: Machine, thing: str, words: tuple[str, ...]) -> None:
    keep(machine)
    said = " ".join(explained(machine, thing).split())
    assert [word for word in words if word not in said] == []


def test_explanation_of_another_word_knows_no_package(machine: Machine) -> None:
    keep(machine)
    assert "package" not in explained(machine, "/usr")
