"""Arithmetic on paths keeps its laws."""

import posixpath

from hypothesis import given
from hypothesis import strategies as st

from claudebox.paths import absolute, expand_home, is_below, is_inside, move, parents, shorten_home

paths = st.lists(st.sampled_from(["a", "ab", "b", ".x", "ä"]), max_size=4).map(lambda names: "/" + "/".join(names))


def below(directory: str, path: str) -> str:
    return posixpath.join(directory, path.lstrip("/")).rstrip("/") or "/"


@given(paths, paths)
def test_inside_means_the_same_names_in_front(path: str, directory: str) -> None:
    names, above = [[name for name in text.split("/") if name] for text in (path, directory)]
    assert is_inside(path, directory) == (names[: len(above)] == above)
    assert is_below(path, directory) == (is_inside(path, directory) and path != directory)


@given(paths, paths, paths)
def test_inside_is_transitive(one: str, two: str, three: str) -> None:
    if is_inside(one, two) and is_inside(two, three):
        assert is_inside(one, three)


@given(paths, paths, paths)
def test_move_there_and_back(old: str, new: str, rest: str) -> None:
    path = below(old, rest)
    moved = move(path, old, new)
    assert moved == below(new, rest)
    assert is_inside(moved, new)
    assert move(moved, new, old) == path


@given(paths)
def test_parents_are_all_directories_above(path: str) -> None:
    expected = []
    above = path
    while (above := posixpath.dirname(above)) != "/":
        expected.append(above)
    assert parents(path) == expected


@given(paths.filter(lambda path: path != "/"), paths)
def test_short_form_means_the_same_place(home: str, path: str) -> None:
    assert expand_home(shorten_home(path, home), home) == path


def test_only_the_users_own_home_expands() -> None:
    assert expand_home("~bob/x", "/home/alice") == "~bob/x"
    assert shorten_home("/home/alice2", "/home/alice") == "/home/alice2"
    assert shorten_home("/etc", "/") == "/etc"


@given(paths, st.integers(1, 4))
def test_path_has_one_spelling_however_many_slashes_it_begins_with(path: str, slashes: int) -> None:
    """POSIX lets two of them stay, and what is compared by its beginning would be another place."""
    assert absolute("/" * slashes + path.lstrip("/"), "/cwd", "/home") == path
