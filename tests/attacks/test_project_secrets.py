"""Secrets that lie in the project: the agent reads them by no way, in this box and in the next one.

Every secret holds the canary. Where all is revealed, the same searches find it: they could find it here.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from conftest import Account, Box, git
from samples import CANARY, PEM

pytestmark = [pytest.mark.req("SEC-01"), pytest.mark.root_differs("root can read what is locked away")]

KEY = PEM
SECRETS = {
    ".env": f"PORT=3000\nAPI_KEY={CANARY}\n",
    ".env.local": f"export TOKEN='{CANARY}\nmore {CANARY}'\n",
    "app/.env": f"DATABASE_URL=postgres://shop:{CANARY}@localhost:5432/shop\n",
    "deploy/prod.env": f"DB_PASSWORD={CANARY}\n",
    "deploy/key.pem": KEY,
    "deploy/id_ed25519": KEY.replace("PRIVATE", "OPENSSH PRIVATE"),
    "deploy/shop-0123456789ab.json": json.dumps({"type": "service_account", "private_key": KEY}),
    "deploy/terraform.tfstate": json.dumps({"version": 4, "outputs": {"x": {"value": CANARY}}}),
    "deploy/kubeconfig": f"apiVersion: v1\nusers:\n- name: x\n  user:\n    token: {CANARY}\n",
    ".npmrc": f"//registry.example/:_authToken={CANARY}\n",
    ".netrc": f"machine a.example login joe password {CANARY}\n",
    ".mcp.json": json.dumps({"mcpServers": {"x": {"command": "x", "env": {"X_TOKEN": CANARY}}}}),
    "config/secrets.yml": f"production:\n  secret_key_base: |\n    {CANARY}\n",
    ".docker/config.json": json.dumps({"auths": {"a.example": {"auth": CANARY}}}),
    ".aws/credentials": f"[default]\naws_secret_access_key = {CANARY}\n",
    ".htpasswd": f"joe:{CANARY}\n",
}
PATTERN = f"[{CANARY[0]}]{CANARY[1:]}"  # the canary is not in the command itself
SEARCH = f"grep -ra '{PATTERN}' . .git /proc/self/root$PWD 2>/dev/null; true"


@pytest.fixture
def planted(account: Account, project: Path) -> Path:
    git(account, project, "init", "-q")
    git(account, project, "remote", "add", "origin", f"https://joe:{CANARY}@git.example/shop.git")
    for name, content in SECRETS.items():
        account.write(project / name, content)
    return project


def files_of(project: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(project)): path.read_bytes()
        for path in project.rglob("*")
        if path.is_file() and ".git/" not in str(path)
    }


def test_no_secret_is_in_the_box(box: Box, planted: Path) -> None:
    before = files_of(planted)
    result = box.inside("sh", "-c", SEARCH)
    assert (result.stdout, result.returncode) == ("", 0)
    assert CANARY not in result.stderr
    assert files_of(planted) == before, "something stayed on the host"


@pytest.mark.root_repeats("shows that the attack is real, which one account does")
def test_the_search_would_find_every_one(box: Box, planted: Path) -> None:
    found = box.sh(SEARCH, options=("--reveal", "."))
    assert {name for name in SECRETS if f"./{name}:" in found} == set(SECRETS)
    assert ".git/config:" in found


READ = f"""
import mmap, os, subprocess, sys
found = []
def look(how, content):
    if {CANARY.encode()!r} in content: found.append(how)
def attempt(how, act):
    try: look(how, act())
    except (OSError, ValueError, subprocess.SubprocessError): pass
def mapped():
    with open(".env", "rb") as file: return mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)[:]
def by_descriptor():
    handle = os.open(".env", os.O_PATH)
    return open(f"/proc/self/fd/{{handle}}", "rb").read()
def by_directory():
    handle = os.open("app", os.O_RDONLY)
    os.rename("app", "moved")
    return os.read(os.open(".env", os.O_RDONLY, dir_fd=handle), 999) + open("moved/.env", "rb").read()
def linked():
    os.link(".env", "linked")
    return open("linked", "rb").read()
