"""What programs are told: its shape, that it is what the Plan holds, and a few examples as a whole."""

import json
from pathlib import Path
from typing import Any

import pytest

from claudebox.features.nix import Nix, packages_of
from claudebox.model import (
    ABSENT,
    COVER,
    DEV,
    FILE,
    HIDE,
    LAYER,
    MASK,
    PROC,
    RO,
    RW,
    SYMLINK,
    TMPFS,
    Finding,
    Plan,
)
from claudebox.sandbox.argv import Data, bwrap_operations, program_words
from golden import Golden
from screens.boxes import SCREENS, debian
from shapes import HEAD, Table, either, faults, maybe
from shown import audit_json, dry_run_json

PLACE = {"path": str, "reason": str}
AUDIT = {
    **HEAD,
    "project": str,
    "mounts": [
        {
            "kind": either(RO, RW, TMPFS, FILE, COVER, MASK, SYMLINK, PROC, DEV, HIDE, ABSENT, LAYER),
            "path": str,
            "source": maybe(str),
            "content": maybe(str),
            "?size": int,
            "rule": str,
            "reason": str,
        }
    ],
    "environment": [{"name": str, "value": maybe(str), "secret": maybe(str), "rule": str, "reason": str}],
    "packages": [{"reference": str, "paths": [str], "rule": str}],
    "network": {
        "tier": either("full", "inet", "allowlist", "none"),
        "meaning": str,
        "rule": str,
        "published": [{"host": int, "box": int}],
        "host_ports": [int],
        "rejected": [str],
        "allowed": [{"host": str, "ports": [int], "group": str, "reason": str, "rule": str}],
    },
    "nix": maybe({"mode": str, "rule": str, "holes": [str]}),
    "outside": {"variables": int, "places": [PLACE]},
    "review": maybe({"land": str, "rule": str, "layers": [str], "direct": [str]}),
    "broker": maybe({"credential": str, "limits": Table(int), "journal": str, "fetches": bool}),
    "login": maybe({"file": maybe(str)}),
    "limits": maybe({"memory": int, "pids": int, "cpu": int}),
    "cache": maybe({"directory": str}),
    "guard": {
        "read_only": [PLACE],
        "lands_later": [PLACE],
        "opened": [PLACE],
        "cannot_be_held": [PLACE],
        "no_layers_because": maybe(str),
    },
    "law": {
        "places": [{"path": str, "access": str, "reason": str}],
        "variables": [str],
        "hosts_network": bool,
    },
    "program": [maybe(str)],
    "findings": [{"kind": either(Finding.SECRET, Finding.RISK, Finding.NOTE), "subject": str, "text": str}],
}
DRY_RUN = {
    **HEAD,
    "uplink": maybe({"pasta": [str], "nft": str, "ruleset": str}),
    "?read_only_instead_of_layers": [str],
    "executable": str,
    "options": [[either(str, {"text": str}, {"hex": str})]],
    "program": [maybe(str)],
    "environment": Table(maybe(str)),
}
pytestmark = pytest.mark.req("UX-01", "UX-04")


def read(text: str) -> Any:
    """Names with terminal codes or broken UTF-8 stay harmless."""
    assert text.isascii()
    assert text.endswith("}\n")
    return json.loads(text)


def test_audit_has_this_shape(plan: Plan) -> None:
    assert faults(AUDIT, read(audit_json(plan))) == []


def test_dry_run_has_this_shape(plan: Plan) -> None:
    assert faults(DRY_RUN, read(dry_run_json(plan))) == []


@pytest.mark.req("AUTH-03")
def test_audit_with_a_broker_has_this_shape(tmp_path: Path) -> None:
    machine = debian(tmp_path, ANTHROPIC_API_KEY="x")
    told = read(audit_json(machine.plan("--auth", "broker", "--auth-limit", "requests=3")))
    assert faults(AUDIT, told) == []
    assert told["broker"]["credential"] == "ANTHROPIC_API_KEY"
    assert told["broker"]["limits"] == {"requests": 3}


