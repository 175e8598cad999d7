"""What becomes of the secrets of a project: what the user sees of it, agrees to, and can change."""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from claudebox.agreement import agreement, find_news
from claudebox.features.secrets import memory
from claudebox.features.secrets.keys import _block, throw_away_certificate
from claudebox.features.secrets.memory import FORM, OLD_HEADER, recall
from claudebox.host.tree import Tree
from claudebox.model import MASK, Finding, Plan
from claudebox.problem import Problem
from claudebox.state import State
from claudebox.view.as_json import audit_json
from claudebox.view.audit import audit
from claudebox.view.sandbox import sandbox_md
from claudebox.view.text import Style
from hosts.machine import EVERYONE, TREES, Machine

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
~/shop/wp-config.php: define('DB_PASSWORD', 'hunterA'); define('AUTH_KEY', 'hunterB');
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
    assert caught.value.hint == "it has: PORT, DB_PASSWORD, OTHER_TOKEN, URL"
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


PAIRS = [
    *(("PRIVATE KEY", kind) for kind in ("rsa2048", "rsa3072", "rsa4096", "p256", "p384", "p521")),
    *(("RSA PRIVATE KEY", kind) for kind in ("rsa2048", "rsa4096")),
    *(("EC PRIVATE KEY", kind) for kind in ("p256", "p384")),
]


@pytest.mark.parametrize(("label", "kind"), PAIRS)
def test_certificate_goes_with_its_masked_key(machine: Machine, label: str, kind: str, tmp_path: Path) -> None:
    """A server would not start with the real certificate and a worthless key.

    Any pair is good for this, even one of the worthless ones.
    """
    shop, other = machine.root / "home/alice/shop", "p384" if kind == "p256" else "p256"
    (shop / "localhost-key.pem").write_text(block(label, kind))
    (shop / "localhost.pem").write_text(block("CERTIFICATE", kind) + block("CERTIFICATE", "ed25519"))
    (shop / "other.crt").write_text(block("CERTIFICATE", other))
    plan = machine.plan()
    assert {"localhost.pem", "localhost-key.pem"} <= masked(plan)
    assert "other.crt" not in masked(plan), "it is of another key"
    shown = {mount.path.rpartition("/")[2]: mount.content for mount in plan.mounts if mount.kind == MASK}
    for name in ("localhost.pem", "localhost-key.pem"):
        (tmp_path / name).write_bytes(shown[name])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "localhost.pem", tmp_path / "localhost-key.pem")
    assert "localhost.pem" not in masked(machine.plan("--reveal", "localhost.pem"))


def block(label: str, kind: str) -> str:
    return throw_away_certificate(kind) if label == "CERTIFICATE" else _block(label, kind)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", '{"db": {"password": "hunter2"}}'),
        ("settings.py", "DATABASES = {'default': {'PASSWORD': 'hunter2'}}\\n"),
        ("config.yml", "db:\\n  password: hunter2\\n"),
    ],
)
def test_settings_with_a_password_are_mentioned(machine: Machine, name: str, content: str) -> None:
    machine.plant(f"~/shop/{name}: {content}")
    plan = machine.plan()
    assert name not in masked(plan)
    ((kind, _, text),) = findings(plan, name)
    assert kind == Finding.NOTE
    assert text == f"not masked, and something in it looks like a password: to keep it out, --hide {name}"
    assert "hunter2" not in text


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


def test_many_are_counted(machine: Machine) -> None:
    for number in range(60):
        machine.plant(f"~/shop/keys/{number}.env: PASSWORD=hunter2\\n")
    plan = machine.plan()
    assert len(masked(plan)) == 62
    assert sum(mount.kind == MASK for mount in plan.mounts) == 50, "the others are seen empty"
    assert "- and 32 more" in sandbox_md(plan)


def test_remembered_outside_of_the_box(machine: Machine) -> None:
    (kept,) = [item for item in machine.plan().preparations if item.path.endswith("/masked")]
    assert kept.is_private
    assert b"/home/alice/shop/app/.env" in kept.content
    assert b"hunter2" not in kept.content


