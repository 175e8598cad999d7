"""Makes decoys of files that are read line by line: dotenv, INI, properties, TOML, YAML.

This is a parser of none of these formats. It keeps only the parts of a line that it understands, and leaves out the
rest. So a file that means something else than it seems to shows less, not more.
"""

from __future__ import annotations

from claudebox.features.secrets.invention import MASKED, Invent, plain
from claudebox.features.secrets.values import (
    BEGIN,
    change,
    holds_pair,
    holds_secret,
    is_name,
    is_reference,
    stand_in,
)
from claudebox.settings.types import is_variable_name
from claudebox.trust.secret_values import looks_secret

COMMENTS = ("#", ";", "//", "--", "!")
QUOTES = ('"""', "'''", '"', "'", "`")
SHORTEST_CODE = 8
LONGEST_TEXT = 1 << 14  # characters of a text of several lines that are looked at to choose its stand-in
LONGEST_NAME = 60
BRACKETS = {"[": "]", "{": "}"}
BLOCKS = ("|", ">")  # how YAML begins a text of several lines


class LineMasker:
    """Makes the decoy of one file, line after line."""

    def __init__(
        self, *, gently: bool, is_yaml: bool = False, drops_accounts: bool = False, invent: Invent = plain
    ) -> None:
        self.gently = gently
        self.invent = invent
        self.is_yaml = is_yaml
        self.drops_accounts = drops_accounts  # from addresses: without one git asks for none, and may be let in
        self.changed = False
        self._ahead: list[str] = []  # the lines that come, the next one last
        self._until = ""  # what ends a value that goes on over several lines
        self._keeps_until = False
        self._shows_text = False  # whether that value is one that the user wants to be shown
        self._block = -1  # how far the key is indented to which a text of several lines belongs
        self._keeps_block = False
        self._drops_rest = False  # whether the last value was changed, so that lines that continue it are dropped
        self._above: list[tuple[int, str]] = []  # names that say of what is below them that it is secret
        self._option = ""  # of a list with `--password` and then `x`, the former
        self._said = ""  # of `name: TOKEN` and then `value: x`, what the value is called

    def mask(self, text: str) -> str:
        whole = text if self.is_yaml else text.replace("\\\n", " ")  # a backslash continues a line
        self._ahead = whole.splitlines()[::-1]
        lines = []
        while self._ahead:
            lines.append(self._line(self._ahead.pop()))
        return "".join(f"{line}\n" for line in lines if line is not None)

    def _line(self, line: str) -> str | None:
        body = line.strip()
        if self._until:
            self._until = "" if self._until in line else self._until
            return line if self._shows_text else self._in_text(line) if self._keeps_until else None
        self._keeps_until = self._shows_text = False
        indent = len(line) - len(line.lstrip())
        if self._block >= 0:
            if not body or indent > self._block:
                return self._in_text(line) if self._keeps_block else None
            self._block = -1
        if not body:
            return ""
        if body.startswith(COMMENTS) and not (body.startswith("//") and "=" in body):
            self.changed = self.changed or self._is_old_value(body.lstrip("#;/-! "))
            return None
        if body.startswith("[") and not self.is_yaml:
            return self._section(body)
        return self._pair(line, indent)

    def _in_text(self, line: str) -> str | None:
        """A line of a text of several lines, under a key that does not say that it is secret."""
        if BEGIN in line:
            self._keeps_block = self._keeps_until = False
        is_secret = holds_secret(line) or self._is_old_value(line.strip())
        self.changed = self.changed or is_secret
        return None if is_secret else line

    def _is_old_value(self, comment: str) -> bool:
        """Whether a comment holds a value: people leave values there that they used before."""
        for separator in "=:":
            key, found, value = comment.partition(separator)
            value = value.strip().strip("\"',")
            is_pair = found and is_variable_name(key.strip().removeprefix("export ").strip("\"'").replace("-", "_"))
            is_pair = is_pair and (separator == "=" or self.gently) and not (separator == ":" and " " in value)
            if is_pair and change(key.strip(), value, gently=self.gently) != value:
                return True
        return holds_secret(comment)

    def _section(self, body: str) -> str:
        """Keep a header such as `[remote "origin"]` in some way: what follows is not part of the section before."""
        head, bracket, rest = body.split("#")[0].strip().rpartition("]")
        head, rest = head + bracket, rest.strip()
        words = head.strip("[]").split()
        self._drops_rest = False
        self._above = [(-1, head)] if self.gently and not self.drops_accounts and looks_secret(head, "x") else []
        pair = f"\n{self._pair(rest, 0) or ''}" if rest else ""
        if self.drops_accounts and "://" in head:
            words = [_without_account(word) if "://" in word else word for word in words]
            self.changed = self.changed or words != head.strip("[]").split()
            head = f"[{' '.join(words)}]"
        if bracket and words and all(is_name(word.strip('"')) and not holds_secret(word) for word in words):
            return head + pair
        self.changed = self.changed or not self.gently or holds_secret(head)
        first = words[0] if len(words) > 1 and words[0].isalpha() and words[0].islower() else ""
        return (f'[{first} "{MASKED}"]' if first else f"[{MASKED}]") + pair

    def _pair(self, line: str, indent: int) -> str | None:
        head, dash, rest = self._after_dashes(line)
        found = self._split(rest)
        if found is None:
            return self._lone(head, rest, indent, is_item=bool(dash))
        key, separator, value = found
        name = key.strip().removeprefix("export ").strip().strip("\"'")
        is_key = is_name(name.rpartition("//")[2]) and (self.gently or self.is_yaml or " " not in name)
        if not is_key or _is_padded(name, value):
            self._note_end(value, indent)
            is_kept = self.gently and not self._drops_rest and not self._is_secret_line(name, value, line)
            self.changed = self.changed or not is_kept
            return line if is_kept else None
        self._drops_rest = False
        if self.invent.shows(name):
            self._show(value)
            return line
        changed = self._value(self._called(name, value, len(head)), value, indent)
        return f"{head}{key}{separator}{changed}"

    def _show(self, value: str) -> None:
        """Let a value be seen as it is, with the lines that it goes on over."""
        quote = next((quote for quote in QUOTES if value.startswith(quote)), "")
        if quote and quote not in value[len(quote) :]:
            self._until, self._shows_text = quote, True
        elif BEGIN in value and "-----END" not in value:
            self._until, self._shows_text = "-----END", True

    def _is_secret_line(self, name: str, value: str, line: str) -> bool:
        is_pair = any(bracket in line for bracket in BRACKETS) and holds_pair(line)
        is_secret = is_pair or _is_padded(name, value) or holds_secret(line)
        return is_secret or bool(looks_secret(name[-LONGEST_NAME:], value or "x"))

    def _called(self, name: str, value: str, place: int) -> str:
        """What a value is called: by its key, by the keys above it, or by the value before."""
        while self.is_yaml and self._above and self._above[-1][0] >= place:
            self._above.pop()
        full = f"{self._above[-1][1]}_{name}" if self._above else name
        if self.is_yaml and not value and looks_secret(full, "x"):
            self._above.append((place, full))
        if self.is_yaml and name.lower() == "value" and self._said:
            full, self._said = self._said, ""
        elif self.is_yaml:
            self._said = value.strip("\"'") if name.lower() in ("name", "key") else ""
        return full

    def _after_dashes(self, line: str) -> tuple[str, str, str]:
        """Split off the dashes with which the items of a YAML list begin: what is before the key, dashes, rest."""
        rest = line.lstrip()
        dash = ""
        while self.is_yaml and rest.startswith("- "):
            dash += "- "
            rest = rest[2:].lstrip()
        return line[: len(line) - len(line.lstrip())] + dash, dash, rest

    def _split(self, rest: str) -> tuple[str, str, str] | None:
        """Split a line into its key, the separator with its spaces, and the value."""
        place = self._separator(rest)
        if place <= 0:
            return None
        value = rest[place + 1 :]
        spaces = value[: len(value) - len(value.lstrip())] if value.strip() else ""
        return rest[:place], rest[place] + spaces, value.strip()

    def _separator(self, rest: str) -> int:
        if self.is_yaml:
            place = rest.replace("\t", " ").find(": ")
            return len(rest) - 1 if place < 0 and rest.endswith(":") else place
        if rest.startswith('"') and '" ' in rest and "=" not in rest:
            return rest.find('" ') + 1  # as in .yarnrc
        place = rest.find("=")
        if place > 0 or not self.gently:
            return place
        place = rest.find(":")
        return place if place > 0 and not rest[place:].startswith("://") else rest.replace("\t", " ").find(" ")

    def _value(self, name: str, value: str, indent: int) -> str:
        if self.is_yaml and _without_marks(value).startswith(BLOCKS):
            return self._text_block(name, indent)
        if value.startswith("<<") and not self.is_yaml:
            return self._document(name, value)
        if not value and looks_secret(name, "x"):
            self._drops_rest = True  # it may be on the next line
        quote = next((quote for quote in QUOTES if value.startswith(quote)), "")
        if quote:
            return self._quoted(name, value, quote, indent)
        bare = value
        if (place := value.find(" # ")) >= 0:
            bare = value[:place].rstrip()
        if bare[:1] in BRACKETS and (not self.gently or holds_pair(bare) or looks_secret(name, bare)):
            return self._brackets(bare)
        return self._changed(name, bare, indent)

    def _quoted(self, name: str, value: str, quote: str, indent: int) -> str:
        end = value.find(quote, len(quote))
        while end > 0 and value[end - 1] == "\\" and value[end - 2 : end - 1] != "\\":
            end = value.find(quote, end + 1)
        inner = value[len(quote) : end] if end >= 0 else value[len(quote) :]
        if end < 0:
            self._until = quote
            self._keeps_until = (
                self.gently and change(name, inner, gently=True) == inner and not looks_secret(name, "x")
            )
            self.changed = self.changed or not self._keeps_until
            return value if self._keeps_until else f"{quote}{self._long(name, inner, quote)}{quote}"
        after = value[end + len(quote) :].strip()
        if after and not after.startswith((",", ";", "#", "//")):
            self.changed = True  # the quotes are not what they seem to be
            return f"{quote}{MASKED}{quote}"
        comma = "," if after.startswith(",") else ""
        return f"{quote}{self._changed(name, inner, indent)}{quote}{comma}"

    def _long(self, name: str, first: str, quote: str) -> str:
        """What stands for a text of several lines, of which the first one is known."""
        text = first
        for line in reversed(self._ahead):
            text += f"\n{line}"
            if quote in line or len(text) > LONGEST_TEXT:
                break
        made = stand_in(text.partition(quote)[0], self.invent, name)
        return made if quote not in made else MASKED

    def _document(self, name: str, value: str) -> str:
        """A text as Terraform writes it, from `<<END` to `END`."""
        self._until = value.lstrip("<-~ ") or "\n"
        self._keeps_until = self.gently and not looks_secret(name, "x")
        self.changed = self.changed or not self._keeps_until
        return value if self._keeps_until else f'"{MASKED}"'

    def _text_block(self, name: str, indent: int) -> str:
        self._block = indent
        self._keeps_block = self.gently and not looks_secret(name, "x")
        self.changed = self.changed or not self._keeps_block
        if self._keeps_block:
            return "|"
        text = ""
        for line in reversed(self._ahead):
            if (line.strip() and len(line) - len(line.lstrip()) <= indent) or len(text) > LONGEST_TEXT:
                break
            text += f"{line.strip()}\n"
        made = stand_in(text.strip(), self.invent, name)
        # A key has several lines, as it must.
        return made if "\n" not in made else "|\n" + "\n".join(f"{' ' * indent}  {one}" for one in made.splitlines())

    def _brackets(self, value: str) -> str:
        """Empty a list or table that is on one line, or begins there."""
        end = BRACKETS[value[0]]
        if value.count(value[0]) > value.count(end):
            self._until = end
        self.changed = self.changed or value != value[0] + end
        return value[0] + end

    def _changed(self, name: str, value: str, indent: int) -> str:
        result = change(name, value, gently=self.gently, invent=self.invent)
        if self.drops_accounts:
            result = _for_git(name, value, result)
        if result != value:
            self.changed = self._drops_rest = True
        self._note_end(value, indent)
        # A text of several lines would be several lines here, too.
        return result.replace("\n", "\\n")

    def _note_end(self, value: str, indent: int) -> None:
        """Note where a value of several lines ends: a private key without quotes, or a text of YAML."""
        if BEGIN in value and "-----END" not in value:
            self._until = "-----END"
        elif self.is_yaml and value.startswith(BLOCKS):
            self._block, self._keeps_block = indent, False

    def _lone(self, head: str, rest: str, indent: int, *, is_item: bool) -> str | None:
        """Mask a line without a key: an item of a list, or more of the value before."""
        if BEGIN in rest:
            self._note_end(rest, indent)
            self.changed = True
            return None
        if is_item and (not self.gently or self._is_below(len(head))):
            return f"{head}{self._value(self._above[-1][1] if self._above else '', rest, indent)}"
        if self.is_yaml and rest.startswith("? ") and looks_secret(rest[2:], "x"):
            self._drops_rest = True  # the value follows on a line of its own
            return f"{head}{rest}"
        option, self._option = self._option, rest.strip("\"'") if is_item and rest.strip("\"'").startswith("-") else ""
        if self.gently and is_item and "=" in rest and not self.drops_accounts:
            return f"{head}{self._item(rest)}"
        if self.gently and is_item and option.startswith("-") and not self._option:
            return f"{head}{self._value(option.lstrip('-'), rest, indent)}"
        is_secret = holds_secret(rest) or self._drops_rest or self._is_below(indent) or bool(looks_secret("", rest))
        if self.gently and not is_secret:
            return f"{head}{rest}"
        if not (rest in ("---", "...") or is_reference(rest)):
            self.changed = self.changed or not self.gently or is_secret
        return rest if rest in ("---", "...", "}", "]", "},", "],") else None

    def _is_below(self, place: int) -> bool:
        """Whether this belongs to a key that names secrets. In YAML, a list may begin below the key's first letter."""
        return self.is_yaml and bool(self._above) and place > self._above[-1][0]

    def _item(self, rest: str) -> str:
        """Mask an item such as `- POSTGRES_PASSWORD=x`, as lists of variables have it."""
        bare = rest.strip("\"'")
        name, _, value = bare.partition("=")
        if self.invent.shows(name.strip()):
            return rest
        changed = change(name.strip(), value, gently=True, invent=self.invent)
        self.changed = self.changed or changed != value
        return rest if changed == value else f'"{name}={changed}"' if is_name(name) else f'"{MASKED}"'


