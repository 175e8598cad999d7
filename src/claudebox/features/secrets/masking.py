"""Masks secrets in a text, span by span. Nothing is parsed, so there is no syntax that breaks it.

Secret are: private keys; tokens that begin as those of their kind do; passwords in addresses; what stands behind a
telling key; words near a telling key that look random. In a file whose name says "secret", also every other word that
is neither a key nor harmless. In a span each letter and each digit is replaced by one of its kind; everything else
stays. So a decoy is as long as the file and as valid as it. Only private keys are replaced as a whole.

The letters are drawn with a key that no box sees, and whatever the real ones are: many decoys of a value say no more
about it than one. What nobody can guess has the same decoy in the whole project. What can be guessed has the same one
only in its file and until the box ends: an agent may leave a file with guesses, look at their decoys, and compare.
"""

from __future__ import annotations

import os
from itertools import pairwise

from claudebox.features.secrets.private_keys import find_blocks
from claudebox.features.secrets.table import ALL, CODE, CONTENT, SETTINGS
from claudebox.host.secrets import SHORTEST_TOKEN, STRONG_WORDS, TOKEN_PREFIXES, in_words, is_binary_key
from claudebox.host.secrets import WEAK_WORDS as WEAK_IN_NAMES
from claudebox.record import Record

PREFIXES = tuple(sorted(TOKEN_PREFIXES, key=len, reverse=True))
KEPT = (*PREFIXES, "base64:", "0x")
TOKENS = tuple(prefix.encode() for prefix in PREFIXES)
HEADS = frozenset(token[:2] for token in TOKENS)
CAPITALS = tuple(b"PASS TOKEN SECRET KEY CRED AUTH PWD DSN".split())
IN_SETTINGS = tuple(b"pass pwd token secret key cred".split())
# A key with one of these is telling only if the value looks random: `key`, `session`.
WEAK_WORDS = WEAK_IN_NAMES.union("bearer conn dsn signature sid salt seed tokens webhook curl sshpass".split())
STRONG_ENDS = tuple("pass pwd psk otp pw _pin masterauth presharedkey privatekey passwords wort".split())
NO_SECRETS = frozenset("bypass compass overpass cwd existing tokenizer oldpwd".split())
# The last word of a key that is about a secret, and does not hold one.
ABOUT = frozenset(
    "type file path dir name ttl timeout length expiry expires algorithm enabled policy field label limit count url "
    "size uri endpoint expiration lifetime min max age class format version method strategy header mode domain prompt "
    "text regex pattern hint error message icon title placeholder samesite httponly required manager helper provider "
    "store storage driver user username host audience issuer scope lines encoder validators hasher hashers".split()
)
# Under keys that end so, a plain name is kept.
CHOICES = frozenset(
    "adapter backend channel connection cluster database db dbname dialect driver engine env environment format host "
    "hostname lang level locale log login machine mailer mode name namespace platform prefix profile protocol provider "
    "queue region registry scheme server stage store timezone type tz user username version zone uid kind".split()
)
HARMLESS = frozenset(
    "true false yes no on off null none nil undefined enabled disabled default auto always never inf nan development "
    "dev production prod staging stage test testing local localhost 127.0.0.1 0.0.0.0 debug info warn warning error "
    "fatal trace http https tcp udp tls ssl redis postgres postgresql mysql sqlite mongodb smtp utf8 utf-8 utc en yaml "
    "json basic bearer digest memory file console stdout stderr service_account authorized_user export set".split()
)
# What stands for a secret where there is none. In a file that is secret by its name only PLACEHOLDERS do.
PLACEHOLDERS = ("changeme", "change-me", "change_me", "your-", "your_", "<", "{{", "%(")
MORE_PLACEHOLDERS = (*PLACEHOLDERS, "replace", "insert", "example")
EXAMPLES = frozenset(
    "password passwd pass secret token key root admin postgres mysql redis user username guest test testing dummy dev "
    "default minioadmin rabbitmq development local redacted hidden empty string text required optional todo".split()
)
STOP_WORDS = frozenset("the a an your is to of for or and in with must be not password token".split())
NAMED = ("value", "string", "data")  # keys whose values are called as the word before: `name: TOKEN`, `value: x`
LOGINS = ("bearer ", "basic ", "token ", "digest ")
PROGRAMS = (b"\x7fELF", b"PK\3\4")  # or an archive: no name makes it a secret
SEALED = (b"$ANSIBLE_VAULT;", b"\0GITCRYPT\0", b"age-encryption.org/")  # encrypted, with a key that is elsewhere
SOPS = (b"sops:", b'"sops":', b"sops_version", b"[sops]")
SHELL = tuple("rc .sh .bash .zsh .fish profile aliases exports zshenv".split())  # where a blank ends a value
COMMENTS = ("#", ";", "//", "<!--", "/*")
QUOTES = ('"', "'", "`")
SPLIT = {ord(one): " " for one in "\"'`,;()[]{}<>|&=:? \t\r\n\v\f\x01"}
EDGES = " \t\r\n.,;:!?*&#$@+\\/\"'\ufeff"
DONE = "\x01"  # where an address, a token or a private key was
FAR, NEAR = 1 << 12, 100  # characters within which a quote is closed, and within which a key is near
LONGEST_KEY, LONGEST_NUMBER = 80, 5
STRONG_LENGTH, STRONG_HEX, RANDOM_LENGTH, MIXED_LENGTH = 20, 32, 8, 12
CLASSES = ("0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
HEX_CLASSES = (CLASSES[0], "abcdef", "ABCDEF")
NUMBER_CLASSES = ("123456789", "", "")  # none begins with a zero, and an exponent stays one
HEX, NUMERIC = frozenset("0123456789abcdefABCDEF"), frozenset("0123456789.eE+-")
# Maps bytes to those that `may_hold_secret` looks for: variables in capitals that are set, and long words.
CAPITAL = bytes.maketrans(b"_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"A" * 37)
WORDLIKE = bytes(ord("a") if chr(one) in "".join(CLASSES) + "-_." else ord(" ") for one in range(256))
LONG_WORD = b"a" * SHORTEST_TOKEN
SIGNS = ("=", ": ", ":\n", '":')  # of a key on its line
CDATA = "<![CDATA["
AFTER_ADDRESS, NOTHING = " \t\r\n\"'`<>\\|", " \t\r\"'`=,;:])}"
ESCAPES = {"\\u": 4, "\\x": 2, "\\U": 8}  # and how many digits follow


OF_THIS_START = os.urandom(32)


class Decoy(Record):
    content: bytes  # b"": it cannot be masked, and appears empty
    names: tuple[str, ...]  # the keys of which the values were masked, or are shown because the user wants it


def may_hold_secret(content: bytes, path: str) -> bool:
    """Whether it is worth masking with `CONTENT`. A start asks that of up to a thousand files."""
    if b"BEGIN " in content and (b"PRIVATE KEY" in content or b"Static key" in content):
        return True
    if b"A=" in content.translate(CAPITAL) and any(one in content for one in CAPITALS):
        return True
    if _ending(path) in SETTINGS and any(one in content.lower() for one in IN_SETTINGS):
        return True
    long = content.translate(WORDLIKE)
    place = long.find(LONG_WORD)
    while place >= 0 and not (content[place : place + 2] in HEADS and content.startswith(TOKENS, place)):
        end = long.find(b" ", place)
        place = long.find(LONG_WORD, end) if end >= 0 else -1
    return place >= 0 or is_binary_key(content)


def _ending(path: str) -> str:
    return path.rpartition(".")[2].lower()


class Masker:
    """Masks the files of one project."""

    def __init__(self, key: bytes) -> None:
        self.key = key

    def mask(self, content: bytes, how: str, path: str, shown: frozenset[str] = frozenset()) -> Decoy | None:
        """The file as the box sees it; None if nothing in it is secret."""
        if content.startswith((*SEALED, *PROGRAMS)) or (
            b"ENC[AES256_GCM" in content and any(one in content for one in SOPS)
        ):
            return None
        code, errors = "utf-8", "surrogateescape"
        if content.startswith((b"\xff\xfe", b"\xfe\xff")) and not len(content) % 2:  # the mark stays a character
            code, errors = "utf-16-le" if content[0] == 0xFF else "utf-16-be", "surrogatepass"
        elif b"\0" in content or DONE.encode() in content:  # a key, or a text in UTF-16 without a mark
            text = content.replace(b"\0", b"").decode("latin-1")
            is_secret = how == ALL or is_binary_key(content) or bool(_Spans(text, how, path).found)
            return Decoy(b"", ()) if is_secret else None
        text = content.decode(code, errors)
        spans = _Spans(text, how, path)
        owners = spans.owners()
        if all(owner in shown for owner in owners):
            return None if not owners else Decoy(content, tuple(dict.fromkeys(owners)))
        made, place = [], 0
        for (start, end, other), owner in zip(spans.found, owners, strict=True):
            start = max(start, place)  # they may overlap
            if start < end and owner not in shown:
                made += [text[place:start], other or self._drawn(text[start:end], path)]
                place = end
        made.append(text[place:])
        return Decoy("".join(made).encode(code, errors), tuple(dict.fromkeys(name for name in owners if name)))

    def _drawn(self, value: str, path: str) -> str:
        """Something of the same kind. Prefixes of tokens, escapes, and what is no letter and no digit stay."""
        start = next((len(one) for one in KEPT if value.startswith(one)), 0) % len(value)
        core = value[start:].strip(EDGES)
        key, seed = (self.key, core) if is_strong(core) else (OF_THIS_START, f"{path}\0{core}")
        stream = _keyed(key, seed.encode("utf-8", "surrogatepass"), len(value))
        is_number = core[:1].isdigit() and NUMERIC.issuperset(core)
        classes = NUMBER_CLASSES if is_number else HEX_CLASSES if _is_hex(core) else CLASSES
        last = len(value.rstrip("=")) - 1 if value.endswith("=") else -1  # some of its bits are zero, in Base64
        made, place, first = [value[:start]], start, value.find(core, start)
        while place < len(value):
            byte, escape = stream[place - first], value[place : place + 2]
            digits = value[place + 2 : place + 2 + ESCAPES.get(escape, 0)]
            if digits and len(digits) == ESCAPES[escape] and HEX.issuperset(digits):
                piece = f"{escape}{6:0{len(digits) - 1}}{1 + byte % 9}"
            elif escape[0] == "\\":
                piece = escape
            else:
                piece = "A" if place == last and value[place].isalnum() else _other(value[place], byte, classes)
            made.append(piece)
            place += len(piece)
        return "".join(made)


def _other(one: str, byte: int, classes: tuple[str, ...]) -> str:
    """A character of the same kind, perhaps the same: else many decoys would say which one it is."""
    if one > "\x7f" and one != "\ufeff":
        return CLASSES[1][byte % 26]
    letters = classes[0 if one <= "9" else 1 if one >= "a" else 2]
    return letters[byte % len(letters)] if one in letters or one == "0" else one


def _is_hex(word: str) -> bool:
    return len(word) >= RANDOM_LENGTH and HEX.issuperset(word.replace("-", "")) and not word.isalpha()


def is_strong(value: str) -> bool:
    """Whether nobody can guess it: it is long, and letters, digits and cases are in no readable order."""
    if len(value) >= STRONG_HEX and _is_hex(value) and len(set(value)) >= RANDOM_LENGTH:
        return True
    return len(value) >= STRONG_LENGTH and is_random(value)


def is_random(word: str) -> bool:
    """Whether letters, digits and cases are in no readable order."""
    if len(word) < RANDOM_LENGTH or not any(map(str.isdigit, word[:NEAR])):
        return False
    kinds = [(one.isdigit() * 2 + one.isupper()) if one.isalnum() else -1 for one in word[:NEAR]]
    changes = sum(a != b for a, b in pairwise(kinds) if a >= 0 and b >= 0)
    return changes * 3 >= len(kinds) - kinds.count(-1) >= RANDOM_LENGTH - 2


def strength(key: str) -> int:
    """How much a key says that its value is secret: 2 for surely, 1 if the value looks like it, 0 for not."""
    words = in_words(key).strip("_").split("_")
    is_id = len(words) > 1 and words[-1] in ("id", "ids") and "secret" not in words
    if is_id or words[-1] in ABOUT or not NO_SECRETS.isdisjoint(words):
        return 0
    joined = "_".join(words).replace("tokens", "")  # a limit, or a table of them
    if any(word in joined for word in STRONG_WORDS) or any(f"_{word}".endswith(STRONG_ENDS) for word in words):
        return 2
    return 2 if words == ["tokens"] else int(not WEAK_WORDS.isdisjoint(words))


def is_harmless(word: str, *, is_real: bool = False) -> bool:
    """Whether a word is no secret, whatever it is called: a switch, a small number, a reference, a placeholder."""
    lower = word.lower()
    if len(word) > NEAR:
        return False
    if lower in EXAMPLES:
        return not is_real
    bare = word.strip("${}()%").replace("_", "")
    is_reference = word[:1] in "$%{" and bare.isalnum() and (word[1:2] in "{(" or bare.isupper())
    beginnings = PLACEHOLDERS if is_real else MORE_PLACEHOLDERS
    is_placeholder = lower.startswith(beginnings) and not any(map(str.isdigit, word))
    digits = word.rstrip("Zsmhdk%").removeprefix("-").replace(".", "", 1)
    is_date = len(word) <= len("2000-01-01T00") and word[4:5] == word[7:8] == "-" and word[:4].isdigit()
    is_small = is_date or (digits.isdigit() and len(digits) <= LONGEST_NUMBER)
    return lower in HARMLESS or is_reference or is_placeholder or is_small or set(lower) <= set("x.*-_ ")


def _is_plain(word: str) -> bool:
    """Whether it is the name of something."""
    is_short = len(word) <= LONGEST_KEY and sum(map(str.isdigit, word)) <= LONGEST_NUMBER
    return is_short and not is_random(word) and not _is_hex(word)


def _is_mixed(word: str) -> bool:
    """Whether a part of it is long and has small letters, capitals and digits, as passwords that people make up."""
    parts = "".join(one if one.isalnum() else " " for one in word).split()
    tests = (str.islower, str.isupper, str.isdigit)
    return any(len(part) >= MIXED_LENGTH and all(any(map(test, part)) for test in tests) for part in parts)


def _is_token(word: str) -> bool:
    """Whether it begins as tokens of its kind do, and looks like one."""
    if not word.startswith(PREFIXES) or len(word) < SHORTEST_TOKEN:
        return False
    body = word.removeprefix(next(one for one in PREFIXES if word.startswith(one)))
    if word.startswith(("AKIA", "ASIA")):
        return len(body) == 16 and body.isupper() and not body.endswith("EXAMPLE")
    return is_random(body) and (word[:3] != "eyJ" or body.count(".") == 2)


class _Spans:
    """Finds the spans of one text that are secret, in time that grows as the text does."""

    def __init__(self, text: str, how: str, path: str) -> None:
        self.rest, self.is_all = text, how == ALL
        self.is_code = _ending(path) in CODE | {"php", "h"}
        self.is_shell = path.lower().endswith(SHELL) or text.startswith("#!")
        self.is_settings = _ending(path) in SETTINGS
        self.keys: list[tuple[int, str]] = []  # where the value of a key may begin, and the key
        # Of the line: where it begins and ends, how far to the right, and where its comment begins.
        self.start, self.end, self.indent, self.aside = 0, -1, 0, 0
        self.is_first = True  # whether no word of the line came before
        # Start, end, and what stands there if it is not drawn.
        blocks, self.found = find_blocks(text)
        self.is_sure = bool(self.found)  # a key, a known token or a variable, and not just something called so
        self._blank(blocks)
        self._blank(self._addresses())
        self._words()
        if how == CONTENT and not self.is_sure:
            self.found = []

    def owners(self) -> list[str]:
        """The key of each span, in their order: the last one before it."""
        self.found.sort()
        names, number = [], 0
        for start, _, _ in self.found:
            while number < len(self.keys) and self.keys[number][0] <= start:
                number += 1
            names.append(self.keys[number - 1][1] if number else "")
        return names

    def _add(self, start: int, end: int) -> None:
        self.found.append((start, end, ""))

    def _blank(self, regions: list[tuple[int, int]]) -> None:
        pieces, place = [], 0
        for start, end in sorted(regions):
            pieces += [self.rest[place:start], DONE * (end - max(start, place))]
            place = max(place, end)
        self.rest = "".join(pieces) + self.rest[place:]

    def _addresses(self) -> list[tuple[int, int]]:
        """Mask passwords of addresses, and what is random in their paths. A query is words like others."""
        regions, text, end = [], self.rest, 0
        while (place := text.find("://", end)) >= 0:
            begin, start = place, place + 3
            while begin and (text[begin - 1].isalnum() or text[begin - 1] in "+.-") and place - begin < SHORTEST_TOKEN:
                begin -= 1
            end = next((at for at in range(start, len(text)) if text[at] in AFTER_ADDRESS), len(text))
            path = text[start:end].partition("?")[0]
            self._account(start, path, is_web="http" in text[begin:place].lower())
            # In settings the hash of a commit is no secret, but what follows a webhook is.
            is_hook, part_start = "hook" in path, start
            for part in path.split("/"):
                is_odd = not _is_plain(part) if self.is_all else is_random(part) and not _is_hex(part)
                is_odd |= is_hook and len(part) > LONGEST_NUMBER and any(map(str.isdigit, part))
                if is_odd and part_start > start:
                    self._add(part_start, part_start + len(part))
                part_start += len(part) + 1
            regions.append((begin, start + len(path)))
        return regions

    def _account(self, start: int, path: str, *, is_web: bool) -> None:
        """Mask the password of an address; of one that has none the user, who may be a token."""
        account, at, rest = path.rpartition("@")
        if not at and self.is_all and path[:1] != "[":
            account = path  # a password that is cut off, if it is no port
        user, colon, password = account.partition(":")
        is_port = password.partition("/")[0].isdigit() and not (at and "/" not in password)
        if "/" in user:
            return
        if colon and not is_port:
            if not is_harmless(password, is_real=self.is_all) and (self.is_all or password != user):
                self._add(start + len(user) + 1, start + len(account))
        elif at and is_web and user not in rest.split("/") and (self.is_all or is_random(user)):
            self._add(start, start + len(user))

    def _words(self) -> None:
        """Go through all words. Each is a key, in the value of one, near to one, or a value by itself."""
        place = skip = near = 0  # where the last value ended; up to where a telling key is near
        key = before = ""
        for word in self.rest.translate(SPLIT).split(" "):
            start, place = place, place + len(word) + 1
            if not word or start < skip:
                continue
            while start > self.end:
                self._next_line()
                key = ""
            core, amount = word.strip(EDGES), len(self.found)
            # What looks random may spell a telling word by chance, and end with the `=` of Base64: it is no key.
            level = strength(core) if len(word) <= LONGEST_KEY and not is_random(core) else 0
            name, value = self._key(start, start + len(word), level)
            if name:
                level = 2 if name.lower() in NAMED and strength(before) else level
                key = name
                self.keys.append((value, name))
                skip = self._value(start, value, level) if level else value
                is_variable = name.isupper() and self.rest[value - 2 : value] == f"{name[-1]}="
                is_set = is_variable or (self.is_settings and level > 1)
                self.is_sure |= is_set and len(self.found) > amount
            elif _is_token(core):
                self._add(start, start + len(word))
                self.is_sure = True
            elif (start < near and self._is_near(word, start)) or self._is_value(core, key, start):
                self._add(start, start + len(word))
            if level or "public" in name.lower():
                near = self.end + NEAR if "public" not in (name or word).lower() else 0
            before = before if word[0] == "/" else word

    def _is_near(self, word: str, start: int) -> bool:
        """Whether a word that is near to a telling key looks random. In source code others than texts are names."""
        is_text = not self.is_code or self.rest[start - 1 : start] in QUOTES
        return is_text and not word.startswith("sha") and any(map(is_random, word.split("@")))

    def _next_line(self) -> None:
        rest = self.rest
        self.start = self.end + 1
        self.end = rest.find("\n", self.start)
        self.end = self.aside = len(rest) if self.end < 0 else self.end
        line = rest[self.start : self.end]
        bare = line.lstrip(" \t\ufeff")
        self.indent = len(line) - len(bare)
        place = line.find(" #")
        if bare.startswith(COMMENTS):
            self.aside = self.start
        elif place >= 0 and not any(line.count(quote, 0, place) % 2 for quote in QUOTES):
            self.aside = self.start + place

    def _is_value(self, core: str, key: str, start: int) -> bool:
        """Whether a word of a file that is secret by its name is a value, and no comment, name or harmless word."""
        if not self.is_all or not any(map(str.isalnum, core)) or is_harmless(core, is_real=True):
            return False
        if start >= self.aside:
            # Of a comment all but words is a value.
            return len(core) >= RANDOM_LENGTH and any(map(str.isdigit, core)) and any(map(str.isalpha, core))
        back = self.rest[max(start - 2, 0) : start]
        is_name = (back == "${" and core.isupper()) or back[-1:] == "<" or back in ("[", "\n[")
        is_name |= in_words(key).rpartition("_")[2] in CHOICES
        return not (is_name and _is_plain(core) and not _is_mixed(core))

    def _key(self, start: int, end: int, level: int) -> tuple[str, int]:
        """The key that begins here, and where its value does; "" if it is none."""
        rest, place = self.rest, end
        name = rest[start:end].strip(EDGES).lstrip("-")
        while place < self.end and rest[place] in " \t\"'`]\\":
            place += 1
        sign, quote = rest[place : place + 1], rest[start - 1 : start]
        if not name or rest[place : place + 2] in ("==", "::", ":/") or not (level or _is_plain(name)):
            return "", 0
        if self.is_all and not level and _is_mixed(name) and not rest[place + 1 : self.end][:NEAR].strip(NOTHING):
            return "", 0  # with nothing behind it, it is a value that ends with the `=` of Base64
        back = rest[max(start - NEAR, self.start) : start].rstrip(" \t\"'`")
        if sign in ("=", ":"):
            is_open = quote in QUOTES and rest[end : end + 1] not in (quote, "\\")  # `"some: text"`
            is_nested = back.endswith(("=", ":")) or (sign == ":" and (back[-1:].isalnum() or is_open))
            is_key = level > 1 or not is_nested
        elif sign == ">":  # of XML, or the name in an attribute
            is_key = rest[start] != "/" and (level > 1 or (place == end and quote in ("<", ":")))
        elif sign == ",":  # the first text of a call names the second one; so does an option
            is_key = quote in QUOTES and level > 0 and (back.endswith("(") or rest.startswith("--", start))
        else:  # `requirepass x`, and `machine x login y password z`
            is_alone = level > 1 and not back.strip() and len(rest[place : self.end][:NEAR].split()) == 1
            is_netrc = self.is_all and name in ("machine", "login", "password")
            is_key = (is_alone or is_netrc) and rest[end : end + 1] in (" ", "\t") and sign.isprintable()
        return (name, place + (sign in ("=", ":", ">", ","))) if is_key else ("", 0)

    def _value(self, key: int, start: int, level: int) -> int:
        """Mask the value of a telling key if it is secret, and say where to go on."""
        rest, place = self.rest, start
        while place < self.end and rest[place] in " \t>-":
            place += 1
        place += rest[place + 1 : place + 2] in QUOTES and rest[place] not in QUOTES  # `b"x"`, `$'x'`
        line = rest[place : min(self.end, place + FAR)].rstrip()
        quote = next((one for one in ('"""', "'''", '\\"', *QUOTES) if line.startswith(one)), "")
        if quote:
            place += len(quote)
            end = self._end_of_quote(place, quote)
        elif rest[start - 1] == ">":  # of XML
            place += len(CDATA) if line.startswith(CDATA) else 0
            end = rest.find("<", place, place + FAR)
        elif line.strip("|>+-([\\") == "" or line.startswith("<<") or line.endswith((" |", " >", " |-", " >-")):
            return self._below(level) or start
        elif self.is_code and not self.is_all:
            return start
        elif not self.is_shell and not rest[max(self.start, key - NEAR) : key].strip(" \t-\"'#;/\ufeff"):
            end = self.aside if self.aside > place else self.end
        else:
            end = next((at for at in range(place, self.end) if rest[at] in " \t\r\"'`,;&)}]<>"), self.end)
        return self._judge(place, end, level) or start

    def _end_of_quote(self, place: int, quote: str) -> int:
        """Where a quote ends that is neither behind a backslash nor written twice; -1 if it does nearby."""
        end = self.rest.find(quote, place, place + FAR)
        while end > 0 and quote in QUOTES:
            is_escaped = self.rest[end - 1] == "\\" and self.rest[end - 2] != "\\"
            is_twice = end > place and self.rest[end : end + 2] == quote * 2
            if not is_escaped and not is_twice:
                break
            end = self.rest.find(quote, end + 1 + is_twice, place + FAR)
        return end

    def _below(self, level: int) -> int:
        """Mask a value on the lines below its key and further to the right, which has no keys of its own.

        Says where to go on; 0 if nothing was secret.
        """
        rest, place, masked = self.rest, self.end + 1, 0
        first = rest[place : place + FAR].partition("\n")[0]
        is_alone = first[: self.indent + 1].isspace() or " " not in first.strip()
        is_value = is_alone and not any(sign in first.rstrip("= \r") + "\n" for sign in SIGNS)
        while is_value and place < len(rest):
            end = rest.find("\n", place) + 1 or len(rest)
            masked = self._judge(place, end, level) or masked
            place = end
            is_value = rest[place : place + self.indent + 1].isspace()
        return masked

    def _judge(self, start: int, end: int, level: int) -> int:
        """Mask what is there if it is secret, and say where to go on; 0 for where one was."""
        end = end if end >= 0 else self.end
        end = start + len(self.rest[start:end].rstrip(" \t\r\n,;"))
        start += next((len(one) for one in LOGINS if self.rest[start : start + len(one)].lower() == one), 0)
        bare = self.rest[start:end].strip(" \t\r\n,;-\"'")
        if DONE in bare or not any(map(str.isalnum, bare)):
            return 0
        is_real = self.is_all and level > 1
        if is_harmless(bare, is_real=is_real) and not (is_real and len(bare) >= 4 and bare.isdigit()):
            return end
        if not self.is_all and not (level > 1 and self._is_literal(bare)) and not is_random(bare):
            return 0
        self._add(start, end)
        return end

    def _is_literal(self, value: str) -> bool:
        """Whether it is a value, and no sentence and no piece of code."""
        if " " in value:
            is_word = value[0].islower() or value[0] in "!&"  # tags and names of YAML
            return not self.is_code and is_word and STOP_WORDS.isdisjoint(value[:NEAR].split())
        is_code = value[0] in "$%" or any(one in value for one in ("(", "{", "<", "[", "%s"))
        is_path = value[0] in "/~." and all(map(_is_plain, value.split("/")))
        return len(value) > 3 and not is_code and not is_path


def _keyed(key: bytes, data: bytes, amount: int) -> bytes:
    """At least this many bytes that nobody can foretell without the key: BLAKE2b is a MAC by itself."""
    try:
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b
    root = blake2b(data, key=key).digest()
    return b"".join(blake2b(b"%d" % number, key=root).digest() for number in range(amount // 64 + 1))
