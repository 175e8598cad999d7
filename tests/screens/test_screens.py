"""Every screen as the user sees it, on machines that do not exist."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from claudebox import cli
from claudebox.features.guard.decide import is_guard
from claudebox.features.nix.packages import FORM, find_meaning, record_lines
from claudebox.model import Plan
from claudebox.problem import Problem
from claudebox.remembered import write
from claudebox.settings.words import parse
from claudebox.state import State
from claudebox.view.as_json import audit_json, dry_run_json
from claudebox.view.audit import audit
from claudebox.view.help import help_text
from claudebox.view.sandbox import sandbox_md
from claudebox.view.shell import shell_command
from claudebox.view.text import WIDTH, Style, escape, width
from golden import Golden
from hosts.machine import EVERYONE, TREES, Machine

PLAIN = Style(False)
SMALL_SCREEN = 24  # lines, one of which is the question
TOKEN = "ghp_" + "a1" * 18
ENVIRON = {
    "TERM": "xterm-256color",
    "EDITOR": "vim",
    "LANG": "en_GB.UTF-8",
    "SSH_AUTH_SOCK": "/run/user/1000/keyring/ssh",
    "AWS_PROFILE": "shop",
}


def debian(root: Path, **environ: str) -> Machine:
    machine = Machine(root, environ={**ENVIRON, **environ})
    return machine.plant((TREES / "debian12.txt").read_text()).plant(EVERYONE.read_text())


def plain(machine: Machine) -> Plan:
    return machine.plan("-p", "fix the failing test")


def flagged(machine: Machine) -> Plan:
    machine.environ |= {"ANTHROPIC_API_KEY": "sk-ant-api03-" + "a1" * 20, "GITHUB_TOKEN": TOKEN}
    machine.environ["CLAUDEBOX_EXTRA_ENV"] = "GITHUB_TOKEN,NOT_SET"
    machine.plant("/srv/shop/server.key\n/srv/shop/.env")
    return machine.plan(
        *("--mount-ro", "/srv/shop/server.key", "--mount-ro", "/srv/shop/.env:/run/env", "--env", f"HARMLESS={TOKEN}"),
        *("--env", "DATABASE=postgres://alice:hunter2@db/shop", "--mcp-config", f'{{"token": "{TOKEN}"}}'),
    )


def many_mounts(machine: Machine) -> Plan:
    words = []
    for number in range(12):
        machine.plant(f"/srv/data/set{number}/x\n~/code/library{number}/x")
        words += ["--mount-ro", f"/srv/data/set{number}", "--mount-rw", f"~/code/library{number}:/libraries/{number}"]
    machine.plant("~/.local/share/keyrings/login.keyring\n~/.gnupg/x\n~/.kube/x\n~/.docker/x\n~/.netrc")
    return machine.plan(*words, "--mount-ro", "~/.local/share")


def long_paths(machine: Machine) -> Plan:
    long = "a-directory-with-quite-a-long-name/" * 4
    machine.cwd = f"/home/alice/{long}shop"
    machine.plant(f"~/{long}shop/README.md\n/srv/{long}data/x")
    return machine.plan(
        "--mount-ro", f"/srv/{long}data", "--env", "LONG=" + "x" * 300, "--env", "LIST=" + "/opt/x/bin:" * 20
    )


def wide_names(machine: Machine) -> Plan:
    machine.cwd = "/home/alice/プロジェクト"
    (machine.root / "home/alice/プロジェクト").mkdir()
    for name in ("資料" * 20, "été", "Ω👍"):
        (machine.root / "srv" / name).mkdir(parents=True)
    return machine.plan(
        "--mount-ro", "/srv/" + "資料" * 20, "--mount-ro", "/srv/été", "--mount-ro", "/srv/Ω👍", "-p", "直して" * 20
    )


def hostile_names(machine: Machine) -> Plan:
    name = "x\x1b[2J\r\nStart? [Y/n] \u202etxt"
    for path in (f"srv/{name}", os.fsdecode(b"srv/\xff\xfe")):
        (machine.root / path).mkdir(parents=True)
    machine.environ |= {"TERM": "xterm\x1b]0;title\x07", "LANG": "\x9b31m"}
    (machine.root / "home/alice/.gitconfig").write_text('[user]\n\tname = "A\x1b[31mB"\n\temail = x\n')
    return machine.plan(
        "--mount-ro", f"/srv/{name}", "--mount-ro", os.fsdecode(b"/srv/\xff\xfe"), "-p", "a\x1b[1mb\n'c'"
    )


def with_uplink(machine: Machine) -> Machine:
    return machine.plant("/usr/bin/passt*: --host-lo-to-ns-lo\n/usr/bin/pasta -> passt\n/usr/sbin/nft*")


def internet(machine: Machine) -> Plan:
    return with_uplink(machine).plan("--network", "inet", "-p", "fix the failing test")


def internet_and_ports(machine: Machine) -> Plan:
    """By a variable, and with services on this host, of which one is carried into the box."""
    machine.environ |= {"CLAUDEBOX_NETWORK": "inet", "DATABASE": "postgres://localhost:5432/shop"}
    return with_uplink(machine).plan(
        *("--publish", "3000", "--publish", "8080:80", "--host-port", "5432", "--env", "DATABASE"),
        *("--env", "CACHE=redis://127.0.0.1:6379", "--env", "HTTPS_PROXY=http://[::1]:3128"),
    )


def no_network(machine: Machine) -> Plan:
    return machine.plan("--network", "none")


def no_network_but_ports(machine: Machine) -> Plan:
    """For root: what is different is how the pasted command starts pasta."""
    machine.home, machine.uid, machine.cwd = "/root", 0, "/root/shop"
    machine.environ |= {"HOME": "/root", "PATH": "/root/.local/bin:/usr/bin:/bin"}
    machine.plant(EVERYONE.read_text())
    return with_uplink(machine).plan("--network", "none", "--publish", "3000", "--run", "make", "serve")


def no_name_server(machine: Machine) -> Plan:
    """A resolver that only this host's own link leads to, on a host without IPv6."""
    machine.neighbourhood = machine.neighbourhood.replace(has_ipv6=False, resolvers=("2001:db8:5::53",))
    return with_uplink(machine).plan("--network", "inet", "--run", "make")