def _for_git(name: str, value: str, result: str) -> str:
    """A value with which git still works: an address without its account, and no helper that hands out a secret."""
    if name.lower() == "extraheader" and value:
        return MASKED
    if name.lower() == "helper" and (result != value or value.startswith("!")):
        return ""
    return _without_account(value) if "://" in value and (result != value or "@" in value) else result


def _without_account(value: str) -> str:
    scheme, _, rest = value.partition("://")
    place, slash, path = rest.partition("/")
    account, at, host = place.rpartition("@")
    user = account.partition(":")[0].partition("%")[0]
    is_named = (at and "ssh" in scheme.lower()) or user in path.split("/")
    clean = f"{scheme}://{f'{user}@' if user and is_named else ''}{host}{slash}{path}"
    return MASKED if holds_secret(clean) else clean


def _without_marks(value: str) -> str:
    """A value of YAML without what may stand before it: the name by which others refer to it, and its type."""
    while value.startswith(("&", "!")):
        value = value.partition(" ")[2].lstrip()
    return value


def _is_padded(name: str, value: str) -> bool:
    """Whether this is the end of something in Base64, such as `dGhpcyBpcw==`, and no key without a value."""
    kinds = {str.isdigit, str.isupper, str.islower}
    return value == "=" or (not value and all(any(map(kind, name)) for kind in kinds) and len(name) >= SHORTEST_CODE)
