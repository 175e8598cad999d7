"""A masked file in a layer: it can be replaced, moved and deleted in the box, and lands with its secrets kept."""

from __future__ import annotations

from pathlib import Path

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from conftest import Account, Box

pytestmark = [pytest.mark.req("SEC-01"), pytest.mark.attributes]

CANARY = "cAnArY7x9"
ENV = f"# of the shop\nPORT=3000\nDB_PASSWORD={CANARY}\nDATABASE_URL=postgres://shop:{CANARY}@db.corp/shop\n"
SEARCH = f"grep -ra '[{CANARY[0]}]{CANARY[1:]}' . /proc/self/root$PWD 2>/dev/null"


@pytest.fixture
def env(account: Account, project: Path) -> Path:
    account.write(project / ".env", ENV)
    account.write(project / "app/.env", ENV)
    account.write(project / "app/main.py", "x\n")
    (project / ".env").chmod(0o640)
    return project / ".env"


def test_replaced_in_the_box_it_lands_with_its_secrets(box: Box, env: Path, account: Account) -> None:
    done = box.inside(
        *("sh", "-c", "sed -i s/3000/4000/ .env && echo NEW=1 >>.env && ls -l .env && cat .env"),
        options=("--review", "on", "--land", "safe"),
    )
    assert done.returncode == 0, done.stderr
    assert CANARY not in done.stdout
    assert env.read_text() == ENV.replace("3000", "4000") + "NEW=1\n"
    assert env.stat().st_mode & 0o777 == 0o640
    assert env.stat().st_uid == account.uid
    assert not list((account.home / ".claudebox/instances").glob("*/layers/[0-9]*")), "nothing is left in the layer"


def test_nothing_lands_before_somebody_says_so(box: Box, env: Path) -> None:
    done = box.inside("sh", "-c", "echo NEW=1 >>.env", options=("--review", "on"))
    assert env.read_text() == ENV
    assert "review" in done.stderr
    shown = box.claudebox("--review", "show").stdout
    assert "+NEW=1" in shown
    assert CANARY not in shown
    assert "-DB_PASSWORD" not in shown, "a decoy is no change"
    assert "+DB_PASSWORD" not in shown
    assert box.claudebox("--review", "land", "--land", "safe").returncode == 0
    assert env.read_text() == ENV + "NEW=1\n"


def test_what_was_only_touched_is_no_change(box: Box, env: Path, account: Account) -> None:
    done = box.inside("sh", "-c", "chmod 600 .env; touch .env; cp .env x; mv x .env", options=("--review", "on"))
    assert ".env" not in done.stderr.partition("Runs")[2].partition("\n\n")[2]
    assert env.read_text() == ENV
    assert not list((account.home / ".claudebox/instances").glob("*/layers/[0-9]*"))


def test_real_file_is_in_sight_at_no_moment(box: Box, env: Path) -> None:
    """Before and after it is copied up, deleted, linked, with its directory moved, replaced or made anew."""
    steps = [
        "true",
        "cat .env >/dev/null; ls -l .env",
        "echo A=1 >>.env",
        "chmod 600 app/.env",
        "ln app/.env linked; ln -s app/.env soft; cat linked soft >/dev/null",
        "mv app moved || true",
        "mv -T moved app || true",
        "rm app/.env",
        "git init -q . && git add -Af . && git stash -q -u || true",
        "rm -rf app; mkdir app; cat app/.env 2>/dev/null || true",
        "rmdir app; ln -s . app; cat app/.env >/dev/null",
        "rm .env; cat .env 2>/dev/null || true",
        "touch .env; cat .env",
        "sync; echo 3 >/proc/sys/vm/drop_caches 2>/dev/null || true",
    ]
    script = "\n".join(f"{step}\n{SEARCH} && echo seen after: {step.split(';')[0]!r}" for step in steps) + "\ntrue"
    done = box.inside("sh", "-c", script, options=("--review", "on"))
    assert CANARY not in done.stdout
    assert "seen after" not in done.stdout
    assert env.read_text() == ENV
    again = box.inside("sh", "-c", f"{SEARCH}; true", options=("--review", "on"))
    assert again.stdout == "", "nor when a box goes on with the layer"


def test_search_would_find_it(box: Box, env: Path) -> None:
    done = box.inside("sh", "-c", f"{SEARCH}; true", options=("--review", "on", "--reveal", "."))
    assert CANARY in done.stdout


@pytest.mark.parametrize("what", ["safe", "all"])
def test_deleted_with_its_directory_is_set_apart(box: Box, env: Path, project: Path, what: str) -> None:
    done = box.inside("sh", "-c", "rm .env; rm -r app", options=("--review", "on", "--land", what))
    assert "a file with secrets" in " ".join(done.stderr.split())
    assert env.read_text() == ENV
    assert (project / "app/.env").read_text() == ENV


def test_what_would_move_a_secret_stays_in_the_layer(box: Box, env: Path) -> None:
    script = "sed -i s/db.corp/evil.example/ .env; echo 'X=${DB_PASSWORD}' >>.env"
    done = box.inside("sh", "-c", script, options=("--review", "on", "--land", "all"))
    assert env.read_text() == ENV
    said = " ".join(done.stderr.split())
    assert "DATABASE_URL holds a secret" in said
    assert "X refers to something else" in said


def test_symlink_in_its_place_never_lands(box: Box, env: Path) -> None:
    box.inside("sh", "-c", "rm .env; ln -s /etc/passwd .env", options=("--review", "on", "--land", "all"))
    assert not env.is_symlink()
    assert env.read_text() == ENV


def test_file_that_cannot_be_merged_stays_masked_in_a_guarded_layer(box: Box, project: Path, account: Account) -> None:
    """It is in a directory that is a layer, and keeps its mask whatever is done around it."""
    settings = project / ".vscode/settings.json"
    account.write(settings, f'{{"x.apiToken": "{CANARY}"}}\n')
    account.write(project / ".vscode/tasks.json", "{}\n")
    steps = [
        "cat .vscode/settings.json >/dev/null",
        "echo '{ }' >.vscode/tasks.json",
        "touch .vscode/settings.json; chmod 666 .vscode/settings.json; echo x >>.vscode/settings.json",
        "ln .vscode/settings.json linked; ln .vscode/settings.json .vscode/linked",
        "mv .vscode/settings.json .vscode/other.json; rm .vscode/settings.json",
        "mkdir .vscode/inner; mv .vscode elsewhere; cp -a .vscode copied",
        "rm -rf .vscode",
    ]
    script = "\n".join(f"{step}\n{SEARCH} && echo seen after: {step.split(';')[0]!r}" for step in steps) + "\ntrue"
    for options in (("--review", "guarded"), ("--review", "on")):
        done = box.inside("sh", "-c", script, options=options)
        assert CANARY not in done.stdout
        assert "seen after" not in done.stdout
        assert settings.read_text() == f'{{"x.apiToken": "{CANARY}"}}\n'
        box.claudebox("--review", "discard", "--yes")
