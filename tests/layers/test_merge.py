"""However the layers are ordered: what takes away is never outvoted, and nobody gets more by taking away."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from claudebox.errors import Problem
from claudebox.features.table import SETTINGS
from claudebox.model import BY_DEFAULT, FROM_HOST, RO, RW, Login, Origin, Plan, Port
from claudebox.paths import is_inside, move
from claudebox.plan import make_plan
from claudebox.sandbox.mounts import find_holder
from claudebox.settings import PROJECT_FILE, EnvWish, MountWish, Statement, Word
from claudebox.settings.gather import merge
from claudebox.settings.table import AUTH, DROP_ENV, ENV, HIDES, MOUNTS, NETWORK, PUBLISH, TIERS
from claudebox.settings.types import VALUE
from hosts.machine import Machine, debian
from saying import gather, parse

QUICK = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
HOME = "/home/alice"
PLACES = [
    f"{HOME}/{name}"
    for name in ("work", "work/a", "work/a/b", "work/a/b/file", "work/c", "link", "shop/sub", "shop/sub/x", "shop/.rc")
]
BOX_PLACES = ["", "/opt/one", "/opt/one/two", "/opt/two", f"{HOME}/elsewhere"]
NAMES = ["A", "B", "EDITOR", "TERM", "LANG"]
ORIGINS = [
    Origin.of_file("~/.claudebox/config.toml", 1),
    Origin.of_file("~/.claudebox/profiles/p.toml", 2),
    Origin.of_file(PROJECT_FILE, 3, is_project=True),
    Origin.of_option("--option"),
]

origins = st.sampled_from(ORIGINS)
mounts = st.builds(
    lambda access, source, place, origin: Statement(MOUNTS, MountWish(access, source, place, origin)),
    st.sampled_from([RO, RW]),
    st.sampled_from(PLACES),
    st.sampled_from(BOX_PLACES),
    origins,
)
hides = st.builds(lambda path, origin: Statement(HIDES, Word(path, origin)), st.sampled_from(PLACES), origins)
drops = st.builds(lambda name, origin: Statement(DROP_ENV, Word(name, origin)), st.sampled_from(NAMES), origins)
variables = st.builds(
    lambda name, value, origin: Statement(ENV, EnvWish(name, value, origin)),
    st.sampled_from(NAMES),
    st.sampled_from([None, "1", "2"]),
    origins,
)
tiers = st.builds(
    lambda tier, origin: Statement(NETWORK, Word(tier, origin)), st.sampled_from(["full", "none"]), origins
)
logins = st.builds(
    lambda how, origin: Statement(AUTH, Word(how, origin)), st.sampled_from(["passthrough", "none"]), origins
)
grants = st.lists(mounts | variables | tiers | logins, max_size=6)
takings = st.lists(hides | drops, min_size=1, max_size=3)
everything = st.lists(mounts | variables | tiers | logins | hides | drops, max_size=8)


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    with tempfile.TemporaryDirectory(prefix="claudebox-machine-") as root:
        made = debian(Path(root), environ=dict.fromkeys(NAMES, "x"), uid=os.getuid())
        made.plant("~/work/a/b/file: x\n~/work/c: x\n~/link -> work/a\n~/shop/sub/x: x\n~/shop/.rc: x")
        yield made


def planned(machine: Machine, said: list[Statement]) -> Plan | None:
    """None if it is refused: then nothing enters at all."""
    try:
        return make_plan(machine.host(), parse([]), merge(said))
    except Problem:
        return None


def readable(plan: Plan, host_path: str) -> list[str]:
    """Where the box shows a place of the host, or something below it."""
    shown = [
        move(host_path, mount.source, mount.path) if is_inside(host_path, mount.source) else mount.path
        for mount in plan.mounts
        if mount.kind in FROM_HOST and (is_inside(host_path, mount.source) or is_inside(mount.source, host_path))
    ]
    deciding = {path: find_holder(path, plan.mounts) for path in shown}
    return [path for path, mount in deciding.items() if mount is not None and mount.kind in FROM_HOST]


def entering(plan: Plan) -> set[tuple[str, ...]]:
    """All that a box gets: what it can read and write at which place, its variables, its network, its login."""
    files = {(mount.kind, mount.path, mount.source) for mount in plan.mounts if mount.kind in FROM_HOST}
    named = {("variable", variable.name, variable.value) for variable in plan.environment}
    reach = {("tier", tier) for tier in TIERS[TIERS.index(plan.network.tier) :]}
    return {*files, *named, *reach, *({("login", login.place)} if (login := plan.get(Login)) else ())}


@pytest.mark.req("EXT-01", "EXT-03")
@QUICK
@given(data=st.data(), granted=grants, hidden=st.lists(hides, min_size=1, max_size=3))
def test_hidden_path_is_never_readable(
    machine: Machine, data: st.DataObject, granted: list[Statement], hidden: list[Statement]
) -> None:
    said = data.draw(st.permutations([*granted, *hidden]))
    plan = planned(machine, said)
    if plan is None:
        return
    tree = machine.host().tree
    for hide in hidden:
        assert isinstance(hide.value, Word)
        assert readable(plan, tree.resolve(hide.value.text) or hide.value.text) == []


def test_hidden_path_would_be_readable_otherwise(machine: Machine) -> None:
    """Or else the test above would prove nothing."""
    origin = Origin.of_option("--option")
    plan = planned(machine, [Statement(MOUNTS, MountWish(RO, f"{HOME}/link", "/opt/one", origin))])
    assert plan is not None
    assert readable(plan, f"{HOME}/work/a/b") == ["/opt/one/b"]
    assert readable(plan, f"{HOME}/work") == ["/opt/one"]
    assert readable(plan, f"{HOME}/shop/.rc") == [f"{HOME}/shop/.rc"]


@pytest.mark.req("EXT-01", "ENV-01")
@QUICK
@given(data=st.data(), granted=grants, dropped=st.lists(drops, min_size=1, max_size=3))
def test_dropped_variable_never_enters(
    machine: Machine, data: st.DataObject, granted: list[Statement], dropped: list[Statement]
) -> None:
    plan = planned(machine, data.draw(st.permutations([*granted, *dropped])))
    names = {variable.name for variable in plan.environment} if plan else set()
    assert names.isdisjoint(drop.value.text for drop in dropped if isinstance(drop.value, Word))


@pytest.mark.req("EXT-01")
@QUICK
@given(data=st.data(), said=everything, more=takings)
def test_taking_away_adds_nothing(
    machine: Machine, data: st.DataObject, said: list[Statement], more: list[Statement]
) -> None:
    before = planned(machine, said)
    place = data.draw(st.integers(0, len(said)))
    after = planned(machine, [*said[:place], *more, *said[place:]])
    if before is not None and after is not None:
        assert entering(after) <= entering(before)
    if before is None:
        assert after is None, "what was refused is not let in by a hide"


@pytest.mark.req("EXT-03", "NET-03")
@QUICK
@given(everything)
def test_last_value_wins(said: list[Statement]) -> None:
    merged = merge(said)
    last = {one.setting.name: one.value for one in said if one.setting.kind == VALUE}
    assert merged[NETWORK] == last.get("network", Word("full", BY_DEFAULT))
    assert merged[AUTH] == last.get("auth", Word("passthrough", BY_DEFAULT))


def test_every_setting_of_a_file_has_a_field_and_a_default_that_can_be_said() -> None:
    defaults = merge([])
    for setting in SETTINGS.by_key.values():
        default: Any = defaults[setting]
        assert default in ((), None) or default.text in setting.choices, setting.name


@pytest.mark.req("EXT-03")
@QUICK
@given(everything)
def test_said_twice_is_said_once(said: list[Statement]) -> None:
    assert merge([*said, *said]) == merge(said)


@pytest.mark.req("EXT-03")
def test_lists_add_up_in_the_order_of_the_layers() -> None:
    one, two = Port(80, 80, Origin.of_rule("a")), Port(81, 81, Origin.of_rule("b"))
    assert merge([Statement(PUBLISH, one), Statement(PUBLISH, two), Statement(PUBLISH, one)])[PUBLISH] == (
        one,
        two,
    )


# --- a project's file by itself


words = st.sampled_from(["a", "~/work", "/opt/x", "A", "EDITOR", "TERM", "python", "--model", "."])
ports = st.integers(1, 65535)


def array(values: st.SearchStrategy[object]) -> st.SearchStrategy[str]:
    return st.lists(values, max_size=3).map(lambda found: f"[{', '.join(map(str, found))}]")


def quoted(texts: st.SearchStrategy[str]) -> st.SearchStrategy[object]:
    return texts.map(lambda text: f'"{text}"')


files = st.fixed_dictionaries(
    {},
    optional={
        "network": quoted(st.sampled_from(TIERS)),
        "auth": quoted(st.sampled_from(["passthrough", "none"])),
        "hide": array(quoted(st.sampled_from([*PLACES, "sub", ".env", "/etc", "/usr/lib", "~/.claude", "gone"]))),
        "drop_env": array(quoted(st.sampled_from([*NAMES, "SSL_CERT_FILE", "CLAUDE_CONFIG_DIR"]))),
        "env": st.sampled_from(['{ A = "9" }', '{ PATH = "/opt/x" }', '{ NEW = "1", LD_PRELOAD = "/x.so" }']),
        "extra_env_passthrough": array(quoted(st.sampled_from([*NAMES, "OTHER"]))),
        "mounts": array(st.sampled_from([f'{{ host = "{place}", mode = "rw" }}' for place in PLACES])),
        "publish": array(ports),
        "host_ports": array(ports),
        "path": array(quoted(words)),
        "claude_args": array(quoted(words)),
        "profiles": array(quoted(st.sampled_from(["strict", "aws-readonly", "default"]))),
        "packages": array(quoted(words)),
    },
)
own_files = st.sampled_from(
    [
        "",
        'network = "inet"',
        'network = "none"\nhost_ports = [5432]',
        'auth = "none"\nextra_env_passthrough = ["A"]',
        'mounts = [{ host = "~/work", mode = "rw" }]\nhide = ["~/work/c"]\ndrop_env = ["B"]',
    ]
)


@pytest.mark.req("EXT-01")
@QUICK
@given(keys=files, own=own_files)
def test_project_file_by_itself_adds_nothing(machine: Machine, keys: dict[str, str], own: str) -> None:
    machine.plant("/usr/bin/pasta*\n/usr/sbin/nft*\n~/.claudebox/")
    own_file = machine.root / "home/alice/.claudebox/config.toml"
    project_file = machine.root / "home/alice/shop" / PROJECT_FILE
    own_file.write_text(own)
    project_file.unlink(missing_ok=True)
    try:
        before = machine.plan()
        project_file.write_text("".join(f"{key} = {value}\n" for key, value in keys.items()))
        try:
            after = machine.plan()
        except Problem:
            return
        judged = gather(machine.host(), parse([])).project
    finally:
        own_file.unlink()
        project_file.unlink(missing_ok=True)
    itself = f"{HOME}/shop/{PROJECT_FILE}"
    # A tier of its own has files of its own for its names and addresses.
    made_by_tier = {"/etc/resolv.conf", "/etc/hosts"}
    new = {one for one in entering(after) - entering(before) if one[1] not in made_by_tier}
    assert new <= {(RO, itself, itself)}
    assert (after.bwrap, after.program, after.wrapper, after.kernel) == (
        *(before.bwrap, before.program),
        *(before.wrapper, before.kernel),
    )
    assert TIERS.index(after.network.tier) >= TIERS.index(before.network.tier)
    assert set(after.network.published) <= set(before.network.published)
    assert set(after.network.host_ports) <= set(before.network.host_ports)
    if after.network.uplink is not None:
        assert (after.network.uplink.pasta, after.network.uplink.nft) == ("/usr/bin/pasta", "/usr/sbin/nft")
    assert judged is not None
    assert {one.setting.name for one in judged.tightening} <= {"hide", "drop_env", "network", "auth"}
