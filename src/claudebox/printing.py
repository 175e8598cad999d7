"""Prints what other programs read: completions for shells, the manual page, the schema of the files with settings.

Each function takes the request and returns an exit status.
"""

from __future__ import annotations

from claudebox.settings.words import OF_A_PROJECT, Request
from claudebox.terminal import show
from claudebox.view.completion import completion
from claudebox.view.manual import manual_page
from claudebox.view.schema import schema_text


def print_completion(request: Request) -> int:
    show(completion(dict(request.said)["completion"]))
    return 0


def print_manual(_: Request) -> int:
    show(manual_page())
    return 0


def print_schema(request: Request) -> int:
    show(schema_text(is_project=("schema", OF_A_PROJECT) in request.said))
    return 0
