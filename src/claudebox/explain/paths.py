"""Why a path is in the box or not."""

from __future__ import annotations

from claudebox.answers import (
    HIDDEN,
    IN,
    MADE,
    MASKED,
    OTHER,
    OUT,
    PATH,
    Answer,
    Because,
    Change,
    describe_origin,
    undo,
    with_reason,
)
from claudebox.explain.inside import Inside, Spot
from claudebox.features.guard.decide import is_guard
from claudebox.features.secrets.table import RULE as SECRETS
from claudebox.features.wishes import settle, wished_mounts
from claudebox.host import Host
from claudebox.model import (
    ABSENT,
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
    Mount,
    Origin,
    Plan,
    SecretPlace,
)
from claudebox.mounts import PIN
from claudebox.paths import absolute, is_below, is_inside, move, parents, shorten_home
from claudebox.problem import Problem
from claudebox.settings.values import MountWish, Settings
from claudebox.trust.reach import reach_of
from claudebox.trust.secret_places import refuse_readable, secret_places

ACCESS = {RO: "read-only", RW: "writable"}
NEEDED_RULES = ("system", "nix")
BY_BWRAP = (FILE, SYMLINK, TMPFS, PROC, DEV)  # bwrap cannot make these in a directory of the host
MOST_NAMED = 6
ESSENTIAL = "cannot be left out: no program would run without it"


