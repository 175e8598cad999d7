"""The state of a project: where it is, and that nothing in it leads anywhere else."""

import hashlib
import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from claude.session import ANSWER, Talk, broke, fingerprint, load
from conftest import CLAUDEBOX, git, make_repository

FAILED = 125
SECRET = '{"secret": "canary-77a1"}\n'
DAMAGED = ['{"numStartups": 3, "proj', "", "null", "[]", '{"a": 1}}', '{"mcp' + "\x00" * 100]


def start(talk: Talk, script: str = "true", *options: str) -> subprocess.CompletedProcess[str]:
    done = talk.inside(script, *options)
    assert done.returncode == 0, done.stderr
    return done


def said(done: subprocess.CompletedProcess[str]) -> str:
    return " ".join(done.stderr.split())


@pytest.mark.req("INST-01")
def test_state_is_named_after_the_real_path_of_the_project(talk: Talk) -> None:
    link = talk.account.home / "link"
    link.symlink_to(talk.project)
    start(talk)
    replace(talk, box=replace(talk.box, project=link)).inside("true")
    name = hashlib.sha256(str(talk.project).encode()).hexdigest()[:16]
    instances = talk.account.home / ".claudebox" / "instances"
    assert [path.name for path in instances.iterdir()] == [name]
    assert (instances / name / "project").read_text() == f"{talk.project}\n"


@pytest.mark.req("INST-01")
def test_state_is_private_to_the_user(user_talk: Talk) -> None:
    start(user_talk)
    root = user_talk.account.home / ".claudebox"
    made = [path for path in (root, *root.rglob("*")) if not path.is_symlink()]
    assert [str(path) for path in made if path.lstat().st_mode & 0o077] == []
    assert {path.lstat().st_uid for path in made} == {user_talk.account.uid}


@pytest.mark.req("INST-01", "GIT-03")
def test_worktrees_share_the_state_of_their_repository(talk: Talk) -> None:
    make_repository(talk.account, talk.project)
    git(talk.account, talk.project, "worktree", "add", "-q", "../tree")
    start(talk, "echo kept > ~/.claude/kept")
    in_tree = replace(talk, box=replace(talk.box, project=talk.project.parent / "tree"))
    assert start(in_tree, "cat ~/.claude/kept").stdout == "kept\n"
    assert len(list((talk.account.home / ".claudebox" / "instances").iterdir())) == 1
    assert set(load(talk.state / ".claude.json")["projects"]) == {str(talk.project), str(in_tree.project)}


@pytest.mark.req("INST-01")
def test_first_boxes_of_a_project_can_start_at_once(user_talk: Talk) -> None:
    """Each finds the others making the same directories."""
    with ThreadPoolExecutor(8) as pool:
        boxes = list(pool.map(lambda _: user_talk.inside("true"), range(8)))
    assert [said(box).partition("error: ")[2] for box in boxes if box.returncode != 0] == []


@pytest.mark.req("INST-02", "SAND-08")
def test_state_of_claude_survives(user_talk: Talk) -> None:
    start(user_talk)
    place = user_talk.state / ".claude.json"
    place.write_text(json.dumps({**load(place), "kept": 1}))
    user_talk(commands=("touch ~/.claude/kept",))
    assert load(place)["kept"] == 1
    assert (user_talk.state / "kept").exists()


@pytest.mark.req("INST-02")
def test_state_that_was_reset_is_prepared_again(user_talk: Talk) -> None:
    """Claude itself starts afresh over a file that it cannot read."""
    start(user_talk)
    start(user_talk, "echo '{}' > ~/.claude/.claude.json")
    start(user_talk)
    state = load(user_talk.state / ".claude.json")
    assert state.get("hasCompletedOnboarding") is True
    assert state["projects"][str(user_talk.project)]["hasTrustDialogAccepted"] is True


PLANTED = (
    "agents commands hooks output-styles plugins rules skills projects todos backups sessions shell-snapshots "
    "CLAUDE.md keybindings.json settings.json"
).split()


