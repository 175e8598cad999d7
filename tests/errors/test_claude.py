"""What is said of the program in the box, and of Claude's own settings."""

from __future__ import annotations

from claudebox.errors import CANNOT_EXECUTE, FAILED, NOT_FOUND
from claudebox.features.claude import configuration as imported
from errors.scene import Problems, Scene, program_from_the_project


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


PROBLEMS: Problems = {
    "claude-missing": (lambda scene: without_claude(scene).plan(), NOT_FOUND),
    "claude-missing-beside-the-npm-of-the-system": (
        lambda scene: without_claude(scene).planted("/usr/bin/npm*: x").plan(),
        NOT_FOUND,
    ),
    "claude-beside-the-path": (lambda scene: scene.with_environ(PATH="/usr/bin").plan(), NOT_FOUND),
    "claude-named-missing": (lambda scene: naming_claude(scene).plan(), NOT_FOUND),
    "claude-not-executable": (lambda scene: naming_claude(scene.planted("/opt/claude: ELF")).plan(), CANNOT_EXECUTE),
    "claude-on-path-not-executable": (claude_on_the_path_not_executable, CANNOT_EXECUTE),
    "claude-is-a-shim": (shim_of_a_version_manager, FAILED),
    "claude-in-project": (program_from_the_project("claude"), FAILED),
    "claude-without-interpreter": (
        lambda scene: naming_claude(scene.planted("/opt/claude*: #!/usr/bin/env node\\n")).plan(),
        CANNOT_EXECUTE,
    ),
    "claude-directory-in-project": (
        lambda scene: scene.with_environ(CLAUDE_CONFIG_DIR="/home/alice/shop/cc").plan(),
        FAILED,
    ),
    "claude-needs-a-secret": (
        lambda scene: naming_claude(scene.planted("~/.ssh/tool*: x\n/opt/claude*: #!/home/alice/.ssh/tool\\n")).plan(),
        FAILED,
    ),
    "settings-too-deep": (settings_too_deep, FAILED),
    "settings-damaged": (lambda scene: scene.planted('~/.claude/settings.json: {"half":').plan(), FAILED),
    "settings-no-object": (lambda scene: scene.planted("~/.claude/settings.json: []").plan(), FAILED),
}
