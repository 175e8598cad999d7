"""Makes decoys of files that are read line by line: dotenv, INI, properties, TOML, YAML.

This is a parser of none of these formats. It keeps only the parts of a line that it understands, and leaves out the
rest. So a file that means something else than it seems to shows less, not more.
"""

from __future__ import annotations

from claudebox.features.secrets.values import BEGIN, MASKED, change, is_name, is_reference
from claudebox.secret_values import looks_secret, secret_value
from claudebox.settings.parsing import is_variable_name

COMMENTS = ("#", ";", "//", "--", "!")
QUOTES = ('"""', "'''", '"', "'", "`")
SHORTEST_CODE = 8
BRACKETS = {"[": "]", "{": "}"}
BLOCKS = ("|", ">")  # how YAML begins a text of several lines


class LineMasker:
    """Makes the decoy of one file, line after line."""

    def __init__(
        self, *, gently: bool, is_yaml: bool = False, is_script: bool = False, drops_accounts: bool = False
    ) -> None:
        self.gently = gently
        self.is_script = is_script  # then lines that assign nothing are kept
        self.is_yaml = is_yaml
        self.drops_accounts = drops_accounts  # from addresses: without one git asks for none, and may be let in
        self.changed = False
        self._until = ""  # what ends a value that goes on over several lines
        self._block = -1  # how far the key is indented to which a text of several lines belongs
        self._drops_rest = False  # whether the last value was changed, so that lines that continue it are dropped

    def mask(self, text: str) -> str:
        whole = text if self.is_yaml else text.replace("\\\n", " ")  # a backslash continues a line
        lines = [self._line(line) for line in whole.splitlines()]
        return "".join(f"{line}\n" for line in lines if line is not None)

    def _line(self, line: str) -> str | None:
        body = line.strip()
        if self._until:
            self._until = "" if self._until in line else self._until
            return None
        indent = len(line) - len(line.lstrip())
        if self._block >= 0:
            if not body or indent > self._block:
                return None
            self._block = -1
        if not body:
            return ""
        if body.startswith(COMMENTS) and not (body.startswith("//") and "=" in body):
            self.changed = self.changed or self._is_old_value(body.lstrip("#;/-! "))
            return None
        if self.is_script and not is_variable_name(body.removeprefix("export ").partition("=")[0].strip()):
            self.changed = self.changed or bool(secret_value(body))
            return None if secret_value(body) else line
        if body.startswith("[") and not self.is_yaml:
            return self._section(body)
        return self._pair(line, indent)

    def _is_old_value(self, comment: str) -> bool:
        """Whether a comment holds a value: people leave values there that they used before."""
        key, equals, value = comment.partition("=")
        is_pair = equals and is_variable_name(key.strip().removeprefix("export "))
        return bool(
            secret_value(comment) or (is_pair and change(key, value.strip(), gently=self.gently) != value.strip())
        )

    def _section(self, body: str) -> str:
        """Keep a header such as `[remote "origin"]` in some way: what follows is not part of the section before."""
        head = body.split("#")[0].strip()
        words = head.strip("[]").split()
        self._drops_rest = False
        if head.endswith("]") and words and all(is_name(word.strip('"')) for word in words):
            return head
        self.changed = self.changed or not self.gently or bool(secret_value(head))
        first = words[0] if len(words) > 1 and words[0].isalpha() and words[0].islower() else ""
        return f'[{first} "{MASKED}"]' if first else f"[{MASKED}]"

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
            self.changed = True
            return None
        self._drops_rest = False
        changed = self._value(name, value, indent)
        return f"{head}{key}{separator}{changed}"

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
            place = rest.find(": ")
            return len(rest) - 1 if place < 0 and rest.endswith(":") else place
        if rest.startswith('"') and '" ' in rest and "=" not in rest:
            return rest.find('" ') + 1  # as in .yarnrc
        place = rest.find("=")
        if place > 0 or not self.gently:
            return place
        place = rest.find(":")
        return place if place > 0 and not rest[place:].startswith("://") else rest.find(" ")

    def _value(self, name: str, value: str, indent: int) -> str:
        if self.is_yaml and value.startswith(BLOCKS):
            return self._text_block(name, indent)
        quote = next((quote for quote in QUOTES if value.startswith(quote)), "")
        if quote:
            return self._quoted(name, value, quote, indent)
        bare = value
        if (place := value.find(" # ")) >= 0:
            bare = value[:place].rstrip()
        if bare[:1] in BRACKETS and not (self.gently and not secret_value(bare)):
            return self._brackets(bare)
        return self._changed(name, bare, indent)

    def _quoted(self, name: str, value: str, quote: str, indent: int) -> str:
        end = value.find(quote, len(quote))
        while end > 0 and value[end - 1] == "\\" and value[end - 2 : end - 1] != "\\":
            end = value.find(quote, end + 1)
        inner = value[len(quote) : end] if end >= 0 else value[len(quote) :]
        if end < 0:
            self._until = quote
            self.changed = True
            return f"{quote}{MASKED}{quote}"
        after = value[end + len(quote) :].strip()
        if after and not after.startswith((",", ";", "#", "//")):
            self.changed = True  # the quotes are not what they seem to be
            return f"{quote}{MASKED}{quote}"
        comma = "," if after.startswith(",") else ""
        return f"{quote}{self._changed(name, inner, indent)}{quote}{comma}"

    def _text_block(self, name: str, indent: int) -> str:
        # The text goes even when masking gently: it cannot be judged line by line.
        self._block = indent
        self.changed = self.changed or not self.gently or bool(looks_secret(name, "x"))
        return MASKED

    def _brackets(self, value: str) -> str:
        """Empty a list or table that is on one line, or begins there."""
        end = BRACKETS[value[0]]
        if value.count(value[0]) > value.count(end):
            self._until = end
        self.changed = self.changed or value != value[0] + end
        return value[0] + end

    def _changed(self, name: str, value: str, indent: int) -> str:
        result = change(name, value, gently=self.gently)
        if self.gently and result == value and secret_value(value):
            result = MASKED
        if self.drops_accounts and result != value and "://" in value:
            result = _without_account(value)
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
            self._block = indent

    def _lone(self, head: str, rest: str, indent: int, *, is_item: bool) -> str | None:
        """Mask a line without a key: an item of a list, or more of the value before."""
        if BEGIN in rest:
            self._note_end(rest, indent)
            self.changed = True
            return None
        if is_item and not self.gently:
            return f"{head}{self._value('', rest, indent)}"
        if self.gently and not self._drops_rest and not secret_value(rest) and is_name(rest.strip("\"',")):
            return f"{head}{rest}"
        if not (rest in ("---", "...") or is_reference(rest)):
            self.changed = self.changed or not self.gently or bool(secret_value(rest))
        return rest if rest in ("---", "...", "}", "]", "},", "],") else None


def _without_account(value: str) -> str:
    scheme, _, rest = value.partition("://")
    place, slash, path = rest.partition("/")
    clean = f"{scheme}://{place.rpartition('@')[2]}{slash}{path}"
    return MASKED if secret_value(clean) else clean


def _is_padded(name: str, value: str) -> bool:
    """Whether this is the end of something in Base64, such as `dGhpcyBpcw==`, and no key without a value."""
    kinds = {str.isdigit, str.isupper, str.islower}
    return value == "=" or (not value and all(any(map(kind, name)) for kind in kinds) and len(name) >= SHORTEST_CODE)