@pytest.mark.req("INST-02", "SAND-08", "FAIL-01")
@pytest.mark.parametrize("target", ["file", "directory", "nothing"])
def test_symlinks_that_the_agent_leaves_are_never_followed(user_talk: Talk, target: str) -> None:
    home = user_talk.account.home
    outside = user_talk.account.write(home / "outside" / "secret.json", SECRET, mode=0o600).parent
    user_talk.account.write(home / ".claude" / "keybindings.json", "{}")
    user_talk.account.write(home / ".claude" / "settings.json", '{"model": "opus"}')
    start(user_talk)
    aim = {"file": outside / "secret.json", "directory": outside, "nothing": outside / "new"}[target]
    for name in PLANTED:
        place = user_talk.state / name
        if place.is_dir() and not place.is_symlink():
            place.rename(user_talk.state / f"{name}.before")
        place.unlink(missing_ok=True)
        place.symlink_to(aim)
    before = fingerprint(outside)
    user_talk.account.write(home / ".claude" / "settings.json", '{"model": "sonnet-new"}')
    os.utime(home / ".claude" / "settings.json", ns=(1, 1))
    done = user_talk.inside("cat ~/.claude/*.json ~/.claude/*/*; echo evil > ~/.claude/projects/x; true")
    assert fingerprint(outside) == before
    assert done.returncode == 0, done.stderr
    assert "canary" not in done.stdout
    assert not leaked(user_talk)
    session = user_talk()
    assert (session.status, session.stdout) == (0, ANSWER + "\n"), session.stderr
    assert "canary" not in session.sent
    assert fingerprint(outside) == before
    assert not leaked(user_talk)


def leaked(talk: Talk) -> bool:
    found = talk.account.run("grep", "-rsl", "canary-77a1", str(talk.account.home / ".claudebox"))
    return bool(found.stdout)


def test_leak_would_be_noticed(user_talk: Talk) -> None:
    user_talk.account.write(user_talk.state / "projects" / "x", SECRET)
    assert leaked(user_talk)


@pytest.mark.req("FAIL-01", "INST-02")
@pytest.mark.parametrize("content", DAMAGED)
def test_damaged_state_is_an_error_and_stays_as_it_is(user_talk: Talk, content: str) -> None:
    start(user_talk)
    place = user_talk.state / ".claude.json"
    place.write_text(content)
    user_talk.account.write(user_talk.account.home / ".claude.json", '{"mcpServers": {}}')  # to be merged
    before = fingerprint(user_talk.state)
    done = user_talk.box.claudebox("--yes", "-p", "x")
    assert done.returncode == FAILED, done.stderr
    assert not broke(done), done.stderr
    assert str(place) in done.stderr
    assert "hint: " in done.stderr
    assert fingerprint(user_talk.state) == before


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize("name", ["settings.json", ".claude.json"])
@pytest.mark.parametrize("content", ['{"half": ', "[]", "[" * 200000])
def test_users_own_damaged_file_is_an_error(user_talk: Talk, name: str, content: str) -> None:
    place = user_talk.account.home / (".claude" if name == "settings.json" else ".") / name
    user_talk.account.write(place, content)
    done = user_talk.inside("true")
    assert done.returncode == FAILED
    assert not broke(done), done.stderr
    assert place.read_text() == content


@pytest.mark.req("FAIL-01")
@pytest.mark.root
def test_state_of_somebody_else_is_refused(user_talk: Talk) -> None:
    start(user_talk)
    for place in (user_talk.state, user_talk.instance, user_talk.instance.parent, user_talk.instance.parent.parent):
        os.chown(place, 0, 0)
        place.chmod(0o755)
        done = user_talk.inside("true")
        assert (done.returncode, "belongs to another user (uid 0)" in said(done)) == (FAILED, True), place
        os.chown(place, user_talk.account.uid, user_talk.account.gid)
        place.chmod(0o700)
    assert user_talk.inside("true").returncode == 0


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize("name", ["", "instances", "instances/NAME", "instances/NAME/claude"])
def test_state_behind_a_symlink_is_refused(user_talk: Talk, name: str) -> None:
    start(user_talk)
    place = user_talk.account.home / ".claudebox" / name.replace("NAME", user_talk.instance.name)
    aside = user_talk.account.home / "aside"
    place.rename(aside)
    place.symlink_to(aside)
    before = fingerprint(aside)
    done = user_talk.inside("true")
    assert (done.returncode, "is not a directory" in said(done)) == (FAILED, True)
    assert fingerprint(aside) == before


@pytest.mark.req("FAIL-01")
def test_unreadable_state_is_a_clear_error(user_talk: Talk) -> None:
    start(user_talk)
    place = user_talk.instance
    mode = place.stat().st_mode
    place.chmod(0)
    done = user_talk.inside("true")
    place.chmod(mode)
    assert done.returncode == FAILED, done.stderr
    assert str(user_talk.instance) in done.stderr
    assert not broke(done), done.stderr


