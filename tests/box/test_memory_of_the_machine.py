"""Home and /tmp of the box are in memory, and large work in them does not eat all of it."""

from __future__ import annotations

import json

import pytest

from conftest import Account, Box

pytestmark = pytest.mark.req("WORK-01")

BOUND = 16 << 20
FILL = """
import errno, os, sys
for place in sys.argv[1:]:
    written = 0
    try:
        with open(os.path.expanduser(place) + "/large", "wb", buffering=0) as file:
            while written < 64 << 20:
                written += file.write(bytes(1 << 20))
        print(place, "is not full")
    except OSError as error:
        print(place, errno.errorcode[error.errno], written <= int(os.environ["BOUND"]))
"""


def test_more_than_the_bound_is_no_space_left(box: Box, account: Account) -> None:
    account.write(box.project / "fill.py", FILL)
    places = ("~", "/tmp", "/var/tmp", "/dev/shm", "$XDG_RUNTIME_DIR")
    script = f"BOUND={BOUND} /usr/bin/python3 fill.py {' '.join(places)}; touch /dev/large"
    done = box.inside("sh", "-c", script, options=("--tmp-size", "16M"))
    assert [line.split()[1:] for line in done.stdout.splitlines()] == [["ENOSPC", "True"]] * 5, done.stdout
    assert "Read-only file system" in done.stderr  # what has no bound cannot be written


def test_without_a_word_each_holds_a_quarter_of_the_memory(box: Box) -> None:
    with open("/proc/meminfo") as file:
        memory = int(file.readline().split()[1]) << 10
    seen = [int(word) for word in box.sh("stat -f -c '%b %S' ~ /tmp").split()]
    sizes = {seen[0] * seen[1], seen[2] * seen[3]}
    assert all(abs(size - memory // 4) < 1 << 20 for size in sizes)


def test_audit_tells_the_bound(box: Box) -> None:
    audit = json.loads(box.claudebox("--audit", "--json", "--tmp-size", "2G", "--run", "true").stdout)
    assert {mount["path"]: mount["size"] for mount in audit["mounts"] if "size" in mount}["/tmp"] == 2 << 30
    text = " ".join(box.claudebox("--audit", "--tmp-size", "2G", "--run", "true").stdout.split())
    assert "in memory, at most: /tmp 2G, /dev/shm 512M" in text, text


def test_bound_beyond_every_number_is_none(box: Box) -> None:
    assert box.inside("true", options=("--tmp-size", "99999999T")).returncode == 0
