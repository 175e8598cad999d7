"""Secrets in files whose names the table has, but not where one looks first: links, lengths, encodings, odd syntax."""

import os
from pathlib import Path

import pytest

from conftest import CLAUDEBOX, Account, Box
from samples import CANARY, PEM, USUAL

pytestmark = pytest.mark.req("SEC-01")

PATTERN = f"[{CANARY[0]}]{CANARY[1:]}"  # the canary is not in the command itself
# In UTF-16 the letters have a zero byte between them.
SEARCH = f"find . -type f | while read -r f; do tr -d '\\000' <$f | grep -qa '{PATTERN}' && echo $f; done; true"
LONG = "".join(f"NUMBER_{number}={number % 10}\n" for number in range(20_000))

DER = b"0\x82\x04\xbd\x02\x01\x000\r\x06\x09*\x86H\x86\xf7\r\x01\x01\x01\x05\x00" + CANARY.encode()

FILES = {
    "after 64 KiB": (".env", f"{LONG}API_KEY={CANARY}\n".encode()),
    "after 64 KiB, read gently": ("prod.env", f"{LONG}API_KEY={CANARY}\n".encode()),
    "key behind many certificates": ("x.pem", ("-" * 300_000 + "\n" + PEM).encode()),
    "UTF-16": (".env", f"API_KEY={CANARY}\n".encode("utf-16")),
    "UTF-16 without a mark": (".env", f"API_KEY={CANARY}\n".encode("utf-16-le")),
    "key in UTF-16 without a mark": ("x.pem", PEM.encode("utf-16-le")),
    "a mark before UTF-8": ("prod.env", b"\xef\xbb\xbf" + f"API_KEY={CANARY}\n".encode()),
    "CRLF": (".env", f"PORT=1\r\nAPI_KEY=\\\r\n{CANARY}\r\n".encode()),
    "old Mac line ends": ("prod.env", f"PORT=1\rAPI_KEY={CANARY}\r".encode()),
    "capitals": (".Env.Local", f"API_KEY={CANARY}\n".encode()),
    "several on a line": (".envrc", f"export A=x PASSWORD={CANARY}\n".encode()),
    "after a test": (".envrc", f"[ -n x ] && export TOKEN={CANARY}\n".encode()),
    "declare": (".envrc", f"declare -x TOKEN={CANARY}; typeset -x PASSWORD={CANARY}\n".encode()),
    "in a function": (".envrc", f"f() {{ local TOKEN={CANARY}; readonly PW='{CANARY}'; }}\n".encode()),
    "for one command": (".envrc", f"PGPASSWORD={CANARY} psql -c 'select 1'\n".encode()),
    "here-document": (".envrc", f"cat >x <<-'EOF'\n\tpassword: {CANARY}\nEOF\n".encode()),
    "several lines": (".envrc", f"export TOKEN='first\n{CANARY}'\n".encode()),
    "fish": ("config.fish", f"set -gx GITHUB_TOKEN {CANARY}\n".encode()),
    "array": (".envrc", f"TOKENS=(a {CANARY})\n".encode()),
    "default of a variable": (".envrc", f': "${{TOKEN:={CANARY}}}"\n'.encode()),
    "eval": (".envrc", f"eval 'export TOKEN={CANARY}'\n".encode()),
    "header": (".envrc", f"alias api=\"curl -H 'Authorization: Bearer {CANARY}' x\"\n".encode()),
    "Rails": ("config/credentials/production.key", f"{CANARY}{'0' * 23}".encode()),
    "Rails, with a line end": ("config/master.key", f"{CANARY}{'0' * 23}\n".encode()),
    "MongoDB": ("mongo-keyfile", f"{'0a' * 32}\n{CANARY}{'0' * 55}\n0a\n".encode()),
    "tokens one by one": ("keys.txt", f"sk-ant-api03-{'0a' * 20}\nsk-ant-{CANARY}{'0' * 20}\n".encode()),
    "key in DER": ("platform.pk8", DER),
    "key in DER, of any name": ("deploy_rsa", DER),
    "encrypted key in DER": ("x.p8", b"0\x81\x900\x40\x06\x09*\x86H\x86\xf7\r\x01\x05\r" + CANARY.encode()),
    "key of random bytes": ("x.key", b"\xff\x00\xfe" + CANARY.encode() * 3),
    "copy by an editor": ("database.yml~", f"x:\n  password:\n    {CANARY}\n".encode()),
    "copy by hand": ("wp-config.php.bak", f"define('DB_PASSWORD', '{CANARY}');\n".encode()),
    "file that vi works on": (".secrets.yml.swp", f"b0VIM 9\0\0password: {CANARY}\n".encode()),
    "yarn": (".yarnrc.yml", f"npmScopes:\n  x:\n    npmAuthIdent: {CANARY}\n".encode()),
    "Android": ("key.properties", f"storePass={CANARY}\nstorePassword={CANARY}\n".encode()),
    "Composer": ("auth.json", f'{{"gitlab-oauth": {{"gitlab.com": "{CANARY}"}}}}'.encode()),
    "WireGuard": ("laptop.conf", f"[Interface]\nPrivateKey = {CANARY}\n".encode()),
    "settings with comments": (".vscode/settings.json", f'{{ // why\n "x.apiToken": "{CANARY}", }}'.encode()),
    "connection string": ("appsettings.json", f'{{"x": {{"y": "Server=a;Password={CANARY}"}}}}'.encode()),
    "value on the next line": ("database.yml", f"x:\n  password:\n    {CANARY}\n".encode()),
    "list of variables": ("values.yaml", f"env:\n  - name: X_TOKEN\n    value: {CANARY}\n".encode()),
    "text of several lines": ("values.yaml", f"x: |\n  [a]\n  password = {CANARY}\n".encode()),
    "on one line": ("values.yaml", f"db: {{user: a, password: {CANARY}}}\n".encode()),
}


