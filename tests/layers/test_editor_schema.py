"""The schema for editors knows the keys, types and choices that the program takes."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.shared_files import CONFIG_SCHEMA, PROJECT_SCHEMA, schema, shared_files

from claudebox.errors import Problem
from claudebox.features.table import SETTINGS
from claudebox.settings.files import said_in
from claudebox.settings.table import Setting
from saying import parse_file

CHECKOUT = Path(__file__).resolve().parent.parent.parent
PAGES = sorted([*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").rglob("*.md")])
OWN, PROJECT = schema(is_project=False), schema(is_project=True)
REFERENCE = re.compile(r"#:schema (\.\./schema\.json|\./schema\.json|\./\.claudebox\.schema\.json)\n")

# Documents that are right, and what makes each wrong: another key, type or choice.
RIGHT: list[dict[str, Any]] = [
    {"name": "aws", "description": "", "network": "inet", "profiles": ["go"]},
    {"publish": [8080, "9090:90", "00080"], "host_ports": [1, 65535]},
    {"env": {"A_1": "two\nlines", "_": ""}, "extra_env_passthrough": ["PGUSER"], "drop_env": ["B"]},
    {"mounts": [{"host": "~/a"}, {"host": "$HOME/${X_1}b", "sandbox": "/b", "mode": "rw", "optional": False}]},
    {"memory": "4G", "pids": "500", "cpu": "1.5", "auth_limits": ["requests=5", "minutes=090"]},
    {"bwrap": "/opt/bwrap", "claude": "$HOME/claude", "claude_args": ["", "two\nlines"]},
]
WRONG: list[dict[str, Any]] = [
    *({"netwrok": "inet"}, {"network": "wifi"}, {"name": 5}, {"hide": "a"}, {"hide": [5]}, {"env": {"A": 5}}),
    *({"publish": [65536]}, {"host_ports": ["80"]}, {"memory": 4}, {"mounts": [{"mode": "ro"}]}),
    *({"mounts": [{"host": "/b", "optional": "yes"}]}, {"mounts": [{"host": "/b", "path": "/c"}]}),
    {"mounts": [{"host": "/b", "mode": "w"}]},
]


def by_schema(document: object, *, is_project: bool = False) -> bool:
    """What a validator says, with the draft that the schema names."""
    known = PROJECT if is_project else OWN
    return bool(jsonschema.validators.validator_for(known)(known).is_valid(document))


def refusal(document: dict[str, Any], *, is_project: bool = False) -> str:
    """Why the program refuses a document, or nothing. It is given as JSON, which can say everything that TOML can."""
    file = ".claudebox.toml" if is_project else "aws.json"
    try:
        said_in(parse_file(json.dumps(document).encode(), file, is_json=True, is_project=is_project))
    except Problem as problem:
        return problem.message
    return ""


@pytest.mark.parametrize(("place", "expected"), [(CONFIG_SCHEMA, OWN), (PROJECT_SCHEMA, PROJECT)])
def test_file_of_a_package_is_a_schema(place: str, expected: object) -> None:
    known = json.loads(shared_files()[place])
    assert known == expected
    jsonschema.Draft7Validator.check_schema(known)
    assert known["$schema"] == jsonschema.Draft7Validator.META_SCHEMA["$schema"]


def test_schema_has_every_key_with_its_help() -> None:
    keys = {setting.key for setting in SETTINGS if setting.key} | {"name", "description"}
    assert OWN["properties"].keys() == keys
    users = {setting.key for setting in SETTINGS if setting.is_users}
    assert PROJECT["properties"].keys() == keys - users
    assert [key for key, row in OWN["properties"].items() if not row["description"]] == []


@pytest.mark.parametrize("document", RIGHT, ids=str)
def test_what_the_program_takes_is_right_for_editors(document: dict[str, Any]) -> None:
    assert (refusal(document), by_schema(document)) == ("", True)


@pytest.mark.parametrize("document", WRONG, ids=repr)
def test_what_the_program_refuses_is_wrong_for_editors(document: dict[str, Any]) -> None:
    assert (bool(refusal(document)), by_schema(document)) == (True, False)


@pytest.mark.parametrize("setting", [one for one in SETTINGS.by_key.values() if one.is_users], ids=lambda s: s.key)
def test_what_a_project_cannot_say_is_wrong_for_editors(setting: Setting[object]) -> None:
    document = {setting.key: setting.choices[0] if setting.choices else "/opt/it"}
    assert (refusal(document), by_schema(document)) == ("", True)
    assert "a project cannot set it" in refusal(document, is_project=True)
    assert not by_schema(document, is_project=True)


WORDS = st.one_of(
    st.sampled_from([word for setting in SETTINGS for word in setting.choices]),
    st.sampled_from(["requests=5", "65535", "8080:80", "1.5", "600", "2G", "", "~/a", "$HOME"]),
)
VALUES = st.one_of(
    WORDS,
    st.integers(-1, 70000),
    st.lists(st.one_of(WORDS, st.integers(0, 70000)), max_size=2),
    st.dictionaries(WORDS, WORDS, max_size=2),
    st.lists(st.fixed_dictionaries({"host": WORDS}, optional={"mode": WORDS, "optional": st.booleans()}), max_size=2),
)


@given(st.dictionaries(st.sampled_from([*SETTINGS.by_key, "description"]), VALUES, max_size=2), st.booleans())
def test_what_the_program_takes_is_never_wrong_for_editors(document: dict[str, Any], is_project: bool) -> None:
    assert refusal(document, is_project=is_project) or by_schema(document, is_project=is_project)


def examples() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        blocks = re.findall(r"^```toml\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
        found += [(f"{page.relative_to(CHECKOUT)}:{number}", block) for number, block in enumerate(blocks, 1)]
    return found


@pytest.mark.parametrize(("where", "text"), examples(), ids=lambda value: value if "md:" in value else "")
def test_example_in_the_documents_names_its_schema_and_holds_it(where: str, text: str) -> None:
    named = REFERENCE.match(text)
    assert named, f"{where} begins with no #:schema"
    is_project = named[1] == "./.claudebox.schema.json"
    said_in(parse_file(text.encode(), "example.toml", is_json=False, is_project=is_project))
    assert by_schema(tomllib.loads(text), is_project=is_project)


def test_there_are_examples_of_every_kind() -> None:
    assert {found[1] for _, text in examples() if (found := REFERENCE.match(text))} == {
        "../schema.json",
        "./schema.json",
        "./.claudebox.schema.json",
    }
