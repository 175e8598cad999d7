"""`claudebox --prove`: attacks the very box that these options build, from inside, with canaries planted outside.

Every attack is tried outside the box first. One that does not work there proves nothing, and does not count.
"""

from __future__ import annotations

import os
import shlex
import sys

from claudebox.archive import own_command
from claudebox.host import Host, read_host
from claudebox.host.network import own_addresses
from claudebox.host.nix_daemon import SOCKET
from claudebox.model import FROM_HOST, Plan
from claudebox.paths import is_inside, shorten_home
from claudebox.plan import make_plan
from claudebox.problem import Problem
from claudebox.prove.canaries import GROUPS, KERNEL, NIX, TERMINAL, Canaries, Trial
from claudebox.prove.run import Attempt, run_inside, run_outside
from claudebox.record import Record
from claudebox.settings.gather import gather
from claudebox.settings.table import BY_NAME, FULL, OFF, ON
from claudebox.settings.values import Settings
from claudebox.settings.words import Request
from claudebox.terminal import output_style, show
from claudebox.view.as_json import dump
from claudebox.view.text import BOLD, DIM, GREEN, RED, WIDTH, YELLOW, Style, counted, cut, escape

AGAINST = "against"
WITHOUT_LAYER = ", without the layer over the project"
PYTHONS = ("/usr/bin/python3", "/bin/python3")
KERNEL_CALLS = {
    "bpf": "load a program into the kernel (bpf)",
    "perf_event_open": "watch the kernel (perf_event_open)",
    "io_uring_setup": "io_uring, which gets around the filter",
    "userfaultfd": "userfaultfd, which helps to exploit the kernel",
    "open_tree": "the new mount calls (open_tree)",
    "keyctl": "the keyring calls (keyctl)",
}
HOST_RUN = (
    *(".git/config", ".git/hooks", ".envrc", ".vscode", ".idea", ".mcp.json", ".claude/settings.json"),
    *(".claude/settings.local.json", ".husky", ".pre-commit-config.yaml", ".github/workflows", ".devcontainer"),
    *(".tool-versions", "mise.toml", ".mise.toml", "lefthook.yml", ".claudebox.toml"),
)


def prove(request: Request) -> int:
    """Show the report. The exit status is 0 if every promise held, 1 if not."""
    host = read_host()
    request = request.replace(run=request.run or ("true",), claude=())
    settings = gather(host, request).settings
    has_layer = settings.review.text == ON
    if has_layer:
        # The probe lies in the project, and a layer would keep what it writes. Without one, it is easier to attack.
        request = request.replace(said=(*request.said, ("review", OFF)))
        settings = gather(host, request).settings
    plan = make_plan(host, request, settings)
    against = dict(request.said).get(AGAINST, "")
    with Canaries() as canaries:
        plan_attacks(canaries, host, plan, settings, is_ours=not against)
        outside = run_outside(canaries)
        if outside.error:
            raise Problem(f"the probe does not even work outside the box: {outside.error}", "please report this")
        inside = run_inside(_command(host, plan, request, against), canaries, plan.project)
    if inside.error:
        raise Problem(f"the probe did not finish in the box: {inside.error}", "see what happens: --run true")
    results = [judge(trial, outside, inside) for trial in canaries.trials]
    title = against or f"the box that these options build{WITHOUT_LAYER if has_layer else ''}"
    style = output_style()
    show(report_json(title, results) if request.json else report_text(title, results, host.person.home, style))
    return 1 if any(result.state == OPEN for result in results) else 0


def judge(trial: Trial, outside: Attempt, inside: Attempt) -> Result:
    if not outside.found.get(trial.id):
        return Result(trial, UNTESTED, "")
    way = inside.found.get(trial.id, "")
    return Result(trial, OPEN if way and not trial.choice else HELD if not way else trial.choice, way)


def plan_attacks(canaries: Canaries, host: Host, plan: Plan, settings: Settings, *, is_ours: bool) -> None:
    """Plan all attacks. If the box is ours, what the user chose to open is no hole; in another sandbox, it is."""
    home, above = host.person.home, os.path.dirname(plan.project)
    places = {"your home": home, "the directory above the project": above, "/tmp": "/tmp", "/var/tmp": "/var/tmp"}
    for title, place in places.items():
        if place != home or title == "your home":
            canaries.plant_file(title, place)
    canaries.plant_descriptors("/var/tmp")
    canaries.point_at_places(plan)
    canaries.point_at_masked(plan)
    canaries.plant_variable()
    canaries.plant_process()
    canaries.plant_memory()
    run = os.environ.get("XDG_RUNTIME_DIR", "")
    canaries.plant_sockets({"your home": home, "/tmp": "/tmp"} | ({"$XDG_RUNTIME_DIR": run} if run else {}))
    canaries.point_at_sockets(_usual_sockets(host, run))
    canaries.plant_key()
    canaries.add(TERMINAL, "type into the terminal", "type_into_terminal")
    chosen = {name: wish if is_ours else "" for name, wish in _choices(plan, settings).items()}
    canaries.add(KERNEL, "a user namespace", "user_namespace", choice=chosen["userns"])
    canaries.add(KERNEL, "mount something", "mount", choice=chosen["userns"])
    for name, title in KERNEL_CALLS.items():
        canaries.add(KERNEL, title, "kernel_call", name=name)
    canaries.add(KERNEL, "a socket to the hypervisor", "vsock")
    canaries.plant_servers(_own_addresses(), chosen["network"])
    _point_at_project(canaries, plan, is_ours)
    canaries.point_at_sockets({"the daemon": SOCKET}, NIX, chosen["nix"])


