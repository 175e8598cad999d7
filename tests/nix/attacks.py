"""What somebody who may talk to the daemon can try: commands, and how to see whether they did what they are for.

Each works somewhere, which test_daemon_without_a_box.py shows; otherwise it would mean nothing that it fails in a box.
"""

from __future__ import annotations

import hashlib
import uuid
from pathlib import Path

from conftest import Account
from nix.daemon import NixHost
from nix.loopback import PORT

# Prints the contents of what was built. Old versions of Nix only tell as JSON where it is.
BUILD = """
    told=$(nix build --impure --no-link --json --expr "$@") || exit
    cat "$(echo "$told" | sed 's/.*"outputs":{"out":"\\([^"]*\\)".*/\\1/')"
"""


def build(expression: str, *options: str) -> tuple[str, ...]:
    """The command that builds an expression and prints what is in the result, which is a file."""
    return ("sh", "-c", BUILD, "build", expression, *options)


def derivation(commands: str, more: str = "") -> str:
    """Something that a shell makes, and that nobody has built before."""
    return f"""derivation {{
        name = "x-{uuid.uuid4().hex}"; system = builtins.currentSystem; {more}
        builder = "/bin/sh"; args = [ "-euc" "PATH=/usr/bin:/bin; {commands}" ];
    }}"""


class PostBuildHook:
    """A program of the project that the daemon starts after a build; it writes down who it is."""

    def __init__(self, account: Account, project: Path) -> None:
        self.result = project / "who"
        self.hook = account.write(project / "hook", f"#!/bin/sh\nexec id -u >{self.result}\n", 0o755)

    def command(self) -> tuple[str, ...]:
        return build(derivation("echo built >$out"), "--option", "post-build-hook", str(self.hook))

    def ran_as(self) -> str | None:
        return self.result.read_text().strip() if self.result.exists() else None


class Fetch:
    """A download that the daemon does itself, from the host's loopback."""

    def __init__(self, host: NixHost) -> None:
        host.serve_loopback()
        self.host = host
        self.words = f"/{uuid.uuid4().hex}"

    def command(self) -> tuple[str, ...]:
        expected = hashlib.sha256(self.words.encode()).hexdigest()
        return build(f"""derivation {{
            name = "fetched"; system = "builtin"; builder = "builtin:fetchurl"; url = "{self.url}";
            outputHashMode = "flat"; outputHashAlgo = "sha256"; outputHash = "{expected}";
            preferLocalBuild = true; unpack = false; executable = false;
        }}""")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{PORT}{self.words}"

    def arrived(self) -> bool:
        return self.words in self.host.heard()


class FixedOutput(Fetch):
    """A shell with the host's network: who says beforehand what comes out of a build gets that, whatever it does."""

    def command(self) -> tuple[str, ...]:
        request = (
            f"exec 3<>/dev/tcp/127.0.0.1/{PORT}; printf 'GET {self.words} HTTP/1.0\\\\r\\\\n\\\\r\\\\n' >&3; cat <&3"
        )
        known = hashlib.sha256(b"known\n").hexdigest()
        more = f'outputHashMode = "flat"; outputHashAlgo = "sha256"; outputHash = "{known}"; request = "{request}";'
        return build(derivation('bash -c \\"$request\\" >&2; echo known >$out', more))


class HostFile:
    """A build that reads a file of the user's, of which the box shows nothing."""

    def __init__(self, account: Account) -> None:
        self.words = uuid.uuid4().hex
        self.path = account.write(account.home / "documents" / "letter", f"{self.words}\n")

    def command(self, more: str = "") -> tuple[str, ...]:
        return build(derivation(f"cat {self.path} >$out", more))
