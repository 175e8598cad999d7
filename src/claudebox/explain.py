"""Answers "why?": what the Plan does with a path, a variable, a program, an address, a port or a package.

`settings` is what went into the Plan: if two ask for the same thing, the Plan itself knows only the winner.
"""

from __future__ import annotations

import posixpath

from claudebox.features.environment.explain import explain_variable
from claudebox.features.guard.decide import is_guard
from claudebox.features.names.explain import explain_host
from claudebox.features.network.explain import (
    boxs_view,
    explain_endpoint,
    explain_port,
    is_local_name,
    read_address,
    read_endpoint,
    read_port,
)
from claudebox.features.nix.explain import explain_nix, explain_packages, is_named
from claudebox.features.secrets.table import RULE as SECRETS
from claudebox.features.wishes import settle, wished_mounts
from claudebox.host import Host
from claudebox.host.programs import find
from claudebox.host.tree import MOST_LINKS, Tree
from claudebox.model import (
    ABSENT,
    COVER,
    DEV,
    FILE,
    FROM_HOST,
    HIDE,
    LAYER,
    MASK,
    PROC,
    RO,
    RW,
    SYMLINK,
    TMPFS,
    WRITABLE,
    Mount,
    Origin,
    Plan,
    SecretPlace,
)
from claudebox.mounts import PIN, find_holder
from claudebox.paths import absolute, expand_home, is_below, is_inside, move, parents, shorten_home
from claudebox.problem import Problem
from claudebox.record import Record
from claudebox.settings.types import LAST_PORT, is_variable_name
from claudebox.settings.values import MountWish, Settings
from claudebox.state import SHOWN
from claudebox.trust.reach import reach_of
from claudebox.trust.secret_places import refuse_readable, secret_places
from claudebox.trust.secret_values import secret_value
from claudebox.view.explanation import (
    HIDDEN,
    IN,
    MADE,
    MASKED,
    OTHER,
    OUT,
    PATH,
    PROGRAM,
    Answer,
    Because,
    Change,
    Explanation,
    describe_origin,
    undo,
    with_reason,
)
from claudebox.view.text import some

FILE_URL = "file://"
KINDS = "a path, variable, program, host, address, port or package, or nix"
# What names of files end in. Some are domains, too: then the word gets two answers.
FILE_ENDINGS = frozenset(
    "bak c cfg conf cpp css csv db env go h html ini ipynb java jpg js json jsx kt lock log md php png py rb rs sh sql "
    "svg toml ts tsx txt xml yaml yml".split()
)
ALSO_DOMAINS = frozenset("md py rs sh".split())

OUTSIDE = Change("do outside of the box what needs it")
# Programs that are of no use without something that never enters, and what that is.
CLIENTS = (
    (("docker", "docker-compose"), "/run/docker.sock", "who uses Docker's daemon is root of this host"),
    (("podman", "buildah"), "/run/user", "it needs your session, and namespaces: --userns on is not enough"),
    (("ssh", "scp", "sftp", "ssh-add"), "~/.ssh", "keys of SSH, and the socket of their agent"),
    (("gpg", "gpg2"), "~/.gnupg", "keys of GPG"),
    (("aws",), "~/.aws", "credentials of AWS"),
    (("gcloud", "gsutil"), "~/.config/gcloud", "credentials of Google Cloud"),
    (("az",), "~/.azure", "credentials of Azure"),
    (("kubectl", "helm", "k9s"), "~/.kube", "credentials of clusters"),
    (("gh",), "~/.config/gh", "a token of GitHub"),
)
ACCESS = {RO: "read-only", RW: "writable"}
NEEDED_RULES = ("system", "nix")
BY_BWRAP = (FILE, SYMLINK, TMPFS, PROC, DEV)  # bwrap cannot make these in a directory of the host
MOST_NAMED = 6
MAKES = {
    FILE: "writes a file for the box there",
    PROC: "shows the box's own processes there",
    DEV: "makes the few devices that programs need",
    TMPFS: "makes a directory, empty at each start",
    ABSENT: "shows an empty directory",
    COVER: "shows what the file says, and keeps it as it is",
}
# What bwrap puts into /dev. The other devices of the host are missing.
DEVICES = frozenset("null zero full random urandom tty console stdin stdout stderr fd core shm pts ptmx".split())