def test_audit_tells_all_that_the_plan_holds(plan: Plan) -> None:
    told = read(audit_json(plan))
    assert told["project"] == plan.project
    assert [
        (mount["kind"], mount["path"], mount["source"] or "", mount["rule"], mount["reason"])
        for mount in told["mounts"]
    ] == [(mount.kind, mount.path, mount.source, mount.origin.shown, mount.origin.reason) for mount in plan.mounts]
    assert [(variable["name"], variable["value"], variable["rule"]) for variable in told["environment"]] == [
        (variable.name, None if variable.secret else variable.value, variable.origin.shown)
        for variable in plan.environment
    ]
    assert [(package["reference"], *package["paths"]) for package in told["packages"]] == [
        (package.reference, *package.paths) for package in packages_of(plan)
    ]
    assert [(place["path"], place["reason"]) for place in told["outside"]["places"]] == [
        (place.path, place.reason) for place in plan.outside.places
    ]
    held = [place["path"] for part in ("read_only", "lands_later") for place in told["guard"][part]]
    assert sorted(held) == sorted(guarded.path for guarded in plan.guard.held)
    assert [(finding["kind"], finding["subject"], finding["text"]) for finding in told["findings"]] == [
        (finding.kind, finding.subject, finding.text) for finding in plan.findings
    ]
    assert (told["nix"] or {}).get("mode") == (nix.mode if (nix := plan.get(Nix)) else None)


def test_audit_tells_the_content_of_files_that_the_box_makes_alone(plan: Plan) -> None:
    contents = {mount["path"]: mount["content"] for mount in read(audit_json(plan))["mounts"]}
    for mount in plan.mounts:
        assert (contents[mount.path] is not None) == (mount.kind == FILE), mount.path
    assert contents["/etc/hosts"].startswith("127.0.0.1")


@pytest.mark.req("NET-01", "NET-04")
def test_audit_tells_the_network(plan: Plan) -> None:
    told = read(audit_json(plan))["network"]
    assert (told["tier"], told["meaning"], told["rule"]) == (
        plan.network.tier,
        plan.network.meaning,
        plan.network.origin.shown,
    )
    assert [(port["host"], port["box"]) for port in told["published"]] == [
        (port.host, port.box) for port in plan.network.published
    ]
    assert told["host_ports"] == [port.host for port in plan.network.host_ports]
    assert told["rejected"] == (list(plan.network.uplink.near) if plan.network.uplink else [])


@pytest.mark.req("SEC-01")
def test_secret_argument_is_null(tmp_path: Path) -> None:
    plan = SCREENS["flagged"](debian(tmp_path))
    for told in (read(audit_json(plan)), read(dry_run_json(plan))):
        assert told["program"][-2:] == ["--mcp-config", None]


def test_dry_run_tells_the_words_of_bwrap(plan: Plan) -> None:
    told = read(dry_run_json(plan))
    assert told["executable"] == plan.bwrap
    assert told["options"] == [[as_told(word) for word in operation] for operation in bwrap_operations(plan)]
    assert len(told["program"]) == len(program_words(plan))
    assert told["environment"] == {
        variable.name: None if variable.secret else variable.value for variable in plan.environment if not variable.late
    }


def as_told(word: str | Data) -> Any:
    """A descriptor is told as what can be read from it."""
    if isinstance(word, str):
        return word
    return {"hex": word.content.hex()} if word.label == "seccomp" else {"text": word.content.decode()}


@pytest.mark.req("NET-02")
def test_dry_run_tells_how_the_box_is_connected(plan: Plan) -> None:
    told, uplink = read(dry_run_json(plan))["uplink"], plan.network.uplink
    if uplink is None:
        assert told is None
    else:
        assert told["pasta"][0] == "/usr/bin/pasta"
        assert told["pasta"][1:] == list(uplink.options)
        assert (told["nft"], told["ruleset"]) == (uplink.nft, uplink.ruleset)


def test_whole_examples_are_exactly_this(tmp_path: Path, golden: Golden) -> None:
    golden.check("json/audit-flagged.json", audit_json(SCREENS["flagged"](debian(tmp_path / "one"))))
    plan = SCREENS["inet-and-ports"](debian(tmp_path / "two"))
    golden.check("json/dry-run-inet-and-ports.json", dry_run_json(plan))
    assert golden.names("json") == {"audit-flagged.json", "dry-run-inet-and-ports.json"}
