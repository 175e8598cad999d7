"""Which toolchains of a home are in the box, and what of them is not: a made-up home for each row."""

import pytest

from claudebox.features.toolchains import RULE, SHIMS
from claudebox.host.secrets import SECRET_PLACES
from claudebox.host.toolchains import TOKENS, TOOLCHAINS, Toolchain
from claudebox.model import FILE, HIDE, RO, SYMLINK, Plan
from claudebox.paths import is_inside
from hosts.machine import Machine

pytestmark = pytest.mark.req("WORK-01", "SAND-10")

SYSTEM = "/usr/local/bin:/usr/bin:/bin"
HOME = "/home/alice"
PROGRAM = "\\x7fELF"


def with_path(machine: Machine, *entries: str) -> Machine:
    machine.environ["PATH"] = ":".join([*(entry.replace("~", HOME) for entry in entries), SYSTEM])
    return machine


def shown(plan: Plan, kind: str = RO) -> list[str]:
    found = [mount for mount in plan.mounts if mount.origin.is_rule(RULE) and mount.kind == kind]
    return [mount.path.replace(HOME, "~") for mount in found]


def path_of(plan: Plan) -> list[str]:
    (value,) = [variable.value for variable in plan.environment if variable.name == "PATH"]
    return value.replace(HOME, "~").split(":")


def variable(plan: Plan, name: str) -> str:
    return next((one.value.replace(HOME, "~") for one in plan.environment if one.name == name), "")


def example(row: Toolchain) -> str:
    """A tree of this row, with a version in the place of each `*`."""
    tree = f"{row.root}/{row.tree}".rstrip("/")
    return tree.replace("candidates/*", "candidates/java").replace("go*", "go1.22").replace("*", "1.2.3")


@pytest.mark.parametrize("row", TOOLCHAINS, ids=lambda row: f"{row.name} {row.root}")
def test_each_row_shows_its_tree_and_nothing_beside_it(machine: Machine, row: Toolchain) -> None:
    tree = example(row)
    programs = tree if tree.endswith("/bin") else f"{tree}/bin"
    machine.plant(f"{programs}/tool*: {PROGRAM}\n{row.root}-beside/file\n{row.root}/../beside")
    machine.plant("\n".join(f"{tree}/{name}: token" for name in (*TOKENS, *filter(None, (row.mark,)))))
    plan = with_path(machine, programs).plan("--run", "true")
    assert shown(plan) == [tree]
    assert path_of(plan)[0] == programs
    hidden = [mount.path.replace(HOME, "~") for mount in plan.mounts if mount.kind == HIDE]
    assert {f"{tree}/{name}" for name in TOKENS} <= {*hidden}
    if row.sets:
        assert variable(plan, row.sets) == tree


def test_programs_below_usr_local_come_by_themselves(machine: Machine) -> None:
    """The tarball of Go tells people to have them on PATH. Where there is no /usr, there is nothing to find."""
    machine.plant(f"/usr/local/go/bin/go*: {PROGRAM}")
    with_path(machine, "/usr/local/go/bin", "/usr/local/gone", "/srv/bin", "/usr/local/../../srv/bin")
    plan = machine.plan("--run", "true")
    assert (shown(plan), path_of(plan)[0]) == ([], "/usr/local/go/bin")
    assert {"/usr/local/gone", "/srv/bin"}.isdisjoint(path_of(plan))
    assert "/usr/local/go/bin" not in path_of(machine.plan("--toolchains", "off", "--run", "true"))


@pytest.mark.req("SAND-09")
def test_no_row_shows_a_secret_place() -> None:
    for row in TOOLCHAINS:
        tree = f"{row.root}/{row.tree}".rstrip("/")
        named = [place for place, _ in SECRET_PLACES if is_inside(tree, place) or is_inside(place, tree)]
        assert named == [], row.name


def test_programs_come_in_the_hosts_order_before_the_systems(machine: Machine) -> None:
    machine.plant(
        "~/.nvm/versions/node/v22.1.0/bin/node*\n~/.bun/bin/bun*\n~/.deno/bin/deno*\n~/.local/bin/other*: #!/bin/sh"
    )
    machine.environ["PATH"] = f"{HOME}/.bun/bin:{HOME}/.nvm/versions/node/v22.1.0/bin:{SYSTEM}:{HOME}/.deno/bin"
    path = path_of(machine.plan("--run", "true"))
    assert path[:2] == ["~/.bun/bin", "~/.nvm/versions/node/v22.1.0/bin"]
    assert path[-1] == "~/.deno/bin"  # where the system has one of that name, the host runs that


