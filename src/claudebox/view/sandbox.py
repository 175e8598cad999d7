"""SANDBOX.md, which tells the agent about its box."""

from __future__ import annotations

from claudebox.features.guard.decide import is_guard
from claudebox.features.secrets.table import RULE as SECRETS
from claudebox.model import RO, WRITABLE, Allowlist, Broker, Covered, EnvVar, Guarded, Mount, Nix, Plan
from claudebox.paths import shorten_home, within
from claudebox.text import bytes_text, some

HEAD = """\
# You are in a sandbox (claudebox)

Everything you run happens in a bubblewrap box on the user's machine. You may work freely in it: nobody will ask for
permissions. What is not listed here does not exist in the box. Retrying, `sudo`, or looking for a way around it will
not change that; if you need something, say so and name the option below.
"""
MASKED = """\
## Files with made-up values

These hold secrets on the user's machine. In the box their keys are right, but secret values are made up, in the shape
of the real ones, or the file is empty. They are read-only: writing, replacing (`sed -i`), moving or deleting one fails
("Read-only file system", "Device or resource busy"). If such a file needs a change, tell the user in your last message
which line to add or change, or write it into an example file such as `.env.example`. A login that fails with a made-up
value is not a bug. If a task needs the real values, ask the user for `--reveal PATH`, or `--reveal PATH:KEY` for one of
them; never ask for a secret itself.

"""
MOST_MASKED = 30
ABSENT = """\
## Not available

- SSH, GPG and age keys, cloud and registry tokens, password stores, browser data, agent sockets
- git credentials: you can commit, but not push to a remote that needs a login; leave that to the user
- other projects, and the rest of the user's home
- root, `sudo`, Docker, systemd, the desktop
"""
GUARDED = """\
## Read-only in the project

The user's own programs run these later, outside the box, so you cannot change, rename or remove them ("Read-only
file system", "Device or resource busy"): {names}.
If the task needs it, write down the change that you would make and ask the user to make it, or to start claudebox again
with `--writable PATH`. What you create of this kind is shown to the user when the box ends.
Directories above them cannot be renamed either, and a rename from one into another fails ("Invalid cross-device link"):
use `mv` or `git mv`, which copy then.
"""
GUARDED_GIT = """\
Git works: commit, branch, checkout, stash, merge, rebase, fetch, submodule update. A command that would change one of
these files, or `.git/config` (`git remote add`, `push -u`, `branch -u`, `submodule add`, `sparse-checkout`), does not
begin ("was not started") and says why; nothing has changed then. For one command use `git -c NAME=VALUE …`, and name
remote and branch (`git push origin BRANCH`). Make worktrees in the project (`.claude/worktrees/NAME`): elsewhere they
would vanish.
"""
REVIEWED = """\
## Your changes wait for the user

What you write in the project is real for you, and for nobody else: when the box ends, the user sees a list and lands
what they want. So work as usual, and commit as usual; commits arrive on the user's machine, hooks and configuration of
git do not, and neither do pipes, sockets and repositories inside the project. What the user's programs run by
themselves (CI files, editor tasks, hooks) lands only if the user picks it: name such files in your last message.
Renaming a directory that was there before fails ("Invalid cross-device link"): use `mv` or `git mv`, which copy then.
"""
REVIEWED_PARTS = """\
## Changes that wait for the user

The user's own programs, or CI, run files in {names}. You can change them, and git can; on the user's machine they are
as before until the user lands them when the box ends. Say in your last message what you changed there, and why.
These directories cannot be removed or renamed, and those in them only by `mv`, which copies ("Invalid cross-device
link" otherwise). {direct}
"""
DIRECT = "Git's worktrees in `.claude/worktrees` are not kept back."
MOST_NAMED = 20
ALLOWLIST = """
Other names do not resolve ("Could not resolve host", NXDOMAIN). Other ports and addresses are refused with a reason:
HTTP 403 with a sentence, the TLS alert "access denied" ("unrecognized name" if the server name in TLS is another one),
a sentence from ssh, else a reset. UDP does not leave the box. Proxies, other resolvers and retrying will not help. If
the task needs a host, name it and ask the user for `--allow HOST` or `--allow HOST:PORT`.
"""
BROKER = """\
You talk to the Claude API through a socket of the user's machine. The login is there, and no token in the box is good
for anything else. Only messages pass: not the account, its usage or files, and no `claude` login commands.
"""
_WHAT_TO_EXPECT = {
    "full": "Servers that you start are on the user's own machine: bind them to localhost.",
    "inet": 'Private addresses are rejected at once ("No route to host", "Connection refused"), whatever name leads to '
    "them; retrying will not help. Nobody can reach servers that you start, unless the user publishes their port.",
    "allowlist": "You reach these hosts, with every program that uses TCP, and nothing else:",
    "none": "Nothing can be downloaded. Nobody can reach servers that you start, unless the user publishes a port.",
}
NIX = {
    "daemon": "For a missing tool use Nix: `nix shell nixpkgs#NAME -c COMMAND`, `nix run`, `nix build` or, if "
    "it is installed, comma (`, COMMAND`).",
    "private": "For a missing tool use Nix: `nix shell nixpkgs#NAME -c COMMAND`; what you build is kept for "
    "this project.",
    "store": "Nix cannot build or download here: ask the user for `--package NAME`.",
    "off": "Nix is not available.",
}
ASK = """\
## Ask the user for

- another file or directory: `--mount-ro PATH` or `--mount-rw PATH`
- an environment variable: `--env NAME`
- another network: `--network full|inet|names|none`; a port of the box opened for the user: `--publish PORT`; a server
  on the user's machine: `--host-port PORT` (neither with `full`)
- user namespaces: `--userns on`; Chromium does not need them if you start it with `--no-sandbox`

They take effect when the user starts claudebox again.
"""