GIT_CONFIG = f"""[remote "a"]
	url = https://{CANARY}@git.example/a.git
[remote "b"]
	url = https://joe%3A{CANARY}@git.example/b.git
	pushurl = ssh://git:{CANARY}@git.example/b.git
[http] extraheader = X-Token: {CANARY}
[http "https://git.example/"]
	extraHeader = X-Other: {CANARY}
	proxy = http://joe:{CANARY}@proxy.example:8080
[url "https://{CANARY}@git.example/"]
	insteadOf = gh:
[credential]
	helper = "!f() {{ echo password={CANARY}; }}; f"
[submodule "c"]
	url = https://oauth2:{CANARY}@git.example/c.git
[lfs "https://x:{CANARY}@git.example/lfs"]
	access = basic
[lfs]
	url = https://{CANARY}@git.example/lfs
[sendemail]
	smtpPass = {CANARY}
[core]
	sshCommand = sshpass -p {CANARY} ssh
"""


def plant(account: Account, project: Path, files: dict[str, bytes]) -> None:
    for name, text in files.items():
        account.write(project / name).write_bytes(text)


def test_secret_is_found_in_each_disguise(box: Box, project: Path, account: Account) -> None:
    files = {f"{number}/{name}": content for number, (name, content) in enumerate(FILES.values())}
    plant(account, project, files)
    assert box.sh(SEARCH) == ""
    assert set(box.sh(SEARCH, options=("--reveal", ".")).split()) == {f"./{name}" for name in files}


def test_every_form_in_the_configuration_of_git(box: Box, project: Path, account: Account) -> None:
    account.run("git", "init", "-q", cwd=project)
    for path in (project / ".git/config", project / ".git/modules/c/config", project / ".gitmodules"):
        account.write(path, (path.read_text() if path.exists() else "") + GIT_CONFIG)
    search = (
        f"grep -rla '{PATTERN}' .; git status --short; git remote get-url a; git config --get http.extraheader; true"
    )
    shown = box.sh(search)
    assert "@git.example/a.git\nX-Token: " in shown
    assert "/config\n" not in shown
    assert box.sh(search, options=("--reveal", ".")).count("/config\n") == 2