def test_directory_that_no_row_knows_stays_outside(machine: Machine) -> None:
    machine.plant("~/scripts/deploy*: #!/bin/sh\nTOKEN=x\n~/.config/tool/bin/tool*")
    plan = with_path(machine, "~/scripts", "~/.config/tool/bin").plan("--run", "true")
    assert (shown(plan), [entry for entry in path_of(plan) if "scripts" in entry or "config" in entry]) == ([], [])


def test_fnm_is_found_through_the_link_of_its_shell(machine: Machine) -> None:
    machine.plant("~/.local/share/fnm/node-versions/v20.0.0/installation/bin/node*")
    machine.plant("/run/user/1000/fnm_multishells/7_1 -> ~/.local/share/fnm/node-versions/v20.0.0/installation")
    plan = with_path(machine, "/run/user/1000/fnm_multishells/7_1/bin").plan("--run", "true")
    assert shown(plan) == ["~/.local/share/fnm/node-versions/v20.0.0/installation"]
    assert path_of(plan)[0] == "~/.local/share/fnm/node-versions/v20.0.0/installation/bin"


def test_variable_says_where_the_root_is(machine: Machine) -> None:
    machine.plant("~/tools/nvm/versions/node/v22.1.0/bin/node*")
    machine.environ["NVM_DIR"] = f"{HOME}/tools/nvm"
    assert shown(with_path(machine, "~/tools/nvm/versions/node/v22.1.0/bin").plan("--run", "true")) == [
        "~/tools/nvm/versions/node/v22.1.0"
    ]


@pytest.mark.parametrize("root", ["/", "/home", HOME, f"{HOME}/..", "relative"])
def test_variable_cannot_name_the_home_or_what_is_above(machine: Machine, root: str) -> None:
    machine.plant("~/versions/node/v1/bin/node*\n~/bin/tool*")
    machine.environ.update({"NVM_DIR": root, "N_PREFIX": root, "BUN_INSTALL": root})
    assert shown(with_path(machine, "~/versions/node/v1/bin", "~/bin").plan("--run", "true")) == []


@pytest.mark.parametrize(
    ("written", "text", "version"),
    [
        ("~/shop/.python-version", "3.11.7\\n", "3.11.7"),
        ("~/.python-version", "3.12\\n", "3.12.10"),
        ("~/.pyenv/version", "3.12.9", "3.12.9"),
        ("~/shop/.python-version", "# mine\\n3.12.9\\n", "3.12.9"),
    ],
)
def test_shims_choose_the_version_of_the_project(machine: Machine, written: str, text: str, version: str) -> None:
    machine.plant("\n".join(f"~/.pyenv/versions/{one}/bin/python*" for one in ("3.11.7", "3.12.9", "3.12.10")))
    machine.plant(f"~/.pyenv/shims/python*: #!/bin/sh\n{written}: {text}\n~/.pyenv/version: 3.11.7")
    plan = with_path(machine, "~/.pyenv/shims").plan("--run", "true")
    assert shown(plan) == [f"~/.pyenv/versions/{version}"]
    assert path_of(plan)[0] == f"~/.pyenv/versions/{version}/bin"


@pytest.mark.parametrize(
    "text", ["..", "../../.ssh", "../../.bun", "/etc", "", "system", "\\x1b[2J", "x/../../y", "a" * 300]
)
def test_file_of_the_project_chooses_among_versions_and_nothing_else(machine: Machine, text: str) -> None:
    machine.plant(
        f"~/.pyenv/versions/3.11.7/bin/python*\n~/.pyenv/shims/python*\n~/shop/.python-version: {text}\n~/.ssh/bin/x*"
        "\n~/.bun/bin/x*"
    )
    assert shown(with_path(machine, "~/.pyenv/shims").plan("--run", "true")) == []


