"""Answers "why?": what the Plan does with a path, a variable, a program, an address, a port or a package.

Paths are answered here, and everything else by the feature that knows it.
"""

from __future__ import annotations

import posixpath
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

from claudebox import model
from claudebox.errors import Problem
from claudebox.features.guard import RULE as GUARD
from claudebox.features.secrets.table import RULE as SECRETS
from claudebox.features.table import FEATURES
from claudebox.features.wishes import RESERVED
from claudebox.host import Host
from claudebox.host.programs import find
from claudebox.host.secrets import refuse_readable, refuse_writable, secret_places, secret_value
from claudebox.model import DEV, FROM_HOST, HIDE, LAYER, PROC, RO, RW, TMPFS, WRITABLE, Mount, Origin, Plan, SecretPlace
from claudebox.output.explanation import Answer, Because, Change, Endpoint, Question, describe_origin, undo, with_reason
from claudebox.paths import absolute, is_below, is_inside, move, shorten_home
from claudebox.record import Record
from claudebox.sandbox.mounts import PIN, find_appearances, find_holder
from claudebox.settings import Settings
from claudebox.settings.types import is_variable_name, port_number
from claudebox.text import some

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.host.network import Address

LOCALHOST = IPv4Address("127.0.0.1")
KINDS = "a path, variable, program, host, address, port or package, or nix"
# What names of files end in. A domain may, too: it is meant if a port or a scheme says so.
FILE_ENDINGS = frozenset(
    "bak c cfg conf cpp css csv db env go h html ini ipynb java jpg js json jsx kt lock log md php png py rb rs sh sql "
    "svg toml ts tsx txt xml yaml yml".split()
)
ACCESS = {RO: "read-only", RW: "writable"}
MOST_NAMED = 6
NEEDED = ("system", "nix")  # rules without which no program would run
# bwrap cannot make these in a directory of the host.
BY_BWRAP = (model.FILE, model.SYMLINK, model.TMPFS, model.PROC, model.DEV)
# What mounts do that show nothing of the host.
DOES = {
    model.FILE: "writes a file for the box:",
    model.SYMLINK: "makes the symlink",
    model.PROC: "shows the box's own processes in",
    model.DEV: "makes the few devices that programs need in",
    model.TMPFS: "makes a directory, empty at each start:",
    model.ABSENT: "shows an empty directory:",
    model.COVER: "shows what the file says, and keeps it as it is:",
    model.MASK: "masks",
    model.HIDE: "hides",
}
# What bwrap puts into /dev. The other devices of the host are missing.
DEVICES = frozenset("null zero full random urandom tty console stdin stdout stderr fd core shm pts ptmx".split())


def explain(plan: Plan, host: Host, settings: Settings, thing: str) -> list[Answer]:
    """An answer for each thing that the word can mean. Raises a Problem if it can mean none."""
    if not thing.strip():
        raise Problem("--explain needs something to explain", KINDS)
    about = Question(plan, host, settings)
    is_url = "://" in thing
    answers = answer(about.replace(word=thing))  # a name that a feature knows
    if not answers and is_url:
        answers = answer(about.replace(endpoint=read_endpoint(plan, thing)))
    elif not answers and secret_value(thing):
        # The shell has replaced `$NAME` by its value, which must not be repeated on the screen.
        raise Problem("--explain got what looks like a secret, not a name", "without the $: --explain NAME")
    elif not answers:
        answers = _explain_word(about, thing)
    if not answers:
        raise Problem(f"--explain: `{thing}` cannot be explained", KINDS)
    return answers


def answer(question: Question) -> list[Answer]:
    return [answer for feature in FEATURES for answer in feature.explain(question)]


def _explain_word(about: Question, word: str) -> list[Answer]:
    plan, host = about.plan, about.host
    if word.startswith("$"):
        name = word.strip("${}")
        return answer(about.replace(variable=name)) if is_variable_name(name) else []
    path = absolute(word, host.cwd, host.person.home)
    file, _, key = word.rpartition(":")
    if file and not key.isdigit() and host.tree.lstat(path) is None and PathQuestion(plan, host, file).is_file:
        return [PathQuestion(plan, host, file).answer_for(key)]
    is_file = word.rpartition(".")[2].lower() in FILE_ENDINGS and "." in word
    is_path = "/" in word or word.startswith(("~", ".")) or is_file or host.tree.lstat(path) is not None
    known = (*host.environ, *(variable.name for variable in plan.environment))
    is_variable = is_variable_name(word) and (word.isupper() or word in known)
    is_host = read_address(word) is not None or is_local_name(word.partition(":")[0])
    answers = [PathQuestion(plan, host, word).answer()] if is_path else []
    if "/" not in word and (file := find_program(plan, host, word)):
        answers.append(PathQuestion(plan, host, file).answer().replace(kind=Answer.PROGRAM))
    answers += answer(
        about.replace(
            path=path if is_path else "",
            variable=word if is_variable else "",
            port=port_number(word.removeprefix(":")),
            endpoint=read_endpoint(plan, word) if is_host and not word.isdigit() else None,
        )
    )
    if answers or word.isdigit():
        return answers
    endpoint = read_endpoint(plan, word)
    if endpoint is None or endpoint.port or endpoint.address is not None or _looks_like_a_host(host, word):
        return answer(about.replace(endpoint=endpoint))
    because = [Because("this host and the box have none"), Because(f"for a host of this name: --explain {word}:443")]
    return [Answer(Answer.PROGRAM, word, Answer.OUT, "no such program, file or variable", because, [])]


