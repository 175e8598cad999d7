"""The user's own files: which profiles are read, in which order, and what they say."""

from pathlib import Path

import pytest

from claudebox.model import RO, RW, Plan
from claudebox.settings import Settings
from claudebox.settings.files import shipped_profiles
from claudebox.settings.table import BWRAP_PATH, CLAUDE_PATH, ENV, HIDES, MOUNTS, NETWORK, NFT_PATH, PASTA_PATH
from hosts.machine import Machine
from hosts.test_distributions import MACHINES, make_machine
from layers.files import own_file, profile, refusal, variables
from saying import gather, list_profiles, parse

UPLINK = "/usr/bin/pasta*\n/usr/sbin/nft*"


def settings(machine: Machine, *words: str) -> Settings:
    return gather(machine.host(), parse(list(words))).settings


def wished(plan: Plan, path: str) -> list[tuple[str, str]]:
    return [(mount.kind, mount.source) for mount in plan.mounts if mount.path == path]


@pytest.mark.req("EXT-03")
def test_profile_that_nobody_asked_for_does_nothing(machine: Machine) -> None:
    profile(machine, "aws.toml", 'env = { AWS_REGION = "eu-central-2" }')
    assert "AWS_REGION" not in variables(machine)


@pytest.mark.req("EXT-03")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("aws.toml", 'env = { AWS_REGION = "eu-central-2" }'),
        ("aws.json", '{"env": {"AWS_REGION": "eu-central-2"}}'),
    ],
)
def test_profile_is_toml_or_json(machine: Machine, name: str, text: str) -> None:
    profile(machine, name, text)
    assert variables(machine, "--profile", "aws")["AWS_REGION"] == "eu-central-2"


@pytest.mark.req("EXT-03")
@pytest.mark.parametrize(("names", "winner"), [(("one", "two"), "2"), (("two", "one"), "1")])
def test_later_profile_goes_over_the_earlier_one(machine: Machine, names: tuple[str, str], winner: str) -> None:
    profile(machine, "one.toml", 'env = { LEVEL = "1" }')
    profile(machine, "two.toml", 'env = { LEVEL = "2" }')
    words = [word for name in names for word in ("--profile", name)]
    assert variables(machine, *words)["LEVEL"] == winner


@pytest.mark.req("EXT-03", "NET-03")
def test_every_layer_goes_over_the_one_before_it(machine: Machine) -> None:
    """Built-in, config.toml, profile, project file, variable, option: each is taken away again, the last one first."""
    machine.plant(UPLINK)
    own_file(machine, "config.toml", 'network = "inet"')
    profile(machine, "closed.toml", 'network = "none"')
    profile(machine, "open.toml", 'network = "full"')
    (machine.root / "home/alice/shop/.claudebox.toml").write_text('network = "inet"')
    machine.environ["CLAUDEBOX_NETWORK"] = "none"
    words = ["--profile", "open", "--network", "full"]
    assert settings(machine, *words)[NETWORK].text == "full"
    assert settings(machine, *words[:2])[NETWORK].text == "none"
    del machine.environ["CLAUDEBOX_NETWORK"]
    assert settings(machine, *words[:2])[NETWORK].text == "inet"
    (machine.root / "home/alice/shop/.claudebox.toml").unlink()
    assert settings(machine, *words[:2])[NETWORK].text == "full"
    assert settings(machine, "--profile", "closed")[NETWORK].text == "none"
    assert settings(machine)[NETWORK].text == "inet"
    (machine.root / "home/alice/.claudebox/config.toml").unlink()
    assert settings(machine)[NETWORK].text == "full"


@pytest.mark.req("EXT-03")
def test_default_profile_counts_if_none_is_named(machine: Machine) -> None:
    profile(machine, "default.toml", 'env = { A = "default" }')
    profile(machine, "aws.toml", 'env = { B = "aws" }')
    assert variables(machine).get("A") == "default"
    named = variables(machine, "--profile", "aws")
    assert ("A" in named, named.get("B")) == (False, "aws")


@pytest.mark.req("EXT-03")
def test_variable_names_profiles_and_the_option_replaces_it(machine: Machine) -> None:
    for name in ("one", "two", "three"):
        profile(machine, f"{name}.toml", f'env = {{ {name.upper()} = "x" }}')
    machine.environ["CLAUDEBOX_PROFILE"] = "one, two"
    of_variable, of_option = variables(machine), variables(machine, "--profile", "three")
    assert [name in of_variable for name in ("ONE", "TWO", "THREE")] == [True, True, False]
    assert [name in of_option for name in ("ONE", "TWO", "THREE")] == [False, False, True]


