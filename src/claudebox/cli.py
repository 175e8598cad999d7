"""The command: picks the mode, asks, and turns a Problem into text and an exit status."""

from __future__ import annotations

import os
import sys

from claudebox.agreement import (
    find_news,
    keeping,
    recall,
)
from claudebox.features.guard.decide import is_guard
from claudebox.features.kernel.decide import doubts_namespaces
from claudebox.host import (
    Host,
    read_host,
)
from claudebox.model import (
    FROM_HOST,
    Finding,
    Plan,
)
from claudebox.plan import make_plan
from claudebox.problem import (
    BROKEN_PIPE,
    FAILED,
    INTERRUPTED,
    Problem,
)
from claudebox.settings.gather import (
    Layers,
    gather,
)
from claudebox.settings.values import (
    PROJECT_FILE,
    Settings,
)
from claudebox.settings.words import (
    COLLECT,
    LAUNCH,
    PROFILES,
    Request,
    parse,
)
from claudebox.state import State
from claudebox.view.text import (
    BOLD,
    RED,
    WIDTH,
    cut,
    escape,
    fill,
    style_for,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

LONGEST_LINE = 4096  # that a terminal hands over


def main() -> NoReturn:
    open_closed_streams()
    try:
        status = run(sys.argv[1:])
    except Problem as problem:
        show_problem(problem)
        status = problem.status
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        status = INTERRUPTED
    except BrokenPipeError:
        status = BROKEN_PIPE
    except Exception as error:
        show_problem(own_failure(error))
        status = FAILED
    sys.exit(status)


def own_failure(error: Exception) -> Problem:
    return Problem(f"claudebox itself failed: {type(error).__name__}: {error}", "please report this")


def open_closed_streams() -> None:
    """A closed stream would become whatever is opened next, such as our own data."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115  (for the rest of our life)


def run(words: list[str]) -> int:
    request = parse(words)
    if request.mode == "help":
        from claudebox.view.help import help_text

        show(help_text())
        return 0
    if request.mode == "completion":
        from claudebox.view.completion import completion

        show(completion(dict(request.said)["completion"]))
        return 0
    if request.mode == "instances":
        return tend_instances(collect=("instances", COLLECT) in request.said, yes=request.yes)
    if request.mode == "demo":
        from claudebox.demo import run_demo

        return run_demo()
    if request.mode == "prove":
        from claudebox.prove import prove

        text, status = prove(request)
        show(text)
        return status
    if request.mode in ("version", "check"):
        from claudebox import doctor

        text, status = doctor.versions(request) if request.mode == "version" else doctor.check(request)
        show(text)
        return status
    host = read_host()
    if request.mode == "auth_log":
        show(_auth_log(host))
        return 0
    if request.mode == PROFILES:
        show(_profiles(host))
        return 0
    layers = gather(host, request)
    if request.mode == LAUNCH and layers.project is not None and layers.project.is_undecided:
        layers = decide(host, request, layers)
    plan = make_plan(host, request, layers.settings)
    if request.mode == LAUNCH:
        plan = ask_claude(host, request, layers.settings, plan)
        start(host, ask_nix(host, request, layers.settings, plan), request)
    if request.mode == "explain":
        show(_explained(host, plan, layers.settings, request))
        return 0
    show(_shown(plan, request))
    return 0


def start(host: Host, plan: Plan, request: Request) -> NoReturn:
    if doubts_namespaces(host.tree, plan.bwrap):
        from claudebox.doctor.trial import require_namespaces

        require_namespaces(host, plan.bwrap)
    agreed = confirm(host, plan, request)
    from claudebox.launch.box import launch

    def watch() -> Callable[[], None]:
        from claudebox.features.guard import act as aftermath

        may_ask = not request.yes and sys.stderr.isatty()
        return aftermath.watch(host.tree, agreed, host.own_source, _ask if may_ask else None)

    launch(agreed, watch)


def ask_nix(host: Host, request: Request, settings: Settings, plan: Plan) -> Plan:
    """Find out what is not known yet, then plan with it."""
    if plan.packages:
        settings, plan = supply(host, request, settings, plan)
    nix = plan.nix
    if nix is None or not (nix.needs_trial or nix.roots):
        return plan
    if nix.needs_trial:
        from claudebox.features.nix.try_builds import try_builds

        try_builds(host)
    if nix.roots:
        from claudebox.features.nix.ask_closure import look_up_closure

        look_up_closure(host, nix.roots)
    plan = make_plan(read_host(), request, settings)
    if plan.nix is not None and plan.nix.roots:
        raise Problem("what the box needs of the host's store has changed meanwhile", "try again")
    if plan.nix is not None and plan.nix.needs_trial:
        raise Problem("Nix's daemon, or its configuration, has changed meanwhile", "try again")
    return plan


def ask_claude(host: Host, request: Request, settings: Settings, plan: Plan) -> Plan:
    """Which way it can reach the broker, unless that is known."""
    if plan.broker is None or plan.broker.trial is None:
        return plan
    from claudebox.features.broker import ask as claude_trial

    claude_trial.ask_claude(host, plan.bwrap, plan.broker.trial)
    plan = make_plan(read_host(), request, settings)
    if plan.broker is not None and plan.broker.trial is not None:
        raise Problem("claude has changed meanwhile", "try again")
    return plan


def supply(host: Host, request: Request, settings: Settings, plan: Plan) -> tuple[Settings, Plan]:
    """Have the packages that are not there yet. Only now: everything else about the box is known to be possible."""
    from claudebox.features.nix.packages import to_resolve

    missing = to_resolve(plan.packages)
    if not missing:
        return settings, plan
    from claudebox.features.nix.errand import (
        give_up,
        plan_errand,
        strict_problem,
    )
    from claudebox.features.nix.fetch import fetch_packages

    failures = fetch_packages(plan_errand(host, missing))
    if failures and request.strict:
        raise strict_problem(failures)
    settings = give_up(host, settings, failures)
    return settings, make_plan(read_host(), request, settings)


def decide(host: Host, request: Request, layers: Layers) -> Layers:
    """Ask whether the project gets what its file asks for. Without an answer it does not."""
    project = layers.project
    if project is None or request.yes or not sys.stderr.isatty():
        return layers
    try:
        make_plan(host, request, gather(host, request, project.replace(granted=True)).settings)
    except Problem as problem:
        # Nobody can say yes to that. It counts as a no, until the file is another one.
        note = Finding(Finding.NOTE, PROJECT_FILE, f"asks for something impossible and gets nothing: {problem.message}")
        return layers.replace(settings=layers.settings.replace(findings=(note,)))
    from claudebox.launch.prepare import prepare
    from claudebox.settings.files.decisions import keeping_decision
    from claudebox.view.wishes import wishes_text

    sys.stderr.write(wishes_text(project.wishes, style_for(sys.stderr.isatty(), dict(os.environ))))
    sys.stderr.flush()
    granted = _ask("Let it have these, as long as the file stays as it is? [y/N] ") in ("y", "yes")
    prepare(keeping_decision(host, project.content_id, granted=granted), "")
    return gather(host, request, project.replace(granted=granted))


def _auth_log(host: Host) -> str:
    from claudebox.features.broker.log import auth_log_text
    from claudebox.features.broker.server.journal import read_journal
    from claudebox.host.git.repository import find_repository
    from claudebox.state import canonical_root

    root = canonical_root(host.cwd, find_repository(host.tree, host.cwd))
    return auth_log_text(read_journal(State(host.person.home).instance(root).journal))


def _profiles(host: Host) -> str:
    from claudebox.settings.files.profiles import list_profiles
    from claudebox.view.wishes import profiles_text

    return profiles_text(list_profiles(host), style_for(sys.stdout.isatty(), dict(os.environ)))


def tend_instances(*, collect: bool, yes: bool) -> int:
    from claudebox import instances

    found = instances.find_instances(State(read_host().person.home))
    style = style_for(sys.stdout.isatty(), dict(os.environ))
    if not collect:
        show(instances.listing(found, style))
        return 0
    gone = instances.collect(found)
    show(instances.listing(gone, style) if gone else "Every project is still there: nothing to remove.\n")
    if gone and not yes and _ask("Remove these, with their conversations? [y/N] ") not in ("y", "yes"):
        raise Problem("nothing removed")
    for instance in gone:
        instances.remove(instance)
    return 0


def show(text: str) -> None:
    """Write data to standard output, whatever characters its encoding knows."""
    if sys.stdout is None:
        raise Problem("standard output is closed")
    data = text.encode(sys.stdout.encoding, errors="backslashreplace")
    try:
        while data:
            data = data[os.write(1, data) :]
    except BrokenPipeError:
        raise SystemExit(BROKEN_PIPE) from None
    except OSError as error:
        raise Problem(f"cannot write to standard output: {error.strerror}") from None


def _shown(plan: Plan, request: Request) -> str:
    if request.mode == "audit":
        if request.json:
            from claudebox.view.as_json import audit_json

            return audit_json(plan)
        from claudebox.view.audit import audit

        return audit(plan, style_for(sys.stdout.isatty(), dict(os.environ)), everything=True)
    if request.json:
        from claudebox.view.as_json import dry_run_json

        return dry_run_json(plan)
    from claudebox.view.shell import shell_command

    return shell_command(plan)


def _explained(host: Host, plan: Plan, settings: Settings, request: Request) -> str:
    from claudebox.explain import explain
    from claudebox.view.explain import (
        explanation_json,
        explanation_text,
    )

    explanation = explain(plan, host, settings, dict(request.said)["explain"])
    if request.json:
        return explanation_json(explanation)
    return explanation_text(explanation, style_for(sys.stdout.isatty(), dict(os.environ)))


def confirm(host: Host, plan: Plan, request: Request) -> Plan:
    """Show the audit and ask, unless it is all as agreed before. Raises unless the answer is yes.

    What comes back remembers a yes. `--yes` is none: it may be in a script, and nobody looked.
    """
    agreements = recall(host.tree, plan.state, host.person.uid)
    news = find_news(plan, agreements)
    if not news.amount:
        _say(_as_agreed(plan))
        return plan
    from claudebox.view.audit import audit

    style = style_for(sys.stderr.isatty(), dict(os.environ))
    _say(audit(plan, style, news=news if agreements else None))
    if request.yes:
        return plan
    question = style.paint("Start? ", BOLD) + ("[y/N] " if news.is_grave else "[Y/n] ")
    answer = _ask(question)
    if answer not in (("y", "yes") if news.is_grave else ("y", "yes", "")):
        raise Problem("not started", status=FAILED)
    return plan.replace(preparations=(*plan.preparations, *keeping(plan, agreements)))


def _as_agreed(plan: Plan) -> str:
    paths = sum(mount.kind in FROM_HOST and not is_guard(mount) for mount in plan.mounts)
    parts = [f"{paths} paths", f"{len(plan.environment)} variables", f"network {plan.network.tier}"]
    if plan.flagged:
        parts.append(f"{len(plan.flagged)} flagged")
    return f"claudebox: as agreed: {', '.join(parts)} (--audit)\n"


def _say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def nobody_to_ask() -> Problem:
    return Problem("there is no terminal to ask on, and nobody said yes", "to go on without the question: --yes")


def _ask(question: str) -> str:
    """Ask on the terminal itself: standard input may be a pipe with the prompt for claude."""
    if not sys.stderr.isatty():
        raise nobody_to_ask()
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        if not os.isatty(0):
            raise nobody_to_ask() from None
        terminal = os.dup(0)
    try:
        os.write(2, question.encode())
        # A whole line: what is left of it would be typed into whatever reads next, a shell perhaps.
        line = os.read(terminal, LONGEST_LINE)
    finally:
        os.close(terminal)
    # End of input is a no.
    return line.decode(errors="replace").strip().lower() if line else "no"


def show_problem(problem: Problem) -> None:
    style = style_for(sys.stderr.isatty(), dict(os.environ))
    # Paths stay whole, so that they can be copied.
    message = fill(escape(problem.message).split(" "), len("error: "), break_words=False)
    text = style.paint("error", RED) + ": " + "\n       ".join(message) + "\n"
    if problem.excerpt:
        indent = " " * len("error:   ")
        text += indent + cut(escape(problem.excerpt), WIDTH - len(indent)) + "\n"
    if problem.hint:
        first, *rest = problem.hint.split("\n")
        text += f"\nhint: {escape(first)}\n" + "".join(f"{escape(line)}\n" for line in rest)
    sys.stderr.write(text)
