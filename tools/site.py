"""A hook of mkdocs: links to files of the repository that are no pages become their names."""

from __future__ import annotations

import posixpath
import re
from typing import Any

LINK = re.compile(r"\[([^\]]+)\]\(([^)\s#]+)(#[^)]*)?\)")


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    here = posixpath.dirname(page.file.src_uri)

    def without_link(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(here, link[2]))
        is_outside = target.startswith("../") and "://" not in link[2]
        return f"{link[1]} (`{target.removeprefix('../')}` in the repository)" if is_outside else link[0]

    return LINK.sub(without_link, markdown)
