"""Agents, desktops and container engines listen on sockets, and do for whoever connects what the box must not do."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import CLAUDEBOX, Account, Box

pytestmark = [
    pytest.mark.req("SEC-02", "SAND-09"),
    pytest.mark.root,  # for mounts of its own
    pytest.mark.landlock,
    pytest.mark.ip,
]

AGENTS = str(Path(__file__).parent / "agents.py")
STREAMS = {
    "ssh-agent": ("/tmp/ssh-XXXXXXabcdef/agent.4711", "{home}/.ssh/agent/s.sock", "{run}/openssh_agent"),
    "keyring of the desktop": ("{run}/keyring/ssh", "{run}/keyring/control"),
    "gpg-agent": ("{run}/gnupg/S.gpg-agent", "{run}/gnupg/S.gpg-agent.ssh", "{home}/.gnupg/S.gpg-agent"),
    "D-Bus, session": ("{run}/bus", "@/tmp/dbus-Ab3dEf", "{run}/at-spi/bus_0"),
    "D-Bus, system": ("/run/dbus/system_bus_socket",),
    "systemd": ("/run/systemd/private", "{run}/systemd/private", "/run/systemd/resolve/io.systemd.Resolve"),
    "Docker": ("/run/docker.sock", "{run}/docker.sock", "{home}/.docker/run/docker.sock", "/run/docker/metrics.sock"),
    "containerd": ("/run/containerd/containerd.sock", "@/containerd-shim/0123456789abcdef.sock"),
    "Podman": ("/run/podman/podman.sock", "{run}/podman/podman.sock"),
    "LXD, libvirt": ("/run/lxd.socket", "/run/libvirt/libvirt-sock"),
    "X11": ("/tmp/.X11-unix/X0", "@/tmp/.X11-unix/X0", "/tmp/.ICE-unix/4711", "@/tmp/.ICE-unix/4711"),
    "Wayland": ("{run}/wayland-0", "{run}/wayland-1"),
    "sound": ("{run}/pipewire-0", "{run}/pulse/native", "/tmp/pulse-PKdhtXMmr18n/native"),
    "tmux, screen": ("/tmp/tmux-{uid}/default", "/run/screen/S-{uid}/4711.pts-0", "{run}/tmux-{uid}/default"),
    "VS Code": ("{run}/vscode-ipc-0123.sock", "{run}/vscode-git-0123.sock", "/tmp/vscode-ssh-auth-0123.sock"),
    "JetBrains, Emacs, nvim": ("/tmp/.ij.sock", "{run}/emacs/server", "/tmp/emacs{uid}/server", "{run}/nvim.1.0"),
    "Tailscale": ("/run/tailscale/tailscaled.sock",),
    "password managers": ("{home}/.1password/agent.sock", "{home}/.bitwarden-ssh-agent.sock"),
    "others": ("/run/snapd.socket", "/run/acpid.socket", "/run/cups/cups.sock", "/run/avahi-daemon/socket"),
}
DATAGRAMS = {
    "systemd": ("/run/systemd/notify", "/run/systemd/journal/socket", "@/org/freedesktop/systemd1/notify"),
    "log": ("/run/systemd/journal/dev-log",),
}
VARIABLES = {
    "SSH_AUTH_SOCK": "/tmp/ssh-XXXXXXabcdef/agent.4711",
    "GPG_AGENT_INFO": "{home}/.gnupg/S.gpg-agent:0:1",
    "DBUS_SESSION_BUS_ADDRESS": "unix:abstract=/tmp/dbus-Ab3dEf",
    "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/run/dbus/system_bus_socket",
    "DOCKER_HOST": "unix:///run/docker.sock",
    "CONTAINER_HOST": "unix://{run}/podman/podman.sock",
    "DISPLAY": ":0",
    "XAUTHORITY": "{home}/.Xauthority",
    "WAYLAND_DISPLAY": "wayland-0",
    "PULSE_SERVER": "{run}/pulse/native",
    "TMUX": "/tmp/tmux-{uid}/default,4711,0",
    "STY": "4711.pts-0",
    "VSCODE_IPC_HOOK_CLI": "{run}/vscode-ipc-0123.sock",
    "VSCODE_GIT_IPC_HANDLE": "{run}/vscode-git-0123.sock",
    "NVIM": "{run}/nvim.1.0",
    "NOTIFY_SOCKET": "/run/systemd/notify",
}
CONNECT = """
import json, os, socket, sys

