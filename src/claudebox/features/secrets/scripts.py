"""Makes decoys of shell scripts: of each word it is asked what it assigns, wherever in a line it stands.

The scripts have to run still, so everything else is kept. What looks like a word here is one for sh, bash, zsh and
fish; where quotes do not end, all of the script is left out.
"""

from __future__ import annotations

from claudebox.features.secrets.invention import MASKED, Invent, plain
from claudebox.features.secrets.lines import LineMasker
from claudebox.features.secrets.values import change, holds_secret, is_name, is_placeholder, stand_in
from claudebox.settings.types import is_variable_name

BREAKS = " \t\n;|&()<>"
PLAIN = "-_.:/@%+=,?"  # besides letters and digits, what a shell takes as it is
CLOSING = {"(": ")", "{": "}"}
SETTERS = ("set", "setenv", "set-env", "$env")  # fish, csh: the name is the first word after the options
LOGIN_OPTIONS = ("-u", "--user", "--proxy-user")  # of curl
MOST_SAID = 8  # words at the beginning of a command that may say what the others are
DEEPEST = 8  # commands within commands


class Unended(Exception):
    """A quote or bracket does not end."""


def mask_script(text: str, depth: int = 0, invent: Invent = plain) -> str:
    """The script with made-up values; the very same text if there is no secret in it."""
    try:
        if depth > DEEPEST:
            raise Unended
        return _Script(text, depth, invent).mask()
    except (Unended, RecursionError):
        return f"# {MASKED}\n"


class _Script:
    def __init__(self, text: str, depth: int, invent: Invent) -> None:
        self.invent = invent
        self.text = text
        self.depth = depth
        self.made: list[str] = []
        self.said: list[str] = []  # the words of this command so far
        self.array = ""  # the name of an array, while its items come
        self.documents: list[str] = []  # what ends the here-documents that begin after this line

    def mask(self) -> str:
        place = 0
        while place < len(self.text):
            place = self._next(place)
        return "".join(self.made)

    def _next(self, place: int) -> int:
        """Take the next word, or what is between two words, and say where it ends."""
        character = self.text[place]
        if self.text.startswith("<<<", place):
            self.made.append("<<<")
            return place + 3
        if self.text.startswith("<<", place):
            return self._note_document(place)
        if character == "(" and self.said and self.text[place - 1] == "=":
            self.array = self.said[-1].rstrip("=+")
        if character in BREAKS:
            self.array = "" if character == ")" else self.array
            self.made.append(character)
            self.said = [] if character in "\n;|&()" else self.said
            return self._documents(place + 1) if character == "\n" else place + 1
        if character == "#":
            return self._comment(place)
        end = _end_of_word(self.text, place)
        self._word(self.text[place:end])
        return end

    def _comment(self, place: int) -> int:
        end = self.text.find("\n", place)
        end = len(self.text) if end < 0 else end
        comment = self.text[place:end]
        masker = LineMasker(gently=True)
        masker.mask(comment)
        self.made.append("" if masker.changed else comment)
        return end

    def _word(self, word: str) -> None:
        name, equals, value = word.partition("=")
        name = name.removesuffix("+").lower().removeprefix("$env:") if "$" in name else name.removesuffix("+")
        if self.said and self.said[0].startswith("mysql") and word.startswith("-p") and len(word) > len("-p"):
            self.made.append(f"-p{_masked('password', word[2:], self)}")
        elif equals and is_variable_name(name) and self.invent.shows(name):
            self.made.append(word)
        elif equals and is_variable_name(name):
            self.made.append(f"{word.partition('=')[0]}={_masked(name, value, self)}")
        else:
            self.made.append(_masked(self._name_of_next(), word, self))
        self.said = [*self.said[:MOST_SAID], *self.said[MOST_SAID:][-1:], word]

    def _name_of_next(self) -> str:
        """What the next word would be the value of: `set -x TOKEN x`, `--token x`, `$env:TOKEN = x`."""
        if self.array or not self.said:
            return self.array
        if len(self.said) > 1 and self.said[-1] == "=":
            return self.said[-2].partition(":")[2] or self.said[-2]
        if self.said[0].lower() in SETTERS:
            words = [word for word in self.said[1:] if not word.startswith("-")]
            return words[0] if words else ""
        if self.said[0] == "read":
            return self.said[-1]
        if self.said[-1] in LOGIN_OPTIONS or self.said[-2:] == ["sshpass", "-p"]:
            return "password"
        return self.said[-1].lstrip("-") if self.said[-1].startswith("--") else ""

    def _note_document(self, place: int) -> int:
        start = place + 2 + self.text.startswith("-", place + 2)
        while self.text[start : start + 1] in (" ", "\t"):
            start += 1
        end = _end_of_word(self.text, start)
        self.documents.append(_bare(self.text[start:end]).replace("\\", ""))
        self.made.append(self.text[place:end])
        return max(end, place + 2)

    def _documents(self, place: int) -> int:
        """Go through the here-documents that begin here. Their lines are judged like those of a file."""
        for mark in self.documents:
            masker, lines, is_ended = LineMasker(gently=True, invent=self.invent), [], False
            while place < len(self.text) and not is_ended:
                end = self.text.find("\n", place)
                end = len(self.text) if end < 0 else end + 1
                line, place = self.text[place:end], end
                is_ended = line.strip() == mark
                lines.append(line)
            body = "".join(lines[:-1] if is_ended else lines)
            decoy = masker.mask(body)
            self.made.append((decoy if masker.changed else body) + (lines[-1] if is_ended else ""))
        self.documents = []
        return place


