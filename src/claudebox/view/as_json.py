"""What programs are told, as JSON: a Plan, and what each mode prints. A secret is null."""

from __future__ import annotations

import json

from claudebox import __version__
from claudebox.layers import Review, layered
from claudebox.model import FILE, Broker, EnvVar, Mount, Network, Nix, Plan, Uplink
from claudebox.trust.secret_values import secret_value
from claudebox.view.argv import Data, bwrap_operations, called_pasta, program_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from claudebox.allowed import Allowed, Names


SCHEMA = 1  # goes up when a field changes its meaning or goes


def audit_json(plan: Plan) -> str:
    return dump(
        {
            "project": plan.project,
            "mounts": [_mount(mount) for mount in plan.mounts],
            "environment": [_variable(variable) for variable in plan.environment],
            "packages": [
                {"reference": package.reference, "paths": list(package.paths), "rule": package.origin.shown}
                for package in plan.packages
            ],
            "network": _network(plan.network, plan.names),
            "nix": _nix(plan.nix),
            "outside": {
                "variables": plan.outside.variables,
                "places": [{"path": place.path, "reason": place.reason} for place in plan.outside.places],
            },
            **({"broker": _broker(plan.broker)} if plan.broker is not None else {}),
            **({"review": _review(plan.review)} if plan.review is not None else {}),
            "guard": _guard(plan),
            "program": [_argument(word) for word in plan.program.argv],
            "findings": [
                {"kind": finding.kind, "subject": finding.subject, "text": finding.text} for finding in plan.findings
            ],
        }
    )


def _broker(broker: Broker) -> Any:
    return {"credential": broker.shown, "limits": dict(broker.limits), "journal": broker.journal}


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


def _network(network: Network, names: Names | None) -> Any:
    return {
        "tier": network.tier,
        "meaning": network.meaning,
        "rule": network.origin.shown,
        "published": [{"host": port.host, "box": port.box} for port in network.published],
        "host_ports": [port.host for port in network.host_ports],
        "rejected": list(network.uplink.near) if network.uplink else [],
        "allowed": [_allowed(row) for row in names.allowed] if names else [],
        "denied": list(names.denied) if names else [],
    }


def _allowed(row: Allowed) -> Any:
    """A host, with its ports; none of them means all."""
    rule = row.origin.shown
    return {"host": row.host, "ports": list(row.ports), "group": row.group, "reason": row.reason, "rule": rule}


def _nix(nix: Nix | None) -> Any:
    return {"mode": nix.mode, "rule": nix.origin.shown, "holes": list(nix.holes)} if nix is not None else None


def _review(review: Review) -> Any:
    return {
        "land": review.land,
        "rule": review.origin.shown,
        "layers": [covered.path for covered in review.covered],
        "direct": [covered.path for covered in review.direct],
    }


def _guard(plan: Plan) -> Any:
    guard, waiting = plan.guard, layered(plan)
    parts = {
        "read_only": [guarded for guarded in guard.held if guarded.path not in waiting],
        "lands_later": [guarded for guarded in guard.held if guarded.path in waiting],
        "opened": guard.opened,
        "cannot_be_held": guard.loose,
    }
    rows = {
        name: [{"path": guarded.path, "reason": guarded.reason} for guarded in part] for name, part in parts.items()
    }
    return {**rows, "no_layers_because": guard.walls or None}


def dry_run_json(plan: Plan, walls: tuple[str, ...] = ()) -> str:
    # Whoever uses these options has nobody who knows the list of names: then the box reaches nothing.
    operations = [[_word(word) for word in operation] for operation in bwrap_operations(plan.replace(names=None))]
    return dump(
        {
            "uplink": _uplink(plan.network.uplink),
            **({"read_only_instead_of_layers": list(walls)} if walls else {}),
            "executable": plan.bwrap,
            "options": operations,
            "program": [_argument(word) for word in program_words(plan)],
            "environment": {
                variable.name: None if variable.secret else variable.value
                for variable in plan.environment
                if not variable.late
            },
        }
    )


def _uplink(uplink: Uplink | None) -> Any:
    if uplink is None:
        return None
    pasta = [called_pasta(uplink.pasta), *uplink.options]
    return {"pasta": pasta, "nft": uplink.nft, "ruleset": uplink.ruleset}


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
