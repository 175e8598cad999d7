"""What programs are told, as JSON: a Plan, and what each mode prints. A secret is null."""

from __future__ import annotations

import json
from typing import Any

from claudebox import __version__
from claudebox.host.secrets import secret_value
from claudebox.model import FILE, Allowlist, Broker, EnvVar, Mount, Network, Nix, Plan
from claudebox.sandbox.argv import Data, bwrap_operations, called_pasta, program_words

SCHEMA = 2  # goes up when a field changes its meaning or goes


def audit_json(plan: Plan) -> str:
    broker, nix, review, outside = plan.get(Broker), plan.get(Nix), plan.review, plan.outside
    more: dict[str, Any] = {}
    if broker is not None:
        more["broker"] = {"credential": broker.shown, "limits": dict(broker.limits), "journal": broker.journal}
    if review is not None:
        layers, direct = ([one.path for one in part] for part in (review.covered, review.direct))
        more["review"] = {"land": review.land, "rule": review.origin.shown, "layers": layers, "direct": direct}
    return dump(
        {
            "project": plan.project,
            "mounts": [_mount(mount) for mount in plan.mounts],
            "environment": [_variable(variable) for variable in plan.environment],
            "packages": [_some(package, "reference", "paths", "rule") for package in plan.packages],
            "network": _network(plan.network, plan.get(Allowlist)),
            "nix": _some(nix, "mode", "rule", "holes") if nix is not None else None,
            "outside": {
                "variables": outside.variables,
                "places": [_some(place, "path", "reason") for place in outside.places],
            },
            **more,
            "guard": _guard(plan),
            "program": [_argument(word) for word in plan.program.argv],
            "findings": [_some(finding, "kind", "subject", "text") for finding in plan.findings],
        }
    )


def _some(record: Any, *names: str) -> dict[str, Any]:
    """These fields of a record; `rule` is what its origin is called."""
    return {name: record.origin.shown if name == "rule" else getattr(record, name) for name in names}


def _mount(mount: Mount) -> Any:
    return {
        "kind": mount.kind,
        "path": mount.path,
        "source": mount.source or None,
        "content": mount.content.decode(errors="replace") if mount.kind == FILE else None,
        **({"size": mount.size} if mount.size else {}),
        "rule": mount.origin.shown,
        "reason": mount.origin.reason,
    }


def _variable(variable: EnvVar) -> Any:
    return {
        "name": variable.name,
        "value": None if variable.secret else variable.value,
        "secret": variable.secret or None,
        "rule": variable.origin.shown,
        "reason": variable.origin.reason,
    }


def _network(network: Network, allowlist: Allowlist | None) -> Any:
    allowed = allowlist.allowed if allowlist else ()
    return {
        **_some(network, "tier", "meaning", "rule"),
        "published": [_some(port, "host", "box") for port in network.published],
        "host_ports": [port.host for port in network.host_ports],
        "rejected": network.uplink.near if network.uplink else [],
        "allowed": [_some(row, "host", "ports", "group", "reason", "rule") for row in allowed],  # no ports: all
    }


def _guard(plan: Plan) -> Any:
    guard, waiting = plan.guard, plan.layered
    parts = {
        "read_only": [guarded for guarded in guard.held if guarded.path not in waiting],
        "lands_later": [guarded for guarded in guard.held if guarded.path in waiting],
        "opened": guard.opened,
        "cannot_be_held": guard.loose,
    }
    rows = {name: [_some(guarded, "path", "reason") for guarded in part] for name, part in parts.items()}
    return {**rows, "no_layers_because": guard.walls or None}


def dry_run_json(plan: Plan, walls: tuple[str, ...] = ()) -> str:
    operations = [[_word(word) for word in operation] for operation in bwrap_operations(plan)]
    uplink = plan.network.uplink
    pasta = [called_pasta(uplink.pasta), *uplink.options] if uplink else []
    return dump(
        {
            "uplink": {"pasta": pasta, "nft": uplink.nft, "ruleset": uplink.ruleset} if uplink else None,
            **({"read_only_instead_of_layers": walls} if walls else {}),
            "executable": plan.bwrap,
            "options": operations,
            "program": [_argument(word) for word in program_words(plan)],
            "environment": {one.name: None if one.secret else one.value for one in plan.environment if not one.late},
        }
    )


def _word(word: str | Data) -> Any:
    """The JSON of one argument. A descriptor is shown as the content that can be read from it."""
    if not isinstance(word, Data):
        return word
    try:
        return {"text": word.content.decode()}
    except UnicodeDecodeError:
        return {"hex": word.content.hex()}


def _argument(word: str) -> str | None:
    return None if secret_value(word) else word


def dump(value: dict[str, Any]) -> str:
    """One object that says who wrote it, and in which form. A field may be added; another form has another number."""
    # ASCII makes names with terminal codes or broken UTF-8 harmless.
    head = {"claudebox": __version__, "schema": SCHEMA}
    return json.dumps(head | value, indent=2, ensure_ascii=True) + "\n"
