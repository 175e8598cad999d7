"""Says, when the box has ended, how to sign the commits that were made in it.

The branch is read without git, which in a repository that an agent could write may run code.
"""

from __future__ import annotations

from claudebox.host.git import find_repository
from claudebox.host.git.directory import read_head
from claudebox.host.tree import Tree
from claudebox.model import Launch
from claudebox.output.terminal import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.model import Deed


# Each commit since the one that is named is made again, by the user's own git with the user's own key.
SIGN = "git rebase --force-rebase --rebase-merges --gpg-sign"


def after(launch: Launch) -> Deed:
    """Note the commit that is checked out before the program starts."""
    git_dir = find_repository(Tree(), launch.plan.project).git_dir
    before = read_head(Tree(), git_dir)

    def tell(_: bool) -> None:
        now = read_head(Tree(), git_dir)
        if now.commit and now.commit != before.commit:
            # On another branch nobody knows where the new commits begin.
            base = before.commit[:12] if before.commit and now.branch == before.branch else "COMMIT_BEFORE_THEM"
            say(f"claudebox: the commits of this box are not signed; to sign them:\n  {SIGN} {base}\n")

    return tell