def packages(machine: Machine) -> Plan:
    """By option and by file; one with two outputs, one without programs, one that Nix was not asked for yet."""
    machine.environ["PATH"] = "/usr/bin:/bin"  # without claude: its state has to be the user's own
    machine.plant("/usr/bin/nix*\n~/.claudebox/config.toml: packages = ['fonts']")
    known = {
        "nixpkgs#ripgrep": [store_path("ripgrep-14.1.0/bin/rg*"), store_path("ripgrep-14.1.0-man/share/x")],
        "github:owner/a-repository-with-a-long-name#tool": [store_path("tool-0.3/bin/tool*")],
        "nixpkgs#fonts": [store_path("fonts-1.0/share/fonts/x")],
    }
    host = machine.host()
    for reference, files in known.items():
        paths = ["/".join(file.split("/")[:4]) for file in files]
        record = write(FORM, record_lines(reference, find_meaning(host), paths, [*paths, store_path("glibc-2.40")]))
        file = machine.plant("\n".join(files)).root / State(host.person.home).package(reference).lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(record)
    github = "github:owner/a-repository-with-a-long-name#tool"
    return machine.plan("--package", "ripgrep", "--package", github, "--package", "cowsay", "--run", "make")


def store_path(name: str) -> str:
    return f"/nix/store/{'0a1b2c3d' * 4}-{name}"


SCREENS = {
    "plain": plain,
    "flagged": flagged,
    "many-mounts": many_mounts,
    "long-paths": long_paths,
    "wide-names": wide_names,
    "hostile-names": hostile_names,
    "inet": internet,
    "inet-and-ports": internet_and_ports,
    "inet-without-names": no_name_server,
    "none": no_network,
    "packages": packages,
    "none-but-ports": no_network_but_ports,
}


