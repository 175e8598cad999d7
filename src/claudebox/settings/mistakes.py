"""Words that are nearly ours. Such a word would go to claude, and the box would start with less than was asked for.

This is imported only for a word or a variable that neither claudebox nor claude is known to have.
"""

from __future__ import annotations

from claudebox.problem import Problem
from claudebox.settings.table import BY_OPTION, SETTINGS

# Dashes that a web page or a word processor puts in the place of `-`.
DASHES = frozenset("‐‑‒–—―−⸺⸻﹘﹣－")  # noqa: RUF001  (they are the point)
AROUND = " \t\r\n\xa0\u2007\u202f\ufeff\u200b'\"“”„‘’‚«»"  # noqa: RUF001  (what stands around a word that was copied)
SHORTEST_ABBREVIATION = 3
SHORTEST_WITH_A_MISTAKE = 4  # what is shorter resembles too much
SHORTEST_WITH_TWO = 7
OTHER_WORDS = {"doctor": "--check"}  # what the command is called elsewhere


def refuse_nearly_ours(word: str) -> None:
    """Raise a Problem if an option that is not ours looks as if it was meant to be."""
    if word[0] not in {"-", *DASHES}:
        _refuse_quoted(word)
        return
    name = _name(word)
    meant = _meant_by(name)
    if DASHES & set(word[:2]) and not any(map(str.isspace, word)):
        raise _mistake(f"`{word}` begins with a dash that is not the ASCII one", meant, word)
    # One dash: what claude has of that kind are single letters, and each may be followed by its value.
    is_long = word.startswith("--") or len(name) > SHORTEST_WITH_A_MISTAKE or f"--{name}" in BY_OPTION
    if meant and is_long:
        raise _mistake(f"there is no option `{word.partition('=')[0]}`", meant, word)


def _name(word: str) -> str:
    """The name in what may be an option with its value: `--network none` is one word if nobody has split it."""
    name = "".join(" " if character in "=:," else character for character in word).split()
    return name[0].lstrip("-" + "".join(DASHES)) if name else ""


def _refuse_quoted(word: str) -> None:
    """Raise a Problem if quotes or spaces stand around an option of ours. A prompt may begin like that, but goes on."""
    bare = word.strip(AROUND)
    meant = _meant_by(_name(bare)) if bare.startswith("--") and len(bare.split()) <= 2 else ""
    if meant:
        raise _mistake(f"`{word}` has something before its dashes", meant, word)


def refuse_without_dashes(word: str) -> None:
    """Raise a Problem if the first word is the name of an option of ours: claude would take it for a prompt."""
    name = word.partition("=")[0]
    meant = OTHER_WORDS.get(name) or _exactly(name)
    if not meant and len(name) >= SHORTEST_WITH_TWO - 1:
        meant = next((option for option in _options() if _distance(name, option[2:]) == 1), "")
    if meant:
        raise _mistake(f"`{name}` without dashes is meant for claude", meant, word)


def refuse_nearly_one_of(word: str, option: str, known: tuple[str, ...]) -> None:
    """Raise a Problem if what follows an option is nearly a word that may. Claude would take it for a prompt."""
    meant = next((one for one in known if len(word) >= SHORTEST_ABBREVIATION and _distance(word, one) == 1), "")
    if meant:
        hint = f"did you mean `{option} {meant}`?\n      to give it to claude: claudebox {option} -- {word}"
        raise Problem(f"`{word}` is none of what may follow {option}", hint)


def refuse_variable(name: str, known: list[str]) -> None:
    """Raise a Problem about a variable that is called like one of ours."""
    nearest = next((one for one in known if _distance(name, one) <= 2), "")
    setting = next((one for one in SETTINGS if f"CLAUDEBOX_{one.name.upper()}" == name), None)
    if nearest:
        hint = f"did you mean {nearest}?\n      "
    elif setting is not None and not setting.in_files_only:
        hint = f"use the option: {setting.option}\n      "
    else:
        hint = ""
    raise Problem(f"{name} is not a variable of claudebox", f"{hint}without it: unset {name}")


def _mistake(what: str, meant: str, word: str) -> Problem:
    question = f"did you mean `{meant}`?\n      " if meant else ""
    return Problem(what, f"{question}to give it to claude: claudebox -- {word}")


def _options() -> list[str]:
    return [option for option in BY_OPTION if option.startswith("--")]


def _exactly(name: str) -> str:
    option = "--" + name.lower().replace("_", "-")
    return option if option in BY_OPTION else ""


def _meant_by(name: str) -> str:
    """The option of ours that this resembles; "" if there is none."""
    plain = name.lower().replace("_", "-").removeprefix("no-")
    if exact := _exactly(plain):
        return exact
    if len(plain) >= SHORTEST_ABBREVIATION:
        for option in _options():
            if option[2:].startswith(plain) or (len(option) > SHORTEST_WITH_TWO and plain.startswith(option[2:] + "-")):
                return option
    if len(plain) < SHORTEST_WITH_A_MISTAKE - 1:
        return ""
    distances = [(_distance(plain, option[2:]), option) for option in _options()]
    distance, nearest = min(distances)
    return nearest if distance <= (2 if min(len(plain), len(nearest) - 2) >= SHORTEST_WITH_TWO - 1 else 1) else ""


def _distance(one: str, other: str) -> int:
    """How many letters have to be inserted, left out, replaced, or exchanged with their neighbour."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        earlier, before = before, row
        row = [i]
        for j, b in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
    return row[-1]