def exchanged():
    os.rename(".env", "renamed")
    return open("renamed", "rb").read()
def removed():
    os.unlink(".env")
    return open(".env", "rb").read()
def program(*words):
    return lambda: subprocess.run(words, capture_output=True, timeout=20).stdout
attempt("read", open(".env", "rb").read)
attempt("root", open(f"/proc/self/root{{os.getcwd()}}/.env", "rb").read)
attempt("other process", open(f"/proc/{{os.getppid()}}/root{{os.getcwd()}}/.env", "rb").read)
attempt("work directory", open("/proc/self/cwd/.env", "rb").read)
for act in (mapped, by_descriptor, by_directory, linked, exchanged, removed): attempt(act.__name__, act)
attempt("tar", program("tar", "-cf", "-", "."))
attempt("copy", program("sh", "-c", "cp -r . /tmp/copy; cat /tmp/copy/.env"))
attempt("reflink", program("sh", "-c", "cp --reflink=always .env /tmp/r; cat /tmp/r"))
attempt("unmount", program("sh", "-c", "umount .env; umount -l .env; cat .env"))
attempt("namespace", program("unshare", "-Urm", "sh", "-c", "umount .env; umount -l .env; cat .env"))
attempt("bind", program("unshare", "-Urm", "sh", "-c", "mount --bind . /tmp; cat /tmp/.env"))
attempt("git", program("sh", "-c", "git add -f .env; git stash -u; git show :.env; git show stash@{{0}}^3:.env"))
print(found)
"""


def test_read_by_every_way(box: Box, planted: Path) -> None:
    assert box.inside("python3", "-c", READ).stdout == "[]\n"
    assert (planted / ".env").read_text() == SECRETS[".env"]


def test_read_by_every_way_with_user_namespaces(box: Box, planted: Path, account: Account) -> None:
    options = () if account.is_root else ("--userns", "on")  # which root is refused
    assert box.inside("python3", "-c", READ, options=options).stdout == "[]\n"


@pytest.mark.root_repeats("shows that the attack is real, which one account does")
def test_the_ways_would_find_it(box: Box, planted: Path) -> None:
    found = box.inside("python3", "-c", READ, options=("--reveal", ".")).stdout
    for way in ("read", "root", "work directory", "mapped", "by_descriptor", "linked", "exchanged", "tar"):
        assert f"'{way}'" in found


def test_program_still_starts_with_the_decoy(box: Box, planted: Path) -> None:
    shown = box.sh(". ./.env; echo $PORT ${#API_KEY} $API_KEY; git remote -v; python3 -m json.tool .mcp.json")
    assert f"3000 {len(CANARY)} " in shown
    assert "@git.example/shop.git (fetch)" in shown
    made_up = shown.split()[2]
    assert box.sh(". ./.env; echo $API_KEY").strip() != made_up, "so that guesses of earlier boxes say nothing"


def test_decoy_is_not_committed(box: Box, planted: Path, account: Account) -> None:
    box.sh("git add -A && git commit -qm all")
    committed = git(account, planted, "ls-files").split()
    assert set(committed).isdisjoint(SECRETS)
    assert "README.md" in committed


MOVE = (
    "mkdir -p node_modules .git/x; mv app node_modules/; mv deploy .git/x/; mv .git .repository; mv .env fixtures/.env"
)
MOVE += "; rm -rf app; ln -s target app; mv app/.env app/other; mkdir -p fixtures; mv app fixtures/app; true"


def test_moved_to_where_nobody_looks_or_all_is_revealed(box: Box, planted: Path) -> None:
    """Neither the file nor a directory above it can be moved, so nothing has to be remembered of it."""
    before = files_of(planted)
    options = ("--writable", ".git", "--reveal", "fixtures")
    assert CANARY not in box.sh(f"({MOVE}) 2>/dev/null; {SEARCH}", options=options)
    assert files_of(planted).items() >= before.items()
    assert box.sh(SEARCH, options=options) == ""
    assert not list(box.account.home.glob(".claudebox/instances/*/masked"))


def test_innocent_file_with_the_inode_of_a_secret_is_not_masked(box: Box, planted: Path) -> None:
    box.sh("true")
    (planted / ".env").rename(planted / "src1.txt")
    (planted / "src1.txt").write_text("x\n")
    assert box.sh("echo y >>src1.txt; cat src1.txt") == "x\ny\n"


def test_hard_link_locked_away(box: Box, planted: Path, account: Account) -> None:
    account.write(planted / "locked/x")
    (planted / "locked/link").hardlink_to(planted / ".env")
    (planted / "locked").chmod(0)
    done = box.inside("sh", "-c", f"chmod 700 locked; {SEARCH}")
    assert CANARY not in done.stdout, "the directory is hidden, and the box starts"
    assert done.returncode == 0
    (planted / "locked").chmod(0o700)


def test_symlink_as_env_is_never_followed(box: Box, project: Path, account: Account) -> None:
    account.write(account.home / ".ssh" / "id_rsa", KEY)
    account.write(account.home / "elsewhere", f"KEY={CANARY}\n")
    for name, target in ((".env", "/etc/shadow"), (".env.a", "../../.ssh/id_rsa"), (".env.b", "../../elsewhere")):
        (project / name).symlink_to(target)
    result = box.inside("sh", "-c", f"cat .env .env.a .env.b; {SEARCH}")
    assert result.stdout == ""
    assert "  masked  " not in result.stderr


def test_hard_link_of_another_name_is_masked(box: Box, planted: Path, account: Account) -> None:
    os.link(planted / ".env", planted / "innocent.txt")
    account.write(planted / "node_modules" / "x", "")
    os.link(planted / "app/.env", planted / "node_modules" / "innocent.txt")
    assert box.sh(SEARCH) == ""
    os.unlink(planted / ".env")
    os.link(planted / "innocent.txt", planted / ".env")
    assert box.sh(SEARCH) == ""


def test_index_cannot_claim_that_git_has_it(box: Box, planted: Path) -> None:
    """`git add -f` in the box adds the decoy: the next launch must not take the file for known."""
    box.sh("git add -f .env && git commit -qm env && git ls-files --error-unmatch .env")
    assert box.sh(SEARCH) == ""


TOKEN = f"ghp_{CANARY}Q2w3E4r5T6y7U8i9O0p1A2s3"
LOOSE = {
    "notes.txt": f"the token is {TOKEN}\n",
    "deploy/thing": KEY,
    "scratch.py": f"client = Client('{TOKEN}')\n",
    "run/settings": f"COLOUR=red\nexport DB_PASSWORD={CANARY}Xy7\n",
}


@pytest.mark.parametrize("has_git", [True, False])
def test_content_of_what_git_does_not_track(box: Box, project: Path, account: Account, has_git: bool) -> None:
    """An agent that sees what is made up has git's index name the file, with its real times, and leaves junk."""
    for name, content in LOOSE.items():
        account.write(project / name, content)
    harmless = {"new.py": "TOKEN = os.environ['TOKEN']\npassword = 'test'\n", "build/x.txt": TOKEN, "a.png": TOKEN}
    for name, content in harmless.items():
        account.write(project / name, content)
    if has_git:
        git(account, project, "init", "-q")
        account.write(project / "tracked.txt", TOKEN)
        git(account, project, "add", "tracked.txt")
    shown = box.sh(f"{SEARCH}; for f in new.py README.md; do echo >>$f; done")
    seen = {line.partition(":")[0] for line in shown.splitlines() if line.startswith("./")}
    assert seen == {"./build/x.txt", "./a.png", *(["./tracked.txt"] if has_git else [])}
    if has_git:
        forge = "git add -f notes.txt scratch.py deploy/thing run/settings; git commit -qm x; git status >/dev/null"
        box.sh(f"{forge}; mkdir junk; for i in $(seq 2100); do echo $i >junk$i; done")
        assert "notes.txt" in git(account, project, "ls-files")
        said = box.inside("sh", "-c", f"grep -la '{PATTERN}' {' '.join(LOOSE)}")
        assert said.stdout == ""
        assert "not all files that git does not track were looked into" in " ".join(said.stderr.split())
    options = ("--reveal", ".")
    assert set(box.sh(f"grep -la '{PATTERN}' {' '.join(LOOSE)}", options=options).split()) == set(LOOSE)


