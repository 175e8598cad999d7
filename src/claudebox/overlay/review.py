"""What happens with a layer when its box has ended, or when the user comes back to it."""

from __future__ import annotations

import os
import time

from claudebox.errors import Problem
from claudebox.host import read_host
from claudebox.host.git import find_repository
from claudebox.host.git.directory import read_refs
from claudebox.host.programs import trusted_program
from claudebox.host.tree import Tree
from claudebox.model import Launch, Review
from claudebox.output.terminal import KEEP, ask, choose, errors_style, no_such_number, numbers_in, page, say
from claudebox.overlay import bundle, store
from claudebox.overlay.changes import DOT_GIT, NEVER_KIND, Change
from claudebox.overlay.comparison import judge, reasons_below
from claudebox.overlay.history import Carried, find_carried, find_checkout
from claudebox.overlay.kept import note_introduced, read_introduced
from claudebox.overlay.landing import land, recover
from claudebox.overlay.places import find_held
from claudebox.overlay.screen import checkout_text, commits_text, diff_lines, landed_text, listing, summary
from claudebox.overlay.store import Layer
from claudebox.paths import parents
from claudebox.settings.table import ALL, ASK, SAFE
from claudebox.state.reach import reach_of
from claudebox.text import escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Ask = Callable[[str], str]

LAND, EVERYTHING, CHOOSE, SHOW, DISCARD = "land", "all", "choose", "show", "discard"
DOES = {
    LAND: "bring the changes and commits here, as the question says",
    EVERYTHING: "bring all of them here; conflicts stay in the review",
    CHOOSE: "pick from a list of the changes, by number",
    SHOW: "see the differences first",
    KEEP: "decide later, with claudebox --review land",
    DISCARD: "throw all of it away, after a question",
}
BEHIND = "What is committed of it, git here shows as changed until it lands.\n"
MOST_INLINE = 16  # rows of a list that fit on a screen with the question


class Kept:
    """A layer that was taken, with the list of its changes."""

    def __init__(self, layer: Layer, home: str, bwrap: str = "") -> None:
        self.layer = recover(layer)
        self.home = home
        self.bwrap = bwrap
        store.tidy(self.layer)
        self.read()

    def read(self) -> None:
        self.looked_at = time.time_ns()
        found, project = self.layer.read(), self.layer.project
        # The project as it is now, not as the directory from which somebody called.
        has_any = found.changes or bundle.has_news(self.layer)
        self.held = find_held(read_host().replace(cwd=project), project, self.layer.places) if has_any else []
        self.changes = judge(found.changes, project, lambda path: os.path.lexists(f"{project}/{path}"), self.held)
        if any(change.reason for change in self.changes):
            store.write_out(self.layer)
        # Of the project's own repository, the commits arrive. Of another one nothing does, so it has to be named.
        is_known = os.path.lexists(f"{project}/{DOT_GIT}")
        never = tuple(one for one in found.never if one.path != DOT_GIT or not is_known)
        self.never = (*never, *bundle.find_work_without_branch(self.layer))

    @property
    def has_rest(self) -> bool:
        """Whether it holds something that would be lost with it. A FIFO or a socket is nothing without its program."""
        return bool(self.changes) or any(one.reason != NEVER_KIND for one in self.never)

    @property
    def is_empty(self) -> bool:
        return not self.has_rest and not bundle.has_news(self.layer)

    def land(self, chosen: Sequence[Change]) -> list[Change]:
        """Land these, and return what has landed: with the new directories around it."""
        named = {change.path for change in chosen}
        around = {above for path in named for above in parents(path)}
        landing = [one for one in self.changes if one.path in named or (one.path in around and one.makes_room)]
        if landing:
            self.layer = land(self.layer, landing, self.looked_at)
            self.read()
        return landing

    def land_or_say(self, chosen: Sequence[Change]) -> list[Change]:
        """The same without a question. A failure keeps nobody from being asked about the rest."""
        try:
            return self.land(chosen)
        except Problem as problem:
            say(f"claudebox: {escape(problem.message)}\n")
            return []


