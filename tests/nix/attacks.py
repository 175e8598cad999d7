"""What somebody who may talk to the daemon can try: commands, and how to see whether they did what they are for.

Each works somewhere, which test_guard.py shows; otherwise it would mean nothing that it fails in a box.
"""

import hashlib
import uuid
from pathlib import Path

from conftest import Account
from nix.daemon import NixHost
from nix.loopback import ABSTRACT_NAME, PORT

# Prints the contents of what was built. Old versions of Nix only tell as JSON where it is. Whether the box has a
# configuration for Nix, and what that says, is no matter: all of it can be said here.
BUILD = """
    told=$(nix --extra-experimental-features 'nix-command flakes' build --impure --no-link --json --expr "$@") || exit
    cat "$(echo "$told" | sed 's/.*"outputs":{"out":"\\([^"]*\\)".*/\\1/')"
"""


def build(expression: str, *options: str) -> tuple[str, ...]:
    """The command that builds an expression and prints what is in the result, which is a file."""
    return ("sh", "-c", BUILD, "build", expression, *options)


def derivation(commands: str, more: str = "") -> str:
    """Something that a shell makes, and that nobody has built before. Quotation marks need a backslash."""
    return f"""derivation {{
        name = "x-{uuid.uuid4().hex}"; system = builtins.currentSystem; {more}
        builder = "/bin/sh"; args = [ "-euc" "PATH=/bin:/usr/bin; {commands}" ];
    }}"""


def with_network(commands: str, more: str = "") -> str:
    """The same with the host's network: who says beforehand what comes out gets that, whatever else the build does."""
    known = hashlib.sha256(b"known\n").hexdigest()
    fixed = f'outputHashMode = "flat"; outputHashAlgo = "sha256"; outputHash = "{known}";'
    return derivation(f"{commands}; echo known >$out", f"{fixed} {more}")


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


class FetchByProgram(Fetch):
    """The same by a program of the attacker's choice."""

    def command(self) -> tuple[str, ...]:
        program = f"import urllib.request; urllib.request.urlopen('{self.url}')"
        return build(with_network(f'python3 -c \\"{program}\\"'))


class AbstractSocket:
    """A connection to a socket of the host that is no file: a desktop has some, X11's and those of D-Bus."""

    def __init__(self, host: NixHost) -> None:
        host.serve_loopback()
        self.host = host
        self.words = f"/{uuid.uuid4().hex}"

    def command(self) -> tuple[str, ...]:
        connect = f"s = socket.socket(socket.AF_UNIX); s.connect(chr(0) + '{ABSTRACT_NAME}')"
        program = f"import socket; {connect}; s.send(b'{self.words}')"
        return build(with_network(f'python3 -c \\"{program}\\"'))

    def arrived(self) -> bool:
        return self.words in self.host.heard()


class HostFile:
    """A build that reads a file of the user's, of which the box shows nothing."""

    def __init__(self, account: Account) -> None:
        self.words = uuid.uuid4().hex
        self.path = account.write(account.home / "documents" / "letter", f"{self.words}\n")

    def command(self, more: str = "") -> tuple[str, ...]:
        return build(derivation(f"cat {self.path} >$out", more))
