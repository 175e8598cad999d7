"""What the user said yes to, and what a box would have beyond it.

Every yes is kept as one set of lines, in a file that a person can read and that no box can see. A box starts without
the question if one of the sets covers it. Why sets, and not all lines that were ever agreed to: a token agreed to with
`--network none`, and the host's network agreed to without the token, are no agreement to both at once. Somebody who
alternates between two ways to start is asked once for each.

What takes something away belongs to the set, too: a box that no longer hides a path, or makes it writable, is another
box. What is guarded does not, because it follows from the files that exist: it adds nothing to the project, which was
agreed to, and where somebody opens it, a finding says so.
"""

from __future__ import annotations

from claudebox.features.guard.decide import RULE as GUARD
from claudebox.features.guard.decide import is_guard
from claudebox.features.secrets.table import RULE as SECRETS
from claudebox.host import pinned
from claudebox.host.system import CERTIFICATE_BUNDLES
from claudebox.host.tree import Tree
from claudebox.host.variables import LEADING, shown_way
from claudebox.model import (
    COVER,
    FROM_HOST,
    RO,
    RW,
    Allowed,
    Allowlist,
    Broker,
    EnvVar,
    Finding,
    Login,
    Mount,
    Network,
    Package,
    Plan,
    Port,
    Preparation,
    Program,
)
from claudebox.paths import move, parents
from claudebox.record import Record
from claudebox.settings.table import FULL, INET, TIERS
from claudebox.state import Instance, memory
from claudebox.state.memory import Form, Memory, escape, path_note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

# Each yes is a group of lines, with an empty line before and after it.
FORM = Form(
    "What you agreed to: claudebox asks when a box has more. Remove this file to be asked again.", largest=1 << 18
)
MOST_AGREEMENTS = 8

USUAL_BUNDLES = (*CERTIFICATE_BUNDLES, pinned.CERTIFICATES)

CACHE = "cache"  # the rule
WITHOUT = "without"
READ_ONLY = "read-only"

Agreement = frozenset[str]


class News(Record):
    """What a plan has and an agreement lacks."""

    program: tuple[Program, ...] = ()
    tier: tuple[Network, ...] = ()
    published: tuple[Port, ...] = ()
    host_ports: tuple[Port, ...] = ()
    allowed: tuple[Allowed, ...] = ()
    login: tuple[str, ...] = ()
    mounts: tuple[Mount, ...] = ()
    variables: tuple[EnvVar, ...] = ()
    packages: tuple[Package, ...] = ()
    findings: tuple[Finding, ...] = ()
    lost: tuple[tuple[str, str], ...] = ()  # protections that are gone: the kind and the path

    @property
    def amount(self) -> int:
        return sum(map(len, self.__dict__.values()))

    @property
    def is_grave(self) -> bool:
        """Whether a bare Enter means no: something looks secret, or is no longer protected."""
        return bool(self.flagged or self.lost)

    @property
    def is_command_alone(self) -> bool:
        """Whether the box is one that was agreed to, with another command in it."""
        return bool(self.program) and self.amount == 1

    @property
    def flagged(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.is_grave)


def find_news(plan: Plan, agreements: tuple[Agreement, ...]) -> News:
    """Compare the plan with the nearest agreement, which is the one that covers it all, if there is one."""
    nearest = _since(plan, agreements[0] if agreements else frozenset())
    for agreed in agreements[1:]:
        if not nearest.amount:
            break
        nearest = min(nearest, _since(plan, agreed), key=lambda news: news.amount)
    return nearest


def _since(plan: Plan, agreed: Agreement) -> News:
    new: dict[str, list[Any]] = {}
    for field, what, lines in _parts(plan):
        # With more network, a secret is news again: it was agreed to where it could not get far.
        is_worse = field == "findings" and what.kind == Finding.SECRET and ("tier" in new or "allowed" in new)
        if is_worse or agreed.isdisjoint(lines):
            new.setdefault(field, []).append(what)
    return News(**{field: tuple(found) for field, found in new.items()}, lost=_lost(plan, agreed))


