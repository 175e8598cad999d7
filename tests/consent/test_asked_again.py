"""What is asked about once more on a machine, and what is not."""

from pathlib import Path

import pytest
from hypothesis import given

from claudebox.consent import (
    FORM,
    MOST_AGREEMENTS,
    agreement,
    find_news,
    note_agreement,
    recall,
    write_agreements,
)
from claudebox.model import FROM_HOST, HIDE, LAYER, RO, RW, EnvVar, Mount, Origin, Plan
from claudebox.sandbox.mounts import arrange
from consent.boxes import QUICK, agreed, granted_anew, is_agreed, news, plans, read, with_grant
from hosts.machine import EVERYONE, TREES, Machine

pytestmark = pytest.mark.req("UX-02")
ASKED = Origin.of_option("--mount-ro")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path, environ={"TERM": "xterm", "TOKEN": "x"})
    machine.plant("~/docs/private/x\n/srv/data/x\n~/shop/docs/x\n~/shop/lib/x\n~/.claude/.credentials.json: {}")
    return machine.plant((TREES / "debian12.txt").read_text()).plant(EVERYONE.read_text())


def test_what_claude_is_told_is_not_asked_about(machine: Machine) -> None:
    assert is_agreed(machine.plan("-p", "do this"), machine.plan("--continue"))


def test_secret_told_to_claude_is_asked_about(machine: Machine) -> None:
    told = machine.plan("-p", "ghp_" + "a1" * 18)
    assert [finding.subject for finding in news(told, machine.plan("-p", "hello")).flagged] == ["argument 3"]


def test_shell_instead_of_claude_is_asked_about(machine: Machine) -> None:
    changed = news(machine.plan("--shell"), machine.plan())
    assert (len(changed.program), changed.amount) == (1, 1)


def test_network_without_a_secret_and_a_secret_without_network_are_not_both_at_once(machine: Machine) -> None:
    answered = machine.plan(), machine.plan("--network", "none", "--env", "TOKEN")
    assert is_agreed(machine.plan("--network", "none"), *answered)
    assert not is_agreed(machine.plan("--env", "TOKEN"), *answered)


def test_secret_is_news_to_a_network_that_reaches_more(machine: Machine) -> None:
    answered = machine.plan("--network", "none", "--env", "TOKEN")
    assert [finding.subject for finding in news(machine.plan("--env", "TOKEN"), answered).flagged] == ["TOKEN"]


def test_nearest_agreement_is_what_it_is_compared_with(machine: Machine) -> None:
    far, near = machine.plan(), machine.plan("--env", "A=1", "--env", "B=2")
    asked = machine.plan("--env", "A=1", "--env", "B=2", "--env", "C=3")
    for answered in ((far, near), (near, far)):
        assert [variable.name for variable in news(asked, *answered).variables] == ["C"]


def test_value_is_never_on_file(machine: Machine) -> None:
    plan = machine.plan("--env", "WORD=hunter2", "--env", "TOKEN=hunter2", "-p", "hunter2")
    assert "hunter2" not in "\n".join(agreement(plan))


def test_variable_that_begins_to_look_secret_is_asked_about(machine: Machine) -> None:
    plain, secret = machine.plan("--env", "WORD=x"), machine.plan("--env", "WORD=ghp_" + "a1" * 18)
    assert [variable.name for variable in news(secret, plain).variables] == ["WORD"]
    assert is_agreed(plain, secret)


def test_line_of_a_file_may_move(machine: Machine) -> None:
    def said_in(file: str, line: int) -> Plan:
        plan = machine.plan()
        return plan.replace(environment=(EnvVar("A", "1", Origin.of_file(file, line)),))

    assert is_agreed(said_in("~/p.toml", 7), said_in("~/p.toml", 3))
    assert not is_agreed(said_in("~/q.toml", 3), said_in("~/p.toml", 3))


def test_update_of_claude_is_not_asked_about(machine: Machine) -> None:
    before = machine.plan()
    link = machine.root / "home/alice/.local/bin/claude"
    assert link.is_symlink()
    link.unlink()
    machine.plant(
        "~/.local/share/claude/versions/2.1.99*: ELF\n~/.local/bin/claude -> ~/.local/share/claude/versions/2.1.99"
    )
    after = machine.plan()
    assert before.mounts != after.mounts
    assert is_agreed(after, before)