def sandbox_md(plan: Plan) -> str:
    sections = [
        HEAD,
        _files(plan),
        *_masked(plan),
        *_layered(plan),
        *_guarded(plan),
        *(["## Good to know\n\n" + "\n".join(f"- {sentence}" for sentence in plan.told) + "\n"] if plan.told else []),
        _environment(plan),
        _network(plan),
        _tools(plan),
        ABSENT,
        ASK,
    ]
    return "\n".join([*sections, plan.policy.rstrip("\n") + "\n"] if plan.policy else sections)


def _files(plan: Plan) -> str:
    writable = [
        mount
        for mount in plan.mounts
        if mount.kind in WRITABLE and mount.origin.name != "--auth" and not is_guard(mount)
    ]
    readable = [mount for mount in plan.mounts if mount.kind == RO and mount.origin.is_said]
    lines = [
        f"- `{_path(mount, plan)}` is writable: {mount.origin.reason or 'the user mounted it'}" for mount in writable
    ]
    lines += [f"- `{_path(mount, plan)}` is read-only: the user mounted it" for mount in readable]
    lines.append("- `/tmp` and the rest of your home are writable, empty at the start, and gone when the box ends")
    size = max(mount.size for mount in plan.mounts)
    if size:
        lines.append(
            f'- both are in memory and hold {bytes_text(size)} each; when one is full, programs say "No space left on '
            'device": put large files into the project, or ask the user for `--tmp-size SIZE`'
        )
    lines.append("- `/usr`, `/etc` and your Claude configuration are read-only")
    return "## Files\n\n" + "\n".join(lines) + "\n"


def _masked(plan: Plan) -> list[str]:
    masks = [mount for mount in plan.mounts if mount.origin.is_rule(SECRETS)]
    paths = [f"`{_path(mount, plan)}`" for mount in masks]
    if not paths:
        return []
    return [MASKED + "".join(f"- {line}\n" for line in some(paths, MOST_MASKED))]


def _layered(plan: Plan) -> list[str]:
    """What waits for the user until it is on the host."""
    if plan.review is None:
        return []
    if plan.review.is_whole:
        return [REVIEWED]
    direct = DIRECT if plan.guard.direct else ""
    text = REVIEWED_PARTS.format(names=_named(plan, plan.review.covered), direct=direct)
    return [text.replace(" \n", "\n")]


