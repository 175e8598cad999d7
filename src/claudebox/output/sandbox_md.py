"""SANDBOX.md, which tells the agent about its box."""

from __future__ import annotations

from claudebox.model import RO, UNASKED, WRITABLE, Mount, Plan
from claudebox.output.section import ASK, FILES, TOOLS, Section, plain
from claudebox.paths import shorten_home
from claudebox.text import bytes_text

HEAD = """\
# You are in a sandbox (claudebox)

Everything you run happens in a bubblewrap box on the user's machine. You may work freely in it: nobody will ask for
permissions. What is not listed here does not exist in the box. Retrying, `sudo`, or looking for a way around it will
not change that; if you need something, say so and name the option below.
"""
PROGRAMS = """\
Programs come from {}. The system's package manager cannot install anything here. Install into the project (`npm
install`, a virtual environment, `cargo build`), or into `/tmp` or your home for this session only. Otherwise ask the
user to install the program on the host: then it is here, too.
"""
NOT_THERE = """\
- SSH, GPG and age keys, cloud and registry tokens, password stores, browser data, agent sockets
- git credentials: you can commit, but not push to a remote that needs a login; leave that to the user
- other projects, and the rest of the user's home
- root, `sudo`, Docker, systemd, the desktop
"""
OPTIONS = """\
It takes effect when the user starts claudebox again:

- another file or directory: `--mount-ro PATH` or `--mount-rw PATH`
- an environment variable: `--env NAME`
"""


def sandbox_md(plan: Plan, sections: tuple[Section, ...]) -> str:
    by_features = [chapter for section in sections for chapter in section.told]
    chapters = {FILES: _files(plan)}
    chapters |= {title: "" for title, _ in by_features if title not in (TOOLS, ASK)}
    chapters |= {"Good to know": "".join(f"- {sentence}\n" for sentence in plan.told)} if plan.told else {}
    where = "`/usr`" if any(mount.path == "/usr" for mount in plan.mounts) else "the Nix store"
    chapters |= {TOOLS: PROGRAMS.format(where), "Not available": NOT_THERE, ASK: OPTIONS}
    for title, text in by_features:
        chapters[title] += text
    policy = [plan.policy.rstrip("\n") + "\n"] if plan.policy else []
    return "\n".join([HEAD, *(f"## {title}\n\n{text}" for title, text in chapters.items()), *policy])


def _files(plan: Plan) -> str:
    listed = [mount for mount in plan.mounts if mount.consent != UNASKED and not _is_for_programs(mount, plan)]
    lines = [
        f"{_path(mount, plan)} is writable: {mount.origin.reason or 'the user mounted it'}"
        for mount in listed
        if mount.kind in WRITABLE
    ]
    lines += [
        f"{_path(mount, plan)} is read-only: the user mounted it"
        for mount in listed
        if mount.kind == RO and mount.origin.is_said
    ]
    lines.append("`/tmp` and the rest of your home are writable, empty at the start, and gone when the box ends")
    size = max(mount.size for mount in plan.mounts)
    if size:
        lines.append(
            f'both are in memory and hold {bytes_text(size)} each; when one is full, programs say "No space left on '
            'device": put large files into the project, or ask the user for `--tmp-size SIZE`'
        )
    lines.append("`/usr`, `/etc` and your Claude configuration are read-only")
    return "".join(f"- {line}\n" for line in lines)


def _is_for_programs(mount: Mount, plan: Plan) -> bool:
    """Whether it is a part of the state that programs find by themselves."""
    return plan.state is not None and plan.state.has(mount.source) and mount.path.startswith("/run/")


def _path(mount: Mount, plan: Plan) -> str:
    return f"`{plain(shorten_home(mount.path, plan.person.home))}`"
