"""The exact box on each distribution, as bwrap is told."""

import posixpath
from pathlib import Path

import pytest

from claudebox.errors import quote
from claudebox.model import Plan
from claudebox.sandbox.argv import Data, bwrap_operations, program_words
from golden import Golden, difference
from hosts.machine import EVERYONE, PLAIN_PATH, TREES, Machine

NIX_PATH = "/run/wrappers/bin:/etc/profiles/per-user/alice/bin:/run/current-system/sw/bin"
# What differs between the people, not between the trees.
MACHINES: dict[str, dict[str, object]] = {
    "alpine": {},
    "arch": {},
    "debian12": {},
    "debian12-nix": {"environ": {"PATH": f"/home/alice/.nix-profile/bin:{PLAIN_PATH}"}},
    "debian9": {},
    "fedora": {},
    "nixos": {"environ": {"PATH": NIX_PATH}, "python": "/nix/store/hhh-python3-3.12/bin/python3.12"},
    "opensuse": {},
    "silverblue": {"environ": {"HOME": "/home/alice"}, "home": "/var/home/alice"},
    "ubuntu2404": {},
    "ubuntu2510": {},
    "wsl": {"environ": {"PATH": f"/home/alice/.local/bin:{PLAIN_PATH}:/mnt/c/Windows/System32"}},
}
UNLIKE = "unlike-debian12.txt"  # what is different there for others


def make_machine(name: str, root: Path, **more: object) -> Machine:
    machine = Machine(root, **{**MACHINES[name], **more})  # type: ignore[arg-type]
    return machine.plant((TREES / f"{name}.txt").read_text()).plant(EVERYONE.read_text())


def describe(plan: Plan) -> str:
    """The launch as text: one operation per line, the environment, and the files that the box makes."""
    data: list[Data] = []
    lines = [plan.bwrap]
    for operation in bwrap_operations(plan):
        lines.append(" ".join(_shown(word, data) for word in operation))
    lines += [" ".join(quote(word) for word in program_words(plan)), "", "environment"]
    lines += [f"{variable.name}={variable.value}" for variable in plan.environment if not variable.late]
    for item in data[1:]:  # the first is the system call filter
        lines += ["", f"{{{item.label}}}", item.content.decode().rstrip("\n")]
    return "\n".join(lines) + "\n"


def _shown(word: str | Data, data: list[Data]) -> str:
    if isinstance(word, str):
        return quote(word)
    data.append(word)
    return f"{{{word.label}}}"


@pytest.mark.req("SAND-04", "SAND-05", "SAND-06", "SAND-10", "SAND-11", "SAND-12", "SAND-13")
@pytest.mark.parametrize("name", MACHINES)
def test_box_is_exactly_this(name: str, tmp_path: Path, golden: Golden) -> None:
    golden.check(f"{name}.txt", describe(make_machine(name, tmp_path).plan()))


@pytest.mark.req("SAND-04", "SEC-02")
def test_box_of_root_is_exactly_this(tmp_path: Path, golden: Golden) -> None:
    machine = make_machine("debian12", tmp_path, home="/root", uid=0)
    machine.plant("/usr/local/etc/app/app.conf\n/usr/local/etc/app/token\n/usr/local/etc/vpn/key\n/etc/profile")
    (tmp_path / "usr/local/etc/app/token").chmod(0o600)
    (tmp_path / "usr/local/etc/vpn").chmod(0o700)
    (tmp_path / "etc/profile").chmod(0o600)
    golden.check_scene(UNLIKE, "root", difference(ordinary_box(tmp_path), describe(machine.plan())))


@pytest.mark.req("SAND-04", "SEC-02")
def test_root_only_file_below_a_mounted_directory_is_hidden(tmp_path: Path) -> None:
    machine = make_machine("debian12", tmp_path, home="/root", uid=0)
    machine.plant("/etc/java-17-openjdk/management/jmxremote.password")
    (tmp_path / "etc/java-17-openjdk/management/jmxremote.password").chmod(0o600)
    assert resolve_in_box(machine.plan(), machine, "/etc/java-17-openjdk/management/jmxremote.password") is None