@pytest.mark.req("EXT-03")
def test_profile_goes_over_those_that_it_builds_on(machine: Machine) -> None:
    profile(machine, "base.toml", 'env = { A = "base", B = "base" }')
    profile(machine, "top.toml", 'profiles = ["base"]\nenv = { A = "top" }')
    found = variables(machine, "--profile", "top")
    assert (found["A"], found["B"]) == ("top", "base")


@pytest.mark.req("EXT-03")
def test_profile_that_two_others_build_on_is_read_once(machine: Machine) -> None:
    profile(machine, "base.toml", 'extra_env_passthrough = ["X"]')
    profile(machine, "left.toml", 'profiles = ["base"]')
    profile(machine, "right.toml", 'profiles = ["base", "left"]')
    assert [wish.name for wish in settings(machine, "--profile", "left", "--profile", "right")[ENV]] == ["X"]


@pytest.mark.req("EXT-03")
def test_own_profile_goes_before_a_shipped_one_of_its_name(machine: Machine) -> None:
    profile(machine, "strict.toml", 'env = { MINE = "1" }')
    assert "MINE" in variables(machine, "--profile", "strict")


@pytest.mark.req("EXT-03", "SEC-01")
def test_everything_knows_its_file_and_line(machine: Machine) -> None:
    profile(machine, "aws.toml", '# comment\nhide = [\n  "~/x",\n]\n[env]\nA = "1"\n')
    found = settings(machine, "--profile", "aws")
    assert found[HIDES][0].origin.shown == "~/.claudebox/profiles/aws.toml:3"
    assert found[ENV][0].origin.shown == "~/.claudebox/profiles/aws.toml:6"


@pytest.mark.req("EXT-03")
def test_list_shows_own_and_shipped_profiles_in_spite_of_an_editors_files(machine: Machine) -> None:
    profile(machine, "aws.toml", 'description = "the cloud"')
    profile(machine, ".aws.toml", "half [")
    profile(machine, "aws.toml~", "half [")
    profile(machine, "with space.toml", "half [")
    (machine.root / "home/alice/.claudebox/profiles/.#aws.toml").symlink_to("alice@workstation.1234")
    listed = list_profiles(machine.host())
    assert {one.name for one in listed} == {"aws", *shipped_profiles()}
    assert [one.description for one in listed if one.name == "aws"] == ["the cloud"]


@pytest.mark.req("EXT-03")
def test_mount_that_is_optional_may_be_missing(machine: Machine) -> None:
    profile(machine, "p.toml", '[[mounts]]\nhost = "~/later"\noptional = true\n')
    assert wished(machine.plan("--profile", "p"), "/home/alice/later") == []
    machine.plant("~/later/")
    assert wished(machine.plan("--profile", "p"), "/home/alice/later") == [(RO, "/home/alice/later")]


@pytest.mark.req("EXT-03", "FAIL-01")
def test_mount_that_is_missing_is_refused_with_its_line(machine: Machine) -> None:
    profile(machine, "p.toml", '\n[[mounts]]\nhost = "~/later"\n')
    message = refusal(machine, "--profile", "p").message
    assert message == "~/.claudebox/profiles/p.toml:2: /home/alice/later does not exist"


@pytest.mark.req("EXT-03")
@pytest.mark.parametrize("host", ["~/other", "$HOME/other", "${HOME}/other", "$BASE/$NAME", "${BASE}/oth${REST}"])
def test_home_and_variables_are_known_in_paths(machine: Machine, host: str) -> None:
    machine.environ |= {"BASE": "/home/alice", "NAME": "other", "REST": "er"}
    profile(machine, "p.toml", f'mounts = [{{ host = "{host}", sandbox = "~/in/box", mode = "rw" }}]')
    assert wished(machine.plan("--profile", "p"), "/home/alice/in/box") == [(RW, "/home/alice/other")]


@pytest.mark.req("EXT-03")
def test_value_of_a_variable_is_not_looked_through_again(machine: Machine) -> None:
    machine.environ |= {"A": "$B", "B": "other"}
    profile(machine, "p.toml", 'hide = ["$A"]')
    assert settings(machine, "--profile", "p")[HIDES][0].text == "$B"