def test_other_mount_of_a_version_is_asked_about(machine: Machine) -> None:
    machine.plant("/srv/lib/1.0/x\n/srv/lib/1.1/x\n/srv/lib/*/x")
    answered = machine.plan("--mount-ro", "/srv/lib/1.0")
    assert not is_agreed(machine.plan("--mount-ro", "/srv/lib/1.1"), answered)
    assert not is_agreed(machine.plan("--mount-ro", "/srv/lib/*"), answered)


def test_read_only_is_less_than_writable(machine: Machine) -> None:
    writable, readable = machine.plan("--mount-rw", "/srv/data"), machine.plan("--mount-ro", "/srv/data")
    assert is_agreed(readable, writable)
    assert [mount.kind for mount in news(writable, readable).mounts] == [RW]


def test_part_of_the_project_that_becomes_writable_is_asked_about(machine: Machine) -> None:
    answered = machine.plan("--mount-ro", "docs")
    assert news(machine.plan(), answered).lost == (("read-only", "/home/alice/shop/docs"),)
    assert is_agreed(machine.plan(), answered, machine.plan())


def test_whole_that_becomes_read_only_needs_no_read_only_part(machine: Machine) -> None:
    machine.plant("/srv/data/part/x")
    answered = machine.plan("--mount-rw", "/srv/data", "--mount-ro", "/srv/data/part")
    assert is_agreed(machine.plan("--mount-ro", "/srv/data"), answered)
    assert not is_agreed(machine.plan("--mount-rw", "/srv/data"), answered)


CONFUSABLE = [
    (Mount(RO, "/c", ASKED, source="/a as /b"), Mount(RO, "/b as /c", ASKED, source="/a")),
    (Mount(RO, "/a\n", ASKED, source="/a\n"), Mount(RO, "/a\\n", ASKED, source="/a\\n")),
    (Mount(RO, "/a b", ASKED, source="/a b"), Mount(RO, "/a\\x20b", ASKED, source="/a\\x20b")),
    (Mount(RO, "/\udcff", ASKED, source="/\udcff"), Mount(RO, "/\\udcff", ASKED, source="/\\udcff")),
    (Mount(RO, "/1.2", Origin.of_rule("claude"), source="/1.2"), Mount(RO, "/*", ASKED, source="/*")),
]


@pytest.mark.parametrize(("one", "other"), CONFUSABLE)
def test_no_name_can_pass_for_another(machine: Machine, one: Mount, other: Mount) -> None:
    plan = machine.plan()
    assert not is_agreed(with_grant(plan, other), with_grant(plan, one))
    assert not is_agreed(with_grant(plan, one), with_grant(plan, other))


def test_mask_that_is_gone_is_asked_about(machine: Machine) -> None:
    """People hide a directory by mounting another one over it."""
    answered = machine.plan("--mount-ro", "/srv/data:/home/alice/shop/docs")
    assert news(machine.plan(), answered).lost == (("without", "/home/alice/shop/docs"),)


def test_mask_that_protects_nothing_is_not_asked_about(machine: Machine) -> None:
    machine.plant("~/docs/keyrings/x")
    keys = Mount(HIDE, "/home/alice/docs/keyrings", Origin.of_option("--hide"))
    with_docs = machine.plan("--mount-ro", "~/docs")
    hidden = with_docs.replace(mounts=arrange(with_docs.mounts, [keys]))
    assert news(with_docs, hidden).lost == (("without", keys.path),)
    assert is_agreed(machine.plan(), hidden)


def test_hide_option_that_is_gone_is_asked_about(machine: Machine) -> None:
    bare, hidden = machine.plan(), machine.plan("--hide", "docs")
    assert news(bare, hidden).lost == (("without", "/home/alice/shop/docs"),)
    assert is_agreed(hidden, bare)
    assert is_agreed(machine.plan("--hide", "docs", "--hide", "lib"), hidden)


def test_settings_of_a_project_that_are_gone_take_their_hides_along(machine: Machine) -> None:
    """Somebody checks out a branch without the file. That the file can be written then is nothing to ask about."""
    machine.plant('~/shop/.claudebox.toml: hide = ["docs"]\\n')
    answered = machine.plan()
    assert "/home/alice/shop/docs" in [mount.path for mount in answered.mounts]
    (machine.root / "home/alice/shop/.claudebox.toml").unlink()
    assert news(machine.plan(), answered).lost == (("without", "/home/alice/shop/docs"),)