def test_symlink_of_a_known_name_masks_what_it_shows(box: Box, project: Path, account: Account) -> None:
    files = {"conf/shop.prod": f"COLOUR={CANARY}\n".encode(), "conf/cloud/config2": f"COLOUR={CANARY}\n".encode()}
    plant(account, project, files)
    (project / ".env").symlink_to("second")
    (project / "second").symlink_to("conf/shop.prod")
    (project / ".aws").symlink_to("conf/cloud")
    assert box.sh(SEARCH) == ""
    assert len(box.sh(SEARCH, options=("--reveal", ".")).split()) == 2


def test_other_symlinks_lead_to_the_same_file(box: Box, project: Path, account: Account) -> None:
    """The agent makes them, so that the next start takes the file for something else."""
    files = {"conf/shop.prod": f"COLOUR={CANARY}\n".encode(), "conf/cloud/x.php": f"COLOUR={CANARY}\n".encode()}
    plant(account, project, files)
    (project / ".env").symlink_to("conf/shop.prod")
    (project / ".aws").symlink_to("conf/cloud")
    links = "for n in 0 zzz zzz.pem a/b/x; do mkdir -p a/b; ln -s $PWD/conf/shop.prod $n; done"
    links += "; for n in 1 secrets zz zzzz.pem; do ln -s conf/cloud $n; done"
    assert box.sh(f"{links}; {SEARCH}") == ""
    assert box.sh(SEARCH) == ""


def test_symlink_of_a_weaker_name_shows_no_more(box: Box, project: Path, account: Account) -> None:
    """Of `.env` every value is secret, of `x.env` only those that look so. The agent makes the link."""
    plant(account, project, {".env": f"PASSWORD=hunter2\nCOLOUR={CANARY}\n".encode()})
    assert box.sh(f"ln -s .env a.env; ln -s .env .envrc; ln -s .env config.json; {SEARCH}") == ""
    assert box.sh(SEARCH) == ""
    assert box.sh(f"rm a.env .envrc; {SEARCH}") == ""


def test_repository_without_a_checkout_and_directory_of_secrets(box: Box, project: Path, account: Account) -> None:
    account.run("git", "init", "-q", "--bare", "mirror.git", cwd=project)
    config = f'[remote "o"]\n\turl = https://{CANARY}@git.example/x\n'.encode()
    files = {"mirror.git/config": config, "secrets/db": CANARY.encode(), ".env.d/prod": f"A={CANARY}\n".encode()}
    plant(account, project, files)
    assert box.sh(SEARCH) == ""
    assert len(box.sh(SEARCH, options=("--reveal", ".")).split()) == len(files)


def test_private_key_of_any_name_and_pushed_back_by_junk(box: Box, project: Path, account: Account) -> None:
    """Each start looks into the files nearest to the root first, and not into all of them if there are too many."""
    plant(account, project, {"deploy/shop": PEM.encode()})
    assert box.sh(f"mkdir junk; for i in $(seq 300); do echo x >junk/$i; done; {SEARCH}") == ""
    assert box.sh(SEARCH) == ""


NAMES = ("\x1b[2J.env", ".env.\n! forged", f".env.{'x' * 245}", ".env.\\", ".env.'\"$(x)")


def test_names_that_are_long_or_hostile(box: Box, project: Path, account: Account) -> None:
    for name in NAMES:
        account.write(project / name, f"KEY={CANARY}\n")
    deep = project
    for _ in range(15):
        deep = deep / ("d" * 250)
        account.write(deep / "x")
    account.write(deep / ".env", f"KEY={CANARY}\n")
    assert box.sh(f"grep -ra '{PATTERN}' . 2>/dev/null; true") == ""
    assert (
        box.sh(f"grep -ra '{PATTERN}' . 2>/dev/null; true", options=("--reveal", ".")).count(CANARY) == len(NAMES) + 1
    )


