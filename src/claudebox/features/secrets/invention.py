"""Makes up values that programs accept in the place of real ones: as long, and of the same characters.

A value is drawn with a key that no box ever sees. So the same secret has the same stand-in everywhere in a project, and
nobody can find out by trying whether a guess is right. An agent could have guesses looked at, though: it leaves them in
a file, and compares their stand-ins at the next start. So only what nobody can guess is drawn from the value itself,
and of short and readable secrets a limited number for all times; everything else is drawn from its place alone.
"""

from __future__ import annotations

from itertools import pairwise

from claudebox.host.digest import sha256
from claudebox.trust.secret_values import names_secret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MASKED = "masked-by-claudebox"
MARK = "masked"  # how a stand-in begins, if it is long enough and may have these letters
SHORTEST_MARKED = 16
SHORTEST = 8  # characters of a stand-in: of a shorter secret not even the length is told
LONGEST = 4096
DIGITS, LOWER, UPPER = "0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
HEX = "0123456789abcdef"
CODE = "+/"  # what Base64 has besides letters and digits
JOINTS = "-_"  # what is a letter in Base64 for addresses, and harmless in every format
STRONG_LENGTH = 20
STRONG_HEX = 32
MOST_STRONG = 500  # of one start: what looks random may be the hash of something that is not
MOST_WEAK = 64  # secrets that somebody could guess, of which an agent can learn that two are the same
BLOCK = 64  # bytes, of SHA-256


class Invent:
    """Makes up the values of one file, except under the names that the user wants to be shown."""

    def __init__(self, draw: Callable[[str, str], str], revealed: frozenset[str] = frozenset()) -> None:
        self.draw = draw
        self.revealed = revealed
        self.names: dict[str, None] = {}  # those of the file, if one is to be shown

    def __call__(self, value: str, name: str) -> str:
        return self.draw(value, name)

    def shows(self, name: str) -> bool:
        """Whether the value under this name is shown as it is."""
        if self.revealed:
            self.names[name] = None
        return name in self.revealed


plain = Invent(lambda _value, _name: MASKED)  # where no key is at hand
blank = Invent(lambda _value, _name: "")  # leaves a gap, to see what else there is