def test_configuration_that_is_gone_is_not_asked_about(machine: Machine) -> None:
    """It is mounted over the box's own state, which nobody needs to be kept from."""
    machine.plant("~/.claude/keybindings.json: {}\n~/.claude/skills/one/SKILL.md: x")
    answered = machine.plan()
    (machine.root / "home/alice/.claude/keybindings.json").unlink()
    assert is_agreed(machine.plan(), answered)
    machine.plant("~/.claude/agents/helper.md: x")
    assert [mount.path for mount in news(machine.plan(), answered).mounts] == ["/home/alice/.claude/agents"]


def test_login_that_appears_is_asked_about(machine: Machine) -> None:
    file = machine.root / "home/alice/.claude/.credentials.json"
    content = file.read_bytes()
    file.unlink()
    answered = machine.plan()
    file.write_bytes(content)
    assert granted_anew(machine.plan(), answered) == ["login /home/alice/.claude/.credentials.json"]
    assert news(machine.plan(), answered).amount == 1
    assert is_agreed(machine.plan("--auth", "none"), machine.plan())


def test_link_that_leads_elsewhere_is_asked_about(machine: Machine) -> None:
    """The agent can turn what the user mounts by name into a symlink."""
    machine.plant("~/shop/shared -> /srv/data\n/srv/other/x")
    answered = machine.plan("--mount-ro", "shared:/shared")
    (machine.root / "home/alice/shop/shared").unlink()
    machine.plant("~/shop/shared -> /srv/other")
    assert [mount.source for mount in news(machine.plan("--mount-ro", "shared:/shared"), answered).mounts] == [
        "/srv/other"
    ]


def test_only_the_newest_are_kept(machine: Machine) -> None:
    kept: tuple[frozenset[str], ...] = ()
    for number in range(MOST_AGREEMENTS + 3):
        content = note_agreement(machine.plan("--env", f"N{number}=1"), kept)[-1].content
        assert len(content) < FORM.largest
        kept = read(content)
    assert len(kept) == MOST_AGREEMENTS
    assert not find_news(machine.plan("--env", f"N{MOST_AGREEMENTS + 2}=1"), kept).amount
    assert find_news(machine.plan("--env", "N0=1"), kept).amount


def kept_after(plan: Plan, *answered: Plan) -> tuple[frozenset[str], ...]:
    return read(note_agreement(plan, agreed(*answered))[-1].content)


def test_yes_that_another_one_covers_is_not_kept(machine: Machine) -> None:
    less, more = machine.plan(), machine.plan("--env", "A=1", "--mount-ro", "/srv/data")
    assert kept_after(less, less) == agreed(less)
    assert kept_after(more, less) == agreed(more)


def test_yes_with_less_protection_is_kept_beside_one_with_more(machine: Machine) -> None:
    bare, protected = machine.plan(), machine.plan("--mount-ro", "docs")
    assert kept_after(protected, bare) == agreed(protected, bare)


@QUICK
@given(plans, plans, plans)
def test_what_is_not_kept_is_not_missed(one: Plan, other: Plan, asked: Plan) -> None:
    kept = kept_after(other, one)
    assert not find_news(one, kept).amount
    assert bool(find_news(asked, kept).amount) == (not is_agreed(asked, one, other))


def test_copy_of_a_project_elsewhere_is_another_one(machine: Machine) -> None:
    first = machine.plan()
    machine.plant("~/copy/x")
    machine.cwd = "/home/alice/copy"
    copy = machine.plan()
    assert first.state is not None
    assert copy.state is not None
    assert first.state.directory != copy.state.directory
    assert not is_agreed(copy, first)


def test_file_of_somebody_else_does_not_count(machine: Machine) -> None:
    plan = machine.plan()
    assert plan.state is not None
    file = machine.root / f"{plan.state.directory}/agreed".lstrip("/")
    file.parent.mkdir(parents=True)
    file.write_bytes(write_agreements([agreement(plan)]))
    tree = machine.host().tree
    assert recall(tree, plan.state, machine.uid) == agreed(plan)
    assert recall(tree, plan.state, machine.uid + 1) == ()


def test_kinds_of_mounts_that_are_asked_about() -> None:
    """Other kinds are made by the box, and bring nothing along."""
    assert set(FROM_HOST) == {RO, RW, LAYER}
