"""Claude in a box behind a broker, and a stand-in for the API over TLS."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from broker.standin import Certificates
from claude.api import Call, StandIn
from conftest import Account, Box

API_KEY = "sk-ant-api03-w7Rk2pXz9QmLt4Vb8NcYd1Hs6Jf3Ga5Ue0KoTiZqWxCv"


BROKER = ("--auth", "broker", "--network", "none")


@dataclass
class Talk:
    """Sessions of Claude behind a broker."""

    box: Box
    claude: str
    certificates: Certificates
    environ: dict[str, str] = field(default_factory=dict)
    requests: list[dict[str, Any]] = field(default_factory=list)
    seen: list[dict[str, str]] = field(default_factory=list)  # headers
    results: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.account.environ["CLAUDEBOX_CLAUDE"] = self.claude

    @property
    def account(self) -> Account:
        return self.box.account

    @contextlib.contextmanager
    def api(self, *commands: Call) -> Iterator[StandIn]:
        """A stand-in over TLS, which has Claude run these commands."""
        authority = self.account.home / "ca.pem"
        shutil.copy(self.certificates.authority, authority)
        authority.chmod(0o644)
        with StandIn(*commands, certificate=self.certificates.server) as api:
            self.environ |= {"ANTHROPIC_BASE_URL": api.url, "NODE_EXTRA_CA_CERTS": str(authority)}
            yield api
        self.seen += [dict(asked.headers) for asked in api.asked if asked.line.startswith("POST")]
        self.requests = api.requests
        self.results = api.results

    def words(self, *arguments: str) -> tuple[str, ...]:
        return "--yes", *BROKER, *arguments

    def __call__(self, *arguments: str, commands: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        with self.api(*commands):
            return self.box.claudebox(*self.words("-p", "do it", *arguments), env=self.environ)

    def inside(self, script: str) -> subprocess.CompletedProcess[str]:
        with self.api():
            return self.box.claudebox(*self.words("--run", "sh", "-c", script), env=self.environ)


def _open_files(process: str) -> list[str]:
    """What a process has open. It opens and closes files meanwhile: one that is gone must not hide the others."""
    links = []
    for descriptor in os.listdir(f"/proc/{process}/fd"):
        with contextlib.suppress(FileNotFoundError):
            links.append(os.readlink(f"/proc/{process}/fd/{descriptor}"))
    return links


def is_over(talk: Talk) -> bool:
    """Whether nothing is left of any broker. Who is not root does not see."""
    return os.geteuid() != 0 or brokers(talk) == []


def brokers(talk: Talk) -> list[int]:
    """The processes of this test that listen on a socket of a broker: by what they have open.

    A broker keeps its memory to itself, and with it the list of what it has open: so only root finds it.
    """
    assert os.geteuid() == 0
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{name}/status").read_text()
            environ = Path(f"/proc/{name}/environ").read_bytes()
            if f"HOME={talk.account.home}\0".encode() in environ and "Threads:\t" in status:
                links = _open_files(name)
                is_parent = any("/masks/" in link for link in links)  # which has what the keeper of masks notes
                if (
                    any(link.startswith("socket:") for link in links)
                    and "anon_inode:[pidfd]" in links
                    and not is_parent
                ):
                    found.append(int(name))
    return found