class Inventor:
    """Makes up the values of one project."""

    def __init__(self, key: bytes, weak: tuple[str, ...] = ()) -> None:
        self.key = key
        self.pads = tuple(bytes(one ^ pad for one in key.ljust(BLOCK, b"\0")) for pad in (0x36, 0x5C))
        self.strong: set[str] = set()  # what nobody can guess, of this start
        self.weak = dict.fromkeys(weak)  # marks of the secrets that somebody could guess, in the order they were seen

    def for_file(self, path: str, revealed: frozenset[str] = frozenset()) -> Invent:
        times: dict[str, int] = {}

        def invent(value: str, name: str) -> str:
            if self._is_linked(value, name):
                return self._draw(f"value\0{value}", value)
            times[name] = times.get(name, 0) + 1
            return self._draw(f"place\0{path}\0{name}\0{times[name]}", value)

        return Invent(invent, revealed)

    def _is_linked(self, value: str, name: str) -> bool:
        """Whether the value has the same stand-in wherever it is."""
        if is_strong(value):
            if len(self.strong) < MOST_STRONG:
                self.strong.add(value)
            return value in self.strong
        if not names_secret(name):
            return False
        mark = self._keyed(f"weak\0{value}".encode(errors="surrogateescape"))[: BLOCK // 4].hex()
        if mark not in self.weak and len(self.weak) < MOST_WEAK:
            self.weak[mark] = None
        return mark in self.weak

    def _draw(self, source: str, value: str) -> str:
        number = 0
        while True:
            seed = f"{number}\0{source}".encode(errors="surrogateescape")
            made = drawn(self._stream(seed), value)
            # A joint alone is in what is made up for it, and nothing is given away by it.
            if value not in made or value in JOINTS:
                return made
            number += 1

    def _keyed(self, message: bytes) -> bytes:
        """HMAC with SHA-256."""
        inner, outer = self.pads
        return bytes.fromhex(sha256(outer + bytes.fromhex(sha256(inner + message))))

    def _stream(self, seed: bytes) -> Iterator[int]:
        number = 0
        while True:
            yield from self._keyed(b"%d\0" % number + seed)
            number += 1


def is_strong(value: str) -> bool:
    """Whether nobody can guess it: it is long, and letters, digits and cases are in no readable order."""
    if len(value) >= STRONG_HEX and set(value.lower()) <= set(HEX) and len(set(value)) >= SHORTEST:
        return True
    kinds = [one.isdigit() * 2 + one.isupper() for one in value]
    return len(value) >= STRONG_LENGTH and sum(a != b for a, b in pairwise(kinds)) * 3 >= len(value)


def drawn(stream: Iterator[int], value: str) -> str:
    """Something of the same length and characters."""
    value = value[:LONGEST]
    if value.isascii() and value.isdigit():
        return "1" + _some(stream, DIGITS, len(value) - 1) if len(value) > 1 else _some(stream, DIGITS[1:], 1)
    for start in ("0x", "0X"):
        if value.startswith(start) and _is_hex(value[2:]):
            return start + drawn(stream, value[2:])
    if _is_hex(value):
        return _some(stream, HEX if value == value.lower() else HEX.upper(), len(value))
    if _is_uuid(value):
        return "-".join(_some(stream, HEX, len(part)) for part in value.split("-"))
    if (length := _coded_length(value)) > 0:
        return _coded(stream, length)
    return _text(stream, value)


def in_sections(invent: Invent, value: str, name: str) -> str:
    """The stand-in of a token of which the sections count, such as `SG.x.y` or `xoxb-1-2-x`.

    It is as long as nobody can guess: where its sections end tells nothing.
    """
    made, rest = "", invent(value, name)
    if len(rest) != len(value):
        return rest
    letters = [one for one in rest if one.isalnum()] or [MARK]
    for place, one in enumerate(value):
        made += one if one in ".-_" else letters[place % len(letters)] if rest[place] in ".-_" else rest[place]
    return made


def _some(stream: Iterator[int], alphabet: str, length: int) -> str:
    return "".join(alphabet[next(stream) % len(alphabet)] for _ in range(length))


def _is_hex(value: str) -> bool:
    is_one = bool(value) and (set(value) <= set(HEX) or set(value) <= set(HEX.upper()))
    return is_one and len(value) >= SHORTEST and (any(map(str.isdigit, value)) or len(value) >= SHORTEST_MARKED)


def _is_uuid(value: str) -> bool:
    return [len(part) for part in value.split("-")] == [8, 4, 4, 4, 12] and set(value.lower()) <= {*HEX, "-"}


def _coded_length(value: str) -> int:
    """How many bytes are in this Base64; 0 if it is none, or could be a word as well."""
    if len(value) < SHORTEST_MARKED or len(value) % 4 or not (value.endswith("=") or any(one in value for one in CODE)):
        return 0
    bare = value.rstrip("=")
    if len(value) - len(bare) > 2 or not (bare.isascii() and all(one.isalnum() or one in CODE for one in bare)):
        return 0
    return len(value) // 4 * 3 - (len(value) - len(bare))


def _coded(stream: Iterator[int], length: int) -> str:
    from binascii import b2a_base64

    return b2a_base64(bytes(next(stream) for _ in range(length)), newline=False).decode()


def _text(stream: Iterator[int], value: str) -> str:
    kinds = [letters for letters in (LOWER, UPPER, DIGITS) if any(one in letters for one in value)]
    joints = "".join(one for one in JOINTS if one in value)
    alphabet = "".join(kinds) or LOWER
    has_others = any(not (one.isalnum() or one in joints) for one in value)
    length = max(len(value), SHORTEST)
    mark = MARK if LOWER in alphabet else MARK.upper() if UPPER in alphabet else ""
    mark = mark if length >= SHORTEST_MARKED else ""
    # Programs may want one of each kind that the real one has.
    tail = "".join(_some(stream, letters, 1) for letters in kinds) + (joints[:1] or ("_" if has_others else ""))
    return (
        mark + _some(stream, alphabet + joints, length - len(mark) - len(tail) - 1) + _some(stream, alphabet, 1) + tail
    )