def explain(plan: Plan, host: Host, settings: Settings, thing: str) -> Explanation:
    """An answer for each thing that the word can mean. Raises a Problem if it can mean none."""
    if not thing.strip():
        raise Problem("--explain needs something to explain", KINDS)
    if is_named(plan, thing):
        answers = explain_packages(plan, thing)
    elif "://" in thing and not thing.startswith(FILE_URL):
        answers = _endpoint(plan, thing)
    elif secret_value(thing):
        # The shell has replaced `$NAME` by its value, which must not be repeated on the screen.
        raise Problem("--explain got what looks like a secret, not a name", "without the $: --explain NAME")
    elif thing.startswith("$"):
        answers = _variable(plan, host, settings, thing[1:].removeprefix("{").removesuffix("}"))
    else:
        answers = _word(plan, host, settings, thing.removeprefix(FILE_URL))
    if not answers:
        raise _unknown(thing)
    return Explanation(answers[0].subject if len(answers) == 1 else thing, tuple(answers))


def _word(plan: Plan, host: Host, settings: Settings, word: str) -> list[Answer]:
    if word == "nix":
        return [explain_nix(plan)]
    answers: list[Answer] = []
    exists = host.tree.lstat(absolute(word, host.cwd, host.person.home)) is not None
    if "/" in word or word.startswith(("~", ".")) or exists or _ending_of(word) in FILE_ENDINGS:
        answers.append(PathQuestion(plan, host, word).answer())
        answers += explain_packages(plan, absolute(word, host.cwd, host.person.home))
    if word.isupper() or word in host.environ or word in (variable.name for variable in plan.environment):
        answers += _variable(plan, host, settings, word)
    if port := read_port(word.removeprefix(":")):
        answers.append(explain_port(plan, port))
    if is_variable_name(word.replace("-", "_")) and (program := explain_program(plan, host, word)):
        answers.append(program)
    is_host = not word.isdigit() and (read_address(word) is not None or is_local_name(word.partition(":")[0]))
    is_host = is_host or (not exists and "/" not in word and _ending_of(word) in ALSO_DOMAINS)
    if is_host or not (answers or word.isdigit()):
        answers += [_as_guessed(answer, word) for answer in _endpoint(plan, word)]
    return answers


def _ending_of(word: str) -> str:
    """What comes after the last dot; "" if nothing does, or nothing comes before it."""
    name, _, ending = word.rpartition(".")
    return ending.lower() if name.rpartition("/")[2] else ""


def _as_guessed(answer: Answer, word: str) -> Answer:
    """The answer with a remark: a bare word may have been meant for something that does not exist."""
    if not is_variable_name(word) or is_local_name(word):
        return answer
    guess = Because("no file, variable or program has this name")
    return answer.replace(verdict=f"as a host, {answer.verdict}", because=(guess, *answer.because))


def _variable(plan: Plan, host: Host, settings: Settings, name: str) -> list[Answer]:
    return [explain_variable(plan, host, settings, name)] if is_variable_name(name) else []


def _endpoint(plan: Plan, text: str) -> list[Answer]:
    endpoint = read_endpoint(text)
    if endpoint is None:
        return []
    outside = boxs_view(plan, endpoint) if plan.names is not None else None
    if plan.names is not None and outside is not None:
        return [explain_host(plan, plan.names, endpoint.text, outside.host, outside.port)]
    return [explain_endpoint(plan, endpoint)]


def _unknown(thing: str) -> Problem:
    if thing.isdigit():
        return Problem(f"--explain: {thing} is not a port", f"1 to {LAST_PORT}")
    return Problem(f"--explain: `{thing}` cannot be explained", KINDS)