def agreement(plan: Plan) -> tuple[str, ...]:
    """The lines that are noted when somebody says yes to this plan."""
    return (*(lines[0] for _, _, lines in _parts(plan)), *_protections(plan))


def _parts(plan: Plan) -> Iterator[tuple[str, Any, tuple[str, ...]]]:
    """All that is agreed to: where it belongs in News, what it is, and the lines that cover it.

    The first line is noted, the others grant more than it does.
    """
    network = plan.network
    # The arguments of claude do not matter: it can do everything that the box allows anyway.
    yield "program", plan.program, (f"runs {_word(plan.program.title)}",)
    # This tier and those that reach more.
    yield "tier", network, tuple(f"network {tier}" for tier in TIERS[TIERS.index(network.tier) :: -1])
    yield from (("published", port, (f"publish {port.host}:{port.box}",)) for port in network.published)
    yield from (("host_ports", port, (f"host-port {port.host}",)) for port in network.host_ports)
    allowlist = plan.get(Allowlist)
    for row in allowlist.allowed if allowlist is not None else ():
        line = f"allow {row.host} port {','.join(map(str, row.ports)) or 'every'}"
        yield "allowed", row, (line, f"network {INET}", f"network {FULL}")
    yield from (("login", line, (line,)) for line in _login_lines(plan))
    yield from (("mounts", mount, _mount_lines(mount)) for mount in _granted(plan))
    yield from (("variables", variable, _variable_lines(variable)) for variable in plan.environment)
    # The version of a package does not matter: the box can read the whole store anyway.
    yield from (("packages", package, (f"package {_word(package.reference)}",)) for package in plan.packages)
    for finding in plan.findings:
        yield "findings", finding, (f"{finding.kind} {_word(finding.subject)}: {escape(finding.text)}",)


def _granted(plan: Plan) -> list[Mount]:
    # The project's own cache shows nothing of the host, and appears when there is a place for it.
    return [
        mount
        for mount in plan.mounts
        if mount.kind in FROM_HOST
        and not is_guard(mount)
        and (_shows_host(mount, plan) or not mount.origin.is_rule(CACHE))
    ]


def _mount_lines(mount: Mount) -> tuple[str, ...]:
    source, path = _word(mount.source), _word(mount.path)
    if mount.kind == RO and mount.origin.is_rule("claude", "toolchain"):
        source, path = _any_version(source), _any_version(path)
    what = source if source == path else f"{source} as {path}"
    return (f"{RW} {what}",) if mount.kind == RW else (f"{mount.kind} {what}", f"{RW} {what}")


def _any_version(path: str) -> str:
    """The path with `*` for a version: Claude and toolchains are updated into a new directory each time."""
    return "/".join("*" if _is_version(part) else part for part in path.split("/"))


def _is_version(part: str) -> bool:
    return "." in part and part.removeprefix("v").replace(".", "").isdigit()


def _variable_lines(variable: EnvVar) -> tuple[str, ...]:
    """A line never has the value, nor the line number of a file, which changes when somebody writes something above.

    Except where the value says who gets the requests, or whom programs believe: another one is another box.
    """
    line = f"variable {_word(variable.name)} from {_word(variable.origin.name)}"
    if variable.name in LEADING and not variable.is_ours and variable.value not in USUAL_BUNDLES:
        line += f" as {_word(shown_way(variable.value))}"
    secret = f"{line} looks secret"
    return (secret,) if variable.secret else (line, secret)


def _login_lines(plan: Plan) -> list[str]:
    broker, login = plan.get(Broker), plan.get(Login)
    if broker is not None:
        way = f" to {_word(shown_way(broker.url))}" if broker.url else ""
        return [f"broker {_word(broker.shown)}{way}"]
    return [f"login {_word(login.file)}"] if login is not None and login.file else []


