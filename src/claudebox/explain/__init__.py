"""Answers "why?": what the Plan does with a path, a variable, a program, an address, a port or a package.

`settings` is what went into the Plan: if two ask for the same thing, the Plan itself knows only the winner.
"""

from __future__ import annotations

from claudebox.answers import Answer, Because, Explanation
from claudebox.explain.paths import PathQuestion
from claudebox.explain.programs import ProgramQuestion
from claudebox.features.environment.explain import explain_variable
from claudebox.features.names.explain import explain_host
from claudebox.features.network.explain import (
    boxs_view,
    explain_endpoint,
    explain_port,
    is_local_name,
    read_address,
    read_endpoint,
    read_port,
)
from claudebox.features.nix.explain import explain_nix, explain_packages, is_named
from claudebox.host import Host
from claudebox.model import Plan
from claudebox.paths import absolute
from claudebox.problem import Problem
from claudebox.settings.parsing import is_variable_name
from claudebox.settings.table import LAST_PORT
from claudebox.settings.values import Settings
from claudebox.trust.secret_values import secret_value

FILE_URL = "file://"
KINDS = "a path, variable, program, host, address, port or package, or nix"
# What names of files end in. Some are domains, too: then the word gets two answers.
FILE_ENDINGS = frozenset(
    "bak c cfg conf cpp css csv db env go h html ini ipynb java jpg js json jsx kt lock log md php png py rb rs sh sql "
    "svg toml ts tsx txt xml yaml yml".split()
)
ALSO_DOMAINS = frozenset("md py rs sh".split())


def explain(plan: Plan, host: Host, settings: Settings, thing: str) -> Explanation:
    """An answer for each thing that the word can mean. Raises a Problem if it can mean none."""
    if not thing.strip():
        raise Problem("--explain needs something to explain", KINDS)
    if is_named(plan, thing):
        answers = explain_packages(plan, thing)
    elif "://" in thing and not thing.startswith(FILE_URL):
        answers = _endpoint(plan, thing)
    elif secret_value(thing):
        # The shell has replaced `$NAME` by its value, which must not be repeated on the screen.
        raise Problem("--explain got what looks like a secret, not a name", "without the $: --explain NAME")
    elif thing.startswith("$"):
        answers = _variable(plan, host, settings, thing[1:].removeprefix("{").removesuffix("}"))
    else:
        answers = _word(plan, host, settings, thing.removeprefix(FILE_URL))
    if not answers:
        raise _unknown(thing)
    return Explanation(answers[0].subject if len(answers) == 1 else thing, tuple(answers))


def _word(plan: Plan, host: Host, settings: Settings, word: str) -> list[Answer]:
    if word == "nix":
        return [explain_nix(plan)]
    answers: list[Answer] = []
    exists = host.tree.lstat(absolute(word, host.cwd, host.person.home)) is not None
    if "/" in word or word.startswith(("~", ".")) or exists or _ending_of(word) in FILE_ENDINGS:
        answers.append(PathQuestion(plan, host, settings, word).answer())
        answers += explain_packages(plan, absolute(word, host.cwd, host.person.home))
    if word.isupper() or word in host.environ or word in (variable.name for variable in plan.environment):
        answers += _variable(plan, host, settings, word)
    if port := read_port(word.removeprefix(":")):
        answers.append(explain_port(plan, port))
    if is_variable_name(word.replace("-", "_")) and (program := ProgramQuestion(plan, host, settings, word).answer()):
        answers.append(program)
    is_host = not word.isdigit() and (read_address(word) is not None or is_local_name(word.partition(":")[0]))
    is_host = is_host or (not exists and "/" not in word and _ending_of(word) in ALSO_DOMAINS)
    if is_host or not (answers or word.isdigit()):
        answers += [_as_guessed(answer, word) for answer in _endpoint(plan, word)]
    return answers


def _ending_of(word: str) -> str:
    """What comes after the last dot; "" if nothing does, or nothing comes before it."""
    name, _, ending = word.rpartition(".")
    return ending.lower() if name.rpartition("/")[2] else ""


def _as_guessed(answer: Answer, word: str) -> Answer:
    """The answer with a remark: a bare word may have been meant for something that does not exist."""
    if not is_variable_name(word) or is_local_name(word):
        return answer
    guess = Because("no file, variable or program has this name")
    return answer.replace(verdict=f"as a host, {answer.verdict}", because=(guess, *answer.because))


def _variable(plan: Plan, host: Host, settings: Settings, name: str) -> list[Answer]:
    return [explain_variable(plan, host, settings, name)] if is_variable_name(name) else []


def _endpoint(plan: Plan, text: str) -> list[Answer]:
    endpoint = read_endpoint(text)
    if endpoint is None:
        return []
    outside = boxs_view(plan, endpoint) if plan.names is not None else None
    if plan.names is not None and outside is not None:
        return [explain_host(plan, plan.names, endpoint.text, outside.host, outside.port)]
    return [explain_endpoint(plan, endpoint)]


def _unknown(thing: str) -> Problem:
    if thing.isdigit():
        return Problem(f"--explain: {thing} is not a port", f"1 to {LAST_PORT}")
    return Problem(f"--explain: `{thing}` cannot be explained", KINDS)
