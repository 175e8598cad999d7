"""Options of claude that name files of the host work in the box, and the audit shows what they bring in."""

import json
import re
from pathlib import Path

import pytest

from claude.session import Session, Talk
from claudebox.features.table import SETTINGS
from claudebox.settings.mistakes import REMOVED
from conftest import Account
from saying import parse

pytestmark = pytest.mark.req("ARGS-01")

FAILED = 125
TOKEN = "ghp_0123456789abcdef0123456789abcdef0123"


def mounted(session: Session, option: str, access: str, *paths: Path) -> bool:
    """Whether the first screen shows these paths, and the option is there."""
    label = {"rw": "writable", "ro": "read-only"}[access]
    row = re.search(rf"^  {label} .*(?:\n {{15}}.*)*", session.stderr, re.MULTILINE)
    home = "/".join(str(paths[0]).split("/")[:4])
    words = row[0].split() if row else []
    return option in session.stderr and all(str(path).replace(home, "~", 1) in words for path in paths)


def plugin(talk: Talk) -> Path:
    root = talk.account.home / "plugins" / "tea"
    talk.account.write(root / ".claude-plugin" / "plugin.json", '{"name": "tea", "version": "1.0.0"}')
    skill = "---\nname: brew\ndescription: how to brew heliotrope tea\n---\nBoil.\n"
    talk.account.write(root / "skills" / "brew" / "SKILL.md", skill)
    return root


@pytest.mark.req("UX-01")
def test_added_directories_can_be_read_and_written(user_talk: Talk) -> None:
    first = user_talk.account.write(user_talk.account.home / "data" / "in.txt", "heliotrope\n").parent
    second = user_talk.account.write(user_talk.account.home / "more" / "in.txt", "lavender\n").parent
    session = user_talk(
        "--add-dir", str(first), str(second), commands=(f"cat {first}/in.txt {second}/in.txt | tee {first}/out",)
    )
    assert session.results == ["heliotrope\nlavender"]
    assert (first / "out").read_text() == "heliotrope\nlavender\n"
    assert str(first) in session.sent
    assert mounted(session, "--add-dir", "rw", first, second)


@pytest.mark.req("UX-01")
def test_mcp_configuration_is_read(user_talk: Talk) -> None:
    """Its server is started: it leaves a mark."""
    servers = {"tea": {"command": "/usr/bin/touch", "args": [str(user_talk.project / "started")]}}
    file = user_talk.account.write(user_talk.account.home / "conf" / "mcp.json", json.dumps({"mcpServers": servers}))
    session = user_talk("--mcp-config", str(file))
    assert session.status == 0, session.stderr
    assert (user_talk.project / "started").exists()
    assert mounted(session, "--mcp-config", "ro", file)


@pytest.mark.req("UX-01")
@pytest.mark.parametrize("how", ["file=", "inline"])
def test_settings_are_used(user_talk: Talk, how: str) -> None:
    text = json.dumps({"env": {"BREW_COLOUR": "violet"}})
    file = user_talk.account.write(user_talk.account.home / "conf" / "settings.json", text)
    words = {
        "file=": ("--settings=../../conf/settings.json",),
        "inline": ("--settings", text),
    }[how]
    session = user_talk(*words, commands=("echo $BREW_COLOUR",))
    assert session.results == ["violet"], session.stderr
    assert mounted(session, "--settings", "ro", file) is (how != "inline")


@pytest.mark.req("UX-01")
def test_plugin_is_loaded(user_talk: Talk) -> None:
    root = plugin(user_talk)
    session = user_talk("--plugin-dir", str(root))
    assert "tea:brew: how to brew heliotrope tea" in session.sent
    assert mounted(session, "--plugin-dir", "ro", root)


@pytest.mark.req("UX-01")
def test_system_prompt_is_read_from_the_file(user_talk: Talk) -> None:
    file = user_talk.account.write(user_talk.account.home / "conf" / "prompt.md", "Speak of heliotropes.\n")
    session = user_talk("--append-system-prompt-file", str(file))
    assert "Speak of heliotropes." in session.sent
    assert "# You are in a sandbox" in session.sent
    assert mounted(session, "--append-system-prompt-file", "ro", file)


@pytest.mark.req("UX-01")
def test_debug_file_is_written_on_the_host(user_talk: Talk) -> None:
    file = user_talk.account.home / "logs" / "claude.log"
    user_talk.account.write(file.with_name("other"))
    session = user_talk("--debug-file", str(file))
    assert session.status == 0, session.stderr
    assert file.stat().st_size > 0
    assert file.stat().st_uid == user_talk.account.uid
    assert mounted(session, "--debug-file", "rw", file)


def test_debug_file_in_a_linked_directory_is_written(user_talk: Talk) -> None:
    real = user_talk.account.write(user_talk.account.home / "big" / "logs" / "a").parent
    (user_talk.account.home / "logs").symlink_to(real)
    session = user_talk("--debug-file", str(user_talk.account.home / "logs" / "claude.log"))
    assert session.status == 0, session.stderr
    assert (real / "claude.log").stat().st_size > 0