def test_path_that_is_longer_than_a_path_can_be(box: Box, project: Path, account: Account) -> None:
    """Nobody can open it by its path; the agent can change into the directories one after the other."""
    name = "d" * 250
    steps = f"for i in $(seq 20); do [ -d {name} ] || mkdir {name}; cd {name} || exit; done"
    planted = account.run("bash", "-c", f"{steps}; echo KEY={CANARY} >.env; cat .env", cwd=project)
    assert CANARY in planted.stdout
    done = box.inside("bash", "-c", f"{steps}; cat .env")
    assert CANARY not in done.stdout
    assert "cannot be listed: the box does not see what is in there" in " ".join(done.stderr.split())


def test_directory_that_only_its_owner_can_open(box: Box, project: Path, account: Account) -> None:
    account.write(project / "locked/.env", f"KEY={CANARY}\n")
    (project / "locked").chmod(0)
    done = box.inside("sh", "-c", "chmod 700 locked 2>/dev/null; cat locked/.env; ls -d locked")
    shown = box.inside("sh", "-c", "chmod 700 locked; cat locked/.env", options=("--reveal", "locked"))
    (project / "locked").chmod(0o700)
    assert CANARY not in done.stdout
    assert "locked" in done.stdout
    assert CANARY in shown.stdout or account.is_root, "which can look into it, so that it is masked"


@pytest.mark.root_repeats("how much is looked at does not depend on who looks")
@pytest.mark.parametrize(("amount", "junk"), [(40, "'KEY=junk'"), (1, "'PORT=1\\n' * 30_000")], ids=["many", "large"])
def test_flood_of_candidates_hides_where_they_are_and_the_start_goes_on(
    box: Box, project: Path, account: Account, amount: int, junk: str
) -> None:
    script = f"import os\nfor i in range(100 * {amount}):\n  os.makedirs(f'd{{i % 100}}', exist_ok=True)\n"
    script += f"  open(f'd{{i % 100}}/{{i}}.env', 'w').write({junk})"
    account.run("python3", "-c", script, cwd=project)
    account.write(project / ".env", f"KEY={CANARY}\nPORT=3000\n")
    account.write(project / "d7/.env", f"KEY={CANARY}\n")
    done = box.inside("sh", "-c", f"cat .env; {SEARCH}")
    assert done.returncode == 0, done.stderr
    assert CANARY not in done.stdout
    assert "PORT=3000" in done.stdout


def test_device_and_directory_named_env(box: Box, project: Path, account: Account) -> None:
    """As root there may be devices. Nothing opens them."""
    account.write(project / "b/.env/inner.env", f"PASSWORD={CANARY}\n")
    if account.is_root:
        os.mknod(project / ".env", 0o600 | 0o020000, os.makedev(1, 5))
    assert box.sh(f"timeout 5 head -c 10 .env; {SEARCH}") == ""


def test_no_usual_file_shows_its_secret(box: Box, project: Path, account: Account) -> None:
    files = {f"{number}/{name}": text.encode() for number, (name, text) in enumerate(USUAL.items())}
    plant(account, project, files)
    assert box.sh(SEARCH) == ""
    assert set(box.sh(SEARCH, options=("--reveal", ".")).split()) == {f"./{name}" for name in files}


# An agent makes directories until no path leads there any more, only steps: the kernel takes paths of 4096 bytes.


REFUSED = 125
DOWN = """
import os, sys
home = os.getcwd()
for _ in range(25):
    if not os.path.isdir("d" * 200):
        os.mkdir("d" * 200)
    os.chdir("d" * 200)
"""


@pytest.mark.req("FAIL-01")
def test_project_to_which_no_path_leads_is_refused(box: Box, account: Account) -> None:
    step = f"{DOWN}\nos.execv(sys.argv[1], sys.argv[1:])"
    words = (CLAUDEBOX, "--yes", "--run", "touch", "started")
    result = account.run("/usr/bin/python3", "-c", step, *words, cwd=box.project)
    assert (result.returncode, "too long" in " ".join(result.stderr.split())) == (REFUSED, True), result.stderr
    assert os.listdir(box.project / ("d" * 200)) == ["d" * 200]
