"""Boxes to look at, on machines that do not exist: the plain one, and what can be different about one."""

import os
from pathlib import Path

from claudebox.features.nix.packages import PACKAGE, find_meaning
from claudebox.model import Plan
from claudebox.state import State
from claudebox.state.memory import write
from hosts.machine import EVERYONE, TREES, Machine

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
    machine.plant("~/.config/composer/auth.json\n~/.gnupg/x\n~/.kube/x\n~/.docker/x\n~/.netrc")
    return machine.plan(*words, "--mount-ro", "~/.config/composer")


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


def by_name(machine: Machine) -> Plan:
    """Groups, single hosts, one of them with a port; ports of this host and of the box."""
    return with_uplink(machine).plan(
        *("--network", "allowlist", "--allow", "@claude", "--allow", "@npm", "--allow", "*.cdn.example"),
        *("--allow", "db.example:5432", "--allow", "203.0.113.7:*", "--allow", "[2001:db8:7::1]:8443"),
        *("--publish", "8080:80", "--host-port", "6379", "-p", "fix the failing test"),
    )


def by_name_but_empty(machine: Machine) -> Plan:
    return with_uplink(machine).plan("--network", "allowlist")


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
        record = write(PACKAGE, (find_meaning(host), reference, *paths))
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
    "allowlist": by_name,
    "allowlist-empty": by_name_but_empty,
    "none": no_network,
    "packages": packages,
    "none-but-ports": no_network_but_ports,
}