@pytest.mark.parametrize("version", ["2", "4"])
def test_what_git_has_is_shown_and_said(box: Box, planted: Path, account: Account, version: str) -> None:
    git(account, planted, "config", "index.version", version)
    git(account, planted, "add", "-f", "app/.env")
    result = box.inside("cat", "app/.env", ".env")
    assert CANARY in result.stdout.splitlines()[0]
    assert result.stdout.count(CANARY) == 1
    assert "app/.env: not masked (variables of the program): git has it as it is" in " ".join(result.stderr.split())
    account.write(planted / "app/.env", f"OTHER={CANARY}\n")
    assert CANARY not in box.inside("cat", "app/.env").stdout


def test_worktree_and_submodule(box: Box, account: Account) -> None:
    """Their configuration lies with the repository, which is mounted for them."""
    repository, lib = account.home / "src" / "main", account.home / "src" / "lib"
    for path in (repository, lib):
        account.write(path / "README.md", "x\n")
        git(account, path, "init", "-q")
        git(account, path, "add", "-A")
        git(account, path, "commit", "-qm", "x")
        git(account, path, "remote", "add", "origin", f"https://joe:{CANARY}@git.example/x.git")
    git(account, repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(lib), "sub/lib")
    git(account, repository / "sub/lib", "remote", "set-url", "origin", f"https://joe:{CANARY}@git.example/y.git")
    git(account, repository, "worktree", "add", "-q", str(account.home / "src" / "tree"))
    search = f"grep -ra '{PATTERN}' {account.home}/src 2>/dev/null; git status --short; git remote -v"
    for project in (repository, account.home / "src" / "tree", repository / "sub" / "lib"):
        box.project = project
        shown = box.sh(search)
        assert CANARY not in shown
        assert "@git.example/" in shown
        assert CANARY in box.sh(search, options=("--reveal", str(account.home)))