def explain_program(plan: Plan, host: Host, name: str) -> Answer | None:
    """Where the box would find a program, and where this host does. None if nothing is known of it."""
    home, in_box = plan.person.home, _find_in_box(plan, host, name)
    on_host = find(host.tree, name, host.environ.get("PATH", ""), host.cwd) or ""
    needed = [(needs, reason) for names, needs, reason in CLIENTS if name in names]
    if not (in_box or on_host or needed):
        return None
    lacks = tuple(
        Because(f"{needs} is not in the box ({reason})")
        for needs, reason in needed
        if not any(one.source and is_inside(one.source, expand_home(needs, home)) for one in plan.mounts)
    )

    def answer(state: str, verdict: str, because: tuple[Because, ...], changes: tuple[Change, ...]) -> Answer:
        return Answer(PROGRAM, name, state, verdict, because, changes, place=in_box)

    outside = (OUTSIDE,) if needed else ()
    if not in_box and not on_host:
        return answer(OUT, "not in the box", (Because("this host does not have it either"), *lacks), outside)
    question = PathQuestion(plan, host, in_box or on_host)
    file = question.answer()
    if in_box:
        verdict = f"in the box: {shorten_home(in_box, home)}{', but not what it works with' if needed else ''}"
        # Nobody who asks for a program wants to write to it.
        hiding = tuple(change for change in file.changes if change.option[:1] == ("--hide",))
        return answer(IN, verdict, (*lacks, *file.because), outside or hiding)
    if file.state == HIDDEN:
        return answer(OUT, file.verdict, (*file.because, *lacks), file.changes)
    directory = posixpath.dirname(on_host)
    shown = shorten_home(directory, home)
    onto_path = Change(f'path = ["{shown}"] in {SHOWN.config} puts it on PATH')
    if file.state == IN:
        verdict = f"in the box, but not on its PATH: {shorten_home(on_host, home)}"
        return answer(IN, verdict, (Because(f"{shown} is in the box, but not on its PATH"), *lacks), (onto_path,))
    why = Because(f"this host has it in {shown}, which is not on the PATH of the box")
    ways: tuple[Change, ...] = (Change("shows its directory, read-only", ("--mount-ro", directory)), onto_path)
    if refusal := question.refusal("ro", directory):
        ways = (Change(f"cannot be changed: {refusal}"),)
    return answer(OUT, "not in the box", (why, *lacks), (*ways, *outside))


def _find_in_box(plan: Plan, host: Host, name: str) -> str:
    inside = Inside(host.tree, plan.mounts)
    path = next((variable.value for variable in plan.environment if variable.name == "PATH"), "")
    for file in (posixpath.join(directory, name) for directory in path.split(":")):
        spot = inside.find(file)
        if spot.exists and spot.host and host.tree.is_executable(spot.host):
            return file
    return ""


# Why a path is in the box or not: it is followed as a program in the box would, by the mounts and the host's files


class Spot(Record):
    """Where a path leads to in the box."""

    path: str  # without symlinks
    mount: Mount  # the one that decides what is there
    exists: bool
    access: str
    host: str = ""  # the path on the host, if the host's file is shown there
    links: tuple[str, ...] = ()  # symlinks in the box that led here


class Inside:
    """The files of a box."""

    def __init__(self, tree: Tree, mounts: tuple[Mount, ...]) -> None:
        self.tree = tree
        self.mounts = mounts
        self.by_path = {mount.path: mount for mount in mounts}

    def find(self, path: str) -> Spot:
        waiting = _parts(path)
        links: list[str] = []
        here = ""
        while waiting:
            part = waiting.pop()
            if part == "..":
                here = here.rpartition("/")[0]
                continue
            here = f"{here}/{part}"
            target = self._link_target(here)
            if target and len(links) < MOST_LINKS:
                links.append(here)
                waiting += _parts(target)
                here = "" if target.startswith("/") else here.rpartition("/")[0]
            elif target or not self._at(here).exists:
                rest = "/".join([here, *reversed(waiting)])
                return self._at(rest).replace(exists=False, links=tuple(links))
        return self._at(here or "/").replace(links=tuple(links))

    def _link_target(self, path: str) -> str:
        """What a symlink of the box says; "" for anything else."""
        mount = self._holder(path)
        if mount.kind == SYMLINK:
            return mount.source
        if mount.path == path or mount.kind not in FROM_HOST:
            return ""
        on_host = move(path, mount.path, mount.source)
        return self.tree.link_target(on_host) if self.tree.is_link(on_host) else ""

    def _at(self, path: str) -> Spot:
        mount = self._holder(path)
        host = move(path, mount.path, mount.source) if mount.kind in FROM_HOST else ""
        return Spot(path, mount, self._exists(path, mount, host), self._access(path, mount), host)

    def _exists(self, path: str, mount: Mount, host: str) -> bool:
        # bwrap makes the directories on the way to a mount.
        if mount.path == path or any(is_below(other.path, path) for other in self.mounts):
            return True
        below = path.removeprefix(mount.path).strip("/").split("/")[0]
        if mount.kind == DEV:
            return below in DEVICES
        if mount.kind == PROC:
            return not below.isdigit() and self.tree.lstat(path) is not None
        return bool(host) and self.tree.lstat(host) is not None

    def _access(self, path: str, mount: Mount) -> str:
        if mount.kind == FILE:
            above = find_holder(path, [other for other in self.mounts if other.kind == TMPFS])
            return self._access(path, above) if above else RO
        # bwrap makes the root read-only once everything is in it.
        return RW if mount.kind in (*WRITABLE, DEV, PROC) or (mount.kind == TMPFS and mount.path != "/") else RO

    def _holder(self, path: str) -> Mount:
        found = find_holder(path, self.mounts)
        assert found is not None, "a box has a root"
        return found


