"""Which tests are run, on what condition, and what is said about those that were not.

    --size quick       tests without needs, but no slow and no exhaustive ones; 5 examples of each property
    --size default     all but the exhaustive ones, and as root only the first case of each; 30 examples
    --size all         all
    --req SAND-02      the tests that hold a requirement
    --needs-to FILE    write what the chosen tests need there, and run none

A test that is skipped for another reason than a need is a failed one: nobody would know why.
"""

import gc
import json
import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from running import needs, pins
from running.install import command_to_install

QUICK, DEFAULT, ALL = "quick", "default", "all"
EXAMPLES = {QUICK: 5, DEFAULT: 30}  # at most
USUAL_EXAMPLES = 100  # of a property that does not say how many it wants
BOXES = ("attacks", "box", "flake", "network", "nix", "prove", "review", "terminal")
SETTINGS = "_hypothesis_internal_use_settings"
LONGEST_NAME = 60  # characters that one value adds to the name of a test
MISSING = "missing"  # the property of a report that says which needs were not met
# Fixtures of a session that take long to make: one worker makes each, and one more for each other version of Nix.
EXPENSIVE = {"flake": "flake", "flake_of_each_nix": "flake", "hosts": "nix", "wheel": "wheel"}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("claudebox")
    group.addoption("--size", choices=(QUICK, DEFAULT, ALL), default=DEFAULT, help="how much to test")
    group.addoption("--req", action="append", default=[], metavar="ID", help="only the tests that hold a requirement")
    group.addoption("--needs-to", metavar="FILE", help="write what the chosen tests need, and run none")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "req(*ids): the requirements that a test holds")
    config.addinivalue_line("markers", "exhaustive(reason): one more of what the default run has tried already")
    config.addinivalue_line("markers", "long: begun first, so that nobody waits for it at the end")
    config.addinivalue_line("markers", "root_differs(reason): root tries every case in the default run, too")
    config.addinivalue_line("markers", "root_repeats(reason): root tries it in --all only")
    config.addinivalue_line("markers", "xdist_group(name): what only one worker may do")
    if hasattr(config, "workerinput"):
        # In a /tmp of its own.
        Path(config.option.basetemp).parent.mkdir(parents=True, exist_ok=True)
        if not config.option.verbose and config.option.durations is None:
            _say_less(config)
    config.addinivalue_line("markers", "slow(reason): not in the quick run, though it needs nothing")
    # The same examples in each run.
    most = EXAMPLES.get(config.getoption("--size"), USUAL_EXAMPLES)
    luck = hypothesis.settings(deadline=None, derandomize=True, database=None, max_examples=most)
    hypothesis.settings.register_profile("claudebox", luck)
    hypothesis.settings.load_profile("claudebox")
    for need in needs.TABLE:
        config.addinivalue_line("markers", f"{need.name}: needs {need.meaning}")


def _say_less(config: pytest.Config) -> None:
    """Whoever started the workers hears of a test that passes five times. Once is enough, and takes less time."""
    (interactor,) = [plugin for plugin in config.pluginmanager.get_plugins() if _talks(plugin)]
    tell = interactor.sendevent

    def tell_news(event: str, **data: Any) -> None:
        if not _is_no_news(event, **data):
            tell(event, **data)

    interactor.sendevent = tell_news


def _talks(plugin: object) -> bool:
    return type(plugin).__name__ == "WorkerInteractor"


def _is_no_news(event: str, **data: Any) -> bool:
    if event == "testreport":
        return (data["data"]["when"] != "call", data["data"]["outcome"]) == (True, "passed")
    return event in ("logstart", "logfinish")


def pytest_report_header(config: pytest.Config) -> str:
    size = config.getoption("--size")
    if size == QUICK:
        return "size: quick"
    suites = f"; also of Debian's {' and '.join(pins.SUITES)}" if size == ALL else ""
    return f"size: {size}, with {', '.join(_programs())}{suites}"


def _programs() -> Iterator[str]:
    """The versions that count, as the programs tell them."""
    for name in ("bwrap", "pasta", "nft", "nix"):
        path = needs.find_program(name)
        told = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout if path else ""
        found = re.search(r"\d[\w.~]+", told.partition("\n")[0])
        yield f"{name} {found[0] if found else '-'}"
    package = Path(pins.claude()).parents[1] / "@anthropic-ai/claude-code/package.json"
    yield f"Claude Code {json.loads(package.read_text())['version'] if package.exists() else '-'}"


