"""The documentation as a site."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import CHECKOUT

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
