"""The lines that messages and origins name."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claudebox.errors import Problem
from claudebox.settings.documents import Place
from saying import parse_file

names = st.sampled_from(["a", "b", "\\u0061", "", 'a\\"b'])
objects = st.recursive(
    st.sampled_from(["1", '"a"', "[]"]),
    lambda inner: st.lists(st.tuples(names, inner), max_size=3).map(
        lambda pairs: "{" + ", ".join(f'"{name}": {value}' for name, value in pairs) + "}"
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.lists(st.tuples(names, objects), max_size=3))
def test_repetition_in_json_is_always_found(pairs: list[tuple[str, str]]) -> None:
    text = "{" + ",\n".join(f'"{name}": {value}' for name, value in pairs) + "}"
    repeats: list[bool] = []

    def notice(found: list[tuple[str, Any]]) -> dict[str, Any]:
        repeats.append(len(dict(found)) < len(found))
        return dict(found)

    expected = json.loads(text, object_pairs_hook=notice)
    try:
        value = parse_file(text.encode(), "f", is_json=True).value
    except Problem:
        value = {"repeated": True}
    assert value == ({"repeated": True} if any(repeats) else expected)


IN_TOML = """\
# a comment with "quotes' and [brackets]
network = "inet"

env.A = "1" # A
hide = [
    # "not this"
    "~/a", '~/b',
    "~/b",
]
"publish" = [
  80,
  81,
]
[[mounts]]
host = "~/x"

[[mounts]]
  sandbox = '''
]]'''
  host = "~/y"
  host_2 = [{ a = "b" }]
"""
IN_JSON = """{
  "network": "inet",
  "env": {"A": "1",
          "B": "2"},
  "mounts": [
    {"host": "~/x"},
    {"sandbox": "/x",
     "host": "~/y"}
  ]
}"""


@pytest.mark.req("EXT-03")
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        *(
            (IN_TOML, path, line)
            for path, line in [
                (("network",), 2),
                (("env",), 4),
                (("env", "A"), 4),
                (("hide",), 5),
                (("hide", 0), 7),
                (("hide", 1), 7),
                (("hide", 2), 8),
                (("publish",), 10),
                (("publish", 1), 12),
                (("mounts",), 14),
                (("mounts", 0), 14),
                (("mounts", 0, "host"), 15),
                (("mounts", 1), 17),
                (("mounts", 1, "sandbox"), 18),
                (("mounts", 1, "host"), 20),
                (("mounts", 1, "host_2", 0), 21),
            ]
        ),
        *(
            (IN_JSON, path, line)
            for path, line in [
                (("network",), 2),
                (("env", "B"), 4),
                (("mounts",), 5),
                (("mounts", 0), 6),
                (("mounts", 1), 7),
                (("mounts", 1, "host"), 8),
            ]
        ),
    ],
)
def test_lines_of_an_example(text: str, path: tuple[Any, ...], line: int, newline: str) -> None:
    document = parse_file(text.replace("\n", newline).encode(), "f", is_json=text == IN_JSON)
    place: Place = document.place(path[0])
    for part in path[1:]:
        place = place.elements("an array")[part] if isinstance(part, int) else place.at(part)
    assert place.origin.shown == f"f:{line}"
