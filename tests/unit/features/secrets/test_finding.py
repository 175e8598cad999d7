"""What becomes of the secrets of a project: what the user sees of it, agrees to, and can change."""

import json
import os
from pathlib import Path

import pytest

from claudebox import files
from claudebox.consent import agreement, find_news
from claudebox.errors import Problem
from claudebox.features.secrets import finding
from claudebox.host.tree import Tree
from claudebox.model import HIDE, MASK, RW, Finding, Plan
from claudebox.text import Style
from hosts.machine import EVERYONE, TREES, Machine
from shown import audit, audit_json, sandbox_md

pytestmark = pytest.mark.req("SEC-01")

SHOP = "/home/alice/shop"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path).plant((TREES / "debian12.txt").read_text()).plant(EVERYONE.read_text())
    made.uid = os.getuid()
    return made.plant("~/shop/.env: KEY=hunter2\\n\n~/shop/app/.env: KEY=hunter2\\n\n~/shop/.git/HEAD: ref\\n")


def masked(plan: Plan) -> set[str]:
    return {mount.path.removeprefix(f"{SHOP}/") for mount in plan.mounts if mount.origin.is_rule("secrets")}


def findings(plan: Plan, *subjects: str) -> list[tuple[str, str, str]]:
    return [(one.kind, one.subject, one.text) for one in plan.findings if one.subject in subjects]


def test_project_without_secrets_is_as_before(machine: Machine) -> None:
    for name in (".env", "app/.env"):
        (machine.root / f"home/alice/shop/{name}").unlink()
    plan = machine.plan()
    assert masked(plan) == set()
    assert not any(mount.path.startswith("/etc/claudebox") for mount in plan.mounts)
    assert "made-up" not in audit(plan, Style(False)) + sandbox_md(plan)


def test_nobody_is_asked_again_because_of_another_masked_file(machine: Machine) -> None:
    agreed = frozenset(agreement(machine.plan()))
    machine.plant("~/shop/new/.env: KEY=hunter2\\n")
    (machine.root / "home/alice/shop/.env").unlink()
    plan = machine.plan()
    assert masked(plan) == {"app/.env", "new/.env"}
    assert find_news(plan, (agreed,)).amount == 0


def test_revealed_is_asked_about_and_grave(machine: Machine) -> None:
    agreed = frozenset(agreement(machine.plan()))
    plan = machine.plan("--reveal", ".env")
    news = find_news(plan, (agreed,))
    assert news.is_grave
    assert [one.subject for one in news.flagged] == [".env"]
    assert find_news(machine.plan(), (frozenset(agreement(plan)),)).amount == 0


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (("--reveal", ".env"), {"app/.env"}),
        (("--reveal", "./app/"), {".env"}),
        (("--reveal", "app/../.env"), {"app/.env"}),
        (("--reveal", "~/shop/.env"), {"app/.env"}),
        (("--reveal", f"{SHOP}/.env"), {"app/.env"}),
        (("--reveal", "."), set()),
        (("--reveal", ".env", "--hide", ".env"), {"app/.env"}),
        (("--hide", "app"), {".env"}),
        (("--mount-ro", ".env"), {"app/.env"}),
        (("--reveal", "nothing"), {".env", "app/.env"}),
    ],
)
def test_reveal_and_hide(machine: Machine, words: tuple[str, ...], left: set[str]) -> None:
    assert masked(machine.plan(*words)) == left


@pytest.mark.parametrize("word", ["dev.env", "dev.env:DB_PASSWORD", "settings/.env", "settings"])
def test_reveal_follows_no_symlink_of_the_project(machine: Machine, word: str) -> None:
    """An agent may have put it in the place of what the user meant."""
    machine.plant("~/shop/dev.env -> .env\n~/shop/settings -> app")
    with pytest.raises(Problem, match="symlink"):
        machine.plan("--reveal", word)


def test_reveal_of_nothing_is_a_note(machine: Machine) -> None:
    plan = machine.plan("--reveal", "nothing", "--reveal", "/etc")
    said = [(kind, subject) for kind, subject, _ in findings(plan, "nothing", "/etc")]
    assert said == [(Finding.NOTE, "nothing"), (Finding.NOTE, "/etc")]


