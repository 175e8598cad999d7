"""`claudebox --prove`: attacks the very box that these options build, from inside, with canaries planted outside.

Every attack is tried outside the box first. One that does not work there proves nothing, and does not count.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import secrets
import shlex
import subprocess
import sys
import threading
from typing import Any

from claudebox.commands.prove.canaries import GROUPS, KERNEL, NETWORK, SOCKETS, TERMINAL, Canaries, Trial
from claudebox.commands.prove.canaries import NIX as DAEMONS
from claudebox.errors import Problem
from claudebox.features.nix import Nix
from claudebox.features.table import SETTINGS
from claudebox.host import Host, read_host
from claudebox.host.network import own_addresses
from claudebox.host.nix_daemon import SOCKET
from claudebox.model import FROM_HOST, Plan
from claudebox.output.as_json import dump
from claudebox.output.section import fields
from claudebox.output.terminal import output_style, show
from claudebox.overlay.table import held_rows
from claudebox.paths import is_inside, shorten_home
from claudebox.plan import make_plan
from claudebox.process.single_file import own_command
from claudebox.record import Record
from claudebox.settings import Settings
from claudebox.settings.gather import gather
from claudebox.settings.table import FULL, NIX, ON, USERNS
from claudebox.settings.words import Request
from claudebox.text import BOLD, DIM, GREEN, RED, WIDTH, YELLOW, Style, counted, cut, escape

AGAINST = "against"
PYTHONS = ("/usr/bin/python3", "/bin/python3")
KERNEL_CALLS = {
    "bpf": "load a program into the kernel (bpf)",
    "perf_event_open": "watch the kernel (perf_event_open)",
    "io_uring_setup": "io_uring, which gets around the filter",
    "userfaultfd": "userfaultfd, which helps to exploit the kernel",
    "open_tree": "the new mount calls (open_tree)",
    "keyctl": "the keyring calls (keyctl)",
}
# What is held in a directory of which other parts can be written.
PARTS = (".git/config", ".git/hooks", ".claude/settings.json", ".github/workflows", ".claudebox.toml")
HELD, OPEN, CHOSEN, UNTESTED = "held", "OPEN", "chosen", "untested"
STATE = 9  # columns
PROBE_SECONDS = 120
MARK = "claudebox-prove "
# Only the leader of a session can make a terminal its own.
TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(2, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""
# Isolated: the project could give it modules.
PROBE_WORDS = ("-I", "-")


VERDICT = "The judge let it start: it has what the law allows, and nothing else (--audit)."
Found = dict[str, str]  # what the probe reached, by the number of the trial


class Result(Record):
    trial: Trial
    state: str
    way: str


def prove(request: Request) -> int:
    """Show the report. The exit status is 0 if every promise held, 1 if not."""
    host = read_host()
    request = request.replace(run=request.run or ("true",), claude=())
    settings = gather(SETTINGS, host, request).settings
    plan = make_plan(host, request, settings)
    against = dict(request.said).get(AGAINST, "")
    with Canaries() as canaries:
        plan_attacks(canaries, host, plan, settings, is_ours=not against)
        outside = run_probe([sys.executable], canaries)
        inside = run_probe(_command(host, plan, request, against), canaries)
    results = [judge(trial, outside, inside) for trial in canaries.trials]
    title = against or "the box that these options build"
    style = output_style()
    verdict = "" if against else VERDICT
    if request.json:
        show(report_json(title, results, verdict))
    else:
        show(report_text(title, results, host.person.home, style, verdict))
    return 1 if any(result.state == OPEN for result in results) else 0


def judge(trial: Trial, outside: Found, inside: Found) -> Result:
    way = inside[trial.id]
    state = (CHOSEN if trial.choice else OPEN) if way else HELD
    return Result(trial, state, way) if outside[trial.id] else Result(trial, UNTESTED, "")


def plan_attacks(canaries: Canaries, host: Host, plan: Plan, settings: Settings, *, is_ours: bool) -> None:
    """Plan all attacks. If the box is ours, what the user chose to open is no hole; in another sandbox, it is."""
    home, above = host.person.home, os.path.dirname(plan.project)
    places = {"your home": home, "the directory above the project": above, "/tmp": "/tmp", "/var/tmp": "/var/tmp"}
    for title, place in places.items():
        if place != home or title == "your home":
            canaries.plant_file(title, place)
    canaries.plant_descriptors("/var/tmp")
    canaries.point_at_files(plan)
    canaries.plant_variable()
    canaries.plant_process()
    canaries.plant_memory()
    run = os.environ.get("XDG_RUNTIME_DIR", "")
    for title, place in {"your home": home, "/tmp": "/tmp", "$XDG_RUNTIME_DIR": run}.items():
        if os.access(place, os.W_OK):
            canaries.plant_server(SOCKETS, f"a socket in {title}", f"{canaries.directory(place)}/s")
    canaries.plant_server(SOCKETS, "an abstract socket", f"@claudebox-prove-{secrets.token_hex(8)}")
    canaries.point_at_sockets(_usual_sockets(host, run))
    canaries.plant_key()
    canaries.add(TERMINAL, "type into the terminal", "type_into_terminal")
    chosen = {name: wish if is_ours else "" for name, wish in _choices(plan, settings).items()}
    canaries.add(KERNEL, "a user namespace", "user_namespace", choice=chosen["userns"])
    canaries.add(KERNEL, "mount something", "mount", choice=chosen["userns"])
    for name, title in KERNEL_CALLS.items():
        canaries.add(KERNEL, title, "kernel_call", name=name)
    canaries.add(KERNEL, "a socket to the hypervisor", "vsock")
    own = [address.partition("/")[0] for address in own_addresses()]
    for address in dict.fromkeys(("127.0.0.1", "::1", *(one for one in own if not one.startswith(("fe80:", "ff"))))):
        canaries.plant_server(NETWORK, f"a server on this host's {address}", (address, 0), choice=chosen["network"])
    canaries.plant_server(NETWORK, "the same over UDP", ("127.0.0.1", 0), choice=chosen["network"], datagrams=True)
    # What the plan guards, and what it should guard, to find out if it forgot something.
    guarded = [one.path for one in (*plan.guard.held, *plan.guard.opened)]
    names = host.tree.entries(plan.project)
    whole = [name for name in names if any(not row.inner and not row.is_tools for row in held_rows(name))]
    usual = [f"{plan.project}/{name}" for name in (*PARTS, *whole)]
    opened = {one.path: "--writable" for one in plan.guard.opened if is_ours}
    canaries.point_at_host_run(dict.fromkeys((*guarded, *usual)), opened)
    canaries.point_at_sockets({"the daemon": SOCKET}, DAEMONS, chosen["nix"])


def _choices(plan: Plan, settings: Settings) -> dict[str, str]:
    """The choices by which something is open; "" where nothing is."""
    tier = plan.network.origin
    network = f"--network full ({tier.shown})" if tier.is_default else tier.shown
    nix = plan.get(Nix)
    has_daemon = nix is not None and nix.mode == "daemon"
    return {
        "network": network if plan.network.tier == FULL else "",
        "nix": f"--nix ({settings[NIX].origin.shown})" if has_daemon else "",
        "userns": settings[USERNS].origin.shown if settings[USERNS].text == ON else "",
    }


def _usual_sockets(host: Host, run: str) -> dict[str, str]:
    uid, environ = host.person.uid, host.environ
    bus = environ.get("DBUS_SESSION_BUS_ADDRESS", "").partition("path=")[2].partition(",")[0]
    places = {
        "ssh-agent": environ.get("SSH_AUTH_SOCK", ""),
        "gpg-agent": f"{run}/gnupg/S.gpg-agent",
        "gpg-agent at home": f"{host.person.home}/.gnupg/S.gpg-agent",
        "D-Bus, of the session": bus or f"{run}/bus",
        "D-Bus, of the system": "/run/dbus/system_bus_socket",
        "Docker": "/run/docker.sock",
        "Podman": f"{run}/podman/podman.sock",
        "X11": "/tmp/.X11-unix/X0",
        "X11, abstract": "@/tmp/.X11-unix/X0",
        "Wayland": f"{run}/{environ.get('WAYLAND_DISPLAY', 'wayland-0')}",
        "PipeWire": f"{run}/pipewire-0",
        "tmux": f"/tmp/tmux-{uid}/default",
        "tailscaled": "/run/tailscale/tailscaled.sock",
    }
    return {title: path for title, path in places.items() if path.startswith(("/", "@"))}


def _command(host: Host, plan: Plan, request: Request, against: str) -> list[str]:
    if against:
        return [*shlex.split(against), "python3"]
    words = [word for name, text in request.said if name != AGAINST for word in (SETTINGS.by_name[name].option, text)]
    return [*own_command(), "--yes", *words, *_interpreter(host, plan)]


def _interpreter(host: Host, plan: Plan) -> list[str]:
    """A Python that the box has; if it has none, this one is mounted in addition."""
    shown = [mount.path for mount in plan.mounts if mount.kind in FROM_HOST]
    own = os.path.realpath(sys.executable)
    for path in (*PYTHONS, own):
        real = host.tree.resolve(path)
        if real and host.tree.is_executable(path) and any(is_inside(real, place) for place in shown):
            return ["--run", path]
    return ["--mount-ro", sys.base_prefix, "--run", own]


# The probe, with a terminal of its own as standard error


def run_probe(command: list[str], canaries: Canaries) -> Found:
    """Have the interpreter that `command` starts read the probe from its standard input.

    None of it is a file in the project, where an agent could replace it, and every sandbox passes it on.
    """
    loader: Any = __spec__.loader  # claudebox may be a single file
    probe: bytes = loader.get_data(os.path.join(os.path.dirname(__file__), "probe.py"))
    trials = [{"id": trial.id, "probe": trial.probe, "target": trial.target} for trial in canaries.trials]
    return _found(_with_terminal([*command, *PROBE_WORDS], f"{probe.decode()}\nmain({trials!r})\n", canaries), canaries)


def _found(done: subprocess.CompletedProcess[str], canaries: Canaries) -> Found:
    line = next((line for line in done.stdout.splitlines() if line.startswith(MARK)), "")
    found: Found = json.loads(line.removeprefix(MARK) or "{}")
    if not line or not {trial.id for trial in canaries.trials} <= found.keys():
        said = done.stderr.strip().splitlines() or ["nothing was said"]
        reason = f"{' '.join(' '.join(said).split())} (status {done.returncode})"
        raise Problem(f"the probe did not finish: {reason}", "see what happens: --run true")
    # What it wrote counts only if it arrived on the host.
    for trial in (trial for trial in canaries.trials if trial.written):
        try:
            os.unlink(trial.written)
        except FileNotFoundError:
            found[trial.id] = ""
    return found


def _with_terminal(command: list[str], script: str, canaries: Canaries) -> subprocess.CompletedProcess[str]:
    ours, theirs = pty.openpty()
    shown = bytearray()

    def drain() -> None:
        with contextlib.suppress(OSError):  # the last who had the terminal has ended
            while True:
                shown.extend(os.read(ours, 4096))

    reader = threading.Thread(target=drain, daemon=True)
    reader.start()
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", TAKE_TERMINAL, *command],
            input=script,
            stdout=subprocess.PIPE,
            stderr=theirs,
            text=True,
            errors="replace",
            timeout=PROBE_SECONDS,
            env={**os.environ, **canaries.variables},
            pass_fds=canaries.descriptors,
            start_new_session=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"it took more than {PROBE_SECONDS} seconds")
    finally:
        os.close(theirs)
    reader.join(1)
    done.stderr = shown.decode(errors="replace")
    return done


# The report


def report_text(title: str, results: list[Result], home: str, style: Style, verdict: str = "") -> str:
    lines = [style.paint(f"Attacks on {escape(title)}", BOLD), *([verdict] if verdict else [])]
    for group in GROUPS:
        members = [result for result in results if result.trial.group == group]
        tested = [result for result in members if result.state != UNTESTED]
        if members:
            held = _count(tested, HELD)
            said = f"  {held} of {len(tested)} held" if tested else "  nothing to test"
            lines += [style.paint(group, BOLD) + said, *(_line(result, home, style) for result in tested)]
    return "\n".join([*lines, "", *_conclusion(results, style)]) + "\n"


def _count(results: list[Result], state: str) -> int:
    return sum(result.state == state for result in results)


def _line(result: Result, home: str, style: Style) -> str:
    state, text = result.state, escape(result.trial.title.replace(f"{home}/", "~/"))
    text += f" (by {escape(shorten_home(result.way, home))})" if state == OPEN else ""
    text += f" (open by {escape(result.trial.choice)})" if state == CHOSEN else ""
    colour = {HELD: GREEN, OPEN: RED, CHOSEN: YELLOW}[state]
    return f"  {style.paint(state, colour)}{' ' * (STATE - len(state))}{cut(text, WIDTH - STATE - 2)}"


def _conclusion(results: list[Result], style: Style) -> list[str]:
    held, holes, chosen, untested = (_count(results, state) for state in (HELD, OPEN, CHOSEN, UNTESTED))
    parts = [f"{held} of {len(results) - untested} attacks held"]
    parts += [f"{chosen} reached what you opened"] if chosen else []
    parts += [style.paint(f"{holes} GOT THROUGH", RED)] if holes else []
    nothing = f"{counted(untested, 'attack')} failed outside of the box as well: that proves nothing."
    return [", ".join(parts) + ".", *([style.paint(nothing, DIM)] if untested else [])]


def report_json(title: str, results: list[Result], verdict: str = "") -> str:
    attacks = [
        {
            **fields(result.trial, "group", "title"),
            "state": result.state,
            "choice": result.trial.choice or None,
            "way": result.way or None,
        }
        for result in results
    ]
    counts = {state.lower(): _count(results, state) for state in (HELD, OPEN, UNTESTED, CHOSEN)}
    return dump({"against": title, "judge": verdict or None, **counts, "attacks": attacks})
