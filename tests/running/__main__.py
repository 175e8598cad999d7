"""`./run-tests`: what to test, getting what that needs, and testing."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

TESTS = Path(__file__).resolve().parent.parent
sys.path[0] = str(TESTS)
REFUSED = 125
MANY, FEW = 1000, 8  # tests
PYTHON = ".venv/bin/python"

DESCRIPTION = "Test claudebox. Without options: every requirement, attack and screen once."
EXAMPLES = """\
examples:
  ./run-tests --quick                      before each commit
  ./run-tests                              before a change is kept
  ./run-tests tests/network -k dns         some of them; only what these need is installed
  ./run-tests --req SAND-02                those that hold a requirement
  ./run-tests --all --workers 8            everything, as CI does it
  ./run-tests tests/box -- --pdb -s        what follows `--` is for pytest

Sizes, needs and how to write a test: tests/README.md. Times, versions and machines: docs/testing.md.
"""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"error: {message}\n\nhint: ./run-tests --help; options of pytest come after `--`", file=sys.stderr)
        sys.exit(REFUSED)


def make_parser() -> Parser:
    parser = Parser(
        "./run-tests",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="in seconds: no box, no system packages, nothing downloaded")
    size.add_argument("--all", action="store_true", help="every version and combination, storms, kill loops")
    parser.add_argument("--req", action="append", default=[], metavar="ID", help="only tests of this requirement")
    parser.add_argument("--workers", type=int, metavar="N", help="tests that run at the same time")
    parser.add_argument("--update-golden", action="store_true", help="write the golden files anew")
    parser.add_argument("-k", metavar="WORDS", help="only tests with such names, as pytest understands it")
    parser.add_argument("-m", metavar="MARKERS", help="only tests with such markers, for example `not network`")
    parser.add_argument("-x", action="store_true", help="stop at the first failure")
    parser.add_argument("-v", action="store_true", help="name each test")
    parser.add_argument("--durations", metavar="N", help="tell the N slowest; 0 for all")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files, folders, or file::test")
    return parser


def main(words: Sequence[str]) -> int:
    if words[:1] == ["--be-worker"]:
        from running import machine

        return machine.be_worker(words[1:])
    own, rest = _split(words)
    options = make_parser().parse_intermixed_args(own)
    from running import machine, needs
    from running.install import install, install_tools

    for path in options.paths:
        if not (TESTS.parent / path.partition("::")[0]).exists():
            make_parser().error(f"there is no {path}")

    try:
        install_tools(TESTS.parent / ".venv")
        arguments = pytest_arguments(options) + rest
        count = MANY
        if not options.quick:
            count, wanted = look(options, arguments)
            install(wanted)
        command = [PYTHON, "-m", "pytest", *arguments, *spread(options, rest, count)]
        # Root can hide programs: who uses one in the quick run without saying so fails.
        return machine.run(command, os.environ, needs.programs_of(needs.NEEDS) if options.quick else ())
    except subprocess.CalledProcessError as error:
        print(f"error: {error}", file=sys.stderr)
        return REFUSED


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    where = words.index("--") if "--" in words else len(words)
    return list(words[:where]), list(words[where + 1 :])


def pytest_arguments(options: argparse.Namespace) -> list[str]:
    words = ["--size", "quick" if options.quick else "all" if options.all else "default"]
    if options.k:
        words += ["-k", options.k]
    if options.m:
        words += ["-m", options.m]
    words += [f"-{name}" for name in ("x", "v") if getattr(options, name)]
    words += [word for identifier in options.req for word in ("--req", identifier)]
    if options.update_golden:
        words.append("--update-golden")
    if options.durations:
        words.append(f"--durations={options.durations}")
    if sys.stdout.isatty():
        words.append("--color=yes")
    return [*words, *options.paths]


def look(options: argparse.Namespace, arguments: Sequence[str]) -> tuple[int, list[str]]:
    """How many tests are chosen, and what they need, which pytest finds out; without a choice all there is."""
    from running import machine, needs

    if not (options.paths or options.req or options.k or options.m):
        return MANY, [need.name for need in needs.TABLE if options.all or not need.only_in_all]
    with tempfile.NamedTemporaryFile(prefix="claudebox-needs-") as file:
        words = ["--collect-only", "-qq", "--no-header", f"--needs-to={file.name}", *arguments]
        done = subprocess.run(
            [TESTS.parent / PYTHON, "-m", "pytest", *words],
            cwd=TESTS.parent,
            env=machine.variables(os.environ, "/"),
            capture_output=True,
            text=True,
            check=False,
        )
        answer = file.read()
    if done.returncode not in (0, 5):  # 5: none, which pytest will say again
        print(done.stdout + done.stderr, file=sys.stderr)
        sys.exit(REFUSED)
    found = json.loads(answer or '{"tests": 0, "needs": []}')
    return found["tests"], found["needs"]


def spread(options: argparse.Namespace, rest: Sequence[str], tests: int) -> list[str]:
    """Over workers, of which there can be many: most tests wait for something most of the time."""
    count = options.workers
    if count is None:
        alone = {"--pdb", "-s", "--trace", "--lf", "--ff"} & set(rest) or options.update_golden
        cores = len(os.sched_getaffinity(0))
        count = 0 if alone or tests <= FEW else cores if options.quick else 3 * cores
    if not count:
        return []
    from running import machine

    # What is quick has nothing that several tests share, and handing out tests one by one would take a while.
    how = "worksteal" if options.quick else "loadgroup"
    return ["--tx", f"{min(count, machine.ACCOUNTS)}*{machine.worker()}", "--dist", how]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
