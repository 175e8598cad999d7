"""What the documents name exists: files, functions, links; and CONTRIBUTING quotes the source as it is."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tools.shared_files import manual_page

import reference
from claudebox import __version__
from claudebox.commands.help import EXIT_STATUSES
from claudebox.features.table import SETTINGS
from conftest import CHECKOUT

SOURCE = CHECKOUT / "src" / "claudebox"
DOCUMENTS = sorted([*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").rglob("*.md"), CHECKOUT / "tests" / "README.md"])
PARTS = "|".join(sorted(re.escape(path.name) for path in (*CHECKOUT.iterdir(), *SOURCE.iterdir()) if path.is_dir()))
# A file of the project: below one of its folders, or a module by its name.
OURS = re.compile(rf"(?:(?:{PARTS})/[\w./-]*\w|[\w/]*\w\.(?:py|nix|sh))")
# Rooms of an older layout. Who moves files again adds the names that are gone.
GONE = re.compile(r"\b(?:rules)/|\blaunch/\w")
# A function with the file that it is in, as in: `decide` (`plan.py`).
WITH_FILE = re.compile(r"`([\w.]+)` (?:\(|in )`([\w/]+\.py)`")


def named(document: Path) -> list[str]:
    """What a document names in code: in the text, not in examples of what one types."""
    prose = re.sub(r"^ *```.*?^ *```$", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    return [word for code in re.findall(r"`([^`\n]+)`", prose) for word in code.split()]


def find(name: str) -> Path | None:
    """A name is one from the root, of the package, of the tests, as in their map, or of each feature (`act.py`)."""
    of_features = SOURCE.glob(f"features/*/{name}")
    places = (CHECKOUT / name, SOURCE / name, CHECKOUT / "tests" / name, SOURCE.parent / name, *of_features)
    return next((place for place in places if place.exists()), None)


def definitions(path: Path) -> set[str]:
    """Functions, classes, methods as `Class.method`, and constants of a module."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
        if isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def identify(path: Path) -> str:
    return str(path.relative_to(CHECKOUT))


@pytest.mark.parametrize("document", DOCUMENTS, ids=identify)
def test_what_is_named_exists(document: Path) -> None:
    """Files, functions with their file, links; and no room of an older layout."""
    words, text = named(document), document.read_text()
    files = [name for name in words if OURS.fullmatch(name) and "NAME" not in name and not name.startswith(".git/")]
    assert [name for name in files if find(name) is None] == []
    assert [name for name in words if GONE.search(name.removeprefix("tests/layers/"))] == []
    links = [link for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text) if "://" not in link]
    assert [link for link in links if not (document.parent / link).exists()] == []
    for name, file in WITH_FILE.findall(text):
        path = find(file)
        assert path is not None, file
        assert name in definitions(path) or name.endswith(".py"), f"{file} has no {name}"


def test_documents_do_name_files_and_functions() -> None:
    """Else the tests above would hold nothing."""
    architecture = CHECKOUT / "docs" / "architecture.md"
    assert len([name for name in named(architecture) if OURS.fullmatch(name)]) > 40
    assert len(WITH_FILE.findall(architecture.read_text())) > 8