KEYS = """~/shop/.env.local: PORT=1\\nDB_PASSWORD=hunter2\\nOTHER_TOKEN=hunter3\\nURL=https://joe:hunter4@x.example/\\n
~/shop/s.json: {"db": {"password": "hunter5", "token": "hunter6"}}
~/shop/secrets.json: {"db": {"password": "hunter5", "token": "hunter6"}}
~/shop/.envrc: export A_TOKEN=hunter7 B_TOKEN=hunter8\\n
~/shop/database.yml: x:\\n  password: hunter9\\n  token: hunter0\\n
~/shop/wp-config.php: define('DB_PASSWORD', 'hunterA'); define('AUTH_KEY', 'hunterB9x7Qz2');
"""


@pytest.mark.parametrize(
    ("word", "path", "shown", "not_shown"),
    [
        (".env.local:DB_PASSWORD", ".env.local", b"DB_PASSWORD=hunter2\n", (b"hunter3", b"hunter4")),
        ("./.env.local:URL", ".env.local", b"URL=https://joe:hunter4@x.example/\n", (b"hunter2", b"hunter3")),
        ("secrets.json:password", "secrets.json", b'"hunter5"', (b"hunter6",)),
        (".envrc:B_TOKEN", ".envrc", b"B_TOKEN=hunter8\n", (b"hunter7",)),
        ("database.yml:password", "database.yml", b"  password: hunter9\n", (b"hunter0",)),
        ("wp-config.php:DB_PASSWORD", "wp-config.php", b"'hunterA'", (b"hunterB",)),
    ],
)
def test_one_value_of_a_file_is_revealed(
    machine: Machine, word: str, path: str, shown: bytes, not_shown: tuple[bytes, ...]
) -> None:
    machine.plant(KEYS)
    plan = machine.plan("--reveal", word)
    (content,) = [mount.content for mount in plan.mounts if mount.path == f"{SHOP}/{path}"]
    assert shown in content
    assert not any(one in content for one in not_shown)
    name = f"{path}:{word.rpartition(':')[2]}"
    assert [(one.kind, one.subject) for one in plan.flagged] == [(Finding.SECRET, name)]
    assert find_news(plan, (frozenset(agreement(machine.plan())),)).is_grave


def test_value_that_is_not_there_is_an_error_that_names_the_others(machine: Machine) -> None:
    machine.plant(KEYS)
    with pytest.raises(Problem, match="has no value called DB_PASS") as caught:
        machine.plan("--reveal", ".env.local:DB_PASS")
    assert caught.value.hint == "it has: DB_PASSWORD, OTHER_TOKEN, URL"
    assert "hunter" not in str(caught.value) + (caught.value.hint or "")


def test_path_with_a_colon_is_a_path(machine: Machine) -> None:
    machine.plant(KEYS)
    (machine.root / "home/alice/shop/.env.local:DB_PASSWORD").write_text("TOKEN=hunter2\n")
    plan = machine.plan("--reveal", ".env.local:DB_PASSWORD")
    assert ".env.local:DB_PASSWORD" not in masked(plan)
    assert all(b"hunter2" not in mount.content for mount in plan.mounts), "the value of that name is not shown"


def test_value_that_is_no_secret_need_not_be_revealed(machine: Machine) -> None:
    machine.plant(KEYS)
    plan = machine.plan("--reveal", ".env.local:PORT", "--reveal", "README.md:X", "--reveal", "nothing:X")
    assert not plan.flagged
    assert {subject for _, subject, _ in findings(plan, ".env.local:PORT", "README.md:X", "nothing:X")} >= {
        ".env.local:PORT"
    }


@pytest.mark.parametrize("word", [".env.local", ".env.local:DB_PASSWORD"])
def test_project_file_cannot_reveal_by_itself(machine: Machine, word: str) -> None:
    machine.plant(f'{KEYS}~/shop/.claudebox.toml: reveal = ["{word}"]\\n')
    assert all(b"hunter2" not in mount.content for mount in machine.plan().mounts)


def test_told_to_the_user_and_to_the_agent(machine: Machine) -> None:
    plan = machine.plan()
    shown = audit(plan, Style(False))
    words = shown.split()
    assert {"~/shop/.env", "~/shop/app/.env"} <= set(words)
    assert "--reveal PATH" in shown
    kinds = {mount["path"]: mount["kind"] for mount in json.loads(audit_json(plan))["mounts"]}
    assert kinds[f"{SHOP}/.env"] == "mask"
    told = sandbox_md(plan)
    assert "- `~/shop/.env`\n- `~/shop/app/.env`\n" in told
    assert "hunter2" not in shown + told + audit_json(plan)


@pytest.mark.req("MASK-01")
@pytest.mark.parametrize("words", [(), ("--review",)])
def test_agent_is_told_that_it_cannot_write_and_what_to_do(machine: Machine, words: tuple[str, ...]) -> None:
    told = " ".join(sandbox_md(machine.plan(*words)).split())
    assert "They are read-only: writing, replacing (`sed -i`), moving or deleting one fails" in told
    assert "tell the user in your last message which line to add or change" in told
    assert "an example file such as `.env.example`" in told