class PathQuestion:
    """One path as the user means it, and what is known about it on the host and in the box."""

    def __init__(self, plan: Plan, host: Host, settings: Settings, text: str) -> None:
        self.plan = plan
        self.host = host
        self.settings = settings
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
        is_there = state in (IN, OTHER, MADE, MASKED)
        return Answer(
            kind=PATH,
            subject=self._short(self.named),
            state=state,
            verdict=verdict,
            because=tuple(because),
            changes=tuple(changes),
            access=spot.access if is_there else "",
            place=spot.path if is_there else "",
        )

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
        because += self._found() + self._opened() + self._hides_below(places) + self._hides_of(self._hidden_spots())
        return self._answer(IN, verdict, because, self._ways_for_shown(places, self.target), first)

    def _places(self) -> list[Spot]:
        """Every path of the box that shows this very file: first the one that was asked about, then the real one."""
        others = sorted((spot for _, spot in self._appearances()), key=lambda spot: spot.path != self.target)
        found = {spot.path: spot for spot in (*reversed(others), self.spot)}
        return [spot for spot in reversed(found.values()) if spot.exists and spot.host == self.target]

    def _appearances(self) -> list[tuple[Mount, Spot]]:
        """Each mount that would show the file, with what is at that place of the box."""
        mounts = [
            mount for mount in self.plan.mounts if mount.kind in FROM_HOST and is_inside(self.target, mount.source)
        ]
        return [(mount, self.inside.find(move(self.target, mount.source, mount.path))) for mount in mounts]

    def _showing(self, spot: Spot) -> Because:
        mount = spot.mount
        as_path = f" as {self._short(mount.path)}" if mount.source != mount.path else ""
        if is_guard(mount):
            place = f"{self._short(mount.source)}{as_path}"
            does = f"keeps {place} read-only" if mount.kind == RO else f"pins {place}"
            if mount.kind == LAYER and mount.origin != PIN:
                does = f"keeps what changes in {place} until you land it"
            return with_reason(f"{describe_origin(mount.origin)} {does}", mount.origin)
        text = f"{describe_origin(mount.origin)} shows {self._short(mount.source)}{as_path}, {ACCESS[spot.access]}"
        return with_reason(text, mount.origin)

    def _opened(self) -> list[Because]:
        opened = [guarded for guarded in self.plan.guard.opened if is_inside(self.target, guarded.path)]
        return [Because(f"--writable opens it, which would be read-only ({guarded.reason})") for guarded in opened[:1]]

    def _following(self, spot: Spot) -> Because:
        return Because(f"{self._short(spot.links[0])} is a symlink in the box, which leads to {self._short(spot.path)}")

    def _ways_for_shown(self, places: list[Spot], shown: str) -> list[Change]:
        changes = [self._way_to_other_access(spot, shown) for spot in places]
        mount = places[0].mount
        if is_inside(self.host.cwd, shown):
            changes.append(Change("cannot be hidden: it is the project, or holds it"))
        elif shown == mount.source and mount.origin.is_rule(*NEEDED_RULES):
            changes.append(Change(ESSENTIAL))
        else:
            changes.append(Change("keeps it out", ("--hide", shown)))
        for spot in places:
            if spot.mount.source == shown:
                changes += self._undo_mount(spot.mount)
        return list(dict.fromkeys(changes))

    def _undo_mount(self, mount: Mount) -> list[Change]:
        said = mount.source if mount.source == mount.path else f"{mount.source}:{mount.path}"
        return undo(mount.origin, said)

    def _way_to_other_access(self, spot: Spot, shown: str) -> Change:
        wanted = RW if spot.access == RO else RO
        if is_guard(spot.mount) and spot.access == RO:
            return Change("lets the agent change it, although this host may run it later", ("--writable", shown))
        if is_guard(spot.mount) and spot.mount.kind == LAYER and spot.mount.origin != PIN:
            return Change("lets changes reach this host at once, although it may run them", ("--writable", shown))
        destination = "" if spot.path == shown else spot.path
        refusal = self.refusal(wanted, shown, destination)
        if refusal:
            return Change(f"cannot be made {ACCESS[wanted]}: {refusal}")
        value = f"{shown}:{destination}" if destination else shown
        return Change(f"makes it {ACCESS[wanted]}", (f"--mount-{wanted}", value))

    def _found(self) -> list[Because]:
        """The findings about a file of the project that is shown as it is."""
        name = self.target.removeprefix(f"{self.plan.project}/")
        return [Because(finding.text) for finding in self.plan.findings if finding.subject == name]

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
        because = self._hides_of(hidden)
        changes: list[Change] = []
        for origin in dict.fromkeys(spot.mount.origin for spot in hidden):
            changes += undo(origin, self._hide_said(origin)) or [
                Change(f"cannot be changed: {self._why_never(origin)}")
            ]
        return self._answer(HIDDEN, "not in the box, hidden", because, changes, self.spot)

    def _hidden_spots(self) -> list[Spot]:
        spots = [self.spot, *(spot for _, spot in self._appearances())]
        return list({spot.path: spot for spot in spots if spot.mount.kind == HIDE}.values())

    def _hide_said(self, origin: Origin) -> str:
        """The hide as it was typed. There may be several, and it may name a directory above this path."""
        typed = [hide.text for hide in self.settings.hides if hide.origin == origin]
        reals = {
            text: self.host.tree.resolve(absolute(text, self.host.cwd, self.host.person.home)) or "" for text in typed
        }
        return next((text for text, real in reals.items() if real and is_inside(self.target, real)), "")

    def _hides_of(self, hidden: list[Spot]) -> list[Because]:
        because = []
        for spot in hidden:
            cover = spot.mount
            what = "it" if cover.path == self.named else self._short(cover.path)
            because.append(with_reason(f"{describe_origin(cover.origin)} hides {what}", cover.origin))
        return because + (self._grants_in_vain(hidden) if hidden else [])

    def _grants_in_vain(self, hidden: list[Spot]) -> list[Because]:
        """What would show it if it were not hidden. The plan no longer has grants at the hidden path itself."""
        granted = {
            mount.origin: self._short(mount.source)
            for mount, spot in self._appearances()
            if spot.path in [cover.path for cover in hidden]
        }
        for wish in self.settings.mounts:
            source = self.host.tree.resolve(absolute(wish.source, self.host.cwd, self.host.person.home))
            if source is not None and is_inside(self.target, source):
                granted.setdefault(wish.origin, self._short(source))
        return [
            Because(f"that wins over {describe_origin(origin)}, which shows {source}", origin)
            for origin, source in granted.items()
        ]

    def _hides_below(self, places: list[Spot]) -> list[Because]:
        hides = [
            mount
            for mount in self.plan.mounts
            if mount.kind == HIDE and any(is_below(mount.path, spot.path) for spot in places)
        ]
        return [Because(f"hidden in it: {self._list(hides)}")] if hides else []

    def _why_never(self, origin: Origin) -> str:
        return f"secret places never enter ({origin.reason})" if origin.is_rule("secret") else origin.reason

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
        changes = [*self._ways_in(), *self._undo_mount(self.spot.mount)]
        return self._answer(OTHER, f"in, {access}, but what is there is {shown}", because, changes, self.spot)

    def _made(self) -> Answer | None:
        if not self.spot.exists:
            return None
        mount, access = self.spot.mount, ACCESS[self.spot.access]
        because = [with_reason(f"{describe_origin(mount.origin)} {self._making(mount)}", mount.origin)]
        inner = [
            other
            for other in self.plan.mounts
            if other.kind in FROM_HOST and is_below(other.path, self.spot.path) and not is_guard(other)
        ]
        if inner:
            because.append(Because(f"of this host, in it: {self._list(inner)}"))
        because += self._secret()
        return self._answer(MADE, f"made for the box, {access}", because, self._ways_in(), self.spot)

    def _making(self, mount: Mount) -> str:
        if mount.kind == FILE:
            return "writes a file for the box there"
        if mount.kind == PROC:
            return "shows the box's own processes there"
        if mount.kind == DEV:
            return "makes the few devices that programs need"
        if mount.kind == TMPFS and mount.path != self.spot.path:
            return "makes the directory, because of what is in it"
        return "makes a directory, empty at each start" if mount.kind != ABSENT else "shows an empty directory"

    # What stays outside

    def _outside(self) -> Answer:
        mount = self.spot.mount
        if self.spot.links and self.real is not None:
            because = [
                Because(f"the symlink {self._short(self.spot.links[-1])} is in the box, what it leads to is not")
            ]
            return self._answer(OUT, "not in the box", because + self._secret(), self._ways_in(), self.spot)
        if self.real is None and self.spot.host:
            access = ACCESS[self.spot.access]
            because = [Because("it does not exist"), self._showing(self.spot)]
            verdict = f"not there; in, {access}, as soon as it is"
            return self._answer(OUT, verdict, because, [], self.spot)
        because = self._secret() or [Because("no rule shows it")]
        if mount.path != "/" and not self._secret():
            because.append(with_reason(f"{self._short(mount.path)} is the box's own", mount.origin))
        if self.real is None:
            because.append(Because("this host does not have it either"))
        return self._answer(OUT, "not in the box", because, self._ways_in(), self.spot)

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
                writable = self.refusal(RW, source)
                return [
                    Change("shows it, read-only", ("--mount-ro", source)),
                    Change(f"cannot be made writable: {writable}")
                    if writable
                    else Change("shows it, writable", ("--mount-rw", source)),
                ]
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

    def _list(self, mounts: list[Mount]) -> str:
        # What somebody asked for comes first: people look for that.
        paths = [self._short(mount.path) for mount in sorted(mounts, key=lambda mount: not mount.origin.is_said)]
        more = f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else ""
        return ", ".join(paths[:MOST_NAMED]) + more
