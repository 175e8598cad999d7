"""How tests are chosen, what they need, and what of the machine they notice: tests/running."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import CHECKOUT
from running import machine, needs, pins

RUNNER = str(CHECKOUT / "tests/running")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--quik"], "unrecognized arguments: --quik"),
        (["tests/no-such"], "there is no tests/no-such"),
    ],
)
def test_mistake_is_refused_with_a_hint(words: list[str], complaint: str) -> None:
    done = subprocess.run([sys.executable, "-E", RUNNER, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith(f"error: {complaint}")
    assert "\n\nhint: ./run-tests --help" in done.stderr


# The table


def test_versions_are_pinned() -> None:
    groups = pins.read()["dependency-groups"]
    tools = [name for group in ("test", "lint", "docs", "below") for name in groups[group]]
    assert [name for name in tools if "==" not in name or "*" in name] == []
    assert pins.OLD_CLAUDE < pins.CLAUDE


# In a run. What is not installed is decided here, not by this machine.


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def take_away(*programs: str) -> None:
        monkeypatch.setattr(needs, "find_program", lambda name: None if name in programs else "/bin/true")

    monkeypatch.delenv("CI", raising=False)
    return take_away


def run(pytester: pytest.Pytester, text: str, *words: str) -> pytest.RunResult:
    pytester.makepyfile(f"import pytest\nfrom running.needs import needed\n{text}")
    return pytester.runpytest_inprocess("-p", "running.plugin", "-p", "no:cacheprovider", "--strict-markers", *words)


ASKS_FOR_TMUX = """
@pytest.fixture
@needed("tmux")
def terminal(): pass
def test_by_fixture(terminal): pass
@pytest.mark.tmux
def test_by_marker(): pass
def test_without(): pass
"""


def test_missing_program_is_counted_with_the_command(pytester: pytest.Pytester, absent: Callable[..., None]) -> None:
    absent("tmux")
    result = run(pytester, ASKS_FOR_TMUX)
    result.assert_outcomes(passed=1, skipped=2)
    result.stdout.fnmatch_lines(["*2 tests need tmux, *: tmux not installed", "*install*tmux*"])


def test_missing_program_is_a_failure_in_ci(
    pytester: pytest.Pytester, absent: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    absent("tmux")
    monkeypatch.setenv("CI", "true")
    run(pytester, ASKS_FOR_TMUX).assert_outcomes(passed=1, errors=2)


def test_quick_run_has_only_what_needs_nothing(pytester: pytest.Pytester, absent: Callable[..., None]) -> None:
    absent()
    run(pytester, ASKS_FOR_TMUX, "--size", "quick").assert_outcomes(passed=1, deselected=2)


def test_skip_that_no_need_explains_is_a_failure(pytester: pytest.Pytester) -> None:
    result = run(pytester, "def test_x(): pytest.skip('not today')")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*no need explains it*not today*"])


ONE_OF_EACH = """
@pytest.mark.exhaustive("once more")
def test_again(): pass
@pytest.mark.slow("sleeps")
def test_slow(): pass
@pytest.mark.req("SAND-02")
def test_plain(): pass
"""


@pytest.mark.parametrize(
    ("words", "passed"), [("--size quick", 1), ("--size default", 2), ("--size all", 3), ("--req SAND-02", 1)]
)
def test_each_size_has_more(pytester: pytest.Pytester, words: str, passed: int) -> None:
    run(pytester, ONE_OF_EACH, *words.split()).assert_outcomes(passed=passed, deselected=3 - passed)


@pytest.mark.parametrize("name", ["exhaustive", "slow"])
def test_what_is_left_out_needs_a_reason(pytester: pytest.Pytester, name: str) -> None:
    result = run(pytester, f"@pytest.mark.{name}\ndef test_x(): pass")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


TWO_ACCOUNTS = """
@pytest.fixture(params=["user", "root"])
def account(request): return request.param
def test_once(account): pass
@pytest.mark.parametrize("row", "abc")
def test_table(account, row): pass
@pytest.mark.root_differs("why")
@pytest.mark.parametrize("row", "abc")
def test_of_root(account, row): pass
@pytest.mark.root_repeats("why")
def test_repeated(account): pass
"""


def test_root_tries_the_first_case_of_each_and_in_all_every_one(pytester: pytest.Pytester) -> None:
    result = run(pytester, TWO_ACCOUNTS, "--size", "default", "-v")
    tried = [line.split()[0].partition("::")[2] for line in result.outlines if "PASSED" in line and "[root" in line]
    assert tried == [
        *("test_once[root]", "test_table[root-a]"),
        *("test_of_root[root-a]", "test_of_root[root-b]", "test_of_root[root-c]"),
    ]
    run(pytester, TWO_ACCOUNTS, "--size", "all").assert_outcomes(passed=16)


# The machine


def inherited(after: str = "") -> str:
    """What a program finds after somebody with odd habits started it."""
    program = f"""
import os, resource, signal, sys
sys.path.insert(0, {str(CHECKOUT / "tests")!r})
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGQUIT, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
os.umask(0o077)
resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
from running import machine
{after}
os.execv(sys.executable, [sys.executable, "-c", '''
import os, resource, signal
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, signal.getsignal(signal.SIGQUIT) == signal.SIG_DFL)
print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])), oct(os.umask(0)))
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
'''])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return " ".join(done.stdout.split())


def test_habits_of_who_starts_the_tests_are_forgotten() -> None:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    open_files = machine.LIMITS[resource.RLIMIT_NOFILE]
    expected = open_files if most == resource.RLIM_INFINITY else min(open_files, most)
    assert inherited() == f"False False [{signal.SIGTERM!r}] 0o77 256"
    assert inherited("machine.calm()") == f"True True [] 0o22 {expected}"


def test_variables_of_who_starts_the_tests_are_forgotten() -> None:
    odd = {
        "HOME": "/home/somebody",
        "XDG_CONFIG_HOME": "/x",
        "LANG": "de_DE.UTF-8",
        "TZ": "Asia/Tokyo",
        "COLUMNS": "20",
        "http_proxy": "http://proxy:3128",
        "PYTHONPATH": "/x",
        "NIX_PATH": "/x",
        "CI": "true",
    }
    found = machine.variables(odd, "/root")
    assert found == {**machine.variables({}, "/root"), "CI": "true"}
    assert "somebody" not in str(found)


@pytest.mark.root
@pytest.mark.xdist_group("maya")  # the working day makes a home beside it
def test_machine_has_what_tests_rely_on(tmp_path: Path) -> None:
    assert os.stat("/dev/net/tun").st_mode & 0o777 == 0o666
    assert os.getpid() < 100, "not in a namespace of our own"
    assert os.listdir("/home") in ([], [CHECKOUT.parts[2]])
    for variable in ("XDG_RUNTIME_DIR", "http_proxy", "COLUMNS", "DISPLAY"):
        assert variable not in os.environ
