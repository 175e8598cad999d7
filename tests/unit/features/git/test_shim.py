"""What the `git` of a box knows: each place that is held, with the reason, and where files outlive the box."""

import subprocess
from pathlib import Path

import pytest

import claudebox.features.git
from claudebox.features.git import DIRECTORY
from claudebox.model import COVER, Mount
from hosts.machine import Machine, debian

SCRIPT = "/usr/lib/python3/claudebox/features/git/shim.sh: #!/bin/sh\\nknown=@KNOWN@\\n"
PROJECT = "/home/alice/shop"
SOURCE = Path(claudebox.features.git.__file__).parent


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return debian(tmp_path, SCRIPT).plant(
        "~/shop/.git/config: \\n\n~/shop/.git/HEAD: ref: refs/heads/main\\n\n~/shop/.envrc: \\n"
    )


def shim(machine: Machine, *words: str) -> Mount | None:
    return next((mount for mount in machine.plan(*words).mounts if mount.path == f"{DIRECTORY}/git"), None)


def known(machine: Machine, *words: str) -> list[str]:
    mount = shim(machine, *words)
    assert mount is not None
    text = mount.content.decode()
    assert text.startswith("#!/bin/sh\nknown='")
    return text.removeprefix("#!/bin/sh\nknown='").removesuffix("'\n").split("\n")


@pytest.mark.req("WORK-01")
def test_knows_what_is_held_and_what_is_kept(machine: Machine) -> None:
    machine.plant("~/data/x: \\n")
    lines = known(machine, "--review", "off", "--mount-rw", "/home/alice/data")
    assert f"held\t{PROJECT}/.envrc\tdirenv runs it on cd" in lines
    assert f"held\t{PROJECT}/.git/config\tgit obeys it" in lines
    assert lines[-2:] == [f"kept\t{PROJECT}", "kept\t/home/alice/data"]
    assert all(line.startswith(("held\t", "kept\t")) for line in lines)


def test_what_is_opened_is_not_held(machine: Machine) -> None:
    assert not any(".envrc" in line for line in known(machine, "--writable", ".envrc"))


def test_it_is_first_on_path_and_read_only(machine: Machine) -> None:
    plan = machine.plan()
    path = next(variable.value for variable in plan.environment if variable.name == "PATH")
    assert path.split(":")[0] == DIRECTORY
    mount = shim(machine)
    assert mount is not None
    assert (mount.kind, mount.mode) == (COVER, 0o555)


def test_name_with_a_line_break_cannot_add_a_line(machine: Machine) -> None:
    name = "x\nkept\t\n.code-workspace"
    (machine.root / f"home/alice/shop/{name}").write_text("{}")
    assert [line for line in known(machine) if line.startswith("kept")] == [f"kept\t{PROJECT}"]
    assert not any("workspace" in line for line in known(machine))


def test_project_without_a_repository_has_none(machine: Machine) -> None:
    for name in ("config", "HEAD"):
        (machine.root / f"home/alice/shop/.git/{name}").unlink()
    (machine.root / "home/alice/shop/.git").rename(machine.root / "home/alice/shop/nogit")
    assert shim(machine) is None


@pytest.mark.parametrize("first", ["box/", "other", "box/../box"])
def test_it_calls_git_and_not_itself_by_another_name(tmp_path: Path, first: str) -> None:
    """A PATH that names its directory twice, or a symlink to it, made the two names call each other for ever."""
    for name in ("box", "other", "system"):
        (tmp_path / name).mkdir()
    (tmp_path / "box/git").write_bytes((SOURCE / "shim.sh").read_bytes().replace(b"@KNOWN@", b"''"))
    (tmp_path / "other/git").symlink_to(tmp_path / "box/git")
    (tmp_path / "system/git").write_text("#!/bin/sh\necho the real one\n")
    for name in ("box", "system"):
        (tmp_path / name / "git").chmod(0o755)
    path = f"{tmp_path}/box:{tmp_path}/{first}:{tmp_path}/system:/usr/bin:/bin"
    for name in ("box", first):
        words = [f"{tmp_path}/{name}/git", "status"]
        done = subprocess.run(words, env={"PATH": path}, timeout=10, check=True, capture_output=True, text=True)
        assert done.stdout == "the real one\n"


@pytest.mark.parametrize(
    "line",
    [
        "status --short",
        "-c core.askPass= --literal-pathspecs write-tree",
        "commit-tree 6db27",
        "remote",
        "-c core.askPass= remote get-url origin",
        "branch --show-current",
        "stash list",
        "config user.name",
        "-C .. config --local --list",
    ],
)
def test_what_changes_nothing_takes_no_process_more(tmp_path: Path, line: str) -> None:
    """Claude asks such things some twenty times in a turn."""
    for name, text in {
        "box": (SOURCE / "shim.sh").read_text().replace("@KNOWN@", "''"),
        "system": '#!/bin/sh\necho "$@" >>"$LOG"\n',
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "git").write_text(text)
        (tmp_path / name / "git").chmod(0o755)
    environ = {"PATH": f"{tmp_path}/box:{tmp_path}/system:/usr/bin:/bin", "LOG": f"{tmp_path}/log"}
    subprocess.run([f"{tmp_path}/box/git", *line.split()], env=environ, timeout=10, check=True)
    assert (tmp_path / "log").read_text() == f"{line}\n"


@pytest.mark.parametrize(
    "line", ["status", "-c core.askPass= -C .. --literal-pathspecs write-tree", "-C", "--attr-source HEAD log"]
)
def test_shell_reads_no_further_for_what_changes_nothing(tmp_path: Path, line: str) -> None:
    """The file is long, and to read it takes a shell as long as git itself. What follows here is no shell at all."""
    beginning, _, _ = (SOURCE / "shim.sh").read_text().partition("# A line for each place")
    for name, text in {"box": f"{beginning}\n)\n", "system": '#!/bin/sh\necho "$@"\n'}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "git").write_text(text)
        (tmp_path / name / "git").chmod(0o755)
    environ = {"PATH": f"{tmp_path}/box:{tmp_path}/system:/usr/bin:/bin"}
    words = [f"{tmp_path}/box/git", *line.split()]
    done = subprocess.run(words, env=environ, timeout=10, check=True, capture_output=True, text=True)
    assert done.stdout == f"{line}\n"
