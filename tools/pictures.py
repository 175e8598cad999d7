#!/usr/bin/env python3
"""Make the pictures of README.md from what a terminal really shows: the first screen, and the demo as a recording.

    tools/pictures.py [DIRECTORY]    docs/pictures, unless another one is named

The text of the first screen goes into README.md, too, between its two marks, unless another directory is named.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

sys.path.insert(0, str(Path(__file__).resolve().parent))

from recording import COLUMNS, LINES, ROOT, Person, Terminal, person, terminals
from working_day import furnish

README = ROOT / "README.md"
BEGIN, END = "<!-- the first screen: written by tools/pictures.py -->\n", "<!-- the first screen ends -->\n"
CODE = re.compile(r"\x1b\[([\d;]*)m")
OTHER_CODE = re.compile(r"\x1b[()][0-9A-B]|[\x0e\x0f]|\x1b\[[\d;?]*[A-Za-ln-z]")
COLOURS = dict(
    zip(range(30, 38), "#5c6370 #e06c75 #98c379 #e5c07b #61afef #c678dd #56b6c2 #dcdfe4".split(), strict=True)
)
WIDTH, HEIGHT, MARGIN = 8.4, 18, 14  # of a character, of a line, around
SHORTEST, LONGEST = 0.15, 1.2  # seconds between two pictures of a recording
LAST_SECONDS = 6.0
HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}"
  role="img" aria-label="{title}">
<title>{title}</title>
<rect width="100%" height="100%" rx="8" fill="#21252b"/>
<g font-family="ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="14" fill="#dcdfe4">
"""


@dataclass
class Frame:
    """The lines of a screen, with the codes of their colours, and when it was seen."""

    second: float
    lines: list[str]


def look(terminal: Terminal, since: float) -> Frame:
    seen = terminal.screen("-e").replace(str(terminal.who.home), "/home/maya")
    lines = [OTHER_CODE.sub("", line).rstrip() for line in seen.split("\n")[:LINES]]
    return Frame(time.monotonic() - since, list(with_codes_above(lines)))


def with_codes_above(lines: list[str]) -> Iterator[str]:
    """Each line with the codes that the lines above have left in force: tmux names only what changes."""
    left = ""
    for line in lines:
        yield left + line if line else line
        for code in CODE.findall(line):
            left = "" if code in ("", "0") else f"{left}\x1b[{code}m"


def spans(line: str) -> str:
    """A line as spans of one style each."""
    parts = CODE.split(line)
    style: dict[str, str] = {}
    made = ""
    for number, part in enumerate(parts):
        if number % 2:
            style = restyle(style, [int(code or 0) for code in part.split(";")])
        elif part:
            attributes = "".join(f' {name}="{value}"' for name, value in style.items())
            made += f"<tspan{attributes}>{escape(part)}</tspan>" if style else escape(part)
    return made


def restyle(style: dict[str, str], codes: list[int]) -> dict[str, str]:
    style = dict(style)
    for code in codes:
        if code == 0:
            style = {}
        elif code == 1:
            style["font-weight"] = "bold"
        elif code == 2:
            style["fill-opacity"] = "0.6"
        elif code == 22:
            style = {name: value for name, value in style.items() if name == "fill"}
        elif code == 39:
            style.pop("fill", None)
        elif code in COLOURS or code - 60 in COLOURS:
            style["fill"] = COLOURS.get(code) or COLOURS[code - 60]
    return style


def text(row: int, line: str, inside: str = "", is_hidden: bool = False) -> str:
    plain = CODE.sub("", line)
    # The length is said, so that a font of another width does not move the columns.
    length = f' textLength="{len(plain) * WIDTH:.0f}" lengthAdjust="spacingAndGlyphs"' if plain.strip() else ""
    place = f'x="{MARGIN}" y="{MARGIN + (row + 1) * HEIGHT - 5}"'
    hidden = ' visibility="hidden"' if is_hidden else ""
    return f'<text {place}{length}{hidden} xml:space="preserve">{spans(line)}{inside}</text>\n'


