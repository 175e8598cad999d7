"""The order of mounts: `hide` beats every grant, then the more specific path, then the later one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claudebox.model import HIDE, RO, RW, TMPFS, Mount, Origin
from claudebox.paths import is_below, is_inside
from claudebox.sandbox.mounts import arrange, find_appearances, find_holder

QUICK = settings(deadline=None, max_examples=100)

# Few names, so that paths meet; some are the beginning of others.
paths = st.lists(st.sampled_from(["a", "ab", "b", ".ssh"]), max_size=4).map(lambda names: "/" + "/".join(names))
grants = st.builds(
    lambda kind, path, source, rule: Mount(kind, path, Origin.of_rule(rule), source=source),
    st.sampled_from([RO, RW, TMPFS]),
    paths,
    paths,
    st.sampled_from(["one", "two", "three"]),
)
hides = paths.filter(lambda path: path != "/").map(lambda path: Mount(HIDE, path, Origin.of_rule("secret")))
many_grants, many_hides = st.lists(grants, max_size=12), st.lists(hides, max_size=4)


@pytest.mark.req("SAND-09")
@QUICK
@given(many_grants, many_hides)
def test_hide_is_never_lost(wanted: list[Mount], hidden: list[Mount]) -> None:
    arranged = arrange(wanted, hidden)
    for hide in hidden:
        decisive = find_holder(hide.path, arranged)
        assert decisive is not None
        assert decisive.kind == HIDE


@pytest.mark.req("SAND-09")
@QUICK
@given(many_grants, many_hides)
def test_nothing_below_a_hide_survives(wanted: list[Mount], hidden: list[Mount]) -> None:
    arranged = arrange(wanted, hidden)
    for hide in hidden:
        assert not [mount for mount in arranged if is_below(mount.path, hide.path)]
        assert not [mount for mount in arranged if mount.path == hide.path and mount.kind != HIDE]


@QUICK
@given(many_grants, many_hides)
def test_parents_come_first(wanted: list[Mount], hidden: list[Mount]) -> None:
    arranged = arrange(wanted, hidden)
    for number, mount in enumerate(arranged):
        assert not [later for later in arranged[number + 1 :] if is_below(mount.path, later.path)]


@QUICK
@given(many_grants, many_hides)
def test_each_path_is_mounted_once(wanted: list[Mount], hidden: list[Mount]) -> None:
    arranged = [mount.path for mount in arrange(wanted, hidden)]
    assert len(arranged) == len(set(arranged))


@QUICK
@given(many_grants)
def test_later_grant_wins(wanted: list[Mount]) -> None:
    last = {mount.path: mount for mount in wanted}
    assert {mount.path: mount for mount in arrange(wanted)} == last


@pytest.mark.req("SAND-09")
@QUICK
@given(many_grants, many_hides, hides)
def test_one_more_hide_never_adds_a_grant(wanted: list[Mount], hidden: list[Mount], more: Mount) -> None:
    before = {mount for mount in arrange(wanted, hidden) if mount.kind != HIDE}
    after = {mount for mount in arrange(wanted, [*hidden, more]) if mount.kind != HIDE}
    assert after <= before


@QUICK
@given(many_grants, many_hides, st.randoms())
def test_order_of_hides_does_not_matter(wanted: list[Mount], hidden: list[Mount], random: object) -> None:
    shuffled = sorted(hidden, key=lambda _: random.random())  # type: ignore[attr-defined]
    assert set(arrange(wanted, shuffled)) == set(arrange(wanted, hidden))


@pytest.mark.req("SAND-09")
@QUICK
@given(paths, many_grants)
def test_every_appearance_of_a_place_is_found(place: str, mounts: list[Mount]) -> None:
    found = find_appearances(place, mounts)
    for mount in mounts:
        if mount.kind in (RO, RW) and is_inside(place, mount.source):
            assert any(
                is_inside(path, mount.path) and path.endswith(place.removeprefix(mount.source)) for path in found
            )
    assert len(found) == len([mount for mount in mounts if mount.kind != TMPFS and is_inside(place, mount.source)])
