"""No way round a list of names. Each is shown to lead somewhere on the host, or in a box without that list."""

import json
import shutil
import subprocess
import time
import uuid
from pathlib import Path

import pytest

from conftest import Box
from network.attempts import CAPABILITIES, attempts
from network.internet import LISTED, Internet, Resident
from network.servers import PORT
from network.standins import DOES_NOTHING, KEEPS_CAPABILITIES, install
from network.test_bypass import NAMES, Target

WAYS = Path(__file__).with_name("ways.py")
NAMED = ("allowed.example", "*.wild.example", "rebind.example:*", "mixed.example:*")
LIST = ("--network", "allowlist", *(word for host in NAMED for word in ("--allow", host)))
ARRIVAL = 0.2  # seconds; for what was sent last
PRIVATE = [
    name for name in LISTED if name.startswith(("rebind", "metadata", "loopback", "translated", "mapped", "hosts"))
]

pytestmark = pytest.mark.req("NAME-01")


def run(token: str, done: subprocess.CompletedProcess[str], internet: Internet) -> dict[str, str]:
    """The ways that led somewhere: somebody answered, or heard the token."""
    assert done.returncode == 0, done.stderr
    answers: dict[str, str] = json.loads(done.stdout)
    return {way: said for way, said in answers.items() if said == "reached"}


def heard(token: str, internet: Internet) -> list[str]:
    time.sleep(ARRIVAL)
    return [each.words for each in internet.servers.heard if token in each.words]


@pytest.mark.root_repeats("shows that the attack is real, which one account does")
def test_every_way_leads_somewhere_on_the_host(account: Resident, world: Internet) -> None:
    token = uuid.uuid4().hex
    script = account.write(account.home / "ways.py", WAYS.read_text())
    done = account.run("/usr/bin/python3", str(script), token)
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    silent = {way for way in answers if way.startswith("label")}
    assert {way: said for way, said in answers.items() if said != "reached" and way not in silent} == {}
    for way in sorted(silent):
        alone = uuid.uuid4().hex
        account.run("/usr/bin/python3", str(script), alone, way)
        assert heard(alone, world), way


def test_no_way_leads_anywhere_from_a_box(box: Box, world: Internet) -> None:
    token = uuid.uuid4().hex
    shutil.copy(WAYS, box.project)
    done = box.inside("/usr/bin/python3", "ways.py", token, options=LIST)
    reached = run(token, done, world)
    # The box's own name server answers, whatever address it is asked at. What counts is that nobody else hears of it.
    assert [way for way in reached if not way.startswith("label")] == []
    assert heard(token, world) == []


@pytest.mark.parametrize("lacks", ["nothing", "rules"])
def test_no_way_round_the_filter_of_inet_leads_out(box: Box, account: Resident, internet: Internet, lacks: str) -> None:
    """Not even without rules: then connections arrive nowhere, because there is no way out."""
    if lacks == "rules":
        install(account, "nft", DOES_NOTHING)
    target = Target(internet, None)
    box.inside(*target.command(*attempts), options=LIST)
    time.sleep(ARRIVAL)
    assert target.heard() == set()


def test_not_even_capabilities_lead_out(box: Box, account: Resident, internet: Internet) -> None:
    """As root of the box's network namespace one can take the rules away, and gains nothing by it."""
    install(account, "bwrap", KEEPS_CAPABILITIES)
    target = Target(internet, None)
    for name in NAMES[CAPABILITIES]:
        box.inside(*target.command(name), options=LIST)
    time.sleep(ARRIVAL)
    assert target.heard() == set()


def test_name_that_leads_to_something_private_is_refused(box: Box, internet: Internet) -> None:
    """Whatever the list says. A name that also has an address of the internet leads there."""
    script = "import socket, sys\nfor name in sys.argv[2:]:\n"
    script += f"    s = socket.create_connection((name, {PORT}), 30)\n    s.sendall(sys.argv[1].encode())\n"
    script += "    try: print(name, s.recv(100).decode())\n    except OSError: print(name, 'reset')\n"
    token = uuid.uuid4().hex
    allowed = (word for name in (*PRIVATE, "mixed.example") for word in ("--allow", f"{name}:*"))
    done = box.inside(
        *("/usr/bin/python3", "-c", script, token, *PRIVATE, "mixed.example"),
        options=("--network", "allowlist", *allowed),
    )
    assert done.stdout.splitlines() == [*(f"{name} reset" for name in PRIVATE), "mixed.example internet"], done.stderr
    assert len(heard(token, internet)) == 1


def test_name_in_the_hosts_file_of_the_host_is_looked_up_there(box: Box, account: Resident, internet: Internet) -> None:
    """DNS does not know it. What it leads to has to be on the internet, as with any name; the box sees no such file."""
    account.hosts = "127.0.0.1 localhost\n198.51.100.10 Named.corp.example\n192.168.50.2 nas.corp.example\n"
    token = uuid.uuid4().hex
    script = "import socket, sys\nfor name in ('named', 'nas'):\n"
    script += f"    s = socket.create_connection((f'{{name}}.corp.example', {PORT}), 30)\n"
    script += "    s.sendall(sys.argv[1].encode())\n"
    script += "    try: print(name, s.recv(100).decode())\n    except OSError: print(name, 'reset')\n"
    allowed = ("--allow", "named.corp.example:*", "--allow", "nas.corp.example:*")
    on_the_host = account.run("/usr/bin/python3", "-c", script, token)
    assert on_the_host.stdout.splitlines() == ["named internet", "nas neighbour"], on_the_host.stderr
    done = box.inside("/usr/bin/python3", "-c", script, token, options=("--network", "allowlist", *allowed))
    assert done.stdout.splitlines() == ["named internet", "nas reset"], done.stderr
    assert "corp" not in box.sh("cat /etc/hosts", options=("--network", "allowlist", *allowed))


def test_search_list_of_the_host_is_not_used(box: Box, account: Resident, internet: Internet) -> None:
    """What fails would be asked for again with more labels, of somebody who has nothing to do with it."""
    account.resolv_conf = "search corp.example\noptions ndots:5\nnameserver 192.168.50.1\n"
    name = f"missing{uuid.uuid4().hex[:8]}.example"
    account.run("/usr/bin/python3", "-c", f"import socket; socket.getaddrinfo({name!r}, 80)")
    assert f"{name}.corp.example" in [each.words for each in internet.servers.heard]
    other = f"x{name}"
    box.inside("curl", "-sS", f"http://{other}/", options=("--network", "allowlist", "--allow", other))
    assert {each.words for each in internet.servers.heard if other in each.words} == {other}


def test_first_process_of_the_box_holds_nothing_of_the_network(box: Box) -> None:
    """Anybody in the box could take it from there: a listener, or the way to the process outside."""
    script = "for each in /proc/1/fd/*; do readlink $each; done"
    for publish in ((), ("--publish", "3000")):
        links = box.sh(script, options=(*LIST, *publish)).split()
        assert not any("socket" in link or "net" in link for link in links)


def test_process_outside_cannot_be_seen(box: Box) -> None:
    """Neither it nor the one that carries for --publish."""
    script = "cat /proc/[0-9]*/comm | sort -u"
    seen = box.sh(script, options=(*LIST, "--publish", "3000")).split()
    assert set(seen) <= {"bwrap", "cat", "sh", "sort"}