# What a word says about a host


def read_endpoint(plan: Plan, text: str) -> Endpoint | None:
    """What a URL, `host:port`, `[address]:port` or a bare host names; None if it is none of these."""
    is_url = "://" in text
    if not is_url and not {*"/?#@"}.isdisjoint(text):
        return None
    server = f"[{text}]" if ":" in text and read_address(text) is not None else text
    try:
        parts = urlsplit(text if is_url else f"//{server}")
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return None
    if port == 0 or (read_address(host) is None and not _is_host_name(host)):
        return None
    usual = {"http": 80, "https": 443, "ssh": 22}.get(parts.scheme, 0)
    return Endpoint(host, port or usual, _find_address(plan, host))


def read_address(text: str) -> Address | None:
    """The address to which the kernel would send: IPv4-mapped ones are IPv4, and `127.1` and `0x7f.1` are addresses."""
    try:
        address = ip_address(text)
    except ValueError:
        try:
            return IPv4Address(socket.inet_aton(text)) if text and text.isascii() and text.isprintable() else None
        except OSError:
            return None
    return (address.ipv4_mapped if isinstance(address, IPv6Address) else None) or address


def _is_host_name(text: str) -> bool:
    labels = text.removesuffix(".").split(".")
    return all(label.replace("-", "").replace("_", "").isalnum() and not label.startswith("-") for label in labels)


def _looks_like_a_host(host: Host, word: str) -> bool:
    known = (line.partition("#")[0].split()[1:] for line in (host.tree.text("/etc/hosts") or "").splitlines())
    return "." in word or any(word in names for names in known)


def is_local_name(name: str) -> bool:
    return name == "localhost" or name.endswith(".localhost")


def _find_address(plan: Plan, host: str) -> Address | None:
    """The address that a host is for the box, as far as that is known without asking DNS."""
    if is_local_name(host):
        return LOCALHOST
    files = [one.content for one in plan.mounts if one.kind == model.FILE and one.path == "/etc/hosts"]
    for line in b"\n".join(files).decode(errors="replace").lower().splitlines():
        address, *names = line.split() or [""]
        if host in names:
            return read_address(address)
    return read_address(host)


# Why a path is in the box or not: it is followed as a program in the box would, by the mounts and the host's files


def find_program(plan: Plan, host: Host, name: str) -> str:
    """Where the box would find a program; if it does not, where this host does."""
    path = next((variable.value for variable in plan.environment if variable.name == "PATH"), "")
    for file in (posixpath.join(directory, name) for directory in path.split(":")):
        spot = PathQuestion(plan, host, file).spot
        if spot.host and host.tree.is_executable(spot.host):
            return file
    return find(host, name)


class Spot(Record):
    """What is at a path of the box."""

    path: str
    mount: Mount  # the one that decides
    exists: bool
    access: str
    host: str  # the path on the host, if the host's file is shown there


