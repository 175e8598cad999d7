"""What the box shows of the host's files, and what it lets be changed."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from claudebox.host.secrets import DRAWERS, SECRET_PLACES
from conftest import Account, Box
from running.versions import each_bwrap

CANARY = "canary-93b7ae"
HOME_PLACES = [path.removeprefix("~/") for path, _ in SECRET_PLACES if path.startswith("~/")]
# Directories that hold secret places among other things: somebody may want to mount these.
PARENTS = sorted({place.rpartition("/")[0] for place in HOME_PLACES} - {"", *(name[2:] for name in DRAWERS)})
# Names and contents of everything that can be seen, other than the system's own programs.
SWEEP = f"""
find / \\( -path /proc -o -path /usr -o -path /nix \\) -prune -o -name '*{CANARY}*' -print 2>/dev/null
grep -rlsF {CANARY} $(find / -mindepth 1 -maxdepth 1 -type d ! -name proc ! -name usr ! -name dev ! -name nix)
true
"""


def plant_secrets(account: Account, *, as_directories: bool) -> None:
    for place in HOME_PLACES:
        path = account.home / place
        account.write(path / CANARY if as_directories else path, f"{CANARY}\n", mode=0o600)


def reason(result: subprocess.CompletedProcess[str]) -> str:
    """The last line that a failed program wrote."""
    assert result.returncode != 0
    return result.stderr.strip().splitlines()[-1]


# Nothing of the host, unless mounted


@pytest.mark.req("SAND-04", "SAND-06")
def test_root_holds_only_what_rules_put_there(box: Box) -> None:
    system = {name for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix") if Path("/", name).exists()}
    seen = set(box.sh("ls -A /").split())
    assert seen == {"dev", "etc", "proc", "run", "tmp", "usr", "var"} | system


@pytest.mark.req("SAND-04")
def test_home_is_empty_but_for_what_rules_put_there(box: Box, account: Account) -> None:
    account.write(account.home / "notes.txt", "private")
    account.write(account.home / "src" / "other" / "main.c", "another project")
    seen = box.sh('cd "$HOME" && find . -path ./.local -prune -o -print').split()
    assert sorted(seen) == [".", "./.gitconfig", "./src", "./src/shop", "./src/shop/README.md"]


@pytest.mark.req("SAND-04")
def test_etc_holds_no_file_that_no_rule_names(box: Box) -> None:
    # Written out rather than taken from the rule, so that a new row there has to be meant.
    named = set(
        "alternatives bash.bashrc bashrc ca-certificates claude-code crypto-policies fonts group hosts ld.so.cache "
        "ld.so.conf ld.so.conf.d localtime machine-id manpath.config nsswitch.conf os-release passwd pki profile "
        "protocols resolv.conf services ssl static terminfo".split()
    )
    seen = set(box.sh("ls -A /etc").split())
    assert {name for name in seen - named if not name.startswith("java-")} == set()


@pytest.mark.req("SAND-04")
def test_var_and_run_hold_nothing_of_the_host(box: Box, account: Account) -> None:
    seen = box.sh("cd / && ls -A var var/tmp run run/user run/user/*")
    uid = 1000 if account.is_root else account.uid
    home = account.home.name
    run = ["run:", "claudebox-masks", "user", "run/user:", str(uid), f"run/user/{uid}:"]
    assert seen.split() == [*run, "var:", "tmp", "var/tmp:", home]


@pytest.mark.req("SAND-04", "SAND-05")
@pytest.mark.root_differs("root could write everywhere")
@each_bwrap
def test_nothing_can_be_created_outside_of_the_writable_places(box: Box) -> None:
    # Leaves nothing behind on the host if it is possible after all.
    places = "/ /etc /usr /usr/bin /var /run /bin /lib /etc/ssl/certs /home /opt /nix"
    attempt = f'for place in {places}; do made=$(mktemp -d -p $place) && rmdir "$made" && echo $place; done; true'
    assert box.sh(attempt) == ""


@pytest.mark.req("SAND-04")
@pytest.mark.root_differs("root owns these files")
def test_system_file_cannot_be_changed(box: Box) -> None:
    # Opened and not written, asked and not removed: a broken box must not harm the machine that tests it.
    files = "/etc/passwd /etc/hosts /etc/resolv.conf /etc/machine-id /usr/bin/env"
    attempts = '(: >> $file) && echo $file; [ -w $file ] || [ -w "$(dirname $file)" ] && echo $file'
    assert box.sh(f"for file in {files}; do {attempts}; done; true") == ""


# The project


@pytest.mark.req("SAND-05")
@each_bwrap
def test_project_is_writable_at_its_own_path(box: Box, project: Path) -> None:
    seen = box.sh("pwd; cat README.md; mkdir made; echo from inside > made/file; rm README.md")
    assert seen == f"{project}\na shop\n"
    assert (project / "made" / "file").read_text() == "from inside\n"
    assert not (project / "README.md").exists()
    assert (project / "made" / "file").stat().st_uid == box.account.uid


@pytest.mark.req("SAND-05")
def test_change_on_the_host_is_seen_at_once(box: Box, account: Account, project: Path) -> None:
    os.mkfifo(project / "fifo")
    account.own(project)
    script = "echo ready > fifo; cat fifo > /dev/null; cat later"
    process = subprocess.Popen(
        ["sh", "-c", f"read line < fifo; echo {CANARY} > later; echo go > fifo"], cwd=project, text=True
    )
    assert box.sh(script) == f"{CANARY}\n"
    assert process.wait(10) == 0


@pytest.mark.req("SAND-05")
def test_project_reached_through_a_symlink_has_its_real_path(box: Box, account: Account, project: Path) -> None:
    link = account.home / "link"
    link.symlink_to(project)
    assert box.sh("pwd -P", cwd=link) == f"{project}\n"


@pytest.mark.req("SAND-05")
def test_project_may_have_an_odd_name(box: Box, account: Account) -> None:
    project = account.home / "-dash, space, quo'te\"s $HOME colon: ünïcödé back\\slash"
    account.write(project / "file", "found\n")
    assert box.sh("cat file; pwd", cwd=project) == f"found\n{project}\n"


@pytest.mark.req("SAND-04", "SAND-05")
def test_start_leaves_no_trace_in_the_project_or_the_home(box: Box, account: Account, project: Path) -> None:
    (project / "vendor").mkdir()
    account.own(project)
    before = sorted(account.home.rglob("*"))
    box.sh("true", options=("--mount-ro", f"/usr/share:{project}/vendor", "--mount-ro", "README.md"))
    assert sorted(account.home.rglob("*")) == before


# Secret places


@pytest.mark.req("SAND-09")
@pytest.mark.parametrize("as_directories", [False, True], ids=["files", "directories"])
@pytest.mark.root_differs("root may read all of them")
def test_secret_places_are_invisible(box: Box, account: Account, as_directories: bool) -> None:
    plant_secrets(account, as_directories=as_directories)
    assert box.sh(SWEEP) == ""


@pytest.mark.req("SAND-09")
def test_sweep_finds_what_is_visible(box: Box, account: Account, project: Path) -> None:
    account.write(project / "by-content", CANARY)
    account.write(project / f"by-name-{CANARY}")
    assert sorted(box.sh(SWEEP).split()) == [f"{project}/by-content", f"{project}/by-name-{CANARY}"]


@pytest.mark.req("SAND-09", "EXT-02")
@pytest.mark.parametrize("option", ["--mount-ro", "--mount-rw"])
@pytest.mark.parametrize("as_directories", [False, True], ids=["files", "directories"])
@pytest.mark.root_differs("root may read all of them")
@each_bwrap
def test_mount_of_a_parent_hides_the_secret_places_below(
    box: Box, account: Account, option: str, as_directories: bool
) -> None:
    plant_secrets(account, as_directories=as_directories)
    options = []
    for parent in PARENTS:
        account.write(account.home / parent / "plain.txt", "harmless\n")
        options += [option, str(account.home / parent)]
    plain = [f"{account.home}/{parent}/plain.txt" for parent in PARENTS]
    seen = box.sh(f"cat {shlex.join(plain)}; {SWEEP}", options=tuple(options))
    assert seen == "harmless\n" * len(PARENTS)


@pytest.mark.req("SAND-09", "EXT-02")
def test_parent_at_another_destination_hides_them_too(box: Box, account: Account) -> None:
    plant_secrets(account, as_directories=True)
    account.write(account.home / ".cargo" / "plain.txt", "harmless\n")
    options = ("--mount-ro", "~/.cargo:/mnt/a", "--mount-ro", "~/.cargo:/mnt/b/c", "--mount-ro", "~/.cargo")
    assert box.sh(f"cat /mnt/a/plain.txt /mnt/b/c/plain.txt; {SWEEP}", options=options) == "harmless\n" * 2


@pytest.mark.req("SAND-09")
def test_hidden_place_cannot_be_uncovered(box: Box, account: Account) -> None:
    secret = account.write(account.home / "work" / "gcloud" / "key", CANARY)
    account.write(account.home / "work" / "git" / "netrc", CANARY)
    account.write(account.home / ".config" / "plain")
    (account.home / ".config" / "gcloud").symlink_to(secret.parent)
    (account.home / ".netrc").symlink_to("work/git/netrc")
    attacks = """
    cd ~/work
    umount gcloud; umount -l gcloud; umount git/netrc
    chmod 777 gcloud; rmdir gcloud; mv gcloud moved; rm -rf gcloud
    mv git moved; cp -r moved copied; ln moved/netrc link; rm -f moved/netrc
    unshare -Urm sh -c 'umount ~/work/gcloud; umount -l ~/work/gcloud; mount --bind ~/work /mnt; cat /mnt/*/*'
    unshare -Urm sh -c 'cd /proc/1/root; umount .; mount --move ~/work /mnt; cat /mnt/gcloud/key'
    cat */* /proc/*/root/*/*/key /proc/*/cwd/../../work/gcloud/key
    """
    options = ("--mount-rw", "~/work")
    result = box.inside("sh", "-c", f"{attacks}\n{SWEEP}", options=options)
    assert CANARY not in result.stdout
    assert secret.read_text() == CANARY


@pytest.mark.req("SAND-09")
@each_bwrap
def test_symlinked_secret_place_is_hidden_where_it_really_is(box: Box, account: Account) -> None:
    account.write(account.home / "dotfiles" / "elsewhere" / "key", CANARY)
    account.write(account.home / ".config" / "plain")
    account.write(account.home / "dotfiles" / "ssh" / "id_ed25519", CANARY)
    account.write(account.home / "dotfiles" / "netrc", CANARY)
    (account.home / ".config" / "gcloud").symlink_to("../dotfiles/elsewhere")
    (account.home / ".ssh").symlink_to(account.home / "dotfiles" / "ssh")
    (account.home / ".netrc").symlink_to("dotfiles/netrc")
    account.write(account.home / "dotfiles" / "vimrc", "harmless\n")
    options = ("--mount-ro", "~/dotfiles", "--mount-ro", "~/dotfiles:/mnt")
    assert box.sh(f"cat ~/dotfiles/vimrc; {SWEEP}", options=options) == "harmless\n"


HIDDEN = (
    *("coursier/credentials/x.properties", "goreleaser/github_token", "breezy/authentication.conf"),
    *("app/mcp-auth.json", "app/deep/keys.json", "app/small/.mozilla/firefox/logins.db"),
    *("app/settings.yml", "app/link.yml"),
)
PLAIN = ("app/keybindings.json", "app/lua/session.lua", "app/deep/theme.toml")


@pytest.mark.req("SAND-09", "EXT-02")
@pytest.mark.parametrize("option", ["--mount-ro", "--mount-rw"])
def test_credentials_in_the_directory_of_a_program_are_hidden(box: Box, account: Account, option: str) -> None:
    config = account.home / ".config"
    for name in HIDDEN[:-1]:
        account.write(config / name, f"{CANARY} ghp_{'x1' * 18}\n" if name.endswith(".yml") else CANARY)
    (config / HIDDEN[-1]).symlink_to("settings.yml")
    for name in PLAIN:
        account.write(config / name, "harmless\n")
    wishes = [word for name in ("coursier", "goreleaser", "breezy", "app") for word in (option, f"~/.config/{name}")]
    attacks = "cd ~/.config/app; umount deep/keys.json; mv deep moved; mv deep/keys.json x; rm -f mcp-auth.json; cd ..;"
    script = f"({attacks}) 2>/dev/null; cd ~/.config; cat {shlex.join(PLAIN)}; {SWEEP}"
    seen = box.sh(script, options=tuple(wishes))
    assert seen == "harmless\n" * len(PLAIN)
    assert [(config / name).read_text()[: len(CANARY)] for name in HIDDEN] == [CANARY] * len(HIDDEN)
    # Who asks for one of them gets it.
    assert box.sh("cat ~/.config/app/mcp-auth.json", options=(option, "~/.config/app/mcp-auth.json")) == CANARY


@pytest.mark.req("SAND-09")
def test_bundle_variable_cannot_show_a_secret_place(box: Box, account: Account) -> None:
    """A project's `.envrc` can set the variable."""
    key = account.write(account.home / ".ssh" / "id_ed25519", CANARY)
    assert box.sh(SWEEP, env={"SSL_CERT_FILE": str(key)}) == ""


# Mounts on request


@pytest.mark.req("EXT-02")
def test_mount_ro_is_read_only(box: Box, account: Account) -> None:
    file = account.write(account.home / "lib" / "file", "as it was\n")
    result = box.inside("sh", "-c", "cat ~/lib/file; echo changed > ~/lib/file", options=("--mount-ro", "~/lib"))
    assert result.stdout == "as it was\n"
    assert "Read-only file system" in reason(result)
    assert box.inside("touch", f"{file.parent}/new", options=("--mount-ro", "~/lib")).returncode != 0
    assert sorted(os.listdir(file.parent)) == ["file"]
    assert file.read_text() == "as it was\n"


@pytest.mark.req("EXT-02")
def test_mount_rw_is_writable(box: Box, account: Account) -> None:
    file = account.write(account.home / "lib" / "file", "as it was\n")
    box.sh("echo changed > ~/lib/file; touch ~/lib/new", options=("--mount-rw", "~/lib"))
    assert file.read_text() == "changed\n"
    assert sorted(os.listdir(file.parent)) == ["file", "new"]


@pytest.mark.req("EXT-02")
def test_mount_rw_works_in_a_home_that_cannot_be_written(user: Account) -> None:
    """What the box can write cannot be noted, and nothing of claudebox is ever there."""
    project = user.write(user.home / "shop/README.md").parent
    shared = user.write(user.home / "shared/x").parent
    user.home.chmod(0o555)
    try:
        done = Box(user, project).inside("touch", f"{shared}/y", options=("--mount-rw", str(shared)))
    finally:
        user.home.chmod(0o755)
    assert (done.returncode, (shared / "y").exists()) == (0, True), done.stderr


@pytest.mark.req("EXT-02")
@each_bwrap
def test_mount_appears_where_it_was_asked_for(box: Box, account: Account) -> None:
    places = {
        "~/lib": "{home}/lib",
        "{home}/absolute": "{home}/absolute",
        "../../relative": "{home}/relative",
        "~/lib/../detour/.": "{home}/detour",
        "~/link": "{home}/link",
        "~/lib:/mnt/deep/er": "/mnt/deep/er",
        "~/lib:~/elsewhere": "{home}/elsewhere",
        "../../lib:/opt": "/opt",
        "~/a b:/mnt/c d": "/mnt/c d",
        "~/co:lon": "{home}/co:lon",
        "~/new\nline": "{home}/new\nline",
        "~/lib:/tmp/lib": "/tmp/lib",
        f"~/lib:{box.project}/vendor": f"{box.project}/vendor",
    }
    for name in ("lib", "absolute", "relative", "detour", "a b", "co:lon", "new\nline"):
        account.write(account.home / name / "file", "seen\n")
    account.write(box.project / "vendor" / "file", "covered\n")
    (account.home / "link").symlink_to("lib")
    options = [word for written in places for word in ("--mount-ro", written.format(home=account.home))]
    files = [f"{place.format(home=account.home)}/file" for place in places.values()]
    assert box.inside("cat", *files, options=tuple(options)).stdout == "seen\n" * len(places)


@pytest.mark.req("EXT-02")
@each_bwrap
def test_single_file_can_be_mounted(box: Box, account: Account) -> None:
    account.write(account.home / "notes" / "todo", "buy milk\n")
    account.write(account.home / "notes" / "diary", "private\n")
    account.write(box.project / "covered", "covered\n")
    places = ("", ":/mnt/todo", f":{box.project}/covered", ":~/deep/er/todo")
    options = [word for place in places for word in ("--mount-ro", f"~/notes/todo{place}")]
    seen = box.sh("ls ~/notes; cat ~/notes/todo /mnt/todo covered ~/deep/er/todo", options=tuple(options))
    assert seen == "todo\n" + "buy milk\n" * len(places)


@pytest.mark.req("EXT-02")
@each_bwrap
def test_part_of_the_project_can_be_made_read_only(box: Box, account: Account, project: Path) -> None:
    file = account.write(project / "vendor" / "file", "as it was\n")
    attacks = "echo changed > vendor/file; mv vendor moved; rm -rf vendor; touch README.new"
    box.inside("sh", "-c", attacks, options=("--mount-ro", "vendor"))
    assert file.read_text() == "as it was\n"
    assert sorted(os.listdir(project)) == ["README.md", "README.new", "vendor"]


@pytest.mark.req("EXT-02")
def test_more_specific_mount_wins_whatever_the_order(box: Box, account: Account) -> None:
    account.write(account.home / "outer" / "inner" / "file", "outer\n")
    account.write(account.home / "other" / "file", "other\n")
    for options in (
        ("--mount-ro", "~/outer:/mnt", "--mount-ro", "~/other:/mnt/inner"),
        ("--mount-ro", "~/other:/mnt/inner", "--mount-ro", "~/outer:/mnt"),
    ):
        assert box.sh("cat /mnt/inner/file", options=options) == "other\n"


# Working places


@pytest.mark.req("SAND-11")
@pytest.mark.root_differs("root may enter every other")
@each_bwrap
def test_temporary_places_are_private(box: Box, account: Account) -> None:
    places = ("/tmp", "/var/tmp", "/dev/shm")
    for place in places:
        Path(place, f"{CANARY}-{account.home.name}").write_text(CANARY)
    try:
        names = [f"{place}/inside-{account.home.name}" for place in places]
        seen = box.sh(f"ls -A {' '.join(places)}; for name in {' '.join(names)}; do echo made >$name; cat $name; done")
    finally:
        for place in places:
            Path(place, f"{CANARY}-{account.home.name}").unlink()
    assert CANARY not in seen
    assert seen.endswith("made\n" * len(places))
    assert not any(map(os.path.exists, names))


@pytest.mark.req("SAND-11")
def test_home_is_writable_and_gone_afterwards(box: Box, account: Account) -> None:
    box.sh("mkdir -p ~/.cache/tool && echo x > ~/.cache/tool/file && echo x > ~/.profile")
    assert sorted(os.listdir(account.home)) == ["src"]
    assert sorted(os.listdir(account.home / "src")) == ["shop"]


@pytest.mark.req("SAND-11")
def test_script_runs(box: Box, account: Account, project: Path) -> None:
    lines = ["#!/bin/sh", "#!/usr/bin/env sh", "#!/usr/bin/env -S sh -e", "#! /bin/bash"]
    for number, line in enumerate(lines):
        account.write(project / f"script{number}", f"{line}\necho ran $1\n", mode=0o755)
    assert box.sh("for script in ./script*; do $script well; done") == "ran well\n" * len(lines)


@pytest.mark.req("SAND-11")
@each_bwrap
def test_devices_work(box: Box) -> None:
    script = """
    dd if=/dev/zero bs=1000 count=2 status=none | wc -c
    dd if=/dev/urandom bs=10 count=1 status=none | wc -c
    echo gone > /dev/null && echo full 2>/dev/null > /dev/full || echo no space
    echo through | cat /dev/stdin
    echo data > "$(mktemp)" && rmdir "$(mktemp -d)" && echo made
    """
    assert box.sh(script).split("\n") == ["2000", "10", "no space", "through", "made", ""]


@pytest.mark.req("SAND-11")
def test_pseudo_terminals_work(box: Box) -> None:
    probe = """
import os, pty
pid, terminal = pty.fork()
print(os.read(terminal, 100).decode().strip() if pid else os.ttyname(0))
"""
    assert box.inside("/usr/bin/python3", "-c", probe).stdout.startswith("/dev/pts/")
