"""Ordinary programs in a box on tier `allowlist`: they reach what is in the list, and are told why not elsewhere.

None of them knows of a proxy, and none of them has another certificate to trust.
"""

import json
import shutil
from pathlib import Path

import pytest

from conftest import Box
from network.allowlist.world import GREETING
from network.internet import Internet

CLIENTS = Path(__file__).with_name("clients.py")

GREETED, UNKNOWN, TOLD, ALERT, RESET = "greeted", "no such name", "told why", "TLS alert", "reset"
FETCH = "fetch(process.argv[1]).then(r => r.text()).then(console.log, e => console.log(e.cause))"
UPGRADE = """
const [, url] = process.argv;
const headers = { Connection: "Upgrade", Upgrade: "websocket", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==" };
const asked = require("https").get(url, { headers, rejectUnauthorized: false });
const show = (data) => console.log(data.toString());
asked.on("upgrade", (_, socket, head) => { show(head); socket.on("data", show); });
asked.on("error", console.log);
"""
URLLIB = """
import ssl, sys, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], context=ssl._create_unverified_context()).read().decode())
except urllib.error.HTTPError as error:
    print(error.read().decode())
except OSError as error:
    print(error)
"""
ASYNCIO = """
import asyncio, sys
async def talk():
    host, _, port = sys.argv[1].partition(":")
    reader, writer = await asyncio.open_connection(host, int(port or 80))
    writer.write(b"GET / HTTP/1.0\\r\\n\\r\\n")
    print((await reader.read()).decode())
try:
    asyncio.run(talk())
except OSError as error:
    print(error)
"""
SSH = "ssh -oBatchMode=yes -oStrictHostKeyChecking=no -oUserKnownHostsFile=/dev/null"

# Each client, and how it is refused where it gets an address: by words, or by an alert.
COMMANDS: dict[str, tuple[str, list[str]]] = {
    "curl": (TOLD, ["curl", "-sS", "http://{host}/"]),
    "curl https": (ALERT, ["curl", "-sSk", "https://{host}/"]),
    "curl server-sent events": (ALERT, ["curl", "-sSkN", "https://{host}/events"]),
    "wget": (ALERT, ["wget", "-nv", "--tries=1", "--no-check-certificate", "-O", "-", "https://{host}/"]),
    "git https": (ALERT, ["git", "-c", "http.sslVerify=false", "ls-remote", "https://{host}/repository.git"]),
    "git ssh": (TOLD, ["git", "-c", f"core.sshCommand={SSH}", "ls-remote", "ssh://git@{host}/repository"]),
    "pip": (
        ALERT,
        [
            *("pip3", "download", "--no-cache-dir", "--retries", "0", "--no-deps", "-d", "/tmp/{host}", "--verbose"),
            *("--disable-pip-version-check", "--index-url", "https://{host}/simple/", "greeting"),
        ],
    ),
    "npm": (
        ALERT,
        [
            *("npm", "view", "greeting", "description", "--registry", "https://{host}/", "--strict-ssl=false"),
            *("--fetch-retries=0", "--cache", "/tmp/npm-{host}"),
        ],
    ),
    "node fetch": (ALERT, ["node", "-e", FETCH, "https://{host}/"]),
    "node websocket": (ALERT, ["node", "-e", UPGRADE, "https://{host}/"]),
    "python https": (ALERT, ["/usr/bin/python3", "-c", URLLIB, "https://{host}/"]),
    "python http": (TOLD, ["/usr/bin/python3", "-c", URLLIB, "http://{host}/"]),
    "python asyncio": (TOLD, ["/usr/bin/python3", "-c", ASYNCIO, "{host}"]),
}
# What the list has, and what not.
TARGETS = {
    "allowed": "allowed.example",
    "allowed, IPv4 alone": "four.example",
    "allowed, IPv6 alone": "six.example",
    "below a star": "deep.wild.example",
    "not listed": "refused.example",
    "by address": "198.51.100.10",
    "listed, but private": "rebind.example",
    "another port": "allowed.example:8081",
}
LIST = ("allowed.example", "four.example", "six.example", "*.wild.example", "rebind.example")
OPTIONS = (
    *("--network", "allowlist", *(word for host in LIST for word in ("--allow", host))),
    *(word for host in LIST for word in ("--allow", f"{host}:22")),
)
SIGNS = (
    ("claudebox: ", TOLD),
    *((sign, UNKNOWN) for sign in ("resolve", "not known", "ENOTFOUND", "No address associated")),
    *((sign, ALERT) for sign in ("alert", "ALERT", "EPROTO", "ccess was denied", "SSL error", "establish SSL")),
    ("No matching distribution", UNKNOWN),  # pip tells no more
    *((sign, RESET) for sign in ("reset", "RESET")),
)
GREETINGS = (GREETING, GREETING.replace(" ", "-"), "Saved /tmp/")


def expected() -> dict[str, str]:
    reached = [case for case in TARGETS if case.startswith(("allowed", "below"))]
    return {
        f"{client}: {case}": GREETED if case in reached else UNKNOWN if case == "not listed" else how
        for client, (how, _) in COMMANDS.items()
        for case in TARGETS
    }


def outcome(text: str) -> str:
    if any(greeting in text for greeting in GREETINGS):
        return GREETED
    return next((meaning for sign, meaning in SIGNS if sign in text), text)


@pytest.mark.req("NAME-01")
@pytest.mark.long
@pytest.mark.root_repeats("the relay carries for root what it carries for anybody; test_bypass.py tries root")
def test_every_client_reaches_the_list_and_nothing_else(box: Box, world: Internet) -> None:
    shutil.copy(CLIENTS, box.project)
    before = len(world.lookups("refused.example"))
    commands = json.dumps({client: words for client, (_, words) in COMMANDS.items()})
    quiet = ("--env", "NODE_TLS_REJECT_UNAUTHORIZED=0", "--env", "PIP_TRUSTED_HOST=" + " ".join(TARGETS.values()))
    done = box.inside(
        *("/usr/bin/python3", "clients.py", commands, json.dumps(TARGETS)), options=(*OPTIONS, *quiet), timeout=300
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert {pair: outcome(text) for pair, text in said.items()} == expected()
    assert len(world.lookups("refused.example")) == before
    assert "refused by --network allowlist: " in done.stderr.replace("\n", " ")


@pytest.mark.req("NAME-01")
def test_http2_is_carried(box: Box, world: Internet) -> None:
    options = ("--network", "allowlist", "--allow", "allowed.example:8443")
    done = box.inside("curl", "-sSk", "--http2", "https://allowed.example:8443/", options=options)
    assert done.stdout == f"{GREETING} over h2\n", done.stderr


@pytest.mark.req("NAME-01")
@pytest.mark.root_repeats("the relay refuses root as it refuses anybody")
def test_client_that_is_slow_to_begin_is_told_why(box: Box, world: Internet) -> None:
    """On a busy machine, git takes longer than a second from its connection to its first word."""
    script = "import socket, time\ns = socket.create_connection(('203.0.113.9', 80), 30)\ntime.sleep(2)\n"
    script += "s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')\nprint(s.recv(4096).decode())\n"
    done = box.inside("/usr/bin/python3", "-c", script, options=OPTIONS)
    assert "403 Forbidden" in done.stdout, done.stderr
    assert "claudebox: " in done.stdout
