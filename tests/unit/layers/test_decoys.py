"""Decoys in a layer: what is given stays beside what a box made of it, and only what is merged can land."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from claudebox.layers.changes import Baseline, Changes
from claudebox.layers.decoys import GOES_WITH_IT, HELD, REPLACED, Decoy, Edited, lay_out, merged, place_of, stored
from claudebox.layers.store import Layer

pytestmark = pytest.mark.req("SEC-01")

REAL = "PORT=3000\nDB_PASSWORD=hunter2\n"
GIVEN = b"PORT=3000\nDB_PASSWORD=jdpfayb2\n"


@pytest.fixture
def layer(tmp_path: Path) -> Layer:
    project, directory = tmp_path.resolve() / "project", tmp_path.resolve() / "layer"
    (project / "app").mkdir(parents=True)
    (project / "app/.env").write_text(REAL)
    (directory / "upper").mkdir(parents=True)
    made = Layer("1", str(directory), str(project), "", Baseline(1 << 62, {}))
    lay_out(made, [Decoy("app/.env", GIVEN, 0o640)])
    return made


def leave(layer: Layer, content: bytes) -> None:
    """What a box does when it writes the file."""
    (Path(layer.upper) / "app").mkdir(exist_ok=True)
    (Path(layer.upper) / "app/.env").write_bytes(content)


def read(layer: Layer) -> Edited:
    return merged(layer, layer.read())


def test_decoy_has_the_modes_of_what_it_stands_for(layer: Layer) -> None:
    (Path(layer.project) / "app").chmod(0o750)
    lay_out(layer, [Decoy("app/.env", GIVEN, 0o640)])
    made = Path(place_of(layer)) / "app/.env"
    assert (made.stat().st_mode & 0o777, made.parent.stat().st_mode & 0o777) == (0o640, 0o750)


def test_edited_decoy_is_merged(layer: Layer) -> None:
    leave(layer, GIVEN + b"NEW=1\n")
    edited = read(layer)
    assert [change.path for change in edited.changes.changes] == ["app/.env"]
    assert edited.contents == {"app/.env": f"{REAL}NEW=1\n".encode()}


def test_decoy_that_is_another_file_since_the_list_was_made_is_not_merged(layer: Layer) -> None:
    """What is merged lands, and the diff reads the layer again, when everything may be back in its place."""
    leave(layer, GIVEN + b"NEW=1\n")
    changes, upper = layer.read(), Path(layer.upper)
    (upper / "app").rename(upper / "away")
    leave(layer, GIVEN + b"NEW=2\n")
    edited = merged(layer, changes)
    assert (edited.contents, edited.changes.changes) == ({}, ())
    assert edited.changes.never[0].reason == f"{HELD}: it was changed in the layer a moment ago"


def test_decoy_that_cannot_be_read_without_changing_it_is_not_merged(
    layer: Layer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would land with the mode of the real file, and whether it is what was shown could not be told."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)  # root reads it as it is
    leave(layer, GIVEN + b"NEW=1\n")
    (Path(layer.upper) / "app/.env").chmod(0)
    assert read(layer).contents == {}


def test_decoy_that_was_copied_up_as_it_is_is_no_change(layer: Layer) -> None:
    leave(layer, GIVEN)
    assert read(layer) == Edited(Changes((), ()), {}, {})


def test_decoy_that_was_given_stays_if_a_box_has_edited_it(layer: Layer) -> None:
    leave(layer, GIVEN + b"NEW=1\n")
    lay_out(layer, [Decoy("app/.env", b"OTHER=1\n", 0o640)])
    assert stored(layer) == {"app/.env": GIVEN}


def test_decoy_that_is_not_wanted_any_more_goes(layer: Layer) -> None:
    """What is revealed now, or is gone on the host, must not be hidden or invented by an old decoy."""
    lay_out(layer, [])
    assert stored(layer) == {}
    assert not os.listdir(place_of(layer))


def test_held_lines_do_not_fill_the_screen(layer: Layer) -> None:
    """An agent would push out of sight what else the layer holds."""
    leave(layer, GIVEN + b"".join(b"K%d_HOST=evil.example\n" % number for number in range(3000)))
    (never,) = read(layer).changes.never
    assert never.reason.endswith("K5_HOST names another host and 2994 more")


def test_held_lines_are_named_and_nothing_of_them_lands(layer: Layer) -> None:
    leave(layer, GIVEN.replace(b"jdpfayb2", b"mine") + b"X=${DB_PASSWORD}\n")
    edited = read(layer)
    assert edited.changes.changes == ()
    assert edited.contents == {}
    (never,) = edited.changes.never
    assert never.reason == f"{HELD}: DB_PASSWORD holds a secret, X refers to something else"


def test_symlink_in_its_place_never_lands(layer: Layer) -> None:
    (Path(layer.upper) / "app").mkdir()
    (Path(layer.upper) / "app/.env").symlink_to("/etc/passwd")
    edited = read(layer)
    assert edited.changes.changes == ()
    assert [one.reason for one in edited.changes.never] == [REPLACED]


def test_directory_around_it_that_was_replaced_is_set_apart(layer: Layer) -> None:
    (Path(layer.upper) / "app").write_text("a file now\n")
    assert read(layer).apart == {"app": GOES_WITH_IT}
