"""Every Problem that claudebox can have, provoked, and what it then says."""

from __future__ import annotations

import ast
import errno
import os
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import claudebox
from claudebox import cli, demo, instances, prove
from claudebox.explain import explain
from claudebox.features.broker import act as launch_broker
from claudebox.features.broker.server.run import make_session
from claudebox.features.claude import configuration as imported
from claudebox.features.limits import act as limits
from claudebox.features.login import act as beside
from claudebox.features.login import exchange as login
from claudebox.features.network import act as network
from claudebox.features.nix import ask_closure as nix_closure
from claudebox.features.nix import fetch as packages
from claudebox.features.nix.act import try_builds as nix_trial
from claudebox.features.nix.packages import Errand, strict_problem
from claudebox.features.secrets import masks, memory
from claudebox.host import read_host
from claudebox.host import walk as project
from claudebox.host.people import find_person
from claudebox.host.tree import Tree
from claudebox.launch import box, descriptors, inspection, landlock, namespaces
from claudebox.model import BY_DEFAULT, RW, Broker, Limits, Login, Mount, Network, Nix, Origin, Port, Preparation
from claudebox.plan import make_plan
from claudebox.prepare import prepare as state
from claudebox.problem import CANNOT_EXECUTE, FAILED, NOT_FOUND, Problem
from claudebox.prove.probe import keyring
from claudebox.prove.run import Attempt
from claudebox.settings.gather import gather
from claudebox.settings.values import PROJECT_FILE, merge
from claudebox.settings.words import parse
from claudebox.state import State, instance_name
from claudebox.terminal import ask as claude_trial
from claudebox.view.completion import completion
from claudebox.view.text import WIDTH, width
from golden import Golden
from hosts.machine import EVERYONE, TREES, Machine

SOURCE = Path(claudebox.__file__).parent
STATE_OF_SHOP = f"~/.claudebox/instances/{instance_name('/home/alice/shop')}"