def _choices(plan: Plan, settings: Settings) -> dict[str, str]:
    """The choices by which something is open; "" where nothing is."""
    tier = plan.network.origin
    network = f"--network full ({tier.shown})" if tier.is_default else tier.shown
    has_daemon = plan.nix is not None and plan.nix.mode == "daemon"
    return {
        "network": network if plan.network.tier == FULL else "",
        "nix": f"--nix ({settings.nix.origin.shown})" if has_daemon else "",
        "userns": settings.userns.origin.shown if settings.userns.text == ON else "",
    }


def _point_at_project(canaries: Canaries, plan: Plan, is_ours: bool) -> None:
    """Attack what the plan guards and what it should guard, to find out if the plan forgot something."""
    guarded = [one.path for one in (*plan.guard.held, *plan.guard.opened)]
    usual = [f"{plan.project}/{name}" for name in HOST_RUN]
    opened = {one.path: "--writable" for one in plan.guard.opened if is_ours}
    canaries.point_at_host_run(list(dict.fromkeys((*guarded, *usual))), opened)


def _own_addresses() -> tuple[str, ...]:
    """Addresses of this host: the loopback, and one of each family by which others reach it."""
    others = [address.partition("/")[0] for address in own_addresses()]
    far = [address for address in others if not address.startswith(("127.", "::1", "fe80:", "ff"))]
    firsts = [next((one for one in far if (":" in one) is is_ipv6), "") for is_ipv6 in (False, True)]
    return tuple(address for address in ("127.0.0.1", "::1", *firsts) if address)


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
    words = [word for name, text in request.said if name != AGAINST for word in (BY_NAME[name].option, text)]
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


HELD = "held"
OPEN = "OPEN"
UNTESTED = "untested"
MARK = 9


class Result(Record):
    """The result of a trial. A state other than these three names the choice by which it is open."""

    trial: Trial
    state: str
    way: str


def report_text(title: str, results: list[Result], home: str, style: Style) -> str:
    lines = [style.paint(f"Attacks on {escape(title)}", BOLD)]
    for group in GROUPS:
        members = [result for result in results if result.trial.group == group]
        tested = [result for result in members if result.state != UNTESTED]
        if not members:
            continue
        held = sum(result.state == HELD for result in tested)
        lines.append(style.paint(group, BOLD) + (f"  {held} of {len(tested)} held" if tested else "  nothing to test"))
        lines += [line for result in members for line in _lines(result, home, style)]
    return "\n".join([*lines, "", *_conclusion(results, style)]) + "\n"


def _lines(result: Result, home: str, style: Style) -> list[str]:
    if result.state == UNTESTED:
        return []
    state = result.state if result.state in (HELD, OPEN) else "chosen"
    colour = {HELD: GREEN, OPEN: RED}.get(state, YELLOW)
    text = escape(result.trial.title.replace(f"{home}/", "~/"))
    if state == OPEN:
        text += f" (by {escape(shorten_home(result.way, home))})"
    elif state != HELD:
        text += f" (open by {escape(result.state)})"
    return [f"  {style.paint(state, colour)}{' ' * (MARK - len(state))}{cut(text, WIDTH - MARK - 2)}"]


def _conclusion(results: list[Result], style: Style) -> list[str]:
    states = [result.state for result in results]
    tested = len(states) - states.count(UNTESTED)
    holes = states.count(OPEN)
    chosen = tested - states.count(HELD) - holes
    parts = [f"{states.count(HELD)} of {tested} attacks held"]
    parts += [f"{chosen} reached what you opened"] if chosen else []
    parts += [style.paint(f"{holes} GOT THROUGH", RED)] if holes else []
    lines = [", ".join(parts) + "."]
    if untested := [result.trial.title for result in results if result.state == UNTESTED]:
        one, several = (f"more {work} outside the box either" for work in ("does not work", "do not work"))
        lines.append(style.paint(f"{counted(len(untested), one, several)}: that proves nothing.", DIM))
    return lines


def report_json(title: str, results: list[Result]) -> str:
    states = [result.state for result in results]
    return dump(
        {
            "against": title,
            "held": states.count(HELD),
            "open": states.count(OPEN),
            "untested": states.count(UNTESTED),
            "chosen": len(states) - states.count(HELD) - states.count(OPEN) - states.count(UNTESTED),
            "attacks": [
                {
                    "group": result.trial.group,
                    "title": result.trial.title,
                    "state": result.state if result.state in (HELD, OPEN, UNTESTED) else "chosen",
                    "choice": result.trial.choice or None,
                    "way": result.way or None,
                }
                for result in results
            ],
        }
    )