def finish(launch: Launch, layer: Layer, since: int, may_ask: bool) -> None:
    """Look at the layer of a box that has ended, and do what the user says, now or in advance. The caller holds it."""
    layer = store.load(*os.path.split(layer.directory)) or layer  # another box may have gone on with it, and ended
    try:
        is_news = layer.is_whole or store.was_touched(layer, since)
        kept = Kept(layer, launch.plan.person.home, launch.plan.bwrap)
        # What commits had before the first box of the layer: git here would show it as changed.
        if landed := kept.land_or_say(find_checkout(kept.layer, kept.changes, kept.bwrap)):
            say(checkout_text(landed))
        end(kept, launch.get(Review).land, ask if may_ask else None, is_news=is_news)
    except KeyboardInterrupt:
        say(f"\n{kept_text(layer)}")


def end(kept: Kept, how: str, asking: Ask | None, *, is_news: bool = True) -> None:
    """Show what a layer holds and ask. What was kept before, and has not changed since, is named and no more."""
    if not kept.layer.is_whole:
        # What only happens to be in a guarded directory: without layers, it would be here already.
        kept.land_or_say([change for change in kept.changes if change.is_safe])
    if kept.is_empty:
        store.discard(kept.layer)
        return
    if not is_news and how == ASK:
        say(f"claudebox: review {kept.layer.number} still waits: claudebox --review land {kept.layer.number}\n")
        return
    say(summary(kept.layer.number, kept.changes, kept.never, errors_style()))
    if how != ASK:
        land_chosen(kept, in_advance(kept.changes, how), asking)
    elif asking is None:
        say(kept_text(kept.layer))
    else:
        _ask(kept, asking)


def in_advance(changes: Sequence[Change], how: str) -> list[Change]:
    """What lands if somebody said so before. A conflict never does: nobody has seen it."""
    return [change for change in changes if change.is_safe or (how == ALL and not change.is_conflict)]


def _ask(kept: Kept, asking: Ask) -> None:
    words = {word: does for word, does in DOES.items() if word != CHOOSE or kept.changes}
    while True:
        word, _ = choose(asking, question(kept.changes, has_commits=bundle.has_news(kept.layer)), words, KEEP)
        if word in (LAND, EVERYTHING):
            has_both = any(one.reason for one in kept.changes) and any(one.is_safe for one in kept.changes)
            how = SAFE if word == LAND and has_both else ALL
            return land_chosen(kept, in_advance(kept.changes, how), asking)
        if word == CHOOSE:
            chosen = _choose(kept, asking)
            if chosen is not None:
                return land_chosen(kept, chosen, asking)
        elif word == SHOW:
            page(diff_lines(kept.layer, kept.changes, errors_style()), kept.home)
        elif word == KEEP:
            return say(kept_text(kept.layer))
        elif asking("Discard all of it? This cannot be undone. [y/N] ") in ("y", "yes"):
            store.discard(kept.layer)
            return say("Discarded.\n")


def question(changes: Sequence[Change], *, has_commits: bool) -> str:
    """The question, with words that say what `land` would do."""
    has_apart, has_safe = any(change.reason for change in changes), any(change.is_safe for change in changes)
    if not changes:  # then there is something that never lands, if there are no commits
        return f"{'Land the commits, show' if has_commits else 'Show'}, keep or discard? [k] "
    if not in_advance(changes, ALL):
        words = "Choose"  # there are only conflicts
    elif not has_apart:
        words = "Land, choose"
    else:
        words = f"Land {'(without what this host runs), all' if has_safe else 'although this host runs it'}, choose"
    return f"{words}, show, keep or discard? [k] "


def _choose(kept: Kept, asking: Ask) -> list[Change] | None:
    """Ask which ones. None if the user wants to go back."""
    changes = kept.changes
    text = listing(changes, errors_style())
    if len(changes) <= MOST_INLINE:
        say(text)
    else:
        page(text.splitlines(), kept.home)
    while said := asking("Land which? (numbers: 1 3-5; Enter: those with an x; b: back) "):
        if said in ("b", "back", "no", "n"):
            return None
        if numbers := numbers_in(said, len(changes)):
            return [change for number, change in enumerate(changes, 1) if number in numbers]
        say(no_such_number(len(changes)))
    return [change for change in changes if change.is_safe]