class Scene:
    """A fake Debian, and what is needed to make it fail."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch
        self.machine = Machine(root)
        self.machine.plant((TREES / "debian12.txt").read_text()).plant(EVERYONE.read_text())

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


def setuid_bwrap(scene: Scene) -> None:
    (scene.machine.root / "usr/bin/bwrap").chmod(0o4755)
    scene.plan()


def setuid_bwrap_before_another(scene: Scene) -> None:
    scene.planted("/opt/bin/bwrap*").with_environ(PATH="/usr/bin:/opt/bin")
    setuid_bwrap(scene)


def program_from_the_project(name: str) -> Callable[[Scene], None]:
    def provoke(scene: Scene) -> None:
        path = f"~/shop/node_modules/.bin/{name}*: ELF"
        scene.planted(path).with_environ(PATH="/home/alice/shop/node_modules/.bin:/usr/bin").plan()

    return provoke


def no_proc_of_its_own(scene: Scene) -> None:
    scene.monkeypatch.setattr(namespaces, "is_restricted", lambda: False)
    scene.monkeypatch.setattr(namespaces, "c_function", lambda _: lambda *_: -1)
    namespaces._renew_proc()


def store_that_changes(scene: Scene) -> None:
    """While Nix was asked about it."""
    nix = Nix("private", "", Origin.of_option("--nix"), roots=("/nix/store/x",))
    plan = scene.machine.plan().replace(nix=nix)
    scene.monkeypatch.setattr(nix_closure, "look_up_closure", lambda *_: None)
    scene.monkeypatch.setattr(cli, "make_plan", lambda *_: plan)
    cli.ask_nix(scene.machine.host(), parse([]), merge([]), plan)


def daemon_that_changes(scene: Scene) -> None:
    """While it was tried."""
    plan = scene.machine.plan().replace(nix=Nix("daemon", "", BY_DEFAULT, needs_trial=True))
    scene.monkeypatch.setattr(nix_trial, "try_builds", lambda *_: None)
    scene.monkeypatch.setattr(cli, "make_plan", lambda *_: plan)
    cli.ask_nix(scene.machine.host(), parse([]), merge([]), plan)


def store_without_nix(scene: Scene) -> None:
    scene.without("/usr/bin/git").with_environ(PATH="/opt/nothing")
    nix_closure.look_up_closure(scene.machine.host(), ("/nix/store/x",))


def probe_that_fails(scene: Scene, *said: str) -> None:
    """Outside of the box, or in it: one of the two says nothing of use."""
    attempts = iter(Attempt({}, error) for error in said)
    scene.monkeypatch.setattr(prove, "read_host", scene.machine.host)
    scene.monkeypatch.setattr(prove, "set_stage", lambda *_, **__: None)
    for name in ("run_outside", "run_inside"):
        scene.monkeypatch.setattr(prove, name, lambda *_: next(attempts))
    prove.prove(parse(["--prove"]))


def nix_without_programs(scene: Scene) -> None:
    machine = Machine(scene.machine.root / "nix-host", environ={"PATH": "/opt/bin"})
    machine.plant("/nix/store/x/\n/opt/bin/bwrap*\n/usr/bin/env*").plant(EVERYONE.read_text()).plan()


def neither_env_nor_python(scene: Scene) -> None:
    scene.without("/usr/bin/env").planted("/usr/bin/busybox*\n/usr/bin/env -> busybox")
    scene.machine.python = "/home/alice/.pyenv/bin/python3"
    scene.plan()


def unknown_architecture(scene: Scene) -> None:
    scene.machine.architecture = "riscv64"
    scene.plan()


def refused_answer(scene: Scene) -> None:
    scene.monkeypatch.setattr(cli, "_ask", lambda _: "n")
    scene.monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    scene.monkeypatch.setattr(sys.stderr, "write", lambda _: 0)
    cli.confirm(scene.machine.host(), scene.machine.plan(), parse([]))


def nobody_to_ask(scene: Scene) -> None:
    scene.monkeypatch.setattr(sys.stderr, "write", lambda _: 0)
    cli.confirm(scene.machine.host(), scene.machine.plan(), parse([]))


def directory_as_standard_input(scene: Scene) -> None:
    kept = os.dup(0)
    directory = os.open("/", os.O_RDONLY)
    os.dup2(directory, 0)
    try:
        box.launch(scene.machine.plan())
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        os.close(directory)


def bwrap_gone_at_the_last_moment(scene: Scene) -> None:
    # The test's own descriptors and signals have to survive.
    scene.monkeypatch.setattr(box, "close_all_but", lambda _: None)
    scene.monkeypatch.setattr(box, "_set_signals", lambda: None)
    box._become_bwrap(scene.machine.plan().replace(bwrap="/nonexistent/bwrap"), ["bwrap"], [])


def source_replaced(scene: Scene) -> None:
    directory = scene.machine.root / "real"
    directory.mkdir()
    (scene.machine.root / "link").symlink_to(directory)
    path = "/home/alice/shop"
    scene.monkeypatch.setattr(
        inspection, "open_without_symlinks", lambda _: os.open(scene.machine.root / "link", os.O_PATH | os.O_NOFOLLOW)
    )
    status = os.stat(directory)
    mount = Mount(RW, path, Origin.of_rule("project"), source=path, identity=(status.st_dev, status.st_ino))
    inspection.expect(scene.machine.plan().replace(mounts=(mount,)))


def working_directory_gone(scene: Scene) -> None:
    gone = scene.machine.root / "gone"
    gone.mkdir()
    scene.monkeypatch.chdir(gone)
    gone.rmdir()
    read_host()


def shim_of_a_version_manager(scene: Scene) -> None:
    scene.planted("~/.asdf/shims/claude*: #!/usr/bin/env bash\\nexec asdf exec claude\n/usr/bin/bash*")
    scene.with_environ(PATH="/home/alice/.asdf/shims:/usr/bin").plan()


def claude_on_the_path_not_executable(scene: Scene) -> None:
    scene.planted("/opt/bin/claude: ELF").with_environ(PATH="/opt/bin:/usr/bin").plan()


def state_with(scene: Scene, name: str) -> None:
    """The state of the project holds this, and belongs to the user."""
    scene.machine.uid = os.getuid()
    scene.planted(f"{STATE_OF_SHOP}/{name}").plan()


def state_of_another(scene: Scene) -> None:
    lstat = Tree.lstat

    def belongs_to_bob(tree: Tree, path: str) -> os.stat_result | None:
        status = lstat(tree, path)
        return status and os.stat_result((*status[:4], 1001, *status[5:]))

    scene.monkeypatch.setattr(Tree, "lstat", belongs_to_bob)
    scene.planted(f"{STATE_OF_SHOP}/claude/").plan()


def state_cannot_be_written(scene: Scene) -> None:
    state.prepare((Preparation(Preparation.FILE, "/dev/null/state"),), "")


def refused_to_remove(scene: Scene) -> None:
    gone = instances.Listed("/x", "/home/alice/gone", 0.0, 0, True)
    scene.monkeypatch.setattr(instances, "find_instances", lambda _: [gone])
    scene.monkeypatch.setattr(cli, "show", lambda _: None)
    scene.monkeypatch.setattr(cli, "_ask", lambda _: "")
    cli.tend_instances(collect=True, yes=False)


def failed_to_remove(scene: Scene) -> None:
    instances.remove(instances.Listed("/nonexistent/instance", "/home/alice/gone", 0.0, 0, True))


def own_failure(_: Scene) -> None:
    raise cli.own_failure(ZeroDivisionError("division by zero"))


def login_not_handed_over(scene: Scene) -> None:
    directory = str(scene.machine.root / "gone" / "auth")
    scene.monkeypatch.setattr(login, "exchange", lambda _: os.stat("/nonexistent"))
    beside.start_beside(Login("/home/alice/.claude/.credentials.json", directory, "/nonexistent/own", "/run/auth"))


def scopes_refused(scene: Scene) -> None:
    def refuse(number: int, *_: object) -> int:
        return landlock.SCOPES_SINCE if number == landlock.CREATE_RULESET and _[-1] == landlock.ASK_VERSION else -1

    scene.monkeypatch.setattr(landlock, "_system_call", lambda: refuse)
    landlock.scope_to_box()


def keyring_refused(scene: Scene) -> None:
    def refuse(_: int, what: int, *__: int) -> int:
        return -1 if what == keyring.JOIN_SESSION else 1

    scene.monkeypatch.setattr(keyring, "c_function", lambda _: refuse)
    keyring.leave_session_keyring()


def demo_without_git(scene: Scene) -> None:
    scene.monkeypatch.setattr(shutil, "which", lambda _: None)
    scene.monkeypatch.setattr(demo, "install_command", lambda *_: "sudo apt install git")
    demo.run_demo()


def with_uplink(scene: Scene) -> Scene:
    return scene.planted("/usr/bin/pasta*\n/usr/sbin/nft*")


def without_a_default_route(scene: Scene, *words: str) -> None:
    scene.machine.neighbourhood = scene.machine.neighbourhood.replace(has_ipv4=False, has_ipv6=False)
    with_uplink(scene).plan("--network", *words)


def namespace_refused(scene: Scene, *, by_apparmor: bool = False) -> None:
    scene.monkeypatch.setattr(namespaces, "c_function", lambda _: lambda *_: -1)
    scene.monkeypatch.setattr(namespaces, "is_restricted", lambda: by_apparmor)
    namespaces.enter_network_namespace()


def namespace_without_a_user(scene: Scene) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    scene.monkeypatch.setattr(namespaces, "c_function", lambda _: lambda *_: 0)
    scene.monkeypatch.setattr(namespaces, "write", refuse)
    scene.monkeypatch.setattr(namespaces, "is_restricted", lambda: True)
    namespaces.fork_into_namespaces()


def filter_refused(scene: Scene) -> None:
    scene.monkeypatch.setattr(namespaces, "is_restricted", lambda: False)
    raise network._filter_problem("netlink: Error: cache initialization failed: Protocol not supported")


def pasta_ends(scene: Scene, *published: int, log: str) -> None:
    scene.monkeypatch.setattr(namespaces, "is_restricted", lambda: False)
    ports = tuple(Port(port, port, Origin.of_option("--publish")) for port in published)
    raise network._pasta_problem(Network("inet", "", Origin.of_option("--network"), ports), log)


def standard_input_cannot_be_read(scene: Scene) -> None:
    kept = os.dup(0)
    file = os.open(scene.machine.root / "file", os.O_WRONLY | os.O_CREAT)
    os.dup2(file, 0)
    try:
        box.launch(scene.machine.plan())
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        os.close(file)


def settings_too_deep(scene: Scene) -> None:
    def sink(*_: object) -> None:
        raise RecursionError

    scene.monkeypatch.setattr(imported, "admit_settings", sink)
    scene.planted("~/.claude/settings.json: {}").plan()


def standard_output_closed(scene: Scene) -> None:
    scene.monkeypatch.setattr(sys, "stdout", None)
    cli.show("text")


def standard_output_full(scene: Scene) -> None:
    kept = os.dup(1)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, 1)
    try:
        cli.show("text")
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(full)


def with_file(scene: Scene, text: str, name: str = "~/.claudebox/config.toml") -> Scene:
    return scene.planted(f"{name}: {text}")


def with_project_file(scene: Scene, text: str) -> Scene:
    return with_file(scene, text, f"~/shop/{PROJECT_FILE}")


def with_profile(scene: Scene, text: str, name: str = "aws.toml") -> Scene:
    return with_file(scene, text, f"~/.claudebox/profiles/{name}")


def with_nix(scene: Scene) -> Scene:
    return scene.planted("/usr/bin/nix*\n/nix/store/x")


def flake_in_another_project(scene: Scene) -> None:
    scene.planted("~/.claudebox/instances/x/project: ~/other\\n\n~/other/flake.nix\n~/tools -> other")
    with_nix(scene).plan("--package", "~/tools#hello")


def flake_around_the_project(scene: Scene) -> None:
    scene.planted("~/code/flake.nix\n~/code/shop/").in_directory("/home/alice/code/shop")
    with_nix(scene).plan("--package", "git+file:///home/alice/code#hello")


def registry_leads_to_the_project(scene: Scene) -> None:
    entry = '{"from": {"type": "indirect", "id": "nixpkgs"}, "to": {"type": "path", "path": "/home/alice/shop"}}'
    scene.planted(f'~/.config/nix/registry.json: {{"flakes": [{entry}]}}')
    with_nix(scene).plan("--package", "hello")


def strict_about_packages(scene: Scene) -> None:
    reason = "flake 'flake:nixpkgs' does not provide attribute 'packages.x86_64-linux.helo', 'helo'"
    raise strict_problem({"nixpkgs#helo": reason, "nixpkgs#other": "is not there"})


def nix_gone_at_the_last_moment(scene: Scene) -> None:
    packages._ask_version(Errand("/nonexistent/nix", {}, ("nixpkgs#hello",), State("/nonexistent"), ""))


def profiles_in_a_circle(scene: Scene) -> None:
    with_profile(scene, "profiles = ['cloud']")
    with_profile(scene, "profiles = ['aws']", "cloud.toml").plan("--profile", "aws")


def profile_twice(scene: Scene) -> None:
    with_profile(with_profile(scene, "hide = []"), "{}", "aws.json").plan("--profile", "aws")


def mount_turned_by_an_agent(scene: Scene) -> None:
    scene.planted("~/shop/data -> ~/other")
    with_file(scene, "mounts = [{ host = 'data' }]").plan()


def project_asks_for_too_much(scene: Scene) -> None:
    names = ", ".join(f"'file{number}'" for number in range(501))
    with_project_file(scene, f"hide = [{names}]").plan()


def with_systemd(scene: Scene) -> Scene:
    return scene.planted("/usr/bin/busctl*\n/run/user/1000/bus\n/run/user/1000/systemd/private")


def limit_not_delegated(scene: Scene) -> None:
    scene.planted("/sys/fs/cgroup/cgroup.controllers: cpu memory pids")
    group = "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service"
    with_systemd(scene).planted(f"{group}/cgroup.controllers: memory pids").plan("--memory", "4G", "--cpu", "2")


def limit_refused(scene: Scene, busctl: str) -> None:
    scene.monkeypatch.setattr(limits, "PATIENCE", 0.05)
    limits.put_into_force(Limits(busctl, 1 << 30, 0, 0))


def userns_as_root(scene: Scene) -> None:
    scene.machine.uid = 0
    scene.plan("--userns", "on")


def many_secrets(scene: Scene, limit: str) -> None:
    scene.monkeypatch.setattr(masks, limit, 1)
    scene.planted("~/shop/.env: KEY=one\n~/shop/app/.env: KEY=two").plan()


def secret_gone_from_a_large_project(scene: Scene) -> None:
    scene.monkeypatch.setattr(project, "MOST_SEARCHED", 1)
    record = f"{memory.OLD_HEADER}\0" + "4711\nvalues\nvariables of the program\n/home/alice/shop/app/.env"
    scene.planted(f"{STATE_OF_SHOP}/masked\n~/shop/a\n~/shop/b")
    path = scene.machine.root / f"home/alice/{STATE_OF_SHOP[2:]}/masked"
    path.write_text(record)
    scene.machine.uid = path.stat().st_uid
    scene.plan()


def memory_of_masks_is_damaged(scene: Scene) -> None:
    scene.planted(f"{STATE_OF_SHOP}/masked: half of a").plan()


def too_many_masks_to_remember(scene: Scene) -> None:
    scene.monkeypatch.setattr(memory, "FORM", memory.FORM.replace(largest=1))
    scene.planted("~/shop/.env: KEY=one\n~/shop/app/.env: KEY=two").plan()


def secret_with_another_name_in_a_large_project(scene: Scene) -> None:
    scene.monkeypatch.setattr(project, "MOST_SEARCHED", 1)
    scene.planted("~/shop/.env: KEY=one\n~/shop/b")
    env = scene.machine.root / "home/alice/shop/.env"
    (env.parent / "other").hardlink_to(env)
    scene.plan()


def explained(scene: Scene, thing: str) -> None:
    host, request = scene.machine.host(), parse(["--explain", thing])
    settings = gather(host, request).settings
    explain(make_plan(host, request, settings), host, settings, thing)


def socket_as_standard_input(scene: Scene) -> None:
    kept = os.dup(0)
    with socket.socket() as stream:
        os.dup2(stream.fileno(), 0)
        try:
            descriptors.refuse_internet_sockets()
        finally:
            os.dup2(kept, 0)
            os.close(kept)


def too_much_to_guard(scene: Scene) -> None:
    scene.planted("\n".join(f"~/shop/{number}/.envrc" for number in range(1001))).plan()


BROKER = Broker(
    *("ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY", "", "", "", "", "ANTHROPIC_AUTH_TOKEN"),
    *("/proc/nowhere", "/run/broker", "/nonexistent/journal"),
)


def broker_tries_itself(scene: Scene, **environ: str) -> None:
    """With what the environment says."""
    make_session(BROKER.replace(url=environ.get("ANTHROPIC_BASE_URL", "")), {"ANTHROPIC_API_KEY": "x", **environ}, "")


def dead_broker() -> launch_broker.Companion:
    life, other = os.pipe()
    os.close(other)
    return launch_broker.Companion(life, "/nonexistent")


def old_kernel(scene: Scene) -> Scene:
    def refuse(_: int) -> int:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    scene.monkeypatch.setattr(os, "pidfd_open", refuse)
    return scene


def broker_on_old_kernel(scene: Scene) -> None:
    plan = old_kernel(scene).machine.plan()
    launch_broker.start_broker(plan, BROKER.replace(sockets=str(scene.machine.root / "broker")))


def login_on_old_kernel(scene: Scene) -> None:
    old_kernel(scene).monkeypatch.setattr(beside, "is_current", lambda _: True)
    beside.start_beside(Login("/home/alice/.claude/.credentials.json", "/nonexistent", "/nonexistent", "/run/auth"))


def claude_without_socket_or_python(scene: Scene) -> None:
    scene.machine.python = "/home/alice/.pyenv/bin/python3"
    old = "/opt/claude/versions/2.0.76"
    scene.planted(f"{old}*: ELF").with_environ(ANTHROPIC_API_KEY="x").plan("--auth", "broker", "--claude", old)


def claude_that_changes(scene: Scene) -> None:
    """While it was asked."""
    scene.with_environ(ANTHROPIC_API_KEY="x")
    plan = scene.machine.plan("--auth", "broker")
    scene.monkeypatch.setattr(claude_trial, "ask_claude", lambda *_: None)
    scene.monkeypatch.setattr(cli, "make_plan", lambda *_: plan)
    cli.ask_claude(scene.machine.host(), parse([]), merge([]), plan)


def broker_that_ended(scene: Scene) -> None:
    problem = dead_broker().end()
    assert problem is not None
    raise problem


def asked_of_the_broker(*words: str, **environ: str) -> Callable[[Scene], None]:
    def provoke(scene: Scene) -> None:
        scene.with_environ(**environ).plan("--auth", "broker", *words)

    return provoke


BROKER_PROBLEMS: dict[str, tuple[Callable[[Scene], object], int]] = {
    "broker-provider": (asked_of_the_broker(CLAUDE_CODE_USE_BEDROCK="1"), FAILED),
    "broker-no-credential": (
        lambda scene: scene.without("/home/alice/.claude/.credentials.json").plan("--auth", "broker"),
        FAILED,
    ),
    "broker-no-key": (asked_of_the_broker(ANTHROPIC_API_KEY="two words"), FAILED),
    "broker-limit": (asked_of_the_broker("--auth-limit", "cups=3", ANTHROPIC_API_KEY="x"), FAILED),
    "broker-env": (asked_of_the_broker("--env", "ANTHROPIC_API_KEY", ANTHROPIC_API_KEY="key-of-alice"), FAILED),
    "broker-no-tls": (
        asked_of_the_broker(ANTHROPIC_BASE_URL="http://localhost:4000", ANTHROPIC_API_KEY="x"),
        FAILED,
    ),
    "broker-no-login": (
        lambda scene: scene.planted("~/.claude/.credentials.json: {}").plan("--auth", "broker"),
        FAILED,
    ),
    "broker-address": (lambda scene: broker_tries_itself(scene, ANTHROPIC_BASE_URL="http://gateway.example"), FAILED),
    "broker-proxy": (lambda scene: broker_tries_itself(scene, HTTPS_PROXY="socks5://localhost:1080"), FAILED),
    "broker-certificates": (lambda scene: broker_tries_itself(scene, NODE_EXTRA_CA_CERTS="/nonexistent"), FAILED),
    "broker-no-socket": (lambda scene: launch_broker.start_broker(scene.machine.plan(), BROKER), FAILED),
    "broker-ends": (lambda _: dead_broker().require_ready(os.pidfd_open(os.getpid())), FAILED),
    "broker-without-python": (claude_without_socket_or_python, FAILED),
    "broker-ended": (broker_that_ended, FAILED),
    "broker-old-kernel": (broker_on_old_kernel, FAILED),
    "login-old-kernel": (login_on_old_kernel, FAILED),
    "broker-claude-changed": (claude_that_changes, FAILED),
}
PROBLEMS: dict[str, tuple[Callable[[Scene], object], int]] = {
    **BROKER_PROBLEMS,
    "argument-run-needs-command": (lambda scene: scene.plan("--run"), FAILED),
    "argument-run-with-value": (lambda scene: scene.plan("--run=make"), FAILED),
    "argument-switch-with-value": (lambda scene: scene.plan("--yes=please"), FAILED),
    "argument-value-missing": (lambda scene: scene.plan("--mount-ro"), FAILED),
    "argument-shell-with-words": (lambda scene: scene.plan("--shell", "ls"), FAILED),
    "argument-run-after-words": (lambda scene: scene.plan("-p", "--run", "true"), FAILED),
    "argument-instances-with-words": (lambda scene: scene.plan("--instances", "foo"), FAILED),
    "argument-two-modes": (lambda scene: scene.plan("--audit", "--dry-run"), FAILED),
    "answer-no": (refused_answer, FAILED),
    "answer-impossible": (nobody_to_ask, FAILED),
    "guard-too-much": (too_much_to_guard, FAILED),
    "auth-unknown": (lambda scene: scene.plan("--auth", "magic"), FAILED),
    "bwrap-missing": (lambda scene: scene.without("/usr/bin/bwrap").plan(), FAILED),
    "bwrap-named-missing": (lambda scene: scene.plan("--bwrap", "/opt/bwrap"), FAILED),
    "bwrap-in-project": (program_from_the_project("bwrap"), FAILED),
    "bwrap-setuid": (setuid_bwrap, FAILED),
    "bwrap-setuid-before-another": (setuid_bwrap_before_another, FAILED),
    "bwrap-gone": (bwrap_gone_at_the_last_moment, CANNOT_EXECUTE),
    "source-replaced": (source_replaced, FAILED),
    "claude-missing": (lambda scene: scene.with_environ(PATH="/usr/bin").plan(), NOT_FOUND),
    "claude-named-missing": (lambda scene: scene.plan("--claude", "/opt/claude"), NOT_FOUND),
    "claude-named-by-variable-missing": (
        lambda scene: scene.with_environ(CLAUDEBOX_CLAUDE="/opt/claude").plan(),
        NOT_FOUND,
    ),
    "claude-not-executable": (
        lambda scene: scene.planted("/opt/claude: ELF").plan("--claude", "/opt/claude"),
        CANNOT_EXECUTE,
    ),
    "claude-on-path-not-executable": (claude_on_the_path_not_executable, CANNOT_EXECUTE),
    "claude-is-a-shim": (shim_of_a_version_manager, FAILED),
    "claude-in-project": (program_from_the_project("claude"), FAILED),
    "claude-without-interpreter": (
        lambda scene: scene.planted("/opt/claude*: #!/usr/bin/env node\\n").plan("--claude", "/opt/claude"),
        CANNOT_EXECUTE,
    ),
    "claude-directory-in-project": (
        lambda scene: scene.with_environ(CLAUDE_CONFIG_DIR="/home/alice/shop/cc").plan(),
        FAILED,
    ),
    "claude-needs-a-secret": (
        lambda scene: scene.planted("~/.ssh/tool*: x\n/opt/claude*: #!/home/alice/.ssh/tool\\n").plan(
            "--claude", "/opt/claude"
        ),
        FAILED,
    ),
    "env-bad-name": (lambda scene: scene.plan("--env", "A-B=1"), FAILED),
    "drop-env-bad-name": (lambda scene: scene.plan("--drop-env", "A=1"), FAILED),
    "drop-env-made-by-the-box": (lambda scene: scene.plan("--drop-env", "HOME"), FAILED),
    "drop-env-made-by-the-box-by-project": (
        lambda scene: with_project_file(scene, "drop_env = ['PATH']").plan(),
        FAILED,
    ),
    "completion-unknown": (lambda _: completion("tcsh"), FAILED),
    "env-made-by-the-box": (lambda scene: scene.plan("--env", "HOME"), FAILED),
    "env-path-without-value": (lambda scene: scene.plan("--env", "PATH"), FAILED),
    "env-secret-in-arguments": (lambda scene: scene.plan("--env", "LD_SDK_KEY=sdk-0123"), FAILED),
    # One for all: tests/layers has every message about a file.
    "file-with-unknown-key": (lambda scene: scene.planted("~/.claudebox/config.toml: hdie = []").plan(), FAILED),
    "explain-nothing": (lambda scene: explained(scene, " "), FAILED),
    "explain-no-port": (lambda scene: explained(scene, "65536"), FAILED),
    "explain-secret": (lambda scene: explained(scene, "ghp_0123456789abcdefghijklmnopqrstuvwxyz"), FAILED),
    "explain-unknown": (lambda scene: explained(scene, "$1"), FAILED),
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
    "hide-project": (lambda scene: scene.plan("--hide", "."), FAILED),
    "hide-above-project-by-file": (lambda scene: with_file(scene, "hide = ['~']").plan(), FAILED),
    "home-relative": (
        lambda scene: find_person(scene.machine.host().tree, 4242, 4242, "somewhere"),
        FAILED,
    ),
    "home-is-root": (lambda scene: scene.with_environ(HOME="/").plan(), FAILED),
    "demo-without-git": (demo_without_git, FAILED),
    "input-is-a-socket": (socket_as_standard_input, FAILED),
    "project-file-hides-by-variable": (
        lambda scene: scene.planted('~/shop/.claudebox.toml: hide = ["$PIN"]').plan(),
        FAILED,
    ),
    "input-unreadable": (standard_input_cannot_be_read, FAILED),
    "settings-too-deep": (settings_too_deep, FAILED),
    "instance-stays": (failed_to_remove, FAILED),
    "login-not-handed-over": (login_not_handed_over, FAILED),
    "own-failure": (own_failure, FAILED),
    "keyring-refused": (keyring_refused, FAILED),
    "scopes-refused": (scopes_refused, FAILED),
    "instances-not-removed": (refused_to_remove, FAILED),
    "machine-unknown": (unknown_architecture, FAILED),
    "mount-missing": (lambda scene: scene.plan("--mount-ro", "/srv/gone"), FAILED),
    "mount-missing-by-file": (lambda scene: with_file(scene, "mounts = [{ host = '~/gone' }]").plan(), FAILED),
    "mount-secret-by-file": (lambda scene: with_file(scene, "mounts = [{ host = '~/.ssh' }]").plan(), FAILED),
    "mount-turned-by-an-agent": (mount_turned_by_an_agent, FAILED),
    "mount-without-path": (lambda scene: scene.plan("--mount-ro", ""), FAILED),
    "mount-home": (lambda scene: scene.plan("--mount-ro", "~"), FAILED),
    "userns-as-root": (userns_as_root, FAILED),
    "limit-no-amount": (lambda scene: scene.plan("--memory", "4X"), FAILED),
    "limit-too-little": (lambda scene: scene.plan("--pids", "3"), FAILED),
    "limit-without-systemd": (lambda scene: scene.plan("--memory", "4G"), FAILED),
    "limit-without-a-bus": (lambda scene: scene.planted("/usr/bin/busctl*").plan("--memory", "4G"), FAILED),
    "limit-with-old-groups": (lambda scene: with_systemd(scene).plan("--cpu", "2"), FAILED),
    "limit-not-delegated": (limit_not_delegated, FAILED),
    "limit-refused": (lambda scene: limit_refused(scene, "/bin/false"), FAILED),
    "limit-without-effect": (lambda scene: limit_refused(scene, "/bin/true"), FAILED),
    "mount-root": (lambda scene: scene.plan("--mount-ro", "/"), FAILED),
    "mount-secret": (lambda scene: scene.plan("--mount-ro", "~/.ssh"), FAILED),
    "mount-inside-secret": (lambda scene: scene.plan("--mount-ro", "~/.ssh/id_ed25519"), FAILED),
    "mount-secret-through-symlink": (
        lambda scene: scene.planted("~/keys -> .ssh").plan("--mount-ro", "~/keys"),
        FAILED,
    ),
    "mount-system-writable": (lambda scene: scene.plan("--mount-rw", "/usr/lib"), FAILED),
    "mount-over-passwd": (lambda scene: scene.plan("--mount-ro", "~/other/notes.txt:/etc/passwd"), FAILED),
    "mount-destination-missing": (lambda scene: scene.plan("--mount-ro", "~/other:/usr/gone"), FAILED),
    "mount-file-over-directory": (lambda scene: scene.plan("--mount-ro", "~/other/notes.txt:/usr/lib"), FAILED),
    "network-unknown": (lambda scene: scene.plan("--network", "lan"), FAILED),
    "network-unknown-by-variable": (lambda scene: scene.with_environ(CLAUDEBOX_NETWORK="lan").plan(), FAILED),
    "network-ports-with-full": (lambda scene: scene.plan("--host-port", "5432"), FAILED),
    "network-programs-missing": (lambda scene: scene.plan("--network", "inet"), FAILED),
    "network-pasta-missing": (
        lambda scene: scene.planted("/usr/sbin/nft*").plan("--network", "none", "--publish", "80"),
        FAILED,
    ),
    "network-pasta-in-project": (
        lambda scene: (
            scene.planted("~/shop/pasta*\n/usr/sbin/nft*")
            .with_environ(CLAUDEBOX_PASTA="pasta")
            .plan("--network", "inet")
        ),
        FAILED,
    ),
    "network-nft-named-missing": (
        lambda scene: with_uplink(scene).plan("--network", "inet", "--nft", "/opt/nft"),
        FAILED,
    ),
    "network-no-default-route": (lambda scene: without_a_default_route(scene, "inet"), FAILED),
    "network-no-default-route-for-ports": (
        lambda scene: without_a_default_route(scene, "none", "--publish", "3000"),
        FAILED,
    ),
    "network-namespace-refused": (namespace_refused, FAILED),
    "network-namespace-refused-by-apparmor": (lambda scene: namespace_refused(scene, by_apparmor=True), FAILED),
    "network-namespace-without-a-user": (namespace_without_a_user, FAILED),
    "network-filter-refused": (filter_refused, FAILED),
    "network-pasta-silent": (lambda scene: pasta_ends(scene, log=""), FAILED),
    "network-pasta-fails": (
        lambda scene: pasta_ends(scene, 3000, log="x\nFailed to open tun socket in namespace"),
        FAILED,
    ),
    "argument-against-alone": (lambda scene: scene.plan("--against", "env"), FAILED),
    "prove-not-outside": (lambda scene: probe_that_fails(scene, "no such file"), FAILED),
    "prove-not-inside": (lambda scene: probe_that_fails(scene, "", "bwrap: no such file (status 1)"), FAILED),
    "namespace-proc": (no_proc_of_its_own, FAILED),
    "nix-closure-without-nix": (store_without_nix, FAILED),
    "nix-closure-changed": (store_that_changes, FAILED),
    "nix-daemon-changed": (daemon_that_changes, FAILED),
    "nix-no-daemon": (lambda scene: scene.planted("/nix/store/x/").plan("--nix", "daemon"), FAILED),
    "nix-no-store": (lambda scene: scene.plan("--nix", "store"), FAILED),
    "nix-without-programs": (nix_without_programs, FAILED),
    "output-closed": (standard_output_closed, FAILED),
    "output-full": (standard_output_full, FAILED),
    "package-looks-like-an-option": (lambda scene: with_nix(scene).plan("--package=--impure"), FAILED),
    "package-of-an-unknown-scheme": (lambda scene: with_nix(scene).plan("--package", "ext::sh#x"), FAILED),
    "package-on-another-host": (lambda scene: with_nix(scene).plan("--package", "git+file://host/x"), FAILED),
    "package-path-with-escapes": (lambda scene: with_nix(scene).plan("--package", "path:/srv/%73hop"), FAILED),
    "package-in-the-project": (lambda scene: with_nix(scene).plan("--package", ".#hello"), FAILED),
    "package-in-another-project": (flake_in_another_project, FAILED),
    "package-around-the-project": (flake_around_the_project, FAILED),
    "package-registered-in-the-project": (registry_leads_to_the_project, FAILED),
    "package-missing-place": (lambda scene: with_nix(scene).plan("--package", "/srv/gone#hello"), FAILED),
    "package-without-nix": (lambda scene: scene.plan("--package", "hello"), FAILED),
    "package-without-nix-on-arch": (
        lambda scene: scene.without("/etc/os-release").planted("/etc/os-release: ID=arch").plan("--package", "hello"),
        FAILED,
    ),
    "package-without-nix-elsewhere": (
        lambda scene: scene.without("/etc/os-release").planted("/etc/os-release: ID=x").plan("--package", "hello"),
        FAILED,
    ),
    "package-without-store": (lambda scene: scene.planted("/usr/bin/nix*").plan("--package", "hello"), FAILED),
    "package-with-nix-off": (lambda scene: with_nix(scene).plan("--package", "hello", "--nix", "off"), FAILED),
    "package-strict": (strict_about_packages, FAILED),
    "package-nix-gone": (nix_gone_at_the_last_moment, FAILED),
    "port-is-no-number": (lambda scene: scene.plan("--publish", "http"), FAILED),
    "port-too-large": (lambda scene: scene.plan("--host-port", "65536"), FAILED),
    "port-of-the-host-with-another": (lambda scene: scene.plan("--host-port", "80:8080"), FAILED),
    "port-both-ways": (
        lambda scene: scene.plan("--network", "inet", "--publish", "8080:80", "--host-port", "80"),
        FAILED,
    ),
    "port-published-twice": (lambda scene: scene.plan("--publish", "80:8080", "--publish", "80:8081"), FAILED),
    "port-taken": (
        lambda scene: pasta_ends(scene, 3000, log="Failed to bind any port for '-t 127.0.0.1/3000:3000', exiting"),
        FAILED,
    ),
    "port-too-low": (
        lambda scene: pasta_ends(scene, 3000, 80, log="Failed to bind any port for '-t 127.0.0.1/80:80', exiting"),
        FAILED,
    ),
    "port-taken-says-a-newer-pasta": (
        lambda scene: pasta_ends(
            scene,
            3000,
            log="Listen failed for HOST TCP port 127.0.0.1/3000: Address already in use\n"
            "Couldn't listen on requested ports",
        ),
        FAILED,
    ),
    "port-published-twice-by-file": (
        lambda scene: with_file(scene, "publish = ['80:8080']").plan("--network", "none", "--publish", "80"),
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
    "project-secrets-candidates": (lambda scene: many_secrets(scene, "MOST_CANDIDATES"), FAILED),
    "project-secrets-masks": (lambda scene: many_secrets(scene, "MOST_MASKS"), FAILED),
    "project-secrets-linked": (secret_with_another_name_in_a_large_project, FAILED),
    "project-secrets-moved": (secret_gone_from_a_large_project, FAILED),
    "project-secrets-memory-damaged": (memory_of_masks_is_damaged, FAILED),
    "project-secrets-memory-full": (too_many_masks_to_remember, FAILED),
    "project-home": (lambda scene: scene.in_directory("/home/alice").plan(), FAILED),
    "project-root": (lambda scene: scene.in_directory("/").plan(), FAILED),
    "project-above-home": (lambda scene: scene.in_directory("/home").plan(), FAILED),
    "project-broad": (lambda scene: scene.in_directory("/srv").plan(), FAILED),
    "project-system": (lambda scene: scene.in_directory("/usr/lib").plan(), FAILED),
    "project-secret": (lambda scene: scene.in_directory("/home/alice/.ssh").plan(), FAILED),
    "project-contains-secret": (lambda scene: scene.in_directory("/home/alice/.config").plan(), FAILED),
    "project-control-characters": (lambda scene: scene.in_directory("/home/alice/a\x1b[2Jb").plan(), FAILED),
    "settings-damaged": (lambda scene: scene.planted('~/.claude/settings.json: {"half":').plan(), FAILED),
    "settings-no-object": (lambda scene: scene.planted("~/.claude/settings.json: []").plan(), FAILED),
    "shim-missing": (neither_env_nor_python, FAILED),
    "state-damaged": (lambda scene: state_with(scene, 'claude/.claude.json: {"half":'), FAILED),
    "state-no-directory": (lambda scene: scene.planted("~/.claudebox: a file").plan(), FAILED),
    "state-of-another": (state_of_another, FAILED),
    "state-unreadable": (lambda scene: state_with(scene, "claude/.claude.json/"), FAILED),
    "state-unwritable": (state_cannot_be_written, FAILED),
    "streams-directory": (directory_as_standard_input, FAILED),
    "working-directory-gone": (working_directory_gone, FAILED),
}


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(tmp_path, monkeypatch)


def provoke(name: str, scene: Scene) -> Problem:
    with scene.monkeypatch.context() as patches:
        scene.monkeypatch, kept = patches, scene.monkeypatch
        try:
            with pytest.raises(Problem) as caught:
                PROBLEMS[name][0](scene)
        finally:
            scene.monkeypatch = kept
    return caught.value


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize("name", PROBLEMS)
def test_problem_says_exactly_this(name: str, scene: Scene, golden: Golden, capsys: pytest.CaptureFixture[str]) -> None:
    problem = provoke(name, scene)
    capsys.readouterr()
    cli.show_problem(problem)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert problem.status == PROBLEMS[name][1]
    assert shown.err.replace("\n", "").isprintable()
    golden.check(f"errors/{name}.txt", shown.err)


@pytest.mark.parametrize("name", PROBLEMS)
def test_problem_fits_the_screen(name: str, scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    problem = provoke(name, scene)
    capsys.readouterr()
    cli.show_problem(problem)
    assert [line for line in capsys.readouterr().err.splitlines() if width(line) > WIDTH] == []


def test_every_golden_file_is_used(golden: Golden) -> None:
    assert golden.names("errors") == {f"{name}.txt" for name in PROBLEMS}


def test_hint_cannot_forge_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    cli.show_problem(Problem("a\nerror: forged\x1b[2J", "b\n\x1b[2J"))
    assert "\x1b" not in capsys.readouterr().err


def test_every_problem_of_the_source_is_provoked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new `Problem(…)` in the source needs a row above. The doctor tries the real machine and has its own tests."""
    made: set[tuple[str, int]] = set()
    init = Problem.__init__

    def remember(self: Problem, *values: object, **named: object) -> None:
        frame = sys._getframe(1)
        made.add((frame.f_code.co_filename, frame.f_lineno))
        init(self, *values, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Problem, "__init__", remember)
    for name in PROBLEMS:
        root = tmp_path / name
        root.mkdir()
        provoke(name, Scene(root, monkeypatch))
    never = [
        f"{path.relative_to(SOURCE)}:{first}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.parent.name != "doctor"
        for first, last in constructions(path)
        if not any((str(path), line) in made for line in range(first, last + 1))
    ]
    assert never == [], never


def constructions(path: Path) -> list[tuple[int, int]]:
    """First and last line of every `Problem(…)` in a file."""
    calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    return [
        (call.lineno, call.end_lineno or call.lineno)
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id == "Problem"
    ]
