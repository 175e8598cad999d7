"""Odd hosts, each in a mount namespace of the test's own: the judge lets their boxes start, and none that leaks."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import CLAUDEBOX, Account, Box
from review.test_disks import MAKERS, SIZE, is_known, loop_device

pytestmark = [pytest.mark.req("JUDGE-01"), pytest.mark.root]

REFUSED = 125
TIERS = ("", "--review", "--network none")
IN_PLACE = ("", "--network none")  # no layer lies over a directory with mounts in it
PRELUDE = """
set -e
furnish() {  # a home, with a secret and a project
    mkdir -p "$1/src/shop/sub" "$1/.ssh" "$1/.config"
    echo CANARY > "$1/.ssh/id_ed25519"
    echo "a shop" > "$1/src/shop/README.md"
    chown -R "$OWNER" "$1"
}
memory() { mkdir -p "$1"; mount -t tmpfs -o mode=755 memory "$1"; }
over() {  # what is changed in this directory stays in memory
    memory /mnt
    mkdir /mnt/upper /mnt/work
    mount -t overlay -o "lowerdir=$1,upperdir=/mnt/upper,workdir=/mnt/work" over "$1"
}
furnish "$HOME"
"""
START = """
cd "$HOME/src/shop"
set +e
for options in {options}; do
    "$@" --yes --quiet $options --run cat README.md </dev/null
    echo "$? $options"
done
"""
NEWLINE = """'
'"""
# Mounts many in one process: what is to be mounted, where, and how.
MOUNT_MANY = """
import ctypes, os, sys
mount = ctypes.CDLL(None, use_errno=True).mount
for number in range({many}):
    source, target = (os.fsencode(text.format(number)) for text in sys.argv[1:3])
    for path in (source, target):
        if path[:1] == b"/": os.makedirs(path, exist_ok=True)
    is_bind = source[:1] == b"/"
    if mount(source, target, None if is_bind else b"tmpfs", 0x1000 if is_bind else 0, None):
        raise OSError(ctypes.get_errno(), target)
"""


@dataclass(frozen=True)
class Odd:
    """What is odd about a host. In its script, $HOME is furnished already."""

    script: str
    tiers: tuple[str, ...] = TIERS
    in_default: bool = False


def many(source: str, target: str, number: int = 2000) -> str:
    return f"""python3 -c '{MOUNT_MANY.format(many=number)}' "{source}" "{target}"; chown -R "$OWNER" "$HOME" """


