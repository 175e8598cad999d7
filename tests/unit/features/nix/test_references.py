"""What may be asked for as a package: no flake of this host is evaluated, since an agent may have written it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudebox.errors import Problem
from claudebox.features.nix.references import Reference, read_reference, short_name
from claudebox.settings.values import Word
from hosts.machine import Machine
from unit.nix_machine import PROJECT, SAID, make_machine, planned

pytestmark = pytest.mark.req("EXT-04")


def read(text: str) -> Reference:
    return read_reference(Word(text, SAID))


def is_refused(text: str) -> bool:
    try:
        read(text)
    except Problem:
        return True
    return False


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return make_machine(tmp_path)


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