def _parts(path: str) -> list[str]:
    """The parts of a path in reverse, so that `pop` takes the first one."""
    return [part for part in path.split("/") if part and part != "."][::-1]


class PathQuestion:
    """One path as the user means it, and what is known about it on the host and in the box."""

    def __init__(self, plan: Plan, host: Host, text: str) -> None:
        self.plan = plan
        self.host = host
        self.named = absolute(text, host.cwd, host.person.home)
        self.real = host.tree.resolve(self.named)
        # A path that does not exist yet would be below the real path of one that does.
        self.target = self.real or self._expected()
        self.inside = Inside(host.tree, plan.mounts)
        self.spot = self.inside.find(self.named)
        table = secret_places(host.tree, host.person.homes)
        self.places: tuple[SecretPlace, ...] = (*plan.outside.places, *table)

    def _expected(self) -> str:
        for above in (*parents(self.named), "/"):
            if (real := self.host.tree.resolve(above)) is not None:
                return move(self.named, above, real)
        return self.named

    def answer(self) -> Answer:
        for attempt in (self._shown, self._masked, self._hidden, self._another, self._made):
            if (found := attempt()) is not None:
                return found
        return self._outside()

    def _answer(self, state: str, verdict: str, because: list[Because], changes: list[Change], spot: Spot) -> Answer:
        subject, is_there = self._short(self.named), state in (IN, OTHER, MADE, MASKED)
        access, place = (spot.access, spot.path) if is_there else ("", "")
        return Answer(PATH, subject, state, verdict, tuple(because), tuple(changes), access, place)

    # What the box shows of the host

    def _shown(self) -> Answer | None:
        places = self._places()
        if self.real is None or not places:
            return None
        first = places[0]
        at_home = first.path == self.spot.path
        because = [self._showing(spot) for spot in places]
        because += [self._following(first)] if at_home and first.links else []
        verdict = f"in, {ACCESS[first.access]}" + ("" if at_home else f", as {self._short(first.path)}")
        verdict += "; what changes lands when you say so" if first.mount.kind == LAYER else ""
        if first.access == RO and (writable := [spot for spot in places if spot.access == RW]):
            verdict += f", and writable as {self._short(writable[0].path)}"
        because += self._found() + self._hides_below(places) + self._hides_of(self._hidden_spots())
        return self._answer(IN, verdict, because, self._ways_for_shown(places, self.target), first)

    def _places(self) -> list[Spot]:
        """Every path of the box that shows this very file: first the one that was asked about, then the real one."""
        others = sorted(self._appearances(), key=lambda spot: spot.path != self.target)
        found = {spot.path: spot for spot in (*reversed(others), self.spot)}
        return [spot for spot in reversed(found.values()) if spot.exists and spot.host == self.target]

    def _appearances(self) -> list[Spot]:
        """What is at each place of the box where a mount would show the file."""
        mounts = (one for one in self.plan.mounts if one.kind in FROM_HOST and is_inside(self.target, one.source))
        return [self.inside.find(move(self.target, mount.source, mount.path)) for mount in mounts]

    def _showing(self, spot: Spot) -> Because:
        mount = spot.mount
        place = self._short(mount.source) + (f" as {self._short(mount.path)}" if mount.source != mount.path else "")
        if not is_guard(mount):
            does = f"shows {place}, {ACCESS[spot.access]}"
        elif mount.kind == LAYER and mount.origin != PIN:
            does = f"keeps what changes in {place} until you land it"
        else:
            does = f"keeps {place} read-only" if mount.kind == RO else f"pins {place}"
        return with_reason(f"{describe_origin(mount.origin)} {does}", mount.origin)

    def _following(self, spot: Spot) -> Because:
        return Because(f"{self._short(spot.links[0])} is a symlink in the box, which leads to {self._short(spot.path)}")

    def _found(self) -> list[Because]:
        """What else is known about a file of the project: findings, and whether somebody opened it."""
        name = self.target.removeprefix(f"{self.plan.project}/")
        opened = [one for one in self.plan.guard.opened if is_inside(self.target, one.path)]
        return [
            *(Because(finding.text) for finding in self.plan.findings if finding.subject == name),
            *(Because(f"--writable opens it, which would be read-only ({one.reason})") for one in opened[:1]),
        ]

    def _ways_for_shown(self, places: list[Spot], shown: str) -> list[Change]:
        changes = [self._way_to_other_access(spot, shown) for spot in places]
        if is_inside(self.host.cwd, shown):
            changes.append(Change("cannot be hidden: it is the project, or holds it"))
        elif shown == places[0].mount.source and places[0].mount.origin.is_rule(*NEEDED_RULES):
            changes.append(Change("cannot be left out: no program would run without it"))
        else:
            changes.append(Change("keeps it out", ("--hide", shown)))
        changes += [way for spot in places if spot.mount.source == shown for way in _undo_mount(spot.mount)]
        return list(dict.fromkeys(changes))

    def _way_to_other_access(self, spot: Spot, shown: str) -> Change:
        if is_guard(spot.mount) and spot.access == RO:
            return Change("lets the agent change it, although this host may run it later", ("--writable", shown))
        if is_guard(spot.mount) and spot.mount.kind == LAYER and spot.mount.origin != PIN:
            return Change("lets changes reach this host at once, although it may run them", ("--writable", shown))
        wanted, destination = RW if spot.access == RO else RO, "" if spot.path == shown else spot.path
        if refusal := self.refusal(wanted, shown, destination):
            return Change(f"cannot be made {ACCESS[wanted]}: {refusal}")
        value = f"{shown}:{destination}" if destination else shown
        return Change(f"makes it {ACCESS[wanted]}", (f"--mount-{wanted}", value))

    # What is covered

    def _masked(self) -> Answer | None:
        mount = self.spot.mount
        if not mount.origin.is_rule(SECRETS):
            return None
        empty = "as an empty directory" if mount.is_dir else "as an empty file"
        instead = "with made-up values" if mount.kind == MASK else empty
        because = [with_reason(f"{describe_origin(mount.origin)} masks {self._short(mount.path)}", mount.origin)]
        because += [self._following(self.spot)] if self.spot.links else []
        name = self.target.removeprefix(f"{self.plan.project}/")
        changes = [Change("shows it as it is", ("--reveal", name)), Change("hides it", ("--hide", name))]
        return self._answer(MASKED, f"in, read-only, {instead}", because, changes, self.spot)

    def _hidden(self) -> Answer | None:
        hidden = self._hidden_spots()
        if not hidden:
            return None
        never = [Change("cannot be changed: no option shows it")]
        origins = dict.fromkeys(spot.mount.origin for spot in hidden)
        changes = [change for origin in origins for change in undo(origin) or never]
        return self._answer(HIDDEN, "not in the box, hidden", self._hides_of(hidden), changes, self.spot)

    def _hidden_spots(self) -> list[Spot]:
        spots = (self.spot, *self._appearances())
        return list({spot.path: spot for spot in spots if spot.mount.kind == HIDE}.values())

    def _hides_of(self, hidden: list[Spot]) -> list[Because]:
        because = []
        for cover in (spot.mount for spot in hidden):
            what = "it" if cover.path == self.named else self._short(cover.path)
            because.append(with_reason(f"{describe_origin(cover.origin)} hides {what}", cover.origin))
        return because

    def _hides_below(self, places: list[Spot]) -> list[Because]:
        hides = [
            self._short(mount.path)
            for mount in self.plan.mounts
            if mount.kind == HIDE and any(is_below(mount.path, spot.path) for spot in places)
        ]
        return [Because(f"hidden in it: {', '.join(some(hides, MOST_NAMED))}")] if hides else []

    # What the box has instead

    def _another(self) -> Answer | None:
        if not self.spot.exists or not self.spot.host:
            return None
        shown, access = self._short(self.spot.host), ACCESS[self.spot.access]
        because = [self._showing(self.spot), *self._secret()]
        if self.real is None:
            changes = self._ways_for_shown([self.spot], self.spot.host)
            return self._answer(OTHER, f"in, {access}: {shown} of this host", because, changes, self.spot)
        because.append(Because(f"{self._short(self.target)} of this host is not in the box"))
        changes = [*self._ways_in(), *_undo_mount(self.spot.mount)]
        return self._answer(OTHER, f"in, {access}, but what is there is {shown}", because, changes, self.spot)

    def _made(self) -> Answer | None:
        if not self.spot.exists:
            return None
        mount = self.spot.mount
        is_above = mount.kind == TMPFS and mount.path != self.spot.path
        does = "makes the directory, because of what is in it" if is_above else MAKES[mount.kind]
        because = [with_reason(f"{describe_origin(mount.origin)} {does}", mount.origin), *self._secret()]
        verdict = f"made for the box, {ACCESS[self.spot.access]}"
        return self._answer(MADE, verdict, because, self._ways_in(), self.spot)

    # What stays outside

    def _outside(self) -> Answer:
        mount, changes = self.spot.mount, self._ways_in()
        verdict = "not in the box"
        if self.spot.links and self.real is not None:
            link = self._short(self.spot.links[-1])
            because = [Because(f"the symlink {link} is in the box, what it leads to is not"), *self._secret()]
        elif self.real is None and self.spot.host:
            verdict = "does not exist" + ("; the box may create it" if self.spot.access == RW else "")
            because, changes = [self._showing(self.spot)], []
        else:
            because = self._secret() or [Because("no rule shows it")]
            if mount.path != "/" and not self._secret():
                because.append(with_reason(f"{self._short(mount.path)} is the box's own", mount.origin))
            because += [Because("this host does not have it either")] if self.real is None else []
        return self._answer(OUT, verdict, because, changes, self.spot)

    def _secret(self) -> list[Because]:
        for place in self.places:
            if is_inside(self.target, place.path):
                origin = Origin.of_rule("secret", place.reason)
                return [Because(f"{self._short(place.path)} is secret ({place.reason}) and never enters", origin)]
        return []

    def _ways_in(self) -> list[Change]:
        if self.real is None:
            refused = refuse_readable(self.target, self.host.person.homes, self.places)
            missing = Change("shows it, once it exists on this host", ("--mount-ro", self.named))
            return [Change(f"cannot be changed: {refused}") if refused else missing]
        # If its own name is a symlink in the box, the place that it leads to may work.
        for source in dict.fromkeys((self.named, self.target)):
            if not self.refusal(RO, source):
                writable = Change("shows it, writable", ("--mount-rw", source))
                if refused := self.refusal(RW, source):
                    writable = Change(f"cannot be made writable: {refused}")
                return [Change("shows it, read-only", ("--mount-ro", source)), writable]
        return [Change(f"cannot be changed: {self.refusal(RO, self.target)}")]

    def refusal(self, access: str, source: str, destination: str = "") -> str:
        """Why a mount would be refused; "" if it would not. The rules that judge the option itself are asked."""
        option = Origin.of_option(f"--mount-{access}")
        wish = MountWish(access, source, destination, option)
        tree, homes = self.host.tree, self.host.person.homes
        try:
            wished = wished_mounts(reach_of(self.host), (wish,), self.host.cwd, homes, self.places)
            (mount,) = settle(tree, wished, list(self.plan.mounts))
        except Problem as problem:
            return problem.message.removeprefix(f"{option.shown} {source}: ").removeprefix(f"{option.shown}: ")
        hides = [other for other in self.plan.mounts if other.kind == HIDE and is_inside(mount.path, other.path)]
        made = [other for other in self.plan.mounts if other.kind in BY_BWRAP and is_below(other.path, mount.path)]
        if hides:
            return f"{describe_origin(hides[0].origin)} hides {hides[0].path}"
        return f"the box makes {made[0].path} in it" if made else ""

    def _short(self, path: str) -> str:
        return shorten_home(path, self.plan.person.home)


def _undo_mount(mount: Mount) -> list[Change]:
    return undo(mount.origin, mount.source if mount.source == mount.path else f"{mount.source}:{mount.path}")