def _protections(plan: Plan) -> list[str]:
    """What lies over a part of a host mount, so that less of it can be seen or written.

    The project's own settings do not count: what the agent writes there is judged at the next start anyway. Neither do
    masked files: they come and go, and one that is shown as it is has a finding.
    """
    by_path = {mount.path: mount for mount in plan.mounts}
    lines = []
    for mount in plan.mounts:
        base = next((by_path[path] for path in parents(mount.path) if path in by_path), None)
        if base is None or not _shows_host(base, plan) or mount.kind == COVER or mount.origin.is_rule(SECRETS, GUARD):
            continue
        if mount.kind not in FROM_HOST or mount.source != move(mount.path, base.path, base.source):
            lines.append(f"{WITHOUT} {_word(mount.path)}")
        elif (mount.kind, base.kind) == (RO, RW):
            lines.append(f"{READ_ONLY} {_word(mount.path)}")
    return lines


def _lost(plan: Plan, agreed: Agreement) -> tuple[tuple[str, str], ...]:
    """Protections that are gone, if what they protected can now be seen or written."""
    gone = sorted(filter(_protects, agreed.difference(_protections(plan))))
    if not gone:
        return ()
    by_path = {_word(mount.path): mount for mount in plan.mounts}

    def is_open(kind: str, path: str) -> bool:
        if path in by_path and not is_guard(by_path[path]):
            return False  # what is mounted there speaks for itself
        base = next((by_path[above] for above in (path, *parents(path)) if above in by_path), None)
        return base is not None and _shows_host(base, plan) and (kind == WITHOUT or base.kind == RW)

    return tuple((kind, path) for kind, _, path in (line.partition(" ") for line in gone) if is_open(kind, path))


def _protects(line: str) -> bool:
    return line.startswith((f"{WITHOUT} ", f"{READ_ONLY} "))


def _shows_host(mount: Mount, plan: Plan) -> bool:
    """Whether a mount shows the host's files. The state of the project is the box's own and needs no protection."""
    is_own = plan.state is not None and plan.state.has(mount.source)
    return mount.kind in FROM_HOST and not is_own


def _word(text: str) -> str:
    """The text without spaces and `*`, so that no name can pass for two words or for any version."""
    return escape(text).replace(" ", "\\x20").replace("*", "\\x2a")


# The file.


def recall(tree: Tree, instance: Instance | None, uid: int) -> tuple[Agreement, ...]:
    """Every agreement for this project. A damaged file counts as none: then the user is asked again."""
    if instance is None:
        return ()
    return read_agreements(memory.recall(tree, instance.agreed, FORM, uid))


def note_agreement(plan: Plan, agreements: tuple[Agreement, ...]) -> tuple[Preparation, ...]:
    """The preparations that note a yes to this plan, beside the earlier ones."""
    if plan.state is None:
        return ()
    lines = agreement(plan)
    others = [earlier for earlier in agreements if not _covers(frozenset(lines), earlier)]
    content = write_agreements([lines, *map(sorted, others)][:MOST_AGREEMENTS])
    return (
        Preparation(Preparation.DIRECTORY, plan.state.directory),
        path_note(plan.state.project, plan.state.root),
        Preparation(Preparation.FILE, plan.state.agreed, content),
    )


def _covers(more: Agreement, less: Agreement) -> bool:
    """Whether `more` allows every box that `less` allows, so that `less` need not be noted."""
    return less <= more and all(line in less for line in more if _protects(line))


def read_agreements(recalled: Memory) -> tuple[Agreement, ...]:
    text = "\n".join(recalled.lines)
    if not (text.startswith("\n") and text.endswith("\n")):
        return ()
    return tuple(frozenset(group.split("\n")) for group in text[1:-1].split("\n\n"))


def write_agreements(agreements: Sequence[Sequence[str]]) -> bytes:
    return memory.write(FORM, ["", *(line for group in agreements for line in (*group, ""))])