@pytest.mark.parametrize(
    ("name", "files", "expected"),
    [
        ("asdf", ("~/shop/.tool-versions: nodejs 20.1.0\\nruby 3.3.0 system\\n",), ["nodejs/20.1.0", "ruby/3.3.0"]),
        (
            "asdf",
            ("~/.tool-versions: ruby 3.3.0\\n", "~/shop/.tool-versions: nodejs 20.1.0\\n"),
            ["nodejs/20.1.0", "ruby/3.3.0"],
        ),
        ("mise", ('~/shop/mise.toml: [env]\\nnode = "1"\\n[tools]\\nnodejs = "20"\\n',), ["nodejs/20.1.0"]),
        ("mise", ('~/.config/mise/config.toml: [tools]\\nruby = ["3.3.0"]\\n',), ["ruby/3.3.0"]),
    ],
)
def test_shims_of_several_tools(machine: Machine, name: str, files: tuple[str, ...], expected: list[str]) -> None:
    (row,) = [shims for shims in SHIMS if shims.name == name]
    machine.plant(
        "\n".join(f"{row.root}/installs/{one}/bin/x*" for one in ("nodejs/20.1.0", "nodejs/18.0.0", "ruby/3.3.0"))
    )
    machine.plant("\n".join((*files, f"{row.root}/shims/x*")))
    assert sorted(shown(with_path(machine, f"{row.root}/shims").plan("--run", "true"))) == [
        f"{row.root}/installs/{one}" for one in expected
    ]


def test_volta_runs_its_default_or_what_the_project_pins(machine: Machine) -> None:
    image = "~/.volta/tools/image"
    machine.plant(
        f"{image}/node/20.1.0/bin/node*\n{image}/node/18.0.0/bin/node*\n{image}/yarn/4.0.0/bin/yarn*\n~/.volta/bin/node*"
    )
    default = '{"node": {"runtime": "20.1.0", "npm": null}, "yarn": "4.0.0"}'
    machine.plant(f"~/.volta/tools/user/platform.json: {default}")
    with_path(machine, "~/.volta/bin")
    assert sorted(shown(machine.plan("--run", "true"))) == [f"{image}/node/20.1.0", f"{image}/yarn/4.0.0"]
    machine.plant('~/shop/package.json: {"name": "shop", "volta": {"node": "18.0.0"}}')
    assert sorted(shown(machine.plan("--run", "true"))) == [f"{image}/node/18.0.0", f"{image}/yarn/4.0.0"]


@pytest.mark.parametrize("text", ["[" * 100_000, "null", "[]", '{"volta": []}', '{"volta": {"node": 7}}', "{"])
def test_what_volta_is_told_may_be_anything(machine: Machine, text: str) -> None:
    machine.plant("~/.volta/tools/image/node/20.1.0/bin/node*\n~/.volta/bin/node*")
    machine.plant(
        f'~/.volta/tools/user/platform.json: {{"node": {{"runtime": "20.1.0"}}}}\n~/shop/package.json: {text}'
    )
    assert shown(with_path(machine, "~/.volta/bin").plan("--run", "true")) == ["~/.volta/tools/image/node/20.1.0"]


def test_rustup_comes_with_its_toolchains_and_without_its_list_of_projects(machine: Machine) -> None:
    settings = (
        'version = "12"\\ndefault_toolchain = "stable"\\n\\n[overrides]\\n"/home/alice/secret-client" = "nightly"\\n'
    )
    machine.plant(f"~/.cargo/bin/rustup*: {PROGRAM}\n~/.cargo/bin/cargo -> rustup\n~/.cargo/credentials.toml: token")
    machine.plant(
        f"~/.rustup/toolchains/stable/bin/cargo*\n~/.rustup/settings.toml: {settings}\n~/.rustup/update-hashes/x"
    )
    plan = with_path(machine, "~/.cargo/bin").plan("--run", "true")
    assert shown(plan) == ["~/.cargo/bin", "~/.rustup/toolchains"]
    (made,) = [mount for mount in plan.mounts if mount.origin.is_rule(RULE) and mount.kind == FILE]
    assert (made.path, made.content) == (
        f"{HOME}/.rustup/settings.toml",
        b'version = "12"\ndefault_toolchain = "stable"\n',
    )


@pytest.mark.req("SAND-09")
@pytest.mark.parametrize("variable", ["DENO_INSTALL", "BUN_INSTALL", "GOPATH", "CARGO_HOME", "N_PREFIX", "DOTNET_ROOT"])
def test_variable_makes_no_toolchain_of_a_mixed_directory(machine: Machine, variable: str) -> None:
    """Neither PATH, nor a link, nor the project's environment: with `DENO_INSTALL=~/.local`, its `bin` is mixed."""
    machine.plant("~/.local/bin/deploy*: #!/bin/sh\\nTOKEN=x\n~/.local/bin/node*\n~/.local/bin/other -> deploy")
    machine.plant(f"~/.local/dotnet*\n~/.local/bin/uv*: {PROGRAM}\n~/shop/.venv/pyvenv.cfg: home = ~/.local/bin\\n")
    machine.environ[variable] = f"{HOME}/.local"
    plan = with_path(machine, "~/.local/bin", "~/.local").plan("--run", "true")
    assert (shown(plan), shown(plan, SYMLINK)) == (["~/.local/bin/uv"], [])