def test_debug_file_is_not_made_unless_the_box_starts(user_talk: Talk) -> None:
    log = user_talk.account.write(user_talk.account.home / "logs" / "a").with_name("claude.log")
    words = ("--debug-file", str(log), "-p", "x")
    assert user_talk.box.claudebox("--dry-run", *words).returncode == 0
    assert user_talk.box.claudebox(*words).returncode == FAILED  # nobody to ask
    assert not log.exists()


def test_what_does_not_exist_is_left_to_claude(user_talk: Talk) -> None:
    session = user_talk("--mcp-config", str(user_talk.account.home / "gone.json"))
    assert session.status == 1
    assert "gone.json" in session.stdout + session.stderr.rpartition("\nRuns\n")[2].partition("\n\n")[2]


@pytest.mark.req("SAND-09", "FAIL-01")
@pytest.mark.parametrize(
    ("option", "path"),
    [
        ("--add-dir", ".ssh"),
        ("--add-dir", "."),
        ("--add-dir", "keys"),
        ("--mcp-config", ".config/gh/hosts.yml"),
        ("--settings", ".claudebox/config.toml"),
        ("--plugin-dir", ".aws"),
        ("--append-system-prompt-file", ".netrc"),
        ("--debug-file", ".ssh/new.log"),
        ("--debug-file", "keys/new.log"),
        ("--debug-file", "keys/sub/new.log"),
    ],
)
def test_secret_place_is_refused(user_talk: Talk, option: str, path: str) -> None:
    home = user_talk.account.home
    for name in (".ssh/id_ed25519", ".ssh/sub/x", ".config/gh/hosts.yml", ".claudebox/config.toml", ".aws/x", ".netrc"):
        user_talk.account.write(home / name, "{}")
    (home / "keys").symlink_to(home / ".ssh")
    done = user_talk.box.claudebox("--yes", option, str(home / path), "-p", "x")
    assert done.returncode == FAILED, done.stderr
    assert not (home / path).with_name("new.log").exists()


@pytest.mark.req("SEC-01")
def test_token_in_a_named_file_is_flagged_and_not_shown(user_talk: Talk) -> None:
    servers = {"tea": {"url": "https://example.org", "headers": {"Authorization": f"Bearer {TOKEN}"}}}
    file = user_talk.account.write(user_talk.account.home / "conf" / "mcp.json", json.dumps({"mcpServers": servers}))
    done = user_talk.box.claudebox("--audit", "--json", "--mcp-config", str(file))
    findings = json.loads(done.stdout)["findings"]
    assert [finding for finding in findings if finding["kind"] == "secret" and finding["subject"] == str(file)]
    assert TOKEN not in done.stdout


@pytest.mark.req("SEC-01")
def test_token_in_inline_json_is_flagged_and_not_shown(user_talk: Talk) -> None:
    text = json.dumps({"env": {"A": TOKEN}})
    done = user_talk.box.claudebox("--audit", "--settings", text)
    assert "looks secret" in done.stdout
    assert TOKEN not in done.stdout


@pytest.mark.parametrize(
    "version",
    [pytest.param("claude", marks=pytest.mark.claude), pytest.param("old_claude", marks=pytest.mark.old_claude)],
)
def test_everything_that_claude_tells_of_passes(version: str, user: Account, request: pytest.FixtureRequest) -> None:
    """No option or subcommand of claude is taken for a mistyped one of ours."""
    claude = request.getfixturevalue(version)

    def told(*words: str) -> str:
        return user.run(claude, *words, "--help").stdout

    def options(text: str) -> set[str]:
        return (
            {*re.findall(r"^  (?:-\w, |--\w+, )?(--[\w-]+)", text, re.MULTILINE)}
            - SETTINGS.by_option.keys()
            - REMOVED.keys()
        )

    main = told()
    commands = re.findall(r"^  ([a-z][a-z-]*)", main.partition("Commands:")[2], re.MULTILINE)
    assert (len(options(main)) > 30, len(commands) > 5) == (True, True)
    for option in options(main):
        assert parse([option, "x"]).claude == (option, "x")
    for line in [*([one] for one in commands), ["mcp", "add"], ["plugin", "install"]]:
        alone = (
            [line] if f"--{line[0]}" not in SETTINGS.by_option else []
        )  # such as `auth`, which does nothing by itself
        for words in [*alone, [*line, "--help"], *([*line, option] for option in options(told(*line)))]:
            assert parse(words).claude == tuple(words)


def test_subcommand_works(user_talk: Talk) -> None:
    words = ("mcp", "add", "tea", "-e", "COLOUR=violet", "--", "/usr/bin/env", "-u", "HOME")
    done = user_talk.box.claudebox("--yes", *words)
    assert done.returncode == 0, done.stderr
    listed = user_talk.box.claudebox("--yes", "mcp", "list").stdout
    assert "tea: /usr/bin/env -u HOME" in listed
