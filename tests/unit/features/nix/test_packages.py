"""Packages from Nix: what may be asked for, how Nix is asked, and what its answer means for the box and the user."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from claudebox.consent import agreement, find_news
from claudebox.errors import Problem
from claudebox.features.nix import PACKAGES, Package, packages_of
from claudebox.features.nix.asking import find_reason, read_paths
from claudebox.features.nix.packages import (
    PACKAGE,
    Reference,
    find_meaning,
    find_nix,
    give_up,
    grant,
    is_store_path,
    nix_environment,
    plan_packages,
    read_reference,
    short_name,
    to_resolve,
)
from claudebox.host import pinned
from claudebox.model import Finding, Origin, Plan
from claudebox.output.audit import news_text
from claudebox.plan import make_plan
from claudebox.settings import Settings, Word
from claudebox.state import State, memory
from claudebox.text import Style
from hosts.machine import Machine, debian
from saying import gather, parse

pytestmark = pytest.mark.req("EXT-04")

HOME = "/home/alice"
PROJECT = f"{HOME}/shop"
SAID = Origin.of_option("--package")
HASH = "0a1b2c3d" * 4
HELLO = f"/nix/store/{HASH}-hello-2.12"
GLIBC = f"/nix/store/{HASH}-glibc-2.40"


def planned(machine: Machine, *names: str) -> Plan:
    return machine.plan(*(word for name in names for word in ("--package", name)), "--run", "make")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = debian(tmp_path)
    machine.environ["PATH"] = "/usr/bin:/bin"  # without claude: its state has to be the user's own
    return machine.plant("/usr/bin/nix*\n/nix/store/x/")


def keep(machine: Machine, reference: str = "nixpkgs#hello", *, meaning: str = "") -> Path:
    """As if Nix had been asked before."""
    host = machine.plant(f"{HELLO}/bin/hello*").host()
    file = machine.root / State(host.person.home).package(reference).lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(memory.write(PACKAGE, (meaning or find_meaning(host), reference, HELLO)))
    return file


def resolved(machine: Machine, *names: str) -> tuple[Package, ...]:
    host, request = machine.host(), parse([word for name in names for word in ("--package", name)])
    return plan_packages(host, gather(host, request).settings, None)


def test_answer_is_recalled(machine: Machine) -> None:
    keep(machine)
    packages = resolved(machine, "hello", "nixpkgs#hello")
    assert packages == (Package("nixpkgs#hello", (HELLO,), SAID),)
    assert to_resolve(packages) == ()


@given(st.data())
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_answer_is_none(machine: Machine, data: st.DataObject) -> None:
    file = keep(machine)
    whole = file.read_bytes()
    start = data.draw(st.integers(0, len(whole) - 1))
    cut = data.draw(st.integers(1, len(whole) - start))
    file.write_bytes(whole[:start] + data.draw(st.binary(max_size=3)) + whole[start + cut :])
    (found,) = resolved(machine, "hello")
    assert all(map(is_store_path, found.paths))
    file.write_bytes(whole[:-cut])
    assert to_resolve(resolved(machine, "hello"))


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
    settings = Settings().having(PACKAGES, (Word("hello", SAID), Word("nosuch", SAID)))
    left = give_up(settings, {"nixpkgs#nosuch": "it is not there"})
    plan = make_plan(host, request, left)
    assert [package.reference for package in packages_of(plan)] == ["nixpkgs#hello"]
    assert Finding(Finding.NOTE, "nosuch", "not in the box: it is not there") in plan.findings


def test_host_without_nix_works_without_packages(tmp_path: Path) -> None:
    assert packages_of(debian(tmp_path).plan()) == ()


@pytest.mark.req("UX-02")
def test_new_package_is_shown_as_new_and_another_version_is_not(machine: Machine) -> None:
    keep(machine)
    without, with_hello = planned(machine), planned(machine, "hello")
    news = find_news(with_hello, (frozenset(agreement(without)),))
    assert [grant.lines[0] for grant in news.grants] == [("package", "nixpkgs#hello")]
    assert not news.is_grave
    new = news_text(with_hello, news, Style(False)).removeprefix("New since you agreed")
    assert new.split() == ["--package", "hello", "(hello-2.12)"]
    newer = packages_of(with_hello)[0].replace(paths=(GLIBC,))
    assert grant(newer).lines == grant(packages_of(with_hello)[0]).lines


# How Nix is asked for packages, and what is understood of its answers.


def environment(machine: Machine) -> dict[str, str]:
    host = machine.host()
    return nix_environment(host, find_nix(host))


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
    known = environment(machine)
    machine.plant("~/shop/ca.pem: -----BEGIN CERTIFICATE-----\n~/.claudebox/")
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
    assert environment(machine) == known
    assert known["HOME"] == HOME


def test_a_proxy_and_the_users_certificates_count(machine: Machine) -> None:
    machine.plant("/srv/ca.pem: -----BEGIN CERTIFICATE-----")
    machine.environ |= {"https_proxy": "http://proxy:3128", "NIX_SSL_CERT_FILE": "/srv/ca.pem"}
    known = environment(machine)
    assert known["https_proxy"] == "http://proxy:3128"
    assert known["NIX_SSL_CERT_FILE"] == "/srv/ca.pem"


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
    assert read_paths(output) == paths


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


# What may be asked for as a package: no flake of this host is evaluated, since an agent may have written it.


def read(text: str) -> Reference:
    return read_reference(Word(text, SAID))


def is_refused(text: str) -> bool:
    try:
        read(text)
    except Problem:
        return True
    return False


@pytest.mark.parametrize("name", ["ripgrep", "python3Packages.requests", "_7zz", "gtk+", "hello^out,man", "nodejs_20"])
def test_name_means_nixpkgs(name: str) -> None:
    assert read(name) == Reference(f"nixpkgs#{name}", Word(name, SAID), registered="nixpkgs")
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
    assert read(text) == Reference(text, Word(text, SAID))


@pytest.mark.parametrize("text", ["nixpkgs#hello", "nixpkgs/nixos-24.05#hello", "flake:nixpkgs#hello", "nixpkgs/a/b"])
def test_registered_flake_keeps_its_name(text: str) -> None:
    assert read(text) == Reference(text, Word(text, SAID), registered="nixpkgs")


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
        # Flakes of this host, however they are written.
        *(".", ".#x", "#x", "?dir=sub#x", "./tools#x", "../tools#x", ".hidden#x", "~/tools#x"),
        *("/srv/tools?dir=a#x^out",),
        *("path:/srv/tools#x", "path:tools#x", "path:.", "git+file:///srv/tools?rev=0#x", "git+file:.#x"),
        *("file:///srv/x",),
        *("path:/srv/%2e%2e/x", "git+file:///srv/%73", "a:b", "flake:", "flake:../x", "flake:/x", "é#x"),
    ],
)
def test_what_is_not_known_to_be_a_reference_is_refused(text: str) -> None:
    assert is_refused(text)


@given(st.text(st.sampled_from("ab/.:#?~-+_%^ \n\\\x1b@"), max_size=12))
def test_nothing_reaches_nix_unjudged(text: str) -> None:
    """Whatever is let through has a form that cannot be a path to Nix."""
    if is_refused(text):
        return
    reference = read(text)
    assert reference.text.isprintable()
    assert not reference.text.startswith("-")
    assert " " not in reference.text
    location = reference.text.partition("#")[0].partition("?")[0]
    if reference.registered:
        assert location.removeprefix("flake:").partition("/")[0] == reference.registered
        assert reference.registered[0].isalpha()
        assert ".." not in location.split("/")
    else:
        raise AssertionError("none of these characters makes a scheme that is known")


def test_registry_may_lead_to_a_flake_through_others(machine: Machine) -> None:
    flakes = [
        {"from": {"type": "indirect", "id": "tools"}, "to": {"type": "indirect", "id": "mine"}},
        {"from": {"type": "indirect", "id": "mine"}, "to": {"type": "git", "url": f"file://{PROJECT}"}},
        {"from": {"type": "indirect", "id": "nixpkgs"}, "to": {"type": "github", "owner": "o", "repo": "r"}},
    ]
    file = machine.plant("/etc/nix/").root / "etc/nix/registry.json"
    file.write_text(json.dumps({"flakes": flakes, "version": 2}))
    planned(machine, "nixpkgs#hello")
    with pytest.raises(Problem, match="no flake of this host is evaluated"):
        planned(machine, "tools#hello")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"flakes": 1}', '{"flakes": [{"from": 1}]}', "[" * 100_000])
def test_registry_that_cannot_be_read_is_left_to_nix(machine: Machine, text: str) -> None:
    (machine.plant("/etc/nix/").root / "etc/nix/registry.json").write_text(text)
    planned(machine, "hello")