def test_contributing_quotes_the_source() -> None:
    text = (CHECKOUT / "CONTRIBUTING.md").read_text()
    quotes = re.findall(r"^```python\n# (\S+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert len(quotes) > 4
    for file, quote in quotes:
        lines = (CHECKOUT / file).read_text().splitlines()
        assert [line for line in quote.splitlines() if line != "…" and line not in lines] == [], file


def test_diagrams_fit_a_terminal() -> None:
    for block in re.findall(
        r"^```\n(.*?)^```$", (CHECKOUT / "docs/architecture.md").read_text(), re.DOTALL | re.MULTILINE
    ):
        assert [line for line in block.splitlines() if len(line) > 80 or not line.isascii()] == []


def test_public_host_and_commits_run_the_same_commands() -> None:
    workflow = (CHECKOUT / ".github/workflows/tests.yml").read_text()
    assert re.findall(r"run: (\S*(?:run-tests|ci/run).*)$", workflow, re.MULTILINE) == [
        "./run-tests --quick",
        ".ci/run",
    ]
    assert "\npermissions:\n  contents: read\n" in workflow
    assert [use for use in re.findall(r"uses: (\S+)", workflow) if not re.search(r"@v\d+\.\d+\.\d+$", use)] == []
    hooks = re.findall(r"entry: (.*)$", (CHECKOUT / ".pre-commit-config.yaml").read_text(), re.MULTILINE)
    assert hooks == [".venv/bin/ruff format", ".venv/bin/ruff check", ".venv/bin/mypy", "./run-tests --quick"]


# What docs say from the table of settings.


def test_reference_is_what_the_table_says() -> None:
    command = [sys.executable, str(CHECKOUT / "tools" / "settings-reference")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert (CHECKOUT / "docs" / "settings.md").read_text() == printed, "tools/settings-reference >docs/settings.md"


def test_exit_statuses_are_those_of_the_help() -> None:
    assert reference.EXIT_STATUSES == EXIT_STATUSES


# The documentation as a site.


DOCS = CHECKOUT / "docs"


def test_every_page_is_in_the_navigation_and_on_the_first_page() -> None:
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    navigation = set(re.findall(r"- (?:\w+: )?(\S+\.md)$", (CHECKOUT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert navigation == pages, "name the page in mkdocs.yml, and in docs/index.md"
    assert set(re.findall(r"\]\(([^)]+\.md)\)", (DOCS / "index.md").read_text())) == pages - {"index.md"}


@pytest.mark.exhaustive("links and pages are looked at in the default run; this builds them")
def test_site_is_built_without_a_warning(tmp_path: Path) -> None:
    mkdocs = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    environ = {"PATH": "/usr/bin:/bin", "NO_MKDOCS_2_WARNING": "true", "DISABLE_MKDOCS_2_WARNING": "true"}
    done = subprocess.run(mkdocs, cwd=CHECKOUT, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    built = (tmp_path / "site/how-to/install.html").read_text()
    assert "uv tool install" in built
    # It can be read where there is no network.
    assert re.findall(r'(?:src|href)="(?:https?:)?//(?!\w[\w.]*\.(?:org|io|com)/)[^"]*\.(?:js|css)"', built) == []


# The manual page, as its readers see it.


# It would be another one each time that it is built.
NO_DATE = re.compile(r"mandoc: \S+ WARNING: missing date, using \"\": TH\n")


@pytest.fixture
def page(tmp_path: Path) -> Path:
    file = tmp_path / "claudebox.1"
    file.write_text(manual_page())
    return file


@pytest.mark.mandoc
def test_manual_page_has_no_known_mistake(page: Path) -> None:
    said = subprocess.run(["mandoc", "-T", "lint", str(page)], capture_output=True, text=True, check=False)
    assert NO_DATE.sub("", said.stdout) == ""


@pytest.mark.mandoc
@pytest.mark.parametrize("reader", ["man -l", "mandoc -T utf8"])
def test_manual_page_shows_everything_of_the_table(page: Path, reader: str) -> None:
    environ = {"PATH": "/usr/bin:/bin", "MANWIDTH": "200", "LANG": "C.UTF-8", "MANPAGER": "cat"}
    done = subprocess.run([*reader.split(), str(page)], env=environ, capture_output=True, text=True, check=True)
    shown = re.sub(r".\x08", "", done.stdout)
    wanted = [setting.option for setting in SETTINGS if not setting.in_files_only]
    wanted += [setting.variable for setting in SETTINGS if setting.variable]
    wanted += [*SETTINGS.by_key, *(status for status, _ in EXIT_STATUSES), __version__]
    wanted += [setting.metavar.replace("…", "...") for setting in SETTINGS]
    assert [word for word in wanted if word not in shown] == []


def test_manual_page_is_plain_text() -> None:
    assert manual_page().isascii()
