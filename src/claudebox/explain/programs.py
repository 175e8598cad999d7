"""Why a program can be started in the box or not."""

from __future__ import annotations

import posixpath

from claudebox.answers import HIDDEN, IN, OUT, PROGRAM, Answer, Because, Change
from claudebox.explain.inside import Inside
from claudebox.explain.paths import PathQuestion
from claudebox.host import Host
from claudebox.host.programs import find
from claudebox.model import Plan
from claudebox.paths import expand_home, is_inside, shorten_home
from claudebox.record import Record
from claudebox.settings.values import Settings
from claudebox.state import SHOWN

OUTSIDE = "do outside of the box what needs it"


class Client(Record):
    """Programs that are of no use without something that never enters."""

    names: tuple[str, ...]
    needs: str
    reason: str


CLIENTS = (
    Client(("docker", "docker-compose"), "/run/docker.sock", "who uses Docker's daemon is root of this host"),
    Client(("podman", "buildah"), "/run/user", "it needs your session, and namespaces: --userns on is not enough"),
    Client(("ssh", "scp", "sftp", "ssh-add"), "~/.ssh", "keys of SSH, and the socket of their agent"),
    Client(("gpg", "gpg2"), "~/.gnupg", "keys of GPG"),
    Client(("aws",), "~/.aws", "credentials of AWS"),
    Client(("gcloud", "gsutil"), "~/.config/gcloud", "credentials of Google Cloud"),
    Client(("az",), "~/.azure", "credentials of Azure"),
    Client(("kubectl", "helm", "k9s"), "~/.kube", "credentials of clusters"),
    Client(("gh",), "~/.config/gh", "a token of GitHub"),
)


class ProgramQuestion:
    """A program by its name: where the box would find it, and where this host does."""

    def __init__(self, plan: Plan, host: Host, settings: Settings, name: str) -> None:
        self.plan = plan
        self.host = host
        self.settings = settings
        self.name = name
        self.client = next((client for client in CLIENTS if name in client.names), None)
        self.path = next((one.value for one in plan.environment if one.name == "PATH"), "")
        self.in_box = self._find_in_box()
        self.on_host = find(host.tree, name, host.environ.get("PATH", ""), host.cwd) or ""

    def answer(self) -> Answer | None:
        """None if nothing is known of a program with this name."""
        if not (self.in_box or self.on_host or self.client):
            return None
        if self.in_box:
            return self._found()
        return self._only_on_host() if self.on_host else self._nowhere()

    def _find_in_box(self) -> str:
        inside = Inside(self.host.tree, self.plan.mounts)
        for directory in self.path.split(":"):
            spot = inside.find(posixpath.join(directory, self.name))
            if spot.exists and spot.host and self.host.tree.is_executable(spot.host):
                return posixpath.join(directory, self.name)
        return ""

    def _found(self) -> Answer:
        file = PathQuestion(self.plan, self.host, self.settings, self.in_box).answer()
        verdict = f"in the box: {self._short(self.in_box)}"
        if self.client:
            verdict += ", but not what it works with"
        # Nobody who asks for a program wants to write to it.
        ways = tuple(change for change in file.changes if change.option[:1] == ("--hide",))
        changes = self._ways_for_client() if self.client else ways
        return self._answer(IN, verdict, [*self._lacks(), *file.because], changes)

    def _only_on_host(self) -> Answer:
        directory = posixpath.dirname(self.on_host)
        question = PathQuestion(self.plan, self.host, self.settings, self.on_host)
        file = question.answer()
        if file.state == HIDDEN:
            return self._answer(OUT, file.verdict, [*file.because, *self._lacks()], file.changes)
        if file.state == IN:
            because = [Because(f"{self._short(directory)} is in the box, but not on its PATH")]
            verdict = f"in the box, but not on its PATH: {self._short(self.on_host)}"
            return self._answer(IN, verdict, [*because, *self._lacks()], (self._way_onto_path(directory),))
        because = [Because(f"this host has it in {self._short(directory)}, which is not on the PATH of the box")]
        refusal = question.refusal("ro", directory)
        ways = (
            [Change(f"cannot be changed: {refusal}")]
            if refusal
            else [Change("shows its directory, read-only", ("--mount-ro", directory)), self._way_onto_path(directory)]
        )
        return self._answer(OUT, "not in the box", [*because, *self._lacks()], (*ways, *self._ways_for_client()))

    def _way_onto_path(self, directory: str) -> Change:
        return Change(f'path = ["{self._short(directory)}"] in {SHOWN.config} puts it on PATH')

    def _nowhere(self) -> Answer:
        because = [Because("this host does not have it either"), *self._lacks()]
        return self._answer(OUT, "not in the box", because, self._ways_for_client())

    def _lacks(self) -> list[Because]:
        """What a program needs that never enters, unless somebody has found a way to let it in."""
        if self.client is None:
            return []
        place = expand_home(self.client.needs, self.host.person.home)
        shown = any(mount.source and is_inside(mount.source, place) for mount in self.plan.mounts)
        return [] if shown else [Because(f"{self.client.needs} is not in the box ({self.client.reason})")]

    def _ways_for_client(self) -> tuple[Change, ...]:
        return (Change(OUTSIDE),) if self.client else ()

    def _answer(self, state: str, verdict: str, because: list[Because], changes: tuple[Change, ...]) -> Answer:
        return Answer(
            kind=PROGRAM,
            subject=self.name,
            state=state,
            verdict=verdict,
            because=tuple(because),
            changes=changes,
            place=self.in_box,
        )

    def _short(self, path: str) -> str:
        return shorten_home(path, self.plan.person.home)