@pytest.mark.req("FAIL-01", "INST-02")
def test_full_disk_is_a_clear_error_and_loses_nothing(user_talk: Talk) -> None:
    """A limit on the size of files stands for the disk: what does not fit is not written."""
    user_talk.account.write(user_talk.account.home / ".claude.json", "{}")
    user_talk()
    user_talk.account.write(user_talk.account.home / ".claude.json", '{"mcpServers": {}}')
    before = fingerprint(user_talk.instance)
    words = ("--yes", "--run", "true")
    limit = 'ulimit -f 1; exec "$@"'
    done = user_talk.account.run("sh", "-c", limit, "sh", CLAUDEBOX, *words, cwd=user_talk.project)
    assert done.returncode == FAILED, done.stderr
    assert "cannot write" in done.stderr
    after = fingerprint(user_talk.instance)
    told = str(user_talk.instance / "SANDBOX.md")  # differs: this launch runs something else
    assert {**after, told: ()} == {**before, told: ()}
    session = user_talk("--continue")
    assert (session.status, session.stdout) == (0, ANSWER + "\n")


@pytest.mark.req("FAIL-01")
@pytest.mark.root
def test_really_full_disk_is_a_clear_error(user_talk: Talk) -> None:
    root = user_talk.account.home / ".claudebox"
    root.mkdir()
    account = user_talk.account
    script = f"""
        mount --make-rprivate / && mount -t tmpfs -o size=16k,uid={account.uid},mode=700 none {root} || exit 99
        setpriv --reuid {account.uid} --regid {account.gid} --clear-groups "$@"; status=$?
        find {root} -type f -size 0 -o -name '.*.[0-9]*'
        exit $status"""
    words = (CLAUDEBOX, "--yes", "--run", "true")
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", *words],
        env=account.environ,
        cwd=user_talk.project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == FAILED, done.stderr
    assert "No space left on device" in done.stderr
    assert [line for line in done.stdout.splitlines() if "/." in line.removeprefix(str(root))] == []


@pytest.mark.req("INST-02")
def test_settings_are_imported_again_when_they_change_and_only_then(user_talk: Talk) -> None:
    own = user_talk.account.write(user_talk.account.home / ".claude" / "settings.json", '{"model": "opus"}')
    start(user_talk, 'echo \'{"model": "haiku"}\' > ~/.claude/settings.json')
    assert start(user_talk, "cat ~/.claude/settings.json").stdout == '{"model": "haiku"}\n'
    own.write_text('{"model": "sonnet", "verbose": true}')
    start(user_talk)
    box = {"crossSessionInbound": "refuse", "disableRemoteControl": True, "skipDangerousModePermissionPrompt": True}
    expected = {"model": "sonnet", "verbose": True, **box}
    assert load(user_talk.state / "settings.json") == expected
    own.unlink()
    start(user_talk)
    assert load(user_talk.state / "settings.json") == box


@pytest.mark.req("INST-02", "UX-01")
def test_what_is_left_out_is_shown_at_every_launch(user_talk: Talk) -> None:
    """Also when nothing changed and nothing is imported again."""
    servers = '{"mcpServers": {"tea": {"command": "/opt/tea"}, "web": {"url": "https://example.org/mcp"}}}'
    user_talk.account.write(user_talk.account.home / ".claude.json", servers)
    settings = '{"apiKeyHelper": "/opt/key", "env": {"TEA_TOKEN": "canary-77a1"}}'
    user_talk.account.write(user_talk.account.home / ".claude" / "settings.json", settings)
    shown = [start(user_talk).stderr for _ in range(2)]
    lines = ("MCP server tea: its program is not in the box", "setting apiKeyHelper", "setting env TEA_TOKEN")
    assert [line for text in shown for line in lines if line not in " ".join(text.split())] == []
    assert set(load(user_talk.state / ".claude.json")["mcpServers"]) == {"web"}
    assert not leaked(user_talk)


@pytest.mark.req("INST-01")
def test_dry_run_and_audit_write_nothing(user_talk: Talk) -> None:
    for mode in ("--audit", "--dry-run"):
        assert user_talk.box.claudebox(mode).returncode == 0
    assert not (user_talk.account.home / ".claudebox").exists()