def test_many_are_counted_and_too_many_hidden(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(60):
        machine.plant(f"~/shop/keys/{number % 2}/{number}.env: PASSWORD=hunter2\\n")
    assert len(masked(machine.plan())) == 62
    assert "- and 32 more" in sandbox_md(machine.plan())
    monkeypatch.setattr(finding, "MOST_MASKS", 40)
    plan = machine.plan()
    (hidden,) = [mount for mount in plan.mounts if mount.kind == HIDE and mount.origin.is_rule("secrets")]
    assert hidden.path in (f"{SHOP}/keys/0", f"{SHOP}/keys/1"), "the nearest directory that has enough of them"
    assert hidden.origin.reason == finding.TOO_MANY
    assert len(masked(plan)) == 33


CRUEL = {
    "lone surrogate": b'{"password": "\\ud800hunter2", "token": "\xed\xa0\x80hunter2"}',
    "not UTF-8": b"PASSWORD=\xff\xfehunter2\n",
    "one line": b"PASSWORD=" + b"hunter2" * 5_000,
    "nothing but quotes": b"'\"`" * 1_000 + b"PASSWORD=hunter2",
    "deep": b"[" * 10_000 + b'"hunter2"',
    "zeros": b"\0" * 100 + b"PASSWORD=hunter2",
}


@pytest.mark.parametrize("content", CRUEL.values(), ids=CRUEL)
def test_whatever_a_file_holds_the_start_goes_on(machine: Machine, content: bytes) -> None:
    path = machine.root / "home/alice/shop/secrets.json"
    path.write_bytes(content)
    (mount,) = [one for one in machine.plan().mounts if one.path == f"{SHOP}/secrets.json"]
    assert b"hunter2" not in mount.content


def test_what_cannot_be_read_appears_empty_and_is_said(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tree, "read_plain", lambda _, path, *__: None if "shop/" in path else b"")
    (mount,) = [one for one in machine.plan().mounts if one.path == f"{SHOP}/.env"]
    assert (mount.kind, mount.content) == (MASK, b"")
    assert "cannot be read" in " ".join(audit(machine.plan(), Style(False)).split())


def test_masked_directories_stay_where_they_are(machine: Machine) -> None:
    machine.plant("~/shop/a/b/c/.env: PASSWORD=hunter2\\n")
    pinned = {mount.path for mount in machine.plan().mounts if mount.kind == RW}
    assert {f"{SHOP}/a", f"{SHOP}/a/b", f"{SHOP}/a/b/c", f"{SHOP}/app"} <= pinned


def test_finder_judges_an_open_file_again(machine: Machine) -> None:
    finder = finding.make_finder(machine.facts())
    path, name = machine.root / "home/alice/shop/.env", f"{SHOP}/.env"
    with files.Open(os.open(path, files.NAME_ONLY)) as here:
        first = finder.judge(name, here=here)
        assert first is not None
        path.rename(path.with_name("notes"))
        path.write_text("PORT=3000\n")
        other = finder.judge(name, here=here)
        assert other is not None, "whatever is at its path now"
        assert other.decoy == first.decoy
        path.with_name("notes").write_bytes(first.decoy)
        assert finder.judge(name, here=here) is None, "a copy of what the agent saw is no secret"
        path.with_name("notes").write_text("PORT=3000\nKEY=changeme\n")
        assert finder.judge(name, here=here) is None


@pytest.mark.req("SAND-09")
def test_directory_is_a_symlink_except_when_somebody_looks(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent exchanges the two all the time. The decoy would show it what else is in a file of another project."""
    machine.plant("~/other/app.conf: password = hT92kqPz0w\\nnotes\n~/shop/real/app.conf: x = 1\n")
    finder = finding.make_finder(machine.facts())
    finder.is_live = False
    place, resolve = machine.root / "home/alice/shop/conf", Tree.resolve
    place.symlink_to("../other")

    def look(tree: Tree, path: str) -> str | None:
        place.unlink()
        place.with_name("real").rename(place)
        real = resolve(tree, path)
        place.rename(place.with_name("real"))
        place.symlink_to("../other")
        return real

    monkeypatch.setattr(Tree, "resolve", look)
    masked = finder.judge(f"{SHOP}/conf/app.conf")
    assert finder.content is None
    assert masked is not None
    assert masked.decoy == b""
