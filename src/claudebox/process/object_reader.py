"""Asks git for objects of a repository, in a bare box: no network, no home, nothing to write, no configuration.

What git reads there an agent may have written. Whatever that makes git say, the names of the objects show it.
"""

from __future__ import annotations

import os
import resource
import subprocess
from contextlib import contextmanager
from threading import Timer

from claudebox.host import pinned, read_host
from claudebox.host.git.objects import SHA1, CannotTell, Objects
from claudebox.host.git.refs import common_dir
from claudebox.trust.programs import trusted_program
from claudebox.trust.reach import reach_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LARGEST = 1 << 24  # bytes of an object: a directory with 400,000 names
MOST_MEMORY = 1 << 31
BOX = "--unshare-all --die-with-parent --new-session --cap-drop ALL --clearenv --dev /dev".split()
SYSTEM = [word for path in ("/usr", "/bin", "/lib", "/lib64", "/nix/store") for word in ("--ro-bind-try", path, path)]
# A repository of our own, of which only the objects are the agent's.
BARE = "--dir /git/refs --symlink refs/heads/none /git/HEAD --remount-ro /".split()
SHA256 = b"[core]\nrepositoryformatversion=1\n[extensions]\nobjectformat=sha256\n"
GIT = "--git-dir=/git -c core.packedGitWindowSize=16m -c core.packedGitLimit=256m cat-file --batch".split()


def _program(name: str) -> str:
    """Where it is, behind all symlinks: the box has the directories of the system alone."""
    host = read_host()
    found = trusted_program(host.tree, name, host.environ.get("PATH", os.defpath), reach_of(host))
    return os.path.realpath(pinned.PROGRAMS.get(name) or found or f"/usr/bin/{name}")


@contextmanager
def open_objects(bwrap: str, git_dir: str, tip: str, seconds: float) -> Iterator[Objects]:
    """The objects of a repository, for some seconds: then nobody can tell any more. `tip` is the name of one."""
    bwrap, git = bwrap or _program("bwrap"), _program("git")
    config, end = os.pipe()
    os.write(end, b"" if len(tip) == 2 * SHA1 else SHA256)
    os.close(end)
    mounts = ["--file", str(config), "/git/config", "--ro-bind", f"{common_dir(git_dir)}/objects", "/git/objects"]
    try:
        process = subprocess.Popen(
            [bwrap, *BOX, *SYSTEM, *mounts, *BARE, git, *GIT],
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=(config,),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY)),
        )
    except OSError as error:
        raise CannotTell(f"{bwrap}: {error.strerror}") from None
    finally:
        os.close(config)
    limit = Timer(seconds, process.kill)
    limit.start()
    try:
        yield Objects(lambda name: _ask(process, name), seconds)
    finally:
        limit.cancel()
        process.kill()
        with process:
            pass


def _ask(process: subprocess.Popen[bytes], name: bytes) -> tuple[bytes, bytes]:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        os.write(process.stdin.fileno(), b"%s\n" % name.hex().encode())
        _, kind, *rest = process.stdout.readline(100).split()
        size = int(rest[0]) if rest else 0
        content = process.stdout.read(size + 1)[:-1] if rest and size <= LARGEST else b""
    except (OSError, ValueError):
        raise CannotTell("git took too long, or could not be started") from None
    if not rest or len(content) != size:
        raise CannotTell(f"object {name.hex()[:12]} is missing or too large")
    return kind, content