@pytest.mark.req("EXT-03", "FAIL-01")
@pytest.mark.parametrize(
    "line", ['hide = ["%s/x"]', 'path = ["%s/bin"]', 'bwrap = "/%s"', 'mounts = [{ host = "/%s" }]']
)
@pytest.mark.parametrize("name", ["$GONE", "${GONE}", "$", "$1", "${GONE", "${}", "${A B}", "$é", "$HOME$-"])
def test_variable_that_is_not_set_is_refused(machine: Machine, line: str, name: str) -> None:
    profile(machine, "p.toml", f"\n\n{line % name}")
    message = refusal(machine, "--profile", "p").message
    assert message.startswith("~/.claudebox/profiles/p.toml:3: $")
    assert message.endswith(" is not set")


@pytest.mark.req("EXT-03")
def test_many_variables_in_one_path_are_no_trouble(machine: Machine) -> None:
    profile(machine, "p.toml", f'hide = ["{"$HOME" * 10_000}"]')
    assert len(settings(machine, "--profile", "p")[HIDES][0].text) == 10_000 * len("/home/alice")


@pytest.mark.req("EXT-03")
@pytest.mark.parametrize("path", ["~/bin/bwrap", "$HOME/bin/bwrap"])
def test_program_of_a_file_may_be_in_the_home(machine: Machine, path: str) -> None:
    machine.plant("~/bin/bwrap*")
    own_file(machine, "config.toml", f'bwrap = "{path}"')
    assert machine.plan().bwrap == "/home/alice/bin/bwrap"


@pytest.mark.req("EXT-03", "SEC-01")
def test_program_of_a_file_may_not_be_in_the_project(machine: Machine) -> None:
    machine.plant("~/shop/bwrap*")
    own_file(machine, "config.toml", 'bwrap = "bwrap"')
    assert "would come from where an agent can write" in refusal(machine).message


@pytest.mark.req("EXT-03", "SEC-01")
@pytest.mark.parametrize("host", ["~/.ssh", "~", "/", "~/.claudebox", "~/.claude", "$HOME/.aws/credentials"])
def test_file_gets_no_mount_that_an_option_would_not_get(machine: Machine, host: str) -> None:
    machine.plant("~/.claudebox/x")
    profile(machine, "p.toml", f'mounts = [{{ host = "{host}", optional = true }}]')
    assert refusal(machine, "--profile", "p").message.startswith("~/.claudebox/profiles/p.toml:1 ")


@pytest.mark.req("EXT-03", "SEC-01")
@pytest.mark.parametrize(
    "line",
    ['AWS_SECRET_ACCESS_KEY = "x"', 'THING = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"', 'DB_PASSWORD = "hunter2"'],
)
def test_constant_that_looks_secret_is_refused_and_not_shown(machine: Machine, line: str) -> None:
    profile(machine, "p.toml", f"[env]\n{line}\n")
    problem = refusal(machine, "--profile", "p")
    value = line.partition(" = ")[2].strip('"')
    assert "looks like a secret" in problem.message
    assert "extra_env_passthrough" in problem.hint
    if len(value) > 1:
        assert value not in problem.message + problem.hint


@pytest.mark.req("EXT-03")
@pytest.mark.parametrize("distribution", MACHINES)
def test_shipped_profiles_work_everywhere(tmp_path: Path, distribution: str) -> None:
    machine = make_machine(distribution, tmp_path).plant(UPLINK)
    for name in shipped_profiles():
        # The strict one wants a credential for its broker.
        machine.environ["ANTHROPIC_API_KEY"] = "sk-ant-made-up-for-this-test"
        machine.environ |= {"CLAUDEBOX_PASTA": "/usr/bin/pasta", "CLAUDEBOX_NFT": "/usr/sbin/nft"}
        machine.plan("--profile", name)


@pytest.mark.req("EXT-03", "SEC-01")
def test_shipped_profiles_make_nothing_writable_and_name_no_program(machine: Machine) -> None:
    machine.plant("~/.cargo/bin/\n~/.rustup/\n~/.pyenv/\n~/.local/share/uv/python/\n~/.nvm/versions/")
    for name in shipped_profiles():
        found = settings(machine, "--profile", name)
        assert [mount for mount in found[MOUNTS] if mount.access != RO] == []
        assert (found[BWRAP_PATH], found[CLAUDE_PATH], found[PASTA_PATH], found[NFT_PATH]) == (None, None, None, None)


@pytest.mark.req("EXT-03")
def test_shipped_profiles_say_what_they_are(machine: Machine) -> None:
    assert all(one.description for one in list_profiles(machine.host()))
