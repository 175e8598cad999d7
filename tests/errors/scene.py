"""A machine that does not exist, and how to make claudebox fail on it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from claudebox.errors import Problem
from claudebox.features.network import uplink as network
from claudebox.output import terminal
from claudebox.process import isolation
from claudebox.settings import PROJECT_FILE
from claudebox.state import instance_name
from claudebox.text import WIDTH, width
from golden import Golden
from hosts.machine import debian

Problems: TypeAlias = dict[str, Callable[["Scene"], object]]


class Scene:
    """A fake Debian, and what is needed to make it fail."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch
        self.machine = debian(root)

    def without(self, *paths: str) -> Scene:
        for path in paths:
            (self.machine.root / path.lstrip("/")).unlink()
        return self

    def planted(self, description: str) -> Scene:
        self.machine.plant(description)
        return self

    def in_directory(self, path: str) -> Scene:
        self.machine.cwd = path
        return self

    def with_environ(self, **environ: str) -> Scene:
        self.machine.environ |= environ
        return self

    def plan(self, *words: str) -> None:
        self.machine.plan(*words)


def provoke(scene: Scene, how: Callable[[Scene], object]) -> Problem:
    """The Problem, with everything as it was before."""
    with scene.monkeypatch.context() as patches:
        scene.monkeypatch, kept = patches, scene.monkeypatch
        try:
            with pytest.raises(Problem) as caught:
                how(scene)
        finally:
            scene.monkeypatch = kept
    return caught.value


class Stage:
    """Where a Problem is provoked, and compared with what was written down for it."""

    def __init__(self, scene: Scene, golden: Golden, capsys: pytest.CaptureFixture[str]) -> None:
        self.scene = scene
        self.golden = golden
        self.capsys = capsys

    def check(self, topic: str, name: str, how: Callable[[Scene], object], status: int) -> None:
        problem = provoke(self.scene, how)
        self.capsys.readouterr()
        terminal.show_problem(problem)
        shown = self.capsys.readouterr()
        assert shown.out == ""
        assert problem.status == status
        assert shown.err.replace("\n", "").isprintable()
        assert [line for line in shown.err.splitlines() if width(line) > WIDTH] == []
        self.golden.check_scene(f"{topic}.txt", name, shown.err)


STATE_OF_SHOP = f"~/.claudebox/instances/{instance_name('/home/alice/shop')}"


def program_from_the_project(name: str) -> Callable[[Scene], None]:
    def provoke(scene: Scene) -> None:
        path = f"~/shop/node_modules/.bin/{name}*: ELF"
        scene.planted(path).with_environ(PATH="/home/alice/shop/node_modules/.bin:/usr/bin").plan()

    return provoke


def pasta_ends(scene: Scene, log: str) -> None:
    scene.monkeypatch.setattr(isolation, "apparmor_forbids", lambda: False)
    raise network._pasta_problem(log)


def with_file(scene: Scene, text: str, name: str = "~/.claudebox/config.toml") -> Scene:
    return scene.planted(f"{name}: {text}")


def with_project_file(scene: Scene, text: str) -> Scene:
    return with_file(scene, text, f"~/shop/{PROJECT_FILE}")


def old_kernel(scene: Scene) -> Scene:
    def refuse(_: int) -> int:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    scene.monkeypatch.setattr(os, "pidfd_open", refuse)
    return scene