def keep_memory(machine: Machine, plan: Plan) -> Path:
    """Write down what the plan would remember of masks, as a launch does."""
    (memory,) = (one for one in plan.preparations if one.path.endswith("/masked"))
    path = machine.root / memory.path.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(memory.content)
    return path


def test_junk_does_not_push_a_masked_secret_out_of_memory(machine: Machine) -> None:
    keep_memory(machine, machine.plan())
    deep = "/".join(["x" * 220] * 4)
    machine.plant("\n".join(f"~/shop/a{number}/{deep}/.env: KEY=junk\\n" for number in range(285)))
    keep_memory(machine, machine.plan())
    moved_away(machine)
    assert "node_modules/app/.env" in masked(machine.plan())


def moved_away(machine: Machine) -> None:
    """As an agent does it: to where nobody looks for secrets."""
    shop = machine.root / "home/alice/shop"
    (shop / "node_modules").mkdir()
    (shop / "app").rename(shop / "node_modules/app")


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda _: b"\xff",
        lambda whole: whole[:-1],
        lambda whole: whole[:-40],
        lambda whole: whole[: whole.rindex(b"\n", 0, -5)],
        lambda whole: b"x" + whole,
        lambda whole: whole.replace(b"\t", b" "),
        lambda whole: whole.replace(b"(format 2)", b"(format 3)"),
        lambda whole: whole.replace(b"app/.env", b"app/\\q.env"),
        lambda whole: whole.replace(b"\nend\n", b"\n" + b"x" * FORM.largest + b"\nend\n"),
        lambda whole: f"{OLD_HEADER}\0".encode() + whole,
    ],
)
def test_damaged_memory_of_masks_refuses_the_start(machine: Machine, damage: Callable[[bytes], bytes]) -> None:
    path = keep_memory(machine, machine.plan())
    path.write_bytes(damage(path.read_bytes()))
    moved_away(machine)
    with pytest.raises(Problem, match="which files have to stay masked, and is damaged") as caught:
        machine.plan()
    assert caught.value.hint.endswith(f"rm {path.as_posix().removeprefix(str(machine.root))}")


def test_memory_of_masks_that_is_somebody_elses_refuses_the_start(machine: Machine) -> None:
    keep_memory(machine, machine.plan())
    machine.uid += 1  # who sits there is no longer who wrote it
    host = machine.host()
    instance = State(host.person.home).instance(SHOP)
    with pytest.raises(Problem, match="belongs to another user"):
        recall(Tree(str(machine.root)), instance, machine.uid)


def test_memory_of_masks_that_is_a_symlink_refuses_the_start(machine: Machine) -> None:
    path = keep_memory(machine, machine.plan())
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")
    with pytest.raises(Problem, match="it is not a plain file"):
        machine.plan()


def test_more_masks_than_can_be_remembered_refuse_the_start(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of them must not be written, and the next box must not start with half of them."""
    monkeypatch.setattr(memory, "FORM", FORM.replace(largest=100))
    with pytest.raises(Problem, match="too many to remember"):
        machine.plan()


@pytest.mark.parametrize("name", ["plain", "new\nline", "tab\tand \\ and '\"", "\udcff", "\x1b[2J", "日本"])
def test_masked_file_of_any_name_is_remembered(machine: Machine, name: str) -> None:
    directory = machine.root / "home/alice/shop" / name
    directory.mkdir()
    (directory / ".env").write_text("KEY=hunter2\n")
    path = keep_memory(machine, machine.plan())
    assert all(line.isprintable() for line in path.read_text().splitlines(keepends=False) if "\t" not in line)
    (machine.root / "home/alice/shop/node_modules").mkdir()
    directory.rename(machine.root / "home/alice/shop/node_modules" / name)
    assert f"node_modules/{name}/.env" in masked(machine.plan())


def test_memory_of_masks_in_the_first_format_is_understood(machine: Machine) -> None:
    inode = (machine.root / "home/alice/shop/app/.env").stat().st_ino
    path = keep_memory(machine, machine.plan())
    path.write_text(f"{OLD_HEADER}\0{inode}\nvalues\nvariables of the program\n{SHOP}/app/.env")
    moved_away(machine)
    assert masked(machine.plan()) == {".env", "node_modules/app/.env"}