def land_chosen(kept: Kept, chosen: Sequence[Change], asking: Ask | None) -> None:
    """Land these, bring the commits, and forget the layer if nothing is left in it."""
    fetched = _fetch(kept.layer)
    landed = kept.land(chosen)
    repository, commits = fetched if fetched is not None else (None, bundle.Commits())
    has_commits = bool(commits.branches or commits.head)
    if landed or not has_commits:
        say(landed_text(landed))
    if repository is not None and has_commits:
        say(commits_text(commits, kept.layer.number, errors_style()))
        say("".join(f"  {escape(line)}\n" for line in _carried(kept, repository, commits)))
        _offer(repository, commits, kept.layer.number, asking)
    if kept.has_rest or fetched is None:
        say(kept_text(kept.layer))
    else:
        store.discard(kept.layer)


def _carried(kept: Kept, repository: bundle.Repository, commits: bundle.Commits) -> list[str]:
    """What of the commits this host runs, a line each. It is noted as a box's before anybody can check it out."""
    tips = read_refs(Tree(), repository.git_dir).tips
    old = {name: tip for name, tip in tips.items() if not name.startswith(f"{commits.refs}/")}
    new = {f"refs/heads/{branch.name}": branch.new for branch in commits.branches}
    reports, held = kept.layer.reports, reasons_below(kept.held, (kept.layer.project,))
    found = find_carried(kept.bwrap, repository.git_dir, old, new, read_introduced(reports), held)
    _note(reports, found)
    return [*found.troubles, *(one.text for one in found.paths)]


def _note(reports: str, found: Carried) -> None:
    try:
        note_introduced(reports, found.entries, is_whole=not found.troubles)
    except OSError as error:
        raise Problem(f"{reports}: {error.strerror}", "see whether the disk is full: df -h ~") from None


def _fetch(layer: Layer) -> tuple[bundle.Repository | None, bundle.Commits] | None:
    """The commits of the box, fetched. None if that failed: then the layer has to stay."""
    if not bundle.has_news(layer):
        return None, bundle.Commits()
    host = read_host().replace(cwd=layer.project)
    found = find_repository(host.tree, layer.project)
    if not found.git_dir:
        return None, bundle.Commits()  # the host has no repository here
    # What a project has on PATH must not run here, where no box is around it.
    program = trusted_program(host, "git", reach_of(host))
    if not program:
        say("claudebox: git is not installed here: commits stay in the layer\n")
        return None
    repository = bundle.Repository(program, found.git_dir, layer.project)
    try:
        return repository, bundle.fetch_commits(layer, repository)
    except bundle.GitFailed as error:
        say(f"claudebox: the commits stay in the layer: {escape(str(error))}\n")
        return None


def _offer(repository: bundle.Repository, commits: bundle.Commits, number: str, asking: Ask | None) -> None:
    if not any(branch.can_move for branch in commits.branches) and not commits.head:
        return
    try:
        is_wanted = asking is not None and asking("Move the branches here, too? [y/N] ") in ("y", "yes")
    except Problem:
        is_wanted = False
    if is_wanted:
        try:
            has_index = bundle.move_branches(repository, commits)
        except bundle.GitFailed as error:
            say(f"claudebox: not all branches were moved: {escape(str(error))}\n")
            return
        say("Moved.\n" if has_index else "Moved. Your index had something in it, and stays as it was.\n")
    elif commits.branches:
        say(f"Branches stay where they are. To move one: git reset refs/claudebox/{number}/BRANCH\n")


def kept_text(layer: Layer) -> str:
    """How to go on. In a direct project, commits are on this host at once, and files in layers are not."""
    text = f"claudebox: kept as review {layer.number}: claudebox --review land {layer.number} (or show, discard)\n"
    has_git = bool(find_repository(Tree(), layer.project).git_dir)
    return text + (BEHIND if has_git and not layer.is_whole else "")