def attempt(kind, address):
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM if kind == "stream" else socket.SOCK_DGRAM)
    try:
        client.connect("\\0" + address[1:] if address.startswith("@") else address)
        return "reached"
    except OSError as error:
        return error.strerror

print(json.dumps([attempt(*words) for words in json.loads(sys.argv[1])]))
"""
FIND = (
    "find / -xdev -type s 2>/dev/null; for each in /proc/[0-9]*/root; do find $each/run $each/tmp -type s; done; true"
)


def _words(account: Account) -> dict[str, str]:
    return {"home": str(account.home), "run": f"/run/user/{account.uid}", "uid": str(account.uid)}


def sockets(account: Account) -> list[tuple[str, str]]:
    words = _words(account)
    listed = [("stream", address) for addresses in STREAMS.values() for address in addresses]
    listed += [("datagram", address) for addresses in DATAGRAMS.values() for address in addresses]
    return [(kind, address.format(**words)) for kind, address in listed]


def run(box: Box, account: Account, *commands: tuple[str, ...]) -> list[str]:
    """The outputs of commands that run where all of these listen."""
    variables = {name: value.format(**_words(account)) for name, value in VARIABLES.items()}
    wish = {
        "sockets": sockets(account),
        "commands": commands,
        "cwd": str(box.project),
        "environ": {**account.environ, **variables},
        "uid": account.uid,
        "gid": account.gid,
    }
    words = ["unshare", "--mount", "--net", sys.executable, AGENTS, json.dumps(wish)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return [output for output, _ in json.loads(done.stdout)]


def linked(box: Box, account: Account) -> list[tuple[str, str]]:
    """Symlinks in the project that lead to the sockets."""
    links = []
    for number, (kind, address) in enumerate(sockets(account)):
        if not address.startswith("@"):
            link = box.project / f"link-{number}"
            link.symlink_to(address)
            links.append((kind, str(link)))
    return links


def test_none_can_be_reached_from_the_box(box: Box, account: Account) -> None:
    everything = [*sockets(account), *linked(box, account)]
    attempt = ("python3", "-c", CONNECT, json.dumps(everything))
    outside, inside = run(box, account, attempt, (CLAUDEBOX, "--yes", "--run", *attempt))
    assert set(json.loads(outside)) == {"reached"}
    found = dict(zip((address for _, address in everything), json.loads(inside), strict=True))
    assert {address for address, outcome in found.items() if outcome == "reached"} == set()
    # By name nothing is there; a name without a file is there, and out of bounds.
    by_name, without_file = "No such file or directory", "Operation not permitted"
    assert found == {address: without_file if address[0] == "@" else by_name for address in found}


def test_box_has_no_socket_and_no_variable_that_names_one(box: Box, account: Account) -> None:
    sockets_seen, variables = run(
        box, account, (CLAUDEBOX, "--yes", "--run", "sh", "-c", FIND), (CLAUDEBOX, "--yes", "--run", "env")
    )
    assert sockets_seen == ""
    names = {line.partition("=")[0] for line in variables.splitlines()}
    assert names.isdisjoint(VARIABLES)
    assert "HOME" in names


TALK_INSIDE = """
import socket
server = socket.socket(socket.AF_UNIX)
server.bind("\\0of-the-box")
server.listen()
client = socket.socket(socket.AF_UNIX)
client.connect("\\0of-the-box")
print("reached")
"""


def test_abstract_socket_of_the_box_works(box: Box) -> None:
    assert box.inside("python3", "-c", TALK_INSIDE).stdout == "reached\n"