def _guarded(plan: Plan) -> list[str]:
    """What cannot be changed in the project, and what git says when it tries."""
    held = tuple(guarded for guarded in plan.guard.held if guarded.path not in plan.layered)
    if not held:
        return []
    text = GUARDED.format(names=_named(plan, held))
    return [text + GUARDED_GIT if any(guarded.group == "git" for guarded in held) else text]


def _named(plan: Plan, places: tuple[Guarded | Covered, ...]) -> str:
    names = [f"`{_plain(within(place.path, plan.project))}`" for place in places]
    return ", ".join(some(names, MOST_NAMED))


def _path(mount: Mount, plan: Plan) -> str:
    return _plain(shorten_home(mount.path, plan.person.home))


def _plain(text: str) -> str:
    """A path as plain text: it is data and must not look like instructions."""
    return "".join(character for character in text if character.isprintable() and character != "`")


def _environment(plan: Plan) -> str:
    passed = [variable for variable in plan.environment if _is_the_users(variable)]
    names = ", ".join(f"`{variable.name}`" for variable in passed) or "none"
    return f"## Environment\n\nOf the user's variables you have: {names}. All others stayed outside.\n"


def _is_the_users(variable: EnvVar) -> bool:
    return not variable.origin.is_rule("box", "certificates", "claude", "broker", "git")


def _network(plan: Plan) -> str:
    network = plan.network
    lines = [f"- port {port.box} of the box is the user's `localhost:{port.host}`" for port in network.published]
    lines += [f"- `localhost:{port.box}` is a server on the user's machine" for port in network.host_ports]
    ports = "\n" + "\n".join(lines) + "\n" if lines else ""
    broker = f"\n{BROKER}" if plan.get(Broker) is not None else ""
    allowlist = _allowlist(listed) if (listed := plan.get(Allowlist)) is not None else ""
    meaning = f"Tier `{network.tier}`: {network.meaning}. {_WHAT_TO_EXPECT[network.tier]}"
    return f"## Network\n\n{meaning}\n{allowlist}{ports}{broker}"


def _allowlist(allowlist: Allowlist) -> str:
    """The list, and what it looks like when something is not in it."""
    by_ports: dict[str, list[str]] = {}
    for row in allowlist.allowed:
        ports = f"port {', '.join(map(str, row.ports))}" if row.ports else "every port"
        by_ports.setdefault(ports, []).append(f"`{row.host}`")
    lines = [f"- {', '.join(hosts)}: {ports}" for ports, hosts in by_ports.items()] or ["- none"]
    return "\n" + "\n".join(lines) + "\n" + ALLOWLIST


def _tools(plan: Plan) -> str:
    where = "`/usr`" if any(mount.path == "/usr" for mount in plan.mounts) else "the Nix store"
    nix = f"{NIX[found.mode]} " if (found := plan.get(Nix)) is not None else ""
    return (
        f"## Tools\n\nPrograms come from {where}. The system's package manager cannot install anything here. {nix}"
        "Install into the project (`npm install`, a virtual environment, `cargo build`), or into `/tmp` or your home "
        "for this session only. Otherwise ask the user to install the program on the host: then it is here, too.\n"
        f"{_toolchains(plan)}{_packages(plan)}"
    )


def _toolchains(plan: Plan) -> str:
    """The user's own toolchains, which are on PATH before those of the system."""
    trees = [mount for mount in plan.mounts if mount.kind == RO and mount.origin.is_rule("toolchain")]
    if not trees:
        return ""
    named = ", ".join(f"`{_path(mount, plan)}`" for mount in trees[:MOST_NAMED])
    return (
        f"\nFrom the user's home, read-only and on your PATH, at the user's versions: {named}. You cannot add to them "
        "(`npm install -g`, `rustup toolchain install`): install into the project instead.\n"
    )


def _packages(plan: Plan) -> str:
    resolved = [package for package in plan.packages if package.paths]
    if not resolved:
        return ""
    from claudebox.features.nix.packages import short_name, store_name

    lines = [
        f"- `{_plain(short_name(package.reference))}`: {', '.join(map(store_name, package.paths))}"
        for package in resolved
    ]
    return "\nFrom Nix, on your PATH because the user asked for them:\n\n" + "\n".join(lines) + "\n"
