"""What is said of bwrap, of claude and other agents, of the demonstration, and of claudebox's own mistakes."""

import subprocess
from subprocess import CompletedProcess

from claudebox import cli
from claudebox.commands import demo, prove, setup
from claudebox.features.claude import configuration as imported
from claudebox.model import Launch
from claudebox.sandbox import launch
from claudebox.settings.words import Request
from errors.scene import Problems, Scene, program_from_the_project, with_file
from saying import parse


def shim_of_a_version_manager(scene: Scene) -> None:
    scene.planted("~/.asdf/shims/claude*: #!/usr/bin/env bash\\nexec asdf exec claude\n/usr/bin/bash*")
    scene.with_environ(PATH="/home/alice/.asdf/shims:/usr/bin").plan()


def naming_claude(scene: Scene) -> Scene:
    return scene.with_environ(CLAUDEBOX_CLAUDE="/opt/claude")


def without_claude(scene: Scene) -> Scene:
    return scene.without("/home/alice/.local/bin/claude").with_environ(PATH="/usr/bin")


def claude_on_the_path_not_executable(scene: Scene) -> None:
    scene.planted("/opt/bin/claude: ELF").with_environ(PATH="/opt/bin:/usr/bin").plan()


def settings_too_deep(scene: Scene) -> None:
    def sink(*_: object) -> None:
        raise RecursionError

    scene.monkeypatch.setattr(imported, "admit_settings", sink)
    scene.planted("~/.claude/settings.json: {}").plan()


def setuid_bwrap(scene: Scene) -> None:
    (scene.machine.root / "usr/bin/bwrap").chmod(0o4755)
    scene.plan()


def neither_env_nor_python(scene: Scene) -> None:
    scene.without("/usr/bin/env").planted("/usr/bin/busybox*\n/usr/bin/env -> busybox")
    scene.machine.python = "/home/alice/.pyenv/bin/python3"
    scene.plan()


def bwrap_gone_at_the_last_moment(scene: Scene) -> None:
    # The test's own descriptors and signals have to survive.
    scene.monkeypatch.setattr(launch, "close_all_but", lambda _: None)
    scene.monkeypatch.setattr(launch, "_set_signals", lambda: None)
    launch.become_bwrap(Launch(scene.machine.plan().replace(bwrap="/nonexistent/bwrap")), [], [])


CODEX = ("--program", "codex")


def with_codex(scene: Scene, text: str = "ELF") -> Scene:
    return scene.planted(f"/usr/local/bin/codex*: {text}").with_environ(PATH="/usr/local/bin:/usr/bin")


def codex_of_the_project(scene: Scene) -> None:
    scene.planted("~/shop/bin/codex*: ELF\n/usr/local/bin/codex -> /home/alice/shop/bin/codex")
    scene.with_environ(PATH="/usr/local/bin:/usr/bin").plan(*CODEX)


def codex_in_a_secret_place(scene: Scene) -> None:
    scene.planted("~/.ssh/codex*: ELF\n/usr/local/bin/codex -> /home/alice/.ssh/codex")
    scene.with_environ(PATH="/usr/local/bin:/usr/bin").plan(*CODEX)


def set_up(scene: Scene, *, reason: str = "") -> None:
    scene.monkeypatch.setattr(setup, "read_host", scene.machine.host)
    done = CompletedProcess((), 1 if reason else 0, "", reason)
    scene.monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    setup.set_up(Request(mode="setup", yes=True))


def probe_that_fails(scene: Scene) -> None:
    done = CompletedProcess((), 1, "", "bwrap: no such file\n")
    scene.monkeypatch.setattr(prove, "read_host", scene.machine.host)
    scene.monkeypatch.setattr(prove, "plan_attacks", lambda *_, **__: None)
    scene.monkeypatch.setattr(prove, "_with_terminal", lambda *_: done)
    prove.prove(parse(["--prove"]))


def own_failure(_: Scene) -> None:
    raise cli.own_failure(ZeroDivisionError("division by zero"))


def demo_without_git(scene: Scene) -> None:
    scene.monkeypatch.setattr(demo, "trusted_program", lambda *_: "")
    scene.monkeypatch.setattr(demo, "install_command", lambda *_: "sudo apt install git")
    demo.run_demo(parse(["--demo"]))


PROBLEMS: Problems = {
    "claude-missing": lambda scene: without_claude(scene).plan(),
    "claude-missing-beside-the-npm-of-the-system": lambda scene: (
        without_claude(scene).planted("/usr/bin/npm*: x").plan()
    ),
    "claude-beside-the-path": lambda scene: scene.with_environ(PATH="/usr/bin").plan(),
    "claude-named-missing": lambda scene: naming_claude(scene).plan(),
    "claude-not-executable": lambda scene: naming_claude(scene.planted("/opt/claude: ELF")).plan(),
    "claude-on-path-not-executable": claude_on_the_path_not_executable,
    "claude-changes-its-installation": lambda scene: scene.plan("update"),
    "claude-is-a-shim": shim_of_a_version_manager,
    "claude-in-project": program_from_the_project("claude"),
    "claude-without-interpreter": lambda scene: naming_claude(
        scene.planted("/opt/claude*: #!/usr/bin/env node\\n")
    ).plan(),
    "claude-directory-in-project": lambda scene: scene.with_environ(CLAUDE_CONFIG_DIR="/home/alice/shop/cc").plan(),
    "claude-needs-a-secret": lambda scene: naming_claude(
        scene.planted("~/.ssh/tool*: x\n/opt/claude*: #!/home/alice/.ssh/tool\\n")
    ).plan(),
    "settings-too-deep": settings_too_deep,
    "settings-damaged": lambda scene: scene.planted('~/.claude/settings.json: {"half":').plan(),
    "settings-no-object": lambda scene: scene.planted("~/.claude/settings.json: []").plan(),
    "bwrap-missing": lambda scene: scene.without("/usr/bin/bwrap").plan(),
    "bwrap-named-missing": lambda scene: scene.with_environ(CLAUDEBOX_BWRAP="/opt/bwrap").plan(),
    "bwrap-is-another-program": lambda scene: (
        scene.planted("/opt/tool*: \x7fELF of another kind").with_environ(CLAUDEBOX_BWRAP="/opt/tool").plan()
    ),
    "bwrap-in-project": program_from_the_project("bwrap"),
    "bwrap-setuid": setuid_bwrap,
    "bwrap-gone": bwrap_gone_at_the_last_moment,
    "shim-missing": neither_env_nor_python,
    "agent-missing": lambda scene: scene.plan(*CODEX),
    "agent-without-its-interpreter": lambda scene: with_codex(scene, "#!/opt/node").plan(*CODEX),
    "agent-is-a-shim": lambda scene: with_codex(scene, "exec asdf exec codex").plan(*CODEX),
    "agent-from-the-project": codex_of_the_project,
    "agent-in-a-secret-place": codex_in_a_secret_place,
    "agent-with-the-broker": lambda scene: with_codex(scene).plan("--auth", "broker", *CODEX),
    "agent-without-state": lambda scene: with_codex(scene).planted("~/.claudebox: a file").plan(*CODEX),
    "setup-of-nothing": lambda scene: set_up(scene, reason="no"),
    "setup-beside-a-file": lambda scene: set_up(with_file(scene, 'network = "inet"')),
    "demo-without-git": demo_without_git,
    "own-failure": own_failure,
    "prove-without-an-answer": probe_that_fails,
}