def pytest_make_parametrize_id(val: object) -> str | None:
    """Names that fit on a screen, though some tests try 50,000 brackets. pytest numbers names that become the same."""
    if not isinstance(val, str | bytes):
        return None
    text = val if isinstance(val, str) else val.decode("latin-1")
    name = text[: LONGEST_NAME + 1].encode("unicode_escape").decode()
    return f"{name[:LONGEST_NAME]}..." if len(name) > LONGEST_NAME else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        for name in _needs_of_fixtures(item):
            item.add_marker(name)
        for name in EXPENSIVE.keys() & set(item.fixturenames):  # type: ignore[attr-defined]
            item.add_marker(pytest.mark.xdist_group("-".join([EXPENSIVE[name], *_versions(item)])))
    _leave_repetitions_of_root(items)
    size, wanted = config.getoption("--size"), set(config.getoption("--req"))
    chosen = [item for item in items if _is_of(size, item) and (not wanted or wanted & _requirements(item))]
    if size in EXAMPLES:
        for item in chosen:
            _try_fewer_examples(item, EXAMPLES[size])
    if len(chosen) < len(items):
        kept = set(map(id, chosen))
        config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    items[:] = sorted(chosen, key=lambda item: item.get_closest_marker("long") is None)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The quick run does not even look into folders whose tests all need a box: to collect them takes seconds."""
    if config.getoption("--size") == QUICK and collection_path.parent.name == "tests" and collection_path.name in BOXES:
        return True
    return None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Thousands of tests are made here and stay to the end: it is no use to look for garbage among them."""
    gc.disable()
    found = yield
    gc.freeze()
    gc.enable()
    return found


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    path = session.config.getoption("--needs-to")
    if path and not hasattr(session.config, "workerinput"):
        found = sorted({name for item in session.items for name in needs_of(item)})
        Path(path).write_text(json.dumps({"tests": len(session.items), "needs": found}))


def _needs_of_fixtures(item: pytest.Item) -> set[str]:
    definitions = getattr(item, "_fixtureinfo", None)
    if definitions is None:
        return set()
    found: set[str] = set()
    for name in item.fixturenames:  # type: ignore[attr-defined]
        for definition in definitions.name2fixturedefs.get(name, ()):
            found.update(getattr(definition.func, "needs", ()))
    return found


def _leave_repetitions_of_root(items: Iterable[pytest.Item]) -> None:
    """A test that is tried as an ordinary user and as root is tried by root with its first case only.

    What root may do is decided by the account and not by the row of a table: if a promise does not hold for root, the
    first case says so. Where each case is another matter for root, `root_differs` says why.
    """
    seen: set[tuple[Path, str]] = set()
    for item in items:
        if not _is_tried_by_root(item):
            continue
        test = item.path, item.name.partition("[")[0]
        if reason := _reason(item, "root_repeats"):
            item.add_marker(pytest.mark.exhaustive(f"root: {reason}"))
        elif test in seen and not _reason(item, "root_differs"):
            item.add_marker(pytest.mark.exhaustive("root tries the first case"))
        elif item.get_closest_marker("exhaustive") is None:
            seen.add(test)


def _is_tried_by_root(item: pytest.Item) -> bool:
    chosen = getattr(item, "callspec", None)
    return chosen is not None and chosen.params.get("account") == "root"


def _try_fewer_examples(item: pytest.Item, most: int) -> None:
    """Hypothesis has no way to say this for all tests that say a number themselves."""
    test = getattr(item, "obj", None)
    own = getattr(test, SETTINGS, None)
    if own is not None and own.max_examples > most:
        setattr(test, SETTINGS, hypothesis.settings(own, max_examples=most))


def _versions(item: pytest.Item) -> list[str]:
    return [need.name for need in needs.TABLE if need.provider == needs.DEBIAN and item.get_closest_marker(need.name)]


def needs_of(item: pytest.Item) -> list[str]:
    marked = {mark.name for mark in item.iter_markers()}
    return [need.name for need in needs.TABLE if need.name in marked]


def _requirements(item: pytest.Item) -> set[str]:
    return {identifier for mark in item.iter_markers("req") for identifier in mark.args}


def _is_of(size: str, item: pytest.Item) -> bool:
    exhaustive, slow = _reason(item, "exhaustive"), _reason(item, "slow")
    if size == ALL:
        return True
    return not exhaustive and (size == DEFAULT or not (slow or _has_to_be_installed(item)))


def _reason(item: pytest.Item, name: str) -> str:
    """Why a test has this mark; nothing if it has none."""
    mark = item.get_closest_marker(name)
    if mark is None:
        return ""
    if not mark.args:
        raise pytest.UsageError(f"{item.nodeid}: {name}, and no reason is given")
    return str(mark.args[0])


def _has_to_be_installed(item: pytest.Item) -> bool:
    return any(needs.NEEDS[name].provider != needs.NOBODY for name in needs_of(item))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    missing = {name: text for name in needs_of(item) if (text := needs.NEEDS[name].missing())}
    if missing:
        item.user_properties.append((MISSING, list(missing)))
        words = "; ".join(f"needs {name}: {text}" for name, text in missing.items())
        if os.environ.get("CI"):
            pytest.fail(words, pytrace=False)
        pytest.skip(words)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Iterator[None]:  # fmt: skip
    report = yield
    is_explained = any(name == MISSING for name, _ in item.user_properties)
    if report.skipped and not hasattr(report, "wasxfail") and not is_explained:  # type: ignore[attr-defined]
        report.outcome = "failed"  # type: ignore[attr-defined]
        report.longrepr = f"skipped, and no need explains it: {report.longrepr}"  # type: ignore[attr-defined]
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counted: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        for name, names in getattr(report, "user_properties", ()):
            if name == MISSING:
                counted.update(names)
    if not counted:
        return
    terminalreporter.section("not tested here")
    for need in needs.in_order(counted):
        terminalreporter.line(f"{counted[need.name]:5} tests need {need.name}, {need.meaning}: {need.missing()}")
        terminalreporter.line(f"      {remedy(need)}")


def remedy(need: needs.Need) -> str:
    """The command that would provide it."""
    absent = [program for program in need.programs if not needs.find_program(program)]
    return command_to_install(absent) if absent and need.provider == needs.PACKAGES else need.remedy()