def test_fifo_does_not_block_and_hands_out_nothing(box: Box, project: Path, account: Account) -> None:
    """A password manager may sit at its other end."""
    os.mkfifo(project / ".env", 0o600)
    account.own(project)
    writer = subprocess.Popen(["sh", "-c", f"echo KEY={CANARY} > {project}/.env"], start_new_session=True)
    try:
        assert box.sh("timeout 2 cat .env; true") == ""
    finally:
        writer.kill()
        writer.wait()


def test_unreadable_file_is_masked(box: Box, project: Path, account: Account) -> None:
    """The agent is its owner, and can change that."""
    account.write(project / ".env", f"KEY={CANARY}\n", mode=0)
    assert CANARY not in box.sh(f"chmod 600 .env 2>/dev/null; cat .env 2>/dev/null; {SEARCH}")


def test_huge_file(box: Box, project: Path, account: Account) -> None:
    account.write(project / ".env", f"KEY={CANARY}\n")
    with (project / ".env").open("r+b") as file:
        file.truncate(1 << 30)
        file.seek(1 << 29)
        file.write(f"\nLATER={CANARY}\n".encode())
    assert box.sh("wc -c < .env; head -c 100 .env").split() == ["0"]


def test_values_are_printed_nowhere(box: Box, planted: Path) -> None:
    for words in (("--audit",), ("--audit", "--json"), ("--dry-run",), ("--dry-run", "--json"), ("--explain", ".env")):
        for more in ((), ("--reveal", ".")):
            result = box.claudebox("--shell", *more, *words)
            assert result.returncode == 0, result.stderr
            assert CANARY not in result.stdout + result.stderr


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_pasted_command_masks_too(box: Box, planted: Path, account: Account, shell: str) -> None:
    """More files than a shell has descriptors, one of them without a line break at its end."""
    account.write(planted / ".claudebox.toml", "# nothing")
    shown = box.claudebox("--dry-run", "--run", "sh", "-c", f"{SEARCH}; cat .env; exit 7")
    assert CANARY not in shown.stdout
    pasted = account.run(shell, "-c", shown.stdout, cwd=planted)
    assert (pasted.stdout[: len("PORT=3000\nAPI_KEY=")], pasted.returncode) == ("PORT=3000\nAPI_KEY=", 7), pasted.stderr
    assert CANARY not in pasted.stdout