HOSTS = {
    "home in memory": Odd('memory "$HOME"; furnish "$HOME"'),
    "home is in two places": Odd(
        'mkdir "$HOME.data"; mount --bind "$HOME.data" "$HOME"; furnish "$HOME"; test -e "$HOME.data/src"',
        in_default=True,
    ),
    "home is a symlink": Odd('ln -s "$HOME" "$HOME.link"; export HOME="$HOME.link"'),
    "home is an overlay": Odd('over "$HOME"; furnish "$HOME"', IN_PLACE),
    "project has a file system of its own": Odd('memory "$HOME/src/shop"; furnish "$HOME"', in_default=True),
    "project is bound from elsewhere": Odd(
        'memory "$HOME.data"; mkdir -p "$HOME.data/src/shop"; mount --bind "$HOME.data/src/shop" "$HOME/src/shop"; '
        'furnish "$HOME"'
    ),
    "project is covered once more": Odd(
        'memory "$HOME/src"; furnish "$HOME"; memory "$HOME/src/shop"; furnish "$HOME"'
    ),
    "mount in the project": Odd('memory "$HOME/src/shop/sub"; memory "$HOME/src/shop/sub/deep"', IN_PLACE),
    "directory of the home is bound in the project": Odd(
        'mkdir -p "$HOME/lib" "$HOME/src/shop/lib"; mount --bind "$HOME/lib" "$HOME/src/shop/lib"',
        IN_PLACE,
    ),
    "read-only mount in the project": Odd(
        'memory "$HOME/src/shop/sub"; mount -o remount,ro,noexec "$HOME/src/shop/sub"',
        IN_PLACE,
    ),
    "line break in the name of a mount": Odd(
        f'mkdir "$HOME/src/shop/a"{NEWLINE}"b c"; memory "$HOME/src/shop/a"{NEWLINE}"b c"', IN_PLACE, in_default=True
    ),
    "line break in the name of a file that is a mount": Odd(
        f'name="$HOME/src/shop/sub/a\\\\"{NEWLINE}"\\\\012b"; touch "$name"; mount --bind /etc/hosts "$name"',
        IN_PLACE,
    ),
    "2,000 file systems in the project": Odd(many("memory", "$HOME/src/shop/many/{}"), IN_PLACE),
    "2,000 binds in the project": Odd(many("$HOME/lib/{}", "$HOME/src/shop/many/{}"), IN_PLACE),
    "2,000 mounts elsewhere": Odd(many("$HOME/src/shop", "$HOME.data/{}")),
    "/usr/local is a symlink": Odd("over /usr; memory /srv; mv /usr/local /srv/local; ln -s /srv/local /usr/local"),
    "/usr/local is a mount": Odd("memory /usr/local; mkdir /usr/local/bin"),
    "/usr is a mount": Odd("mount --bind /usr /usr"),
    "/usr is an overlay": Odd("over /usr"),
    "/etc/resolv.conf is bound": Odd(
        'echo "nameserver 127.0.0.1" > "$HOME.resolv"; mount --bind "$HOME.resolv" /etc/resolv.conf'
    ),
    "/etc/resolv.conf leads into /run": Odd(
        "over /etc; memory /run; mkdir -p /run/systemd/resolve; rm /etc/resolv.conf; "
        'echo "nameserver 127.0.0.1" > /run/systemd/resolve/stub-resolv.conf; '
        "ln -s ../run/systemd/resolve/stub-resolv.conf /etc/resolv.conf"
    ),
    "/proc hides the processes of others": Odd("mount -t proc -o hidepid=2 proc /proc"),
    "/tmp is bound from /var/tmp": Odd('mkdir -m 1777 "$HOME.data"; mount --bind "$HOME.data" /tmp'),
    "everything is bound once more": Odd('mkdir "$HOME.data"; mount --rbind / "$HOME.data"'),
}
CASES = [
    pytest.param(odd, id=name, marks=[] if odd.in_default else pytest.mark.exhaustive("one more odd host"))
    for name, odd in HOSTS.items()
]


@pytest.fixture
def box(box: Box) -> Iterator[Box]:
    yield box
    for suffix in ("data", "seen"):
        shutil.rmtree(f"{box.account.home}.{suffix}", ignore_errors=True)
    for suffix in ("link", "resolv"):
        Path(f"{box.account.home}.{suffix}").unlink(missing_ok=True)


