"""What is said of files with settings and of profiles. tests/layers has every message about what is in one."""

from __future__ import annotations

from claudebox.errors import FAILED
from claudebox.settings import PROJECT_FILE
from errors.scene import Problems, Scene, with_file, with_project_file


def with_profile(scene: Scene, text: str, name: str = "aws.toml") -> Scene:
    return with_file(scene, text, f"~/.claudebox/profiles/{name}")


def profiles_in_a_circle(scene: Scene) -> None:
    with_profile(scene, "profiles = ['cloud']")
    with_profile(scene, "profiles = ['aws']", "cloud.toml").plan("--profile", "aws")


def profile_twice(scene: Scene) -> None:
    with_profile(with_profile(scene, "hide = []"), "{}", "aws.json").plan("--profile", "aws")


def project_asks_for_too_much(scene: Scene) -> None:
    names = ", ".join(f"'file{number}'" for number in range(501))
    with_project_file(scene, f"hide = [{names}]").plan()


PROBLEMS: Problems = {
    # One for all: tests/layers has every message about a file.
    "file-with-unknown-key": (lambda scene: scene.planted("~/.claudebox/config.toml: hdie = []").plan(), FAILED),
    "file-variable-not-set": (
        lambda scene: with_file(scene, "network = 'inet'\\nhide = ['$NOTES/private']").plan(),
        FAILED,
    ),
    "file-unreadable": (lambda scene: scene.planted("~/.claudebox/config.toml/").plan(), FAILED),
    "file-from-the-project": (
        lambda scene: scene.planted("~/shop/box.toml\n~/.claudebox/config.toml -> ~/shop/box.toml").plan(),
        FAILED,
    ),
    "file-packages": (lambda scene: with_file(scene, "packages = ['hello']").plan(), FAILED),
    "project-file-hides-by-variable": (
        lambda scene: scene.planted('~/shop/.claudebox.toml: hide = ["$PIN"]').plan(),
        FAILED,
    ),
    "profile-unknown": (lambda scene: with_profile(scene, "hide = []").plan("--profile", "asw"), FAILED),
    "profile-unknown-and-like-none": (lambda scene: scene.plan("--profile", "zebra"), FAILED),
    "profile-unknown-by-variable": (lambda scene: scene.with_environ(CLAUDEBOX_PROFILE="zebra").plan(), FAILED),
    "profile-unknown-by-file": (lambda scene: with_file(scene, "profiles = ['zebra']").plan(), FAILED),
    "profile-bad-name": (lambda scene: scene.plan("--profile", "../shop/aws"), FAILED),
    "profile-circle": (profiles_in_a_circle, FAILED),
    "profile-twice": (profile_twice, FAILED),
    "project-file-symlink": (
        lambda scene: scene.planted(f"~/shop/{PROJECT_FILE} -> other.toml").plan(),
        FAILED,
    ),
    "project-file-asks-for-too-much": (project_asks_for_too_much, FAILED),
    "project-file-names-a-program": (lambda scene: with_project_file(scene, "bwrap = './bwrap'").plan(), FAILED),
}
