"""Addresses that stand for names: made up, for as long as the box lives, and never used for another name."""

from __future__ import annotations

from claudebox.features.names.rules import NameList
from claudebox.host.digest import sha256

FIRST = 0xC6120000  # 198.18.0.0
SIZE = 1 << 17
RESERVED = 256  # the first ones are the box's own, and its name server's
MOST_GUESTS = 4096  # names below a `*.` row: the box decides how many there are


class TooManyNames(Exception):
    """The box has asked for more names below a `*.` row than can be remembered."""


class Invented:
    """Which address stands for which name. It depends on the name alone, as far as possible: programs remember it."""

    def __init__(self, names: NameList) -> None:
        self.names = names
        self.by_address: dict[int, str] = {}
        self.by_name: dict[str, int] = {}
        self.guests = 0

    def address_of(self, name: str) -> bytes | None:
        """The address that stands for a name, as four bytes. None if the name is not in the list."""
        if not self.names.knows(name):
            return None
        if name not in self.by_name:
            if name not in self.names.rows:
                if self.guests >= MOST_GUESTS:
                    raise TooManyNames
                self.guests += 1
            self._invent(name)
        return (FIRST + RESERVED + self.by_name[name]).to_bytes(4, "big")

    def name_of(self, address: bytes) -> str:
        """The name for which an address stands, or "" if it stands for none."""
        return self.by_address.get(int.from_bytes(address, "big") - FIRST - RESERVED, "") if len(address) == 4 else ""

    def _invent(self, name: str) -> None:
        place = int(sha256(name.encode())[:12], 16) % (SIZE - RESERVED)
        while place in self.by_address:
            place = (place + 1) % (SIZE - RESERVED)
        self.by_address[place] = name
        self.by_name[name] = place