@pytest.mark.req("EXT-02", "SAND-09")
def test_box_with_wishes_is_exactly_this(tmp_path: Path, golden: Golden) -> None:
    machine = make_machine("debian12", tmp_path)
    machine.plant("/srv/data/set.csv\n/opt/sdk/bin/tool*\n~/.cargo/credentials\n~/.cargo/credentials.toml")
    plan = machine.plan(
        *("--mount-ro", "/srv/data", "--mount-rw", "~/other:/data", "--mount-ro", "/opt/sdk"),
        *("--mount-ro", "~/.cargo", "--env", "DEBUG=1", "--env", "LD_PRELOAD=/opt/x.so", "--model", "opus"),
    )
    golden.check_scene(UNLIKE, "wishes", difference(ordinary_box(tmp_path), describe(plan)))


def ordinary_box(root: Path) -> str:
    return describe(make_machine("debian12", root / "ordinary").plan())


def test_every_golden_text_is_used(golden: Golden) -> None:
    assert golden.names() == {*(f"{name}.txt" for name in MACHINES), UNLIKE}
    assert golden.scenes(UNLIKE) == {"root", "wishes"}
    assert {path.name for path in TREES.iterdir()} == {f"{name}.txt" for name in MACHINES} | {"everyone.txt"}


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    return make_machine(request.param, tmp_path)


@pytest.mark.req("SAND-13")
def test_certificate_bundle_is_in_the_box(machine: Machine) -> None:
    plan = machine.plan()
    bundle = {variable.name: variable.value for variable in plan.environment}["SSL_CERT_FILE"]
    assert resolve_in_box(plan, machine, bundle) is not None


@pytest.mark.req("SAND-12")
def test_name_servers_are_in_the_box(machine: Machine) -> None:
    file = resolve_in_box(machine.plan(), machine, "/etc/resolv.conf")
    assert file is not None
    assert (machine.root / file.lstrip("/")).read_text().startswith("nameserver ")


@pytest.mark.req("SAND-11")
def test_hash_bang_lines_find_their_programs(machine: Machine) -> None:
    plan = machine.plan()
    for program in ("/bin/sh", "/usr/bin/env", plan.wrapper[0], plan.program.argv[0]):
        if program == "/bin/sh" and machine.host().tree.resolve(program) is None:
            continue  # the tree does not describe it
        file = resolve_in_box(plan, machine, program)
        assert file is not None, program
        assert (machine.root / file.lstrip("/")).stat().st_mode & 0o111, program


@pytest.mark.req("SAND-11", "SAND-15")
def test_shim_is_called_by_the_name_that_makes_it_env(tmp_path: Path) -> None:
    # On NixOS `env` is a symlink to `coreutils`, which becomes env only if it is called so.
    shim = make_machine("nixos", tmp_path).plan().wrapper
    assert shim[0].endswith("/env")


@pytest.mark.req("SAND-09")
def test_nothing_secret_is_in_the_box(machine: Machine) -> None:
    plan = machine.plan()
    for path in (
        *("~/.ssh/id_ed25519", "~/.aws/credentials", "~/.claude/.credentials.json", "~/other/notes.txt"),
        *("/etc/shadow", "/etc/ssh/ssh_host_ed25519_key", "/etc/sudoers", "/etc/ssl/private", "/etc/pki/tls/private"),
        *("/etc/pki/entitlement", "/run/secrets/database", "/run/wrappers/bin/sudo", "/mnt/c"),
    ):
        assert resolve_in_box(plan, machine, path.replace("~", machine.home)) is None, path


def resolve_in_box(plan: Plan, machine: Machine, path: str, links: int = 0) -> str | None:
    """The host's file that a path of the box leads to: mounts and symlinks followed as the kernel would."""
    assert links < 40
    here = ""
    parts = [part for part in path.split("/") if part]
    mounts = {mount.path: mount for mount in plan.mounts}
    on_host: str | None = None  # None: a place that the box makes
    for number, part in enumerate(parts):
        here = f"{here}/{part}"
        mount = mounts.get(here)
        target = ""
        if mount is not None and mount.kind in ("ro", "rw"):
            on_host = mount.source
        elif mount is not None:
            on_host = None
            target = mount.source if mount.kind == "symlink" else ""
        elif on_host is not None:
            on_host = f"{on_host}/{part}"
            local = machine.root / on_host.lstrip("/")
            if local.is_symlink():
                target = str(local.readlink())
        if target:
            base = "" if target.startswith("/") else here.rpartition("/")[0]
            rest = "/".join(parts[number + 1 :])
            return resolve_in_box(plan, machine, posixpath.normpath(f"{base}/{target}/{rest}"), links + 1)
    return on_host if on_host is not None and (machine.root / on_host.lstrip("/")).exists() else None
