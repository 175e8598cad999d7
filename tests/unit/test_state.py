"""Where things are kept below ~/.claudebox, as the module and the document say."""

import ast
from pathlib import Path

import pytest

import claudebox
from claudebox import state
from claudebox.errors import Problem
from claudebox.paths import is_inside
from claudebox.state import SHOWN, Below, Instance, State, find_state
from hosts.machine import Machine
from saying import gather, parse
from syntax import nodes

SOURCE = Path(claudebox.__file__).parent
DOCUMENT = SOURCE.parent.parent / "docs" / "state.md"
INSTANCE = Instance("instances/NAME", "/home/alice/shop")
SAMPLE = "anything"
HOME = "/home/alice"
FORMER = "~/.local/state/claudebox/places"


def paths(kind: type, of: object) -> list[str]:
    names = [name for name, value in vars(kind).items() if isinstance(value, Below)]
    return [getattr(of, name) for name in names]


def known() -> set[str]:
    """Every path that the module can give, without what hangs on a name."""
    below = {path.removeprefix("~/.claudebox/") for path in paths(State, SHOWN)}
    inside = {path.removeprefix("instances/NAME/") for path in paths(Instance, INSTANCE)}
    return below | inside | {f"{state.WRITABLE}*"}


def documented() -> set[str]:
    rows = [line.split("|")[1].strip() for line in DOCUMENT.read_text().splitlines() if line.startswith("| `")]
    return {row.strip("`").removesuffix("/") for row in rows}


def test_document_has_a_row_for_every_path() -> None:
    assert documented() == known()


def test_what_hangs_on_a_name_is_in_a_known_directory() -> None:
    for path in (SHOWN.package(SAMPLE), SHOWN.package_root(SAMPLE), SHOWN.closure((SAMPLE,))):
        assert is_inside(path, SHOWN.packages)
    assert is_inside(SHOWN.instance(SAMPLE).writable(SAMPLE), SHOWN.instances)


def test_layout_is_what_earlier_versions_left() -> None:
    """Names that are hashes cannot be seen in the document."""
    kept = State("/home/alice")
    shop = kept.instance("/home/alice/shop")
    assert shop.directory == "/home/alice/.claudebox/instances/c3085d9538be063a"
    assert shop.writable("/home/alice/shop") == f"{shop.directory}/writable-c3085d9538be063a"


@pytest.mark.req("FAIL-01")
def test_nothing_starts_if_others_can_turn_the_settings(tmp_path: Path) -> None:
    """Not even a box that needs no state of its own: it obeys the settings, too."""
    machine = Machine(tmp_path).plant("~/shop/\n~/.claudebox/")
    gather(machine.host(), parse(["--run", "true"]))
    kept = machine.root / "home/alice/.claudebox"
    kept.chmod(0o757)
    with pytest.raises(Problem, match="others can write"):
        gather(machine.host(), parse(["--run", "true"]))
    kept.chmod(0o700)
    (kept / "config.toml").touch(0o600)
    machine.owners["/home/alice/.claudebox/config.toml"] = 65534
    with pytest.raises(Problem, match="belongs to another user"):
        gather(machine.host(), parse(["--run", "true"]))
    (kept / "config.toml").unlink()
    kept.rename(machine.root / "data")
    kept.symlink_to("/data")
    with pytest.raises(Problem, match="but a symlink"):
        gather(machine.host(), parse(["--run", "true"]))


@pytest.mark.req("STATE-01", "FAIL-01")
def test_files_of_0_2_0_in_the_home_of_the_account_count_also_if_home_is_another(tmp_path: Path) -> None:
    """A file of a project can set HOME: what boxes could write was noted elsewhere, and nobody would know it."""
    machine = Machine(tmp_path).plant(f"{FORMER}\n/etc/passwd: alice:x:1000:1000::{HOME}:/bin/sh\\n\n/home/other/")
    machine.environ["HOME"] = "/home/other"
    with pytest.raises(Problem, match="kept its files"):
        find_state(machine.host())


@pytest.mark.req("STATE-01")
def test_variables_move_nothing(tmp_path: Path) -> None:
    machine = Machine(tmp_path).plant("~/shop/")
    machine.environ |= dict.fromkeys(("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"), f"{HOME}/elsewhere")
    assert find_state(machine.host()) == State(HOME)


def texts(path: Path) -> list[str]:
    """The texts of a file that are not docstrings or other sentences that stand alone."""
    prose = {id(node.value) for node in nodes(path) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in nodes(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
    ]


def test_nobody_else_spells_the_directory() -> None:
    spelled = {
        path.relative_to(SOURCE).as_posix()
        for path in sorted(SOURCE.rglob("*.py"))
        for text in texts(path)
        if ".claudebox/" in text or text.endswith(".claudebox")
    }
    assert spelled == {"paths.py", "commands/help.py"}  # help is read as it is written