def on(account: Account, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script as root in a mount namespace of its own. In it, "$@" is claudebox, started by the account."""
    return subprocess.run(
        ("unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", *account.becoming(CLAUDEBOX)),
        env={**account.environ, "OWNER": f"{account.uid}:{account.gid}"},
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.parametrize("odd", CASES)
def test_box_starts_on_an_odd_host(odd: Odd, box: Box) -> None:
    options = " ".join(f"'{tier}'" for tier in odd.tiers)
    done = on(box.account, PRELUDE + odd.script + START.format(options=options))
    assert done.stdout == "".join(f"a shop\n0 {tier}\n" for tier in odd.tiers), done.stderr


@pytest.mark.disks
@pytest.mark.exhaustive("one more odd host")
def test_box_starts_on_subvolumes_of_btrfs(box: Box, tmp_path: Path) -> None:
    """Both have one device, and a snapshot of the home is visible beside it."""
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(SIZE)
    subprocess.run([*MAKERS["btrfs"], image], check=True, capture_output=True)
    loop = loop_device()
    script = f"""
        losetup {loop} {image}; trap 'losetup -d {loop}' EXIT
        memory /mnt; mkdir /mnt/all; mount -t btrfs {loop} /mnt/all
        for name in @ @home; do btrfs subvolume create /mnt/all/$name; done >/dev/null
        mount -t btrfs -o subvol=@home {loop} "$HOME"; furnish "$HOME"
        btrfs subvolume snapshot /mnt/all/@home /mnt/all/@snapshot >/dev/null
        mount -t btrfs -o subvol=@ {loop} /srv
        """
    done = on(box.account, PRELUDE + script + START.format(options="'' --review '--network none'"))
    if not is_known("btrfs"):
        return  # the kernel lacks it
    assert done.stdout == "".join(f"a shop\n0 {tier}\n" for tier in TIERS), done.stderr


# What shows a secret under another name.
SEEN = """
mkdir "$HOME.seen"
mount --bind "$HOME" "$HOME.seen"
grep -q CANARY "$HOME.seen/.ssh/id_ed25519"
cd "$HOME/src/shop"
set +e
for options in {options}; do
    "$@" --yes --quiet $options --run sh -c 'cat README.md "$HOME.seen/.ssh/id_ed25519"' </dev/null 2>&1
    echo "=$?="
done
"""
LEAKS = (
    "--mount-ro {home}.seen",
    "--mount-rw {home}.seen",
    "--mount-ro {home}.seen/.ssh",
    "--mount-ro {home}.seen/.ssh/id_ed25519",
    "--review --mount-ro {home}.seen",
    "--network none --mount-ro {home}.seen",
)


def test_secret_under_another_name_is_refused(box: Box) -> None:
    home = box.account.home
    options = " ".join(f"'{row.format(home=home)}'" for row in LEAKS)
    done = on(box.account, PRELUDE + SEEN.format(options=options))
    *told, rest = "".join(done.stdout.split()).split(f"={REFUSED}=")
    assert (len(told), rest) == (len(LEAKS), ""), done.stdout + done.stderr
    for said in told:
        assert "whatthelawdoesnotallow" in said
        assert f"{home}/.ssh" in said
        assert "CANARY" not in said


INSIDE = {
    "of secrets": 'mount --bind "$HOME/.ssh" "$HOME/src/shop/sub"',
    "of the home": 'mount --bind "$HOME" "$HOME/src/shop/sub"',
    "of a directory with a secret": 'mkdir -p "$HOME/.config/gh"; mount --bind "$HOME/.config" "$HOME/src/shop/sub"',
}


@pytest.mark.parametrize("how", INSIDE)
def test_secret_that_is_bound_into_the_project_is_refused(how: str, box: Box) -> None:
    done = on(box.account, PRELUDE + INSIDE[how] + START.format(options="'' --review"))
    assert done.stdout == f"{REFUSED} \n{REFUSED} --review\n", done.stderr
    assert os.fspath(box.account.home) in (said := "".join(done.stderr.split()))
    assert "whatthelawdoesnotallow" in said


# "the command line has the secret of ZELLIJ_SESSION_NAME" (law.py).
def test_session_that_is_called_like_a_directory(box: Box) -> None:
    mounted = box.account.write(box.account.home / "customer-dashboard/page.md", "a page\n").parent
    options, session = ("--quiet", "--mount-ro", str(mounted)), {"ZELLIJ_SESSION_NAME": "customer-dashboard"}
    done = box.inside("cat", f"{mounted}/page.md", options=options, env=session)
    assert (done.returncode, done.stdout) == (0, "a page\n"), done.stderr


# The whole of a file system is called `…/v20.1.0/`, which is no tree of toolchains (`moved` in judge.py).
def test_toolchain_on_a_disk_of_its_own(box: Box) -> None:
    node = f"{box.account.home}/.nvm/versions/node/v20.1.0"
    script = f'memory "{node}"; mkdir "{node}/bin"; cp /bin/true "{node}/bin/node"; export PATH="{node}/bin:$PATH"'
    done = on(box.account, PRELUDE + script + START.format(options="''"))
    assert done.stdout == "a shop\n0 \n", done.stderr
