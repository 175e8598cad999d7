"""Makes decoys of source code and of XML: only texts in quotes, or between tags, can be secret in there.

What a text is called is taken from what stands before it: `PASSWORD = "x"`, `define('PASSWORD', 'x')`,
`<password>x</password>`, `<add key="Password" value="x"/>`, `<key>TOKEN</key><string>x</string>`.
"""

from __future__ import annotations

from claudebox.features.secrets.invention import MASKED, Invent, plain
from claudebox.features.secrets.values import change, holds_secret
from claudebox.trust.secret_values import looks_secret

QUOTES = "\"'`"
# Their first text names the second.
NAMING_CALLS = ("define", "putenv", "setenv", "ini_set", "set", "env", "getenv", "get", "fetch", "setdefault")
JOINING = ("", ".", "+", "..", "<>")
INSTEAD = (" or", "||", "??", "?:")  # before what is taken if there is nothing else
PREFIXES = ("b", "r", "f", "u", "br", "rb", "L", "@")  # of texts, as in `b"x"`
NAMING = ("key", "name", "id")  # attributes and elements that say what the next one is


def mask_quoted(text: str, invent: Invent = plain) -> str:
    """Source code in which quoted texts that look secret are made up."""
    made: list[str] = []
    place, before, caller, name = 0, "", "", ""
    for start in _quotes(text):
        if start < place:
            continue  # inside of the text before
        long = text[start] * 3  # a text of several lines, in Python
        last = text.find(long, start + 3) if text.startswith(long, start) else -1
        width, end = (3, last + 3) if last >= 0 else (1, _end_of_quote(text, start))
        between = text[place:start]
        own = _assigned(text, start) if between.rstrip().endswith(INSTEAD) else _last_name(between)
        is_second = between.strip() == "," and caller in NAMING_CALLS
        if between.strip(" \t\n\\") not in JOINING:  # more of the same text keeps its name
            name = own or (before if is_second or between.strip(" \t\n]") in ("=>", ":", "=") else "")
        caller = own.rpartition(".")[2]
        inner = text[start + width : end - width]
        made += [between, text[start] * width, _masked(name, inner, invent), text[end - width : end]]
        before = inner
        place = end
    return "".join(made) + text[place:]


def _quotes(text: str) -> list[int]:
    return [place for place, character in enumerate(text) if character in QUOTES]


def _end_of_quote(text: str, start: int) -> int:
    """Where a text in quotes ends. An apostrophe in a comment is taken for one; then it ends with the line."""
    quote, place = text[start], start + 1
    while place < len(text):
        if text[place] == quote or (text[place] == "\n" and quote != "`"):
            return place + 1
        place += 2 if text[place] == "\\" else 1
    return len(text) + 1


def _assigned(text: str, place: int) -> str:
    """What the line of this place assigns to: of `KEY = get("X") or "y"`, the first word."""
    words = text[text.rfind("\n", 0, place) + 1 : place].partition("=")[0].partition(":")[0].split()
    return words[-1].lstrip("$") if words else ""


def _last_name(between: str) -> str:
    """The name just before a value: of `x.password = ` and `WIFI_PASSWORD `, the last word."""
    line = between.rpartition("\n")[2]
    before = between.rstrip(" \t\n\\([{")
    if not line.strip() and before.endswith(("=", ":")):  # the value is on a line of its own
        line = before.rpartition("\n")[2]
    name, colon, rest = line.partition(":")
    if colon and rest.rstrip(" \t\\([{").endswith("=") and name.split()[-1:] and name.split()[-1].isidentifier():
        return name.split()[-1]  # with a type, as in `PASSWORD: str = `
    bare = next((line[: -len(one)] for one in PREFIXES if line.endswith(one)), line)
    line = (bare if bare[-1:] in tuple(" \t=>:([{,") else line).rstrip(" \t=>:([{")
    start = len(line)
    while start and (line[start - 1].isalnum() or line[start - 1] in "_.-$"):
        start -= 1
    return line[start:].lstrip("$.-")


def _masked(name: str, value: str, invent: Invent) -> str:
    if invent.shows(name):
        return value
    changed = change(name, value, gently=True, invent=invent)
    return changed.replace("\n", "\\n") if changed != value else value


def mask_markup(text: str, invent: Invent = plain) -> str:
    """XML in which attributes and texts that look secret are made up."""
    head, *pieces = text.split("<")
    made = [head]
    said = above = called = ""
    for piece in pieces:
        tag, bracket, content = piece.partition(">")
        if tag.startswith("!"):
            made.append(_aside(piece, called, invent))
            continue
        name = tag.split(maxsplit=1)[0].rstrip("/").rpartition(":")[2] if tag.strip() else ""
        closes = tag.startswith("/")
        name = name.removeprefix("/")
        called = said if name.lower() in ("string", "value", "data") and said else _longer(above, _own(name))
        body = content.strip()
        shown = content if closes or not body else content.replace(body, _masked(called, body, invent))
        attributes, named = _attributes(tag, invent)
        made.append(f"{attributes}{bracket}{shown}")
        if not closes:
            said = body if name.lower() in NAMING and body else named or ("" if body else said)
            above = name if not body and not tag.endswith("/") and looks_secret(name, "x") else above
        elif name == above:
            above = ""
    return "<".join(made)


def _aside(piece: str, called: str, invent: Invent) -> str:
    """A comment or `<![CDATA[…]]>`, and the text behind it, which belongs to the element around."""
    if not piece.startswith(("!--", "![CDATA[")):
        return piece
    start, end = ("!--", "-->") if piece.startswith("!--") else ("![CDATA[", "]]>")
    inner, found, rest = piece.removeprefix(start).partition(end)
    is_secret = mask_quoted(inner) != inner or holds_secret(inner)
    if start == "![CDATA[":
        is_secret = is_secret or _masked(called, inner.strip(), invent) != inner.strip()
    behind = rest.replace(rest.strip(), _masked(called, rest.strip(), invent)) if rest.strip() else rest
    return f"{start}{f' {MASKED} ' if is_secret else inner}{found}{behind}"


def _own(name: str) -> str:
    """A name, unless it only says that a name follows."""
    return "" if name.lower() in NAMING else name


def _longer(above: str, name: str) -> str:
    return f"{above}_{name}" if above else name


def _attributes(tag: str, invent: Invent) -> tuple[str, str]:
    """The tag with made-up values, and what it names: of `key="Password" value="x"`, what the other one is."""
    found = []
    place = 0
    for start in _quotes(tag):
        if start < place:
            continue
        end = tag.find(tag[start], start + 1)
        if end < 0:
            break
        found.append((_last_name(tag[place:start]), place, start + 1, end))
        place = end + 1
    said = next((tag[start:end] for name, _, start, end in found if name.lower() in NAMING), "")
    made = []
    for name, before, start, end in found:
        called = said if name.lower() == "value" and said else _own(name)
        made += [tag[before:start], _masked(called, tag[start:end], invent), tag[end]]
    return "".join(made) + tag[place:], said
