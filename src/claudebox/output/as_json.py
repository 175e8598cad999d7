"""What programs are told, as JSON: a Plan, and what each mode prints. A secret is null."""

from __future__ import annotations

import json
from typing import Any

from claudebox import __version__
from claudebox.host.programs import called_pasta
from claudebox.host.secrets import secret_value
from claudebox.model import FILE, Mount, Plan
from claudebox.output.section import Section, fields
from claudebox.sandbox.argv import Data, bwrap_operations, program_words

SCHEMA = 2  # goes up when a field changes its meaning or goes


def audit_json(plan: Plan, sections: tuple[Section, ...]) -> str:
    told: dict[str, Any] = {
        "project": plan.project,
        "mounts": [_mount(mount) for mount in plan.mounts],
        "environment": [
            {
                "name": one.name,
                "value": None if one.secret else one.value,
                "secret": one.secret or None,
                "rule": one.origin.shown,
                "reason": one.origin.reason,
            }
            for one in plan.environment
        ],
        "outside": {
            "variables": plan.outside.variables,
            "places": [fields(place, "path", "reason") for place in plan.outside.places],
        },
        "program": [_argument(word) for word in plan.program.argv],
        "findings": [fields(finding, "kind", "subject", "text") for finding in plan.findings],
    }
    for section in sections:
        if section.key:
            before, value = told.get(section.key), section.value
            told[section.key] = before | value if isinstance(before, dict) and isinstance(value, dict) else value
    return dump(told)


def _mount(mount: Mount) -> dict[str, object]:
    return {
        "kind": mount.kind,
        "path": mount.path,
        "source": mount.source or None,
        "content": mount.content.decode(errors="replace") if mount.kind == FILE else None,
        **({"size": mount.size} if mount.size else {}),
        "rule": mount.origin.shown,
        "reason": mount.origin.reason,
    }


def dry_run_json(plan: Plan, sections: tuple[Section, ...]) -> str:
    operations = [[_word(word) for word in operation] for operation in bwrap_operations(plan)]
    uplink = plan.network.uplink
    pasta = [called_pasta(uplink.pasta), *uplink.options] if uplink else []
    return dump(
        {
            "uplink": {"pasta": pasta, "nft": uplink.nft, "ruleset": uplink.ruleset} if uplink else None,
            **dict(field for section in sections for field in section.pasted),
            "executable": plan.bwrap,
            "options": operations,
            "program": [_argument(word) for word in program_words(plan)],
            "environment": {one.name: None if one.secret else one.value for one in plan.environment if not one.late},
        }
    )


def _word(word: str | Data) -> str | dict[str, str]:
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