@pytest.fixture(params=SCREENS)
def screen(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def plan(screen: str, tmp_path: Path) -> Plan:
    return SCREENS[screen](debian(tmp_path))


@pytest.mark.req("UX-01", "SEC-01")
def test_audit_is_exactly_this(screen: str, plan: Plan, golden: Golden) -> None:
    golden.check(f"audit/{screen}.txt", audit(plan, PLAIN))


@pytest.mark.req("UX-01")
def test_whole_audit_is_exactly_this(screen: str, plan: Plan, golden: Golden) -> None:
    golden.check(f"audit-everything/{screen}.txt", audit(plan, PLAIN, everything=True))


@pytest.mark.req("UX-04")
def test_dry_run_is_exactly_this(screen: str, plan: Plan, golden: Golden) -> None:
    golden.check(f"dry-run/{screen}.txt", shell_command(plan))


@pytest.mark.req("UX-01", "UX-04")
def test_json_is_exactly_this(screen: str, plan: Plan, golden: Golden) -> None:
    for name, text in {"audit": audit_json(plan), "dry-run": dry_run_json(plan)}.items():
        assert text.isascii()
        assert json.loads(text)
        golden.check(f"json/{name}-{screen}.json", text)


@pytest.mark.req("AWARE-02")
def test_what_the_agent_is_told_is_exactly_this(screen: str, plan: Plan, golden: Golden) -> None:
    golden.check(f"sandbox/{screen}.md", sandbox_md(plan))


@pytest.mark.req("UX-02")
@pytest.mark.parametrize("screen", ["flagged", "inet", "inet-and-ports", "none"])
def test_question_is_exactly_this(
    screen: str,
    plan: Plan,
    golden: Golden,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def answer(question: str) -> str:
        sys.stderr.write(question + "y\n")
        return "y"

    monkeypatch.setattr(cli, "_ask", answer)
    cli.confirm(Machine(tmp_path).host(), plan, parse([]))
    shown = capsys.readouterr()
    assert shown.out == ""
    golden.check(f"question/{screen}.txt", shown.err)


@pytest.mark.req("UX-01")
@pytest.mark.parametrize("everything", [False, True])
def test_audit_fits_the_screen(plan: Plan, everything: bool) -> None:
    title, *lines = audit(plan, PLAIN, everything=everything).splitlines()
    assert [line for line in lines if width(line) > WIDTH] == []
    # The project's own path is never broken.
    assert width(title) <= WIDTH or len(plan.project) > WIDTH - 20


@pytest.mark.req("UX-01", "NET-03")
@pytest.mark.parametrize("screen", ["plain", "inet", "inet-and-ports", "none"])
def test_network_is_seen_beside_the_question_on_a_small_screen(plan: Plan) -> None:
    visible = audit(plan, PLAIN).splitlines()[1 - SMALL_SCREEN :]
    assert "Network" in visible
    assert any(line.split()[:1] == [plan.network.tier] for line in visible)


@pytest.mark.req("UX-01")
def test_nothing_shown_can_move_the_cursor(plan: Plan) -> None:
    text = audit(plan, PLAIN, everything=True) + audit_json(plan) + dry_run_json(plan)
    assert text.replace("\n", "").isprintable()


@pytest.mark.req("UX-01", "SEC-01")
def test_no_secret_is_ever_shown(tmp_path: Path) -> None:
    plan = flagged(debian(tmp_path))
    for text in (audit(plan, PLAIN, everything=True), shell_command(plan), audit_json(plan), dry_run_json(plan)):
        assert TOKEN not in text
        assert "hunter2" not in text
        assert "sk-ant-" not in text


@pytest.mark.req("SAND-02", "SEC-01")
def test_secret_that_the_loader_might_obey_is_not_in_the_arguments(tmp_path: Path) -> None:
    # What bwrap sets inside the box is in its arguments, which every user of the host can read.
    machine = debian(tmp_path, LD_SDK_KEY="sdk-" + "0a1b2c3d" * 4)
    try:
        plan = machine.plan("--env", "LD_SDK_KEY")
    except Problem:
        return
    for text in (shell_command(plan), dry_run_json(plan)):
        assert "0a1b2c3d" not in text


@pytest.mark.req("UX-01")
def test_colour_changes_nothing_but_colour(plan: Plan) -> None:
    coloured = audit(plan, Style(True))
    assert re.sub("\x1b\\[[0-9]+m", "", coloured) == audit(plan, PLAIN)


def test_audit_in_colour_is_exactly_this(tmp_path: Path, golden: Golden) -> None:
    golden.check("audit-in-colour.txt", audit(flagged(debian(tmp_path)), Style(True)))


@pytest.mark.req("UX-01")
def test_everything_that_enters_is_shown(plan: Plan) -> None:
    text = "".join(audit(plan, PLAIN).split())
    for variable in plan.environment:
        assert variable.name in text
    for mount in plan.mounts:
        if is_guard(mount):
            continue  # a part of the project
        name = mount.path.removeprefix("/etc/").removeprefix(plan.person.home)
        assert "".join(escape(name).split()) in text


@pytest.mark.req("UX-04")
def test_dry_run_is_a_valid_script(plan: Plan, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_bytes(shell_command(plan).encode(errors="surrogateescape"))
    subprocess.run(["/bin/sh", "-n", str(script)], check=True)


@pytest.mark.req("UX-04", "GIT-01")
def test_name_that_is_not_utf8_can_be_shown(tmp_path: Path) -> None:
    machine = debian(tmp_path)
    (tmp_path / "home/alice/.gitconfig").write_bytes(b"[user]\n\tname = Andr\xe9\n\temail = a@example.org\n")
    plan = machine.plan()
    for show in (shell_command, audit_json, dry_run_json):
        assert "Andr" in show(plan)
    assert "Andr" in audit(plan, PLAIN)


@pytest.mark.req("UX-03")
def test_help_is_exactly_this(golden: Golden, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--help"]) == 0
    shown = capfd.readouterr()
    assert shown.err == ""
    assert shown.out == help_text()
    assert [line for line in shown.out.splitlines() if width(line) > WIDTH] == []
    golden.check("help.txt", shown.out)


def test_every_golden_file_is_used(golden: Golden) -> None:
    names = {f"{name}.txt" for name in SCREENS}
    assert golden.names("audit") == golden.names("audit-everything") == golden.names("dry-run") == names
    assert golden.names("json") == {f"{kind}-{name}.json" for kind in ("audit", "dry-run") for name in SCREENS}
    assert golden.names("sandbox") == {f"{name}.md" for name in SCREENS}
    assert golden.names() == {"help.txt", "audit-in-colour.txt"}