class PathQuestion:
    """One path as the user means it, and what is known about it on the host and in the box."""

    def __init__(self, plan: Plan, host: Host, text: str) -> None:
        self.plan = plan
        self.host = host
        self.named = absolute(text, host.cwd, host.person.home)
        self.real = host.tree.resolve(self.named)
        # A path that does not exist yet would be below the real path of one that does.
        self.target = self.real or host.tree.destination(self.named) or self.named
        self.spot = self._find(self.named)
        # What the host shows there may be a symlink, which leads on in the box.
        if self.spot.host and (behind := host.tree.destination(self.spot.host)) not in (None, self.spot.host):
            self.spot = self._find(behind)
        table = secret_places(host.tree, host.person.homes, host.environ, host.cwd)
        self.places: tuple[SecretPlace, ...] = (*plan.outside.places, *table)

    def _find(self, path: str) -> Spot:
        mount = find_holder(path, self.plan.mounts)
        assert mount is not None, "a box has a root"
        host = move(path, mount.path, mount.source) if mount.kind in FROM_HOST else ""
        return Spot(path, mount, self._exists(path, mount, host), self._access(path, mount), host)

    def _exists(self, path: str, mount: Mount, host: str) -> bool:
        # bwrap makes the directories on the way to a mount.
        if any(is_inside(other.path, path) for other in self.plan.mounts):
            return True
        below = path.removeprefix(mount.path).strip("/").split("/")[0]
        if mount.kind == DEV:
            return below in DEVICES
        if mount.kind == PROC:
            return not below.isdigit() and self.host.tree.lstat(path) is not None
        return bool(host) and self.host.tree.lstat(host) is not None

    def _access(self, path: str, mount: Mount) -> str:
        if mount.kind == model.FILE:  # which lies in what is around it, unless that is the host's
            mount = find_holder(path, [other for other in self.plan.mounts if other.kind == TMPFS]) or mount
        # bwrap makes the root read-only once everything is in it.
        return RW if mount.kind in (*WRITABLE, DEV, PROC) or (mount.kind == TMPFS and mount.path != "/") else RO

    def answer(self) -> Answer:
        # Each place of the box where a mount would show the file, its own path first.
        places = sorted(find_appearances(self.target, self.plan.mounts), key=lambda path: path != self.target)
        spots = list({spot.path: spot for spot in (self.spot, *map(self._find, places))}.values())
        shown = [spot for spot in spots if self.real is not None and spot.exists and spot.host == self.target]
        hidden = [spot for spot in spots if spot.mount.kind == HIDE]
        because = list(dict.fromkeys(self._why(spot) for spot in shown + hidden))
        if shown:
            verdict = ", and ".join(f"{ACCESS[spot.access]}{self._place(spot)}" for spot in shown)
            verdict += "; what changes lands when you say so" if shown[0].mount.kind == LAYER else ""
            because += self._found() + self._hides_below(shown)
            return self._answer(Answer.IN, f"in, {verdict}", because, self._ways_for_shown(shown), shown[0])
        if self.spot.mount.origin.is_rule(SECRETS):
            instead = "with made-up values" if self.spot.mount.kind == model.MASK else "empty"
            name = self.target.removeprefix(f"{self.plan.project}/")
            ways = [Change("shows it as it is", ("--reveal", name)), Change("hides it", ("--hide", name))]
            return self._answer(Answer.MASKED, f"in, read-only, {instead}", [self._why(self.spot)], ways, self.spot)
        if hidden:
            never = [Change("cannot be changed: no option shows it")]
            changes = [change for spot in hidden for change in undo(spot.mount.origin) or never]
            return self._answer(Answer.HIDDEN, "not in the box, hidden", because, changes, self.spot)
        because = [self._why(self.spot), *self._secret()]
        if self.spot.exists and self.spot.host:
            verdict = f"in, {ACCESS[self.spot.access]}: {self._short(self.spot.host)} of this host"
            ways = [*(self._ways_in() if self.real else []), *_undo_mount(self.spot.mount)]
            return self._answer(Answer.OTHER, verdict, because, ways, self.spot)
        if self.spot.exists:
            verdict = f"made for the box, {ACCESS[self.spot.access]}"
            return self._answer(Answer.MADE, verdict, because, self._ways_in(), self.spot)
        if self.real is None and self.spot.host:
            verdict = "does not exist" + ("; the box may create it" if self.spot.access == RW else "")
            return self._answer(Answer.OUT, verdict, because, [], self.spot)
        because = self._secret() or [Because("no rule shows it")]
        return self._answer(Answer.OUT, "not in the box", because, self._ways_in(), self.spot)

    @property
    def is_file(self) -> bool:
        return self.host.tree.is_file(self.named)

    def answer_for(self, key: str) -> Answer:
        """Whether the box sees one value of a file as it is."""
        answer = self.answer()
        answer = answer.replace(subject=f"{answer.subject}:{key}")
        if self.spot.mount.kind != model.MASK:
            return answer
        contents = (self.host.tree.read(self.target) or b"", self.spot.mount.content)
        real, seen = ([line for line in content.split(b"\n") if key.encode() in line] for content in contents)
        if not real:
            return answer.replace(verdict="no such key in this file")
        if real == seen:
            return answer.replace(state=Answer.IN, verdict="in, read-only, as it is", changes=())
        name = self.target.removeprefix(f"{self.plan.project}/")
        ways = (Change("shows this value as it is", ("--reveal", f"{name}:{key}")), *answer.changes)
        return answer.replace(verdict="in, read-only, with a made-up value", changes=ways)

    def _answer(self, state: str, verdict: str, because: list[Because], changes: list[Change], spot: Spot) -> Answer:
        is_there = state in (Answer.IN, Answer.OTHER, Answer.MADE, Answer.MASKED)
        access, place = (spot.access, spot.path) if is_there else ("", "")
        ways = tuple(dict.fromkeys(changes))
        return Answer(Answer.PATH, self._short(self.named), state, verdict, tuple(because), ways, access, place)

    def _place(self, spot: Spot) -> str:
        return "" if spot.path in (self.named, self.spot.path) else f" as {self._short(spot.path)}"

    def _why(self, spot: Spot) -> Because:
        """What the mount does that decides about a place of the box, and why."""
        mount = spot.mount
        place = self._short(mount.source) + (f" as {self._short(mount.path)}" if mount.source != mount.path else "")
        if mount.kind in DOES:
            does = f"{DOES[mount.kind]} {self._short(mount.path)}"
        elif not mount.origin.is_rule(GUARD):
            does = f"shows {place}, {ACCESS[spot.access]}"
        elif mount.kind == LAYER and mount.origin != PIN:
            does = f"keeps what changes in {place} until you land it"
        else:
            does = f"keeps {place} read-only" if mount.kind == RO else f"pins {place}"
        return with_reason(f"{describe_origin(mount.origin)} {does}", mount.origin)

    def _found(self) -> list[Because]:
        """What else is known about a file of the project: findings, and whether somebody opened it."""
        name = self.target.removeprefix(f"{self.plan.project}/")
        opened = [one for one in self.plan.guard.opened if is_inside(self.target, one.path)]
        return [
            *(Because(finding.text) for finding in self.plan.findings if finding.subject == name),
            *(Because(f"--writable opens it, which would be read-only ({one.reason})") for one in opened[:1]),
        ]

    def _hides_below(self, places: list[Spot]) -> list[Because]:
        hides = [mount.path for mount in self.plan.mounts if mount.kind == HIDE]
        hidden = [self._short(path) for path in hides if any(is_below(path, spot.path) for spot in places)]
        return [Because(f"hidden in it: {', '.join(some(hidden, MOST_NAMED))}")] if hidden else []

    def _ways_for_shown(self, places: list[Spot]) -> list[Change]:
        mount, access = places[0].mount, places[0].access
        if mount.origin.is_rule(GUARD) and mount.origin != PIN:
            what = "lets the agent change it, although this host may run it"
            changes = [Change(what, ("--writable", self.target))]
        else:
            changes = self._mounts(RW if access == RO else RO)
        is_needed = any(spot.mount.source == self.target and spot.mount.origin.is_rule(*NEEDED) for spot in places)
        if not is_needed and not is_inside(self.host.cwd, self.target):
            changes.append(Change("keeps it out", ("--hide", self.target)))
        return changes + [way for spot in places if spot.mount.source == self.target for way in _undo_mount(spot.mount)]

    def _secret(self) -> list[Because]:
        for place in self.places:
            if is_inside(self.target, place.path) and not place.is_drawer:
                origin = Origin.of_rule("secret", place.reason)
                return [Because(f"{self._short(place.path)} is secret ({place.reason}) and never enters", origin)]
        return []

    def _ways_in(self) -> list[Change]:
        missing = "" if self.real is not None else "this host does not have it"
        why = self.refusal(RO) or missing
        return [Change(f"cannot be changed: {why}")] if why else self._mounts(RO, RW)

    def _mounts(self, *wanted: str) -> list[Change]:
        """The options that would show it, unless a rule about secrets or the system is against them."""
        return [
            Change(f"shows it, {ACCESS[access]}", (f"--mount-{access}", self.target))
            for access in wanted
            if not self.refusal(access)
        ]

    def refusal(self, access: str) -> str:
        """Why a mount would be refused; "" if it would not."""
        refuse = refuse_writable if access == RW else refuse_readable
        made = [one.path for one in self.plan.mounts if one.kind in BY_BWRAP and is_below(one.path, self.target)]
        made += [path for path in RESERVED if path == self.target]
        by_rule = refuse(self.target, self.host.person.homes, self.places)
        return by_rule or (f"the box needs its own {made[0]}" if made else "")

    def _short(self, path: str) -> str:
        return shorten_home(path, self.plan.person.home)


def _undo_mount(mount: Mount) -> list[Change]:
    return undo(mount.origin, mount.source if mount.source == mount.path else f"{mount.source}:{mount.path}")