@pytest.mark.req("SAND-09")
def test_tokens_in_the_environments_of_conda_are_hidden(machine: Machine) -> None:
    """`conda env config vars set` keeps them there, and an agent can choose the environment."""
    work = "~/miniconda3/envs/work"
    tokens = [f"{work}/conda-meta/state", f"{work}/etc/conda/activate.d/env_vars.sh", f"{work}/pip.conf"]
    machine.plant("\n".join([*tokens, "~/miniconda3/conda-meta/history", f"{work}/bin/python3*", "~/.bun/bin/x*"]))
    machine.plant(f"~/shop/.venv/pyvenv.cfg: home = {work}/bin\\n")
    plan = with_path(machine, "~/.bun/bin").plan("--run", "true")
    assert "~/miniconda3" in shown(plan)
    hidden = [mount.path.replace(HOME, "~") for mount in plan.mounts if mount.kind == HIDE]
    assert {*tokens} <= {*hidden}


def test_token_behind_a_symlink_is_hidden_where_it_is(machine: Machine) -> None:
    """At the symlink itself bwrap can put nothing, and one that leaves the tree leads nowhere in the box."""
    node = "~/.nvm/versions/node/v22.1.0"
    machine.plant(f"{node}/bin/node*\n{node}/etc/npmrc -> ../lib/npmrc\n{node}/lib/npmrc: token")
    hidden = [one.path for one in with_path(machine, f"{node}/bin").plan("--run", "true").mounts if one.kind == HIDE]
    assert f"{node}/lib/npmrc".replace("~", HOME) in hidden
    assert f"{node}/etc/npmrc".replace("~", HOME) not in hidden
    machine.plant(f"~/.bun/bin/x*\n{node}/../v18/bin/node*\n{node}/../v18/etc/npmrc -> ~/.npmrc\n~/.npmrc: token")
    plan = with_path(machine, "~/.nvm/versions/node/v18/bin").plan("--run", "true")
    assert [one.path for one in plan.mounts if one.kind == HIDE and "npmrc" in one.path] == []


def test_environment_that_names_itself_is_shown_once(machine: Machine) -> None:
    venv = "~/.local/share/pipx/venvs/black"
    machine.plant(f"{venv}/bin/black*\n{venv}/pyvenv.cfg: home = {venv}/bin\\n\n~/.local/bin/black -> {venv}/bin/black")
    assert shown(with_path(machine, "~/.local/bin").plan("--run", "true")) == [venv]


@pytest.mark.parametrize("home", ["/etc", "~/.ssh", "~", "~/.claudebox", "/home/alice/../bob", "~/.cargo/bin"])
def test_virtual_environment_of_the_project_shows_nothing_else(machine: Machine, home: str) -> None:
    machine.plant(f"~/shop/.venv/pyvenv.cfg: home = {home}\\n\n~/.bun/bin/x*\n~/.ssh/id: x\n~/.cargo/bin/python3*")
    assert shown(with_path(machine, "~/.bun/bin").plan("--run", "true")) == ["~/.bun/bin"]


def test_nothing_comes_from_where_an_agent_can_write(machine: Machine) -> None:
    machine.plant("~/shop/evil/bin/node*\n~/.nvm/versions/node/v22.1.0 -> ~/shop/evil\n~/shop/node_modules/.bin/x*")
    plan = with_path(machine, "~/.nvm/versions/node/v22.1.0/bin", "~/shop/node_modules/.bin").plan("--run", "true")
    assert shown(plan) == []
    machine.plant("~/.bun -> ~/shop/evil")
    plan = with_path(machine, "~/.bun/bin").plan("--run", "true")
    assert shown(plan) == []
    assert [finding.text for finding in plan.findings if "on PATH" in finding.text] == [
        "is on PATH, and not in the box: an agent can write there"
    ]


def test_new_version_is_no_news(machine: Machine) -> None:
    from claudebox.consent import agreement, find_news

    machine.plant("~/.nvm/versions/node/v22.1.0/bin/node*\n~/.nvm/versions/node/v22.2.0/bin/node*")
    agreed = frozenset(agreement(with_path(machine, "~/.nvm/versions/node/v22.1.0/bin").plan("--run", "true")))
    assert (
        find_news(with_path(machine, "~/.nvm/versions/node/v22.2.0/bin").plan("--run", "true"), (agreed,)).mounts == ()
    )
