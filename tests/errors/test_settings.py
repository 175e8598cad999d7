"""What is said of the command line, of variables, and of files with settings; what is in those: tests/layers."""

from claudebox.commands.explain import explain
from claudebox.plan import make_plan
from claudebox.settings import PROJECT_FILE
from errors.scene import Problems, Scene, with_file, with_project_file
from saying import gather, parse


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


def explained(scene: Scene, thing: str) -> None:
    host, request = scene.machine.host(), parse(["--explain", thing])
    settings = gather(host, request).settings
    explain(make_plan(host, request, settings), host, settings, thing)


PROBLEMS: Problems = {
    # One for all: tests/layers has every message about a file.
    "file-with-unknown-key": lambda scene: scene.planted("~/.claudebox/config.toml: hdie = []").plan(),
    "file-variable-not-set": lambda scene: with_file(scene, "network = 'inet'\\nhide = ['$NOTES/private']").plan(),
    "file-unreadable": lambda scene: scene.planted("~/.claudebox/config.toml/").plan(),
    "file-from-the-project": lambda scene: scene.planted(
        "~/shop/box.toml\n~/.claudebox/config.toml -> ~/shop/box.toml"
    ).plan(),
    "file-packages": lambda scene: with_file(scene, "packages = ['hello']").plan(),
    "project-file-hides-by-variable": lambda scene: scene.planted('~/shop/.claudebox.toml: hide = ["$PIN"]').plan(),
    "profile-unknown": lambda scene: with_profile(scene, "hide = []").plan("--profile", "asw"),
    "profile-unknown-and-like-none": lambda scene: scene.plan("--profile", "zebra"),
    "profile-unknown-by-variable": lambda scene: scene.with_environ(CLAUDEBOX_PROFILE="zebra").plan(),
    "profile-unknown-by-file": lambda scene: with_file(scene, "profiles = ['zebra']").plan(),
    "profile-bad-name": lambda scene: scene.plan("--profile", "../shop/aws"),
    "profile-circle": profiles_in_a_circle,
    "profile-twice": profile_twice,
    "project-file-symlink": lambda scene: scene.planted(f"~/shop/{PROJECT_FILE} -> other.toml").plan(),
    "project-file-asks-for-too-much": project_asks_for_too_much,
    "project-file-names-a-program": lambda scene: with_project_file(scene, "bwrap = './bwrap'").plan(),
    "argument-run-needs-command": lambda scene: scene.plan("--run"),
    "argument-run-with-value": lambda scene: scene.plan("--run=make"),
    "argument-switch-with-value": lambda scene: scene.plan("--yes=please"),
    "argument-value-missing": lambda scene: scene.plan("--mount-ro"),
    "argument-shell-with-words": lambda scene: scene.plan("--shell", "ls"),
    "argument-run-after-words": lambda scene: scene.plan("-p", "--run", "true"),
    "argument-instances-with-words": lambda scene: scene.plan("--instances", "foo"),
    "argument-program-and-run": lambda scene: scene.plan("--program", "codex", "--run", "make"),
    "argument-land-without-review": lambda scene: scene.plan("--land", "safe", "--review", "off"),
    "argument-review-mistyped": lambda scene: scene.plan("--review", "lsit"),
    "argument-two-modes": lambda scene: scene.plan("--audit", "--dry-run"),
    "explain-nothing": lambda scene: explained(scene, " "),
    "explain-secret": lambda scene: explained(scene, "ghp_0123456789abcdefghijklmnopqrstuvwxyz"),
    "explain-unknown": lambda scene: explained(scene, "$1"),
    "mistake-letters": lambda scene: scene.plan("--netwrok", "none"),
    "mistake-one-dash": lambda scene: scene.plan("-network", "none", "-p", "hello"),
    "mistake-pasted-dash": lambda scene: scene.plan("–network", "none"),  # noqa: RUF001
    "mistake-pasted-dash-of-no-option": lambda scene: scene.plan("—zebra"),
    "mistake-no-dash": lambda scene: scene.plan("network", "none"),
    "mistake-not-clear-whose": lambda scene: scene.plan("mcp", "add", "x", "--env", "KEY=VALUE"),
    "mistake-removed": lambda scene: scene.plan("--claude", "/opt/claude"),
    "mistake-removed-profile": lambda scene: scene.plan("--profile", "node"),
    "argument-json-alone": lambda scene: scene.plan("--json"),
    "argument-check-with-words": lambda scene: scene.plan("--check", "inet"),
    "mistake-variable": lambda scene: scene.with_environ(CLAUDEBOX_NETWROK="none").plan(),
    "mistake-variable-of-nothing": lambda scene: scene.with_environ(CLAUDEBOX_ZEBRA="x").plan(),
    "mistake-limit-without-broker": lambda scene: scene.plan("--auth-limit", "requests=abc"),
    "argument-against-alone": lambda scene: scene.plan("--against", "env"),
    "env-bad-name": lambda scene: scene.plan("--env", "A-B=1"),
    "drop-env-bad-name": lambda scene: scene.plan("--drop-env", "A=1"),
    "drop-env-made-by-the-box": lambda scene: scene.plan("--drop-env", "HOME"),
    "drop-env-made-by-the-box-by-project": lambda scene: with_project_file(scene, "drop_env = ['PATH']").plan(),
    "env-made-by-the-box": lambda scene: scene.plan("--env", "HOME"),
    "env-path-without-value": lambda scene: scene.plan("--env", "PATH"),
    "env-key-without-its-gateway": lambda scene: scene.with_environ(
        ANTHROPIC_BASE_URL="https://gateway.example", ANTHROPIC_API_KEY="x"
    ).plan("--drop-env", "ANTHROPIC_BASE_URL", "--env", "ANTHROPIC_API_KEY"),
    "env-secret-in-arguments": lambda scene: scene.plan("--env", "LD_SDK_KEY=sdk-0123"),
}
