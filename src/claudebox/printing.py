"""Prints what needs no Plan: completions for shells, the manual page, profiles, the schema of the files with settings.

Each function takes the request and returns an exit status.
"""

from __future__ import annotations

from claudebox.host import read_host
from claudebox.settings.files.profiles import list_profiles
from claudebox.settings.words import OF_A_PROJECT, Request
from claudebox.terminal import output_style, show
from claudebox.view.as_json import dump
from claudebox.view.completion import completion
from claudebox.view.manual import manual_page
from claudebox.view.schema import schema_text
from claudebox.view.wishes import profiles_text


def print_profiles(request: Request) -> int:
    profiles = list_profiles(read_host())
    listed = [{"name": one.name, "description": one.description, "file": one.file} for one in profiles]
    show(dump({"profiles": listed}) if request.json else profiles_text(profiles, output_style()))
    return 0


def print_completion(request: Request) -> int:
    show(completion(dict(request.said)["completion"]))
    return 0


def print_manual(_: Request) -> int:
    show(manual_page())
    return 0


def print_schema(request: Request) -> int:
    show(schema_text(is_project=("schema", OF_A_PROJECT) in request.said))
    return 0
