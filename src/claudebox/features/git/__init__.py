"""Git in the box: an identity, the user's settings, hooks; and no credentials."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.model import Launch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.host import Host
    from claudebox.model import Deed
    from claudebox.process.trial import CheckRow
    from claudebox.settings import Settings


class Git(Feature):
    """Its configuration, and a repository outside of the project."""

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.git import configuration

        return configuration.decide(facts, draft)

    def after(self, launch: Launch) -> Deed:
        from claudebox.features.git import configuration

        return configuration.after(launch)

    def check(self, host: Host, settings: Settings) -> list[CheckRow]:
        from claudebox.host.programs import ADMIN_DIRECTORIES, find
        from claudebox.host.system import install_command
        from claudebox.process.trial import FAIL, OK, CheckRow

        if path := find(host, "git", *ADMIN_DIRECTORIES):
            return [CheckRow(OK, "git", path)]
        fix = (install_command(host.tree, "git"),)
        return [CheckRow(FAIL, "git", "not installed", "needed for commits and history", fix)]


class Hooks(Feature):
    """What hooks need that the box lacks."""

    def applies(self, facts: Facts) -> bool:
        """Whether git would run a hook: there is one beside the samples, or the configuration names another place."""
        tree, git_dir = facts.tree, facts.repository.git_dir
        if not git_dir:
            return False
        config = tree.text(f"{git_dir}/config")  # a worktree has none of its own
        is_elsewhere = config is None or "hookspath" in config.lower()
        return is_elsewhere or any(not name.endswith(".sample") for name in tree.entries(f"{git_dir}/hooks"))

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.git import hooks

        return hooks.decide(facts, draft)


class Shim(Feature):
    """A script that asks git beforehand what it cannot do here."""

    def applies(self, facts: Facts) -> bool:
        return bool(facts.repository.git_dir)

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.git import configuration

        return configuration.decide_shim(facts, draft)


GIT = Git()