def head(title: str, rows: int) -> str:
    return HEAD.format(title=escape(title), width=COLUMNS * WIDTH + 2 * MARGIN, height=rows * HEIGHT + 2 * MARGIN)


def picture(title: str, frame: Frame) -> str:
    lines = frame.lines
    while lines and not lines[-1]:
        lines = lines[:-1]
    return (
        head(title, len(lines)) + "".join(text(row, line) for row, line in enumerate(lines) if line) + "</g>\n</svg>\n"
    )


def recording(title: str, frames: list[Frame]) -> str:
    """Each line from when it was seen until another one stands in its place; from the beginning when it is over."""
    starts, now = [], 0.0
    for before, frame in zip([frames[0], *frames], frames, strict=False):
        now += min(max(frame.second - before.second, SHORTEST), LONGEST)
        starts.append(now)
    end = now + LAST_SECONDS
    rows = max(len([line for line in frame.lines if line]) for frame in frames) + 1
    made = head(title, min(rows, LINES))
    clock = f'<animate id="all" attributeName="width" begin="0s;all.end" dur="{end:.2f}s"/>'
    made += f'<rect width="0" height="0">{clock}</rect>\n'
    for row in range(LINES):
        shown = [frame.lines[row] if row < len(frame.lines) else "" for frame in frames]
        for number, line in enumerate(shown):
            if not line or (number and shown[number - 1] == line):
                continue
            until = next((starts[later] for later in range(number, len(shown)) if shown[later] != line), end)
            # Where nothing moves, the last screen is to be seen: its lines are hidden until then.
            begin, lasts, value = starts[number], until - starts[number], "visible"
            if until == end:
                begin, lasts, value = 0.0, starts[number], "hidden"
            when = f'begin="all.begin+{begin:.2f}s" dur="{lasts:.2f}s"'
            made += text(row, line, f'<set attributeName="visibility" to="{value}" {when}/>', until != end)
    return made + "</g>\n</svg>\n"


def first_screen(terminal: Terminal) -> Frame:
    terminal.start("claudebox")
    terminal.shows("Start?")
    frame = look(terminal, time.monotonic())
    terminal.type("n", "Enter")
    terminal.finish()
    return frame


def demo(terminal: Terminal) -> list[Frame]:
    terminal.start("claudebox --demo")
    begin = time.monotonic()
    frames = [look(terminal, begin)]
    while not (terminal.is_waiting() and len(frames) > 1):
        time.sleep(0.1)
        frame = look(terminal, begin)
        if frame.lines != frames[-1].lines:
            frames.append(frame)
    # The prompt may have come after the last look, and then the recording would end without it, or not.
    return [*frames, look(terminal, begin)]


def furnish_further(who: Person) -> None:
    """A project as people have it, with what the box keeps for itself."""
    who.run("git", "clone", "-q", str(who.home / "shop.git"), "src/shop")
    (who.home / "shop.env").rename(who.home / "src/shop/.env")
    for name in (".gnupg", ".kube", ".docker", ".config/gh"):
        (who.home / name).mkdir(parents=True)
    who.own(who.home)


def main(words: list[str]) -> int:
    directory = Path(words[0]) if words else ROOT / "docs/pictures"
    directory.mkdir(parents=True, exist_ok=True)
    with person("maya") as who:
        furnish(who)
        furnish_further(who)
        with terminals(who, "desk", cwd=who.home / "src/shop") as windows:
            first = first_screen(windows["desk"])
            frames = demo(windows["desk"])
    (directory / "first-screen.svg").write_text(picture("The first start in a project: what the box has", first))
    (directory / "demo.svg").write_text(recording("claudebox --demo: an agent tries to take fake secrets", frames))
    if not words:
        before, _, rest = README.read_text().partition(BEGIN)
        plain = "\n".join(CODE.sub("", line) for line in first.lines).strip()
        README.write_text(f"{before}{BEGIN}\n```text\n{plain}\n```\n\n{END}{rest.partition(END)[2]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