def test_nothing_of_it_is_in_the_state(box: Box, planted: Path, account: Account) -> None:
    box.sh("true")
    kept = [path.read_bytes() for path in (account.home / ".claudebox").rglob("*") if path.is_file()]
    assert kept
    assert not any(CANARY.encode() in content for content in kept)


def test_mount_of_a_part_shows_the_decoy_too(box: Box, planted: Path) -> None:
    options = ("--mount-ro", "app:/opt/app", "--mount-rw", "deploy:/opt/deploy")
    assert box.sh(f"grep -ra '{PATTERN}' /opt 2>/dev/null; cat /opt/app/.env", options=options).count(CANARY) == 0


def test_file_that_is_asked_for_by_name_enters(box: Box, planted: Path) -> None:
    options = ("--mount-ro", ".env:/opt/env")
    assert CANARY in box.sh("cat /opt/env", options=options)
    assert box.sh("cat .env", options=options).count(CANARY) == 0


def test_reveal_lets_in_one_and_no_other(box: Box, planted: Path) -> None:
    found = box.sh(SEARCH, options=("--reveal", "app"))
    assert {line.partition(":")[0] for line in found.splitlines()} == {
        "./app/.env",
        f"/proc/self/root{planted}/app/.env",
    }
    assert box.sh(SEARCH, options=("--reveal", "app/.env", "--hide", "app/.env")) == ""


def test_many_are_masked_all_the_same(box: Box, project: Path, account: Account) -> None:
    for number in range(120):
        account.write(project / "keys" / f"{number}.pem", KEY)
    assert box.sh(f"{SEARCH}; ls keys | wc -l") == "120\n"


def test_what_was_not_looked_at_is_not_in_the_box(box: Box, project: Path, account: Account) -> None:
    deep = project
    for _ in range(45):
        deep /= "d"
    account.write(deep / ".env", f"KEY={CANARY}\n")
    account.write(project / "x/.env", f"KEY={CANARY}\n")
    done = box.inside("sh", "-c", SEARCH)
    assert CANARY not in done.stdout
    assert "too deep, or cannot be listed: the box does not see what is in there" in " ".join(done.stderr.split())


def test_every_name_of_a_file_counts(box: Box, planted: Path, account: Account) -> None:
    """The strictest name of a file counts for all of them, and one that cannot be found stops the start."""
    account.write(planted / "a.txt", f"DB_TOKEN=changeme\nwords={CANARY}\nA_TOKEN=ghp_abcD1234efgH5678ijkL\n")
    os.link(planted / "a.txt", planted / ".env.linked")
    account.write(planted / "node_modules/config/.env", f"KEY={CANARY}\n")
    (planted / "conf").symlink_to("node_modules/config")
    assert CANARY not in box.sh(SEARCH)
    name = "d" * 250
    steps = f"cd node_modules; for i in $(seq 20); do mkdir {name}; cd {name}; done; ln $0 x"
    account.run("bash", "-c", steps, str(planted / ".env"), cwd=planted)
    done = box.inside("true")
    assert done.returncode == 125
    assert "hint: find . -samefile .env" in done.stderr


def test_forged_index_and_many_files(box: Box, planted: Path, account: Account) -> None:
    """An agent names files that the user makes later, and leaves more files than a start looks into."""
    forge = "b=$(echo x | git hash-object -w --stdin); git update-index --add --cacheinfo 100644,$b,notes.txt"
    box.sh(
        f"{forge}; git update-index --skip-worktree notes.txt; seq 1200 | sed s/^/.x/ | xargs -n1 sh -c 'echo x >$0'"
    )
    for name in ("notes.txt", "token.log"):
        account.write(planted / name, f"STRIPE_SECRET_KEY=sk_live_51HxQ2eLmZ8vKq3TnB7yWcR{CANARY}\n")
    done = box.inside("sh", "-c", SEARCH)
    assert CANARY not in done.stdout
    assert "not all files that git does not track were looked into" in " ".join(done.stderr.split())