def _masked(name: str, word: str, script: _Script) -> str:
    """The word, or something made up in the quotes that it had."""
    bare = _bare(word)
    if not name and bare.startswith("${") and ":" in bare:  # what a variable is if nobody has set it
        name = bare[2:].partition(":")[0]
        name = "" if _is_variable(bare.partition(":")[2].lstrip("-=+?").removesuffix("}")) else name
    if not bare or _is_variable(bare) or (is_name(bare) and is_placeholder(bare)):
        return word
    # A word that nothing names is judged by what it surely is: it may be a checksum.
    is_secret = change(name, bare, gently=True) != bare if name else holds_secret(bare)
    if not is_secret and not (any(space in bare for space in BREAKS) and _holds_assignment(bare, script.depth)):
        return word
    quote = word[0] if word[0] in "\"'" else '"'
    made = stand_in(bare, script.invent, name, gently=True)
    is_plain = all(one.isalnum() or one in PLAIN for one in made) and not any(space in bare for space in BREAKS)
    return f"{quote}{made if is_plain else MASKED}{quote}"


def _holds_assignment(words: str, depth: int) -> bool:
    """Whether a command in quotes, or in `$(…)`, assigns or names a secret."""
    inner = words.removeprefix("$(").removesuffix(")").strip("`")
    return holds_secret(words) or (inner != words and mask_script(inner, depth + 1) != inner)


def _bare(word: str) -> str:
    """The word without its outermost quotes."""
    for start, end in (("$'", "'"), ('$"', '"'), ("'", "'"), ('"', '"')):
        if word.startswith(start) and word.endswith(end) and len(word) > len(start):
            return word[len(start) : -1]
    return word


def _is_variable(bare: str) -> bool:
    return bare.startswith("$") and is_variable_name(bare[1:].strip("{}"))


def _end_of_word(text: str, place: int) -> int:
    """Where the word ends that begins here: behind quotes and brackets, however many lines they take."""
    while place < len(text) and text[place] not in BREAKS:
        character = text[place]
        if character == "\\":
            place += 2
        elif character == "'":
            place = _behind(text, place, "$" if text[place - 1 : place] == "$" else "")
        elif character == '"' or character == "`":
            place = _behind(text, place, "$")
        elif character == "$" and text[place + 1 : place + 2] in CLOSING and place + 1 < len(text):
            place = _behind_bracket(text, place + 1)
        else:
            place += 1
    return min(place, len(text))


def _behind(text: str, place: int, escapes: str) -> int:
    """Where a quote ends. In single quotes a backslash is nothing special."""
    quote, place = text[place], place + 1
    while place < len(text):
        if text[place] == quote:
            return place + 1
        if escapes and text[place] == "\\":
            place += 1
        elif quote == '"' and text.startswith("$(", place):
            place = _behind_bracket(text, place + 1) - 1
        place += 1
    raise Unended


def _behind_bracket(text: str, place: int) -> int:
    """Where `$(…)` or `${…}` ends."""
    closing, place = CLOSING[text[place]], place + 1
    while place < len(text):
        character = text[place]
        if character == closing:
            return place + 1
        if character in "\"'`":
            place = _behind(text, place, "$" if character != "'" else "")
        elif character in CLOSING:
            place = _behind_bracket(text, place)
        else:
            place += 2 if character == "\\" else 1
    raise Unended
