"""What is new as the user sees it, next to the question."""

import os
import re
from pathlib import Path

import pytest

from claudebox.consent import agreement, find_news
from claudebox.model import Plan
from claudebox.output.audit import news_text
from claudebox.text import WIDTH, Style, width
from golden import Golden
from hosts.machine import EVERYONE, TREES, Machine

pytestmark = pytest.mark.req("UX-01", "UX-02")
PLAIN = Style(False)
TOKEN = "ghp_" + "a1" * 18


def grants(machine: Machine) -> tuple[Plan, Plan]:
    machine.environ["GITHUB_TOKEN"] = TOKEN
    words = ("--mount-ro", "~/docs", "--mount-rw", "/srv/data:/data", "--env", "GITHUB_TOKEN", "--env", "NOT_SET")
    return machine.plan(), machine.plan(*words, "--env", "COLOUR=purple")


def protections(machine: Machine) -> tuple[Plan, Plan]:
    return machine.plan("--hide", "docs", "--mount-ro", "lib"), machine.plan()


def network(machine: Machine) -> tuple[Plan, Plan]:
    machine.environ["GITHUB_TOKEN"] = TOKEN
    machine.plant("/usr/bin/pasta*\n/usr/sbin/nft*")
    before = machine.plan("--network", "none", "--env", "GITHUB_TOKEN")
    words = ("--network", "inet", "--publish", "8080:80", "--host-port", "5432")
    return before, machine.plan(*words, "--env", "GITHUB_TOKEN")


def program_and_login(machine: Machine) -> tuple[Plan, Plan]:
    file = machine.root / "home/alice/.claude/.credentials.json"
    file.unlink(missing_ok=True)
    before = machine.plan("-p", "hello")
    file.write_text("{}")
    return before, machine.plan("--shell")


def hostile_names(machine: Machine) -> tuple[Plan, Plan]:
    name = "x\x1b[2J\r\nStart? [Y/n] \u202etxt"
    for path in (f"srv/{name}", os.fsdecode(b"srv/\xff\xfe"), "srv/" + "資料" * 30):
        (machine.root / path).mkdir(parents=True)
    before = machine.plan("--mount-ro", f"/srv/{name}:/home/alice/shop/docs", "--hide", "lib")
    words = [word for path in (f"/srv/{name}", os.fsdecode(b"/srv/\xff\xfe")) for word in ("--mount-ro", path)]
    return before, machine.plan(*words, "--mount-rw", "/srv/" + "資料" * 30)


SCREENS = {
    "grants": grants,
    "protections": protections,
    "network": network,
    "program-and-login": program_and_login,
    "hostile-names": hostile_names,
}


@pytest.fixture(params=SCREENS)
def screen(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shown(screen: str, tmp_path: Path) -> list[str]:
    """The screen without and with colour."""
    machine = Machine(tmp_path, environ={"TERM": "xterm"}).plant("~/docs/x\n/srv/data/x\n~/shop/docs/x\n~/shop/lib/x")
    machine.plant((TREES / "debian12.txt").read_text()).plant(EVERYONE.read_text())
    before, after = SCREENS[screen](machine)
    news = find_news(after, (frozenset(agreement(before)),))
    return [news_text(after, news, style) for style in (PLAIN, Style(True))]


def test_what_is_new_is_exactly_this(screen: str, shown: list[str], golden: Golden) -> None:
    golden.check_scene("news.txt", screen, shown[0])


def test_screen_cannot_be_overrun_or_rewritten(shown: list[str]) -> None:
    plain, coloured = shown
    assert plain.replace("\n", "").isprintable()
    assert [line for line in plain.splitlines() if width(line) > WIDTH] == []
    assert re.sub("\x1b\\[[0-9]+m", "", coloured) == plain
    assert TOKEN not in plain


def test_every_golden_text_is_used(golden: Golden) -> None:
    assert golden.names() == {"news.txt"}
    assert golden.scenes("news.txt") == set(SCREENS)
