"""Whatever two boxes are: what the second one has more is asked about, and what it has less is not."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from claudebox.consent import agreement, write_agreements
from claudebox.model import FROM_HOST, HIDE, RW, EnvVar, Finding, Login, Mount, Network, Origin, Plan
from claudebox.paths import is_below
from claudebox.sandbox.mounts import arrange
from claudebox.settings.table import TIERS
from consent.boxes import (
    QUICK,
    findings,
    granted,
    granted_anew,
    grants,
    hides,
    is_agreed,
    logins,
    names,
    networks,
    news,
    plans,
    read,
    variables,
    with_grant,
)

pytestmark = pytest.mark.req("UX-02")


@QUICK
@given(plans)
def test_same_box_is_agreed(plan: Plan) -> None:
    assert is_agreed(plan, plan)


@QUICK
@given(plans)
def test_nothing_is_agreed_at_first(plan: Plan) -> None:
    assert not is_agreed(plan)


@QUICK
@given(plans, grants)
def test_one_more_mount_is_not_agreed(plan: Plan, mount: Mount) -> None:
    """Unless the same was there, or the like with more rights."""
    held = [old for old in plan.mounts if (old.source, old.path) == (mount.source, mount.path)]
    assume(not any(old.kind in (mount.kind, RW) for old in held))
    assume("1.2.3" not in mount.path + mount.source or mount.origin.shown != "claude")
    # A hide in the way would win.
    assume(not any(old.kind == HIDE and (is_below(mount.path, old.path)) for old in plan.mounts))
    more = with_grant(plan, mount)
    assert news(more, plan).mounts == (mount,)


@QUICK
@given(plans, variables)
def test_one_more_variable_is_not_agreed(plan: Plan, variable: EnvVar) -> None:
    assume(variable.name not in [old.name for old in plan.environment])
    more = plan.replace(environment=(*plan.environment, variable))
    assert news(more, plan).variables == (variable,)


@QUICK
@given(plans, findings)
def test_one_more_finding_is_not_agreed(plan: Plan, finding: Finding) -> None:
    assume(finding not in plan.findings)
    more = plan.replace(findings=(*plan.findings, finding))
    assert news(more, plan).findings == (finding,)


@QUICK
@given(plans, networks)
def test_network_that_reaches_more_is_not_agreed(plan: Plan, other: Network) -> None:
    changed = granted_anew(plan.replace(network=other, grants=granted(other, None)), plan)
    is_wider = TIERS.index(other.tier) < TIERS.index(plan.network.tier)
    held = {(port.host, port.box) for port in plan.network.published}
    reached = {port.host for port in plan.network.host_ports}
    assert changed == [
        *([f"network {other.tier}"] if is_wider else []),
        *(f"publish {port.host}:{port.box}" for port in other.published if (port.host, port.box) not in held),
        *(f"host-port {port.host}" for port in other.host_ports if port.host not in reached),
    ]


@QUICK
@given(plans, logins)
def test_another_login_is_not_agreed(plan: Plan, login: Login | None) -> None:
    old, new = (one.file if one is not None else "" for one in (plan.get(Login), login))
    changed = granted_anew(plan.replace(grants=granted(plan.network, login)), plan)
    assert changed == ([f"login {new}"] if new and new != old else [])


@QUICK
@given(plans, st.data())
def test_less_is_agreed(plan: Plan, data: st.DataObject) -> None:
    """As long as what goes covers nothing."""
    bare = [
        mount
        for mount in plan.mounts
        if mount.kind in FROM_HOST and not any(is_below(mount.path, other.path) for other in plan.mounts)
    ]
    gone = data.draw(st.lists(st.sampled_from(bare), max_size=3)) if bare else []
    less = plan.replace(
        mounts=tuple(mount for mount in plan.mounts if mount not in gone),
        environment=plan.environment[: data.draw(st.integers(0, 3))],
        findings=plan.findings[: data.draw(st.integers(0, 3))],
        grants=granted(Network("none", "", Origin.of_rule("")), None),
    )
    assert is_agreed(less, plan)


@QUICK
@given(plans, grants, names)
def test_lost_hide_is_not_agreed_where_it_hid_something(plan: Plan, mount: Mount, name: str) -> None:
    hide = Mount(HIDE, f"{mount.path}/hidden {name}", Origin.of_option("--hide"))
    shown = plan.replace(mounts=arrange([*(old for old in plan.mounts if old.kind != HIDE), mount]))
    hidden = shown.replace(mounts=arrange(shown.mounts, [hide]))
    assert news(shown, hidden).lost
    assert is_agreed(hidden, shown)


@QUICK
@given(plans, hides)
def test_one_more_hide_is_agreed(plan: Plan, hide: Mount) -> None:
    less = plan.replace(mounts=arrange([mount for mount in plan.mounts if mount.kind != HIDE], [hide]))
    with_both = plan.replace(
        mounts=arrange(
            [mount for mount in plan.mounts if mount.kind != HIDE],
            [*(mount for mount in plan.mounts if mount.kind == HIDE), hide],
        )
    )
    assert is_agreed(with_both, plan)
    assert is_agreed(with_both, less)


@QUICK
@given(plans, plans)
def test_box_is_agreed_if_one_of_several_covers_it(one: Plan, other: Plan) -> None:
    assert is_agreed(one, one, other)
    assert is_agreed(other, one, other)


@QUICK
@given(plans)
def test_file_says_the_same_when_read_again(plan: Plan) -> None:
    content = write_agreements([agreement(plan)])
    assert read(content) == (frozenset(agreement(plan)),)
    assert content.decode().replace("\n", "").isprintable()


@QUICK
@given(plans, st.data())
def test_part_of_the_file_is_no_agreement(plan: Plan, data: st.DataObject) -> None:
    content = write_agreements([agreement(plan)])
    assert read(content[: data.draw(st.integers(0, len(content) - 1))]) == ()


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"end\n", b"network full\n", b"\0" * 100])
def test_what_is_no_agreement(content: bytes) -> None:
    assert read(content) == ()
