"""Words that are nearly ours, or were once. Claude would get them, and the box start with less than was asked for.

This is imported only for a word, a variable or a key that claudebox does not have.
"""

from __future__ import annotations

from claudebox.errors import Problem
from claudebox.settings.table import AUTH, Table

# Dashes that a web page or a word processor puts in the place of `-`.
DASHES = frozenset("‐‑‒–—―−⸺⸻﹘﹣－⁃˗")  # noqa: RUF001  (they are the point)
SHORTEST_WITH_A_MISTAKE = 3  # what is shorter resembles too much
SHORTEST_WITH_TWO = 6
# What claudebox had once, as people wrote it, with what to do instead.
REMOVED = {
    **{
        f"--{name}": f'CLAUDEBOX_{name.upper()}=PATH, or {name} = "PATH" in config.toml'
        for name in ("bwrap", "claude", "nft", "pasta")
    },
    "--cache host": "keep the project's own, or show a directory of this host: --mount-ro PATH",
    **dict.fromkeys(
        ("--completion", "--schema"), "packages install it; from the source: tools/shared_files.py ~/.local"
    ),
    "--man": "claudebox --help all; man claudebox, if a package has installed it",
    **dict.fromkeys(("--deny", "deny ="), "in `allow`, list only the hosts that you want, without *.HOST or groups"),
    "--network names": "it is called `allowlist` now",
    "--places": "everything is below ~/.claudebox; claudebox --instances lists it",
    "--strict": "for the strict box: --profile strict; missing packages are named anyway",
    **dict.fromkeys(
        (f"--profile {name}" for name in ("go", "node", "python", "rust")),
        "leave it out: toolchains on your PATH are in the box without it",
    ),
}


def refuse_nearly_ours(table: Table, word: str, command: str = "") -> None:
    """Raise a Problem if an option that is not ours looks as if it was meant to be."""
    if word[0] not in {"-", *DASHES}:
        _refuse_quoted(table, word)
        return
    typed, name = word.partition("=")[0], _name(word)
    _refuse_removed(name, command or typed)
    meant = _meant_by(table, name, may_be_short=not command)  # such as `--all`, which subcommands of claude have
    if DASHES & set(word[:2]) and not any(map(str.isspace, word)):
        raise _mistake(f"`{typed}` begins with a dash that is not the ASCII one", meant, command or typed)
    # One dash: what claude has of that kind are single letters, and each may be followed by its value.
    is_long = word.startswith("--") or len(name) > SHORTEST_WITH_A_MISTAKE + 1 or f"--{name}" in table.by_option
    if meant and is_long:
        raise _mistake(f"there is no option `{typed}`", meant, command or typed)


def _refuse_removed(name: str, word: str) -> None:
    """Raise a Problem if this was an option once."""
    option = f"--{name.lower().replace('_', '-')}"
    if option in REMOVED:
        raise Problem(f"there is no option `{option}` any more", f"{REMOVED[option]}\n      {_to_claude(word)}")


def not_clear_whose(option: str, command: str) -> Problem:
    """About an option of ours after a word that may be a subcommand of claude, and may have the same option."""
    return Problem(
        f"{option} after `{command}` may be meant for claudebox or for claude",
        f"for claudebox, put it first: claudebox {option} … {command} …\n      {_to_claude(command)}",
    )


def _name(word: str) -> str:
    """The name in what may be an option with its value: `--network none` is one word if nobody has split it."""
    name = "".join(" " if character in "=:," else character for character in word).split()
    return name[0].lstrip("-" + "".join(DASHES)) if name else ""


def _refuse_quoted(table: Table, word: str) -> None:
    """Raise a Problem if something stands around an option of ours, or a list of options that nobody has split."""
    bare = word.strip("".join(one for one in word if one != "-" and not (one.isascii() and one.isalnum())))
    _, *others = bare.split() or [""]
    if not bare.startswith("--") or (len(others) > 1 and not any(one.startswith("-") for one in others)):
        return  # a prompt may begin like that, but goes on in words
    typed = f"--{_name(bare)}"  # without what follows, which may be a secret
    _refuse_removed(_name(bare), typed)
    if meant := _meant_by(table, _name(bare)):
        raise _mistake(f"`{typed}` has something before its dashes, or was not split from the rest", meant, typed)


def refuse_without_dashes(word: str, following: str) -> None:
    """Raise a Problem if the first word is the name of an option of ours: claude would take it for a prompt.

    One of these is a command of claude as well, and claude's if another word follows than what it can have here.
    """
    name, has_value, _ = word.lower().partition("=")
    is_claudes = name == AUTH.name and following and following not in AUTH.choices
    if has_value or not is_claudes:
        raise _mistake(f"`{name}` without dashes is meant for claude", f"--{name}", word)


def refuse_nearly_one_of(word: str, option: str, known: tuple[str, ...]) -> None:
    """Raise a Problem if what follows an option is nearly a word that may. Claude would take it for a prompt."""
    meant = next((one for one in known if len(word) >= SHORTEST_WITH_A_MISTAKE and _distance(word, one) == 1), "")
    if meant:
        hint = f"did you mean `{option} {meant}`?\n      to give it to claude: claudebox {option} -- {word}"
        raise Problem(f"`{word}` is none of what may follow {option}", hint)


def refuse_variable(table: Table, name: str) -> None:
    """Raise a Problem about a variable that is called like one of ours."""
    nearest = next((one for one in table.by_variable if _distance(name, one) <= 2), "")
    hint = f"did you mean {nearest}?\n      " if nearest else ""
    raise Problem(f"{name} is not a variable of claudebox", f"{hint}without it: unset {name}")


def _mistake(what: str, meant: str, word: str) -> Problem:
    question = f"did you mean `{meant}`?\n      " if meant else ""
    return Problem(what, f"{question}{_to_claude(word)}")


def _to_claude(word: str) -> str:
    """How to give claude this word. What follows it is not repeated: it may be a secret."""
    return f"to give it to claude: claudebox -- {word} …"


def _meant_by(table: Table, name: str, *, may_be_short: bool = True) -> str:
    """The option of ours that this resembles or, if it may be short, abbreviates; "" if there is none."""
    plain = name.lower().replace("_", "-").removeprefix("no-")
    names = [option[2:] for option in table.by_option if option.startswith("--")]
    if plain in names or len(plain) < SHORTEST_WITH_A_MISTAKE:
        return f"--{plain}" if plain in names else ""
    for own in names:
        if (may_be_short and own.startswith(plain)) or (len(own) >= SHORTEST_WITH_TWO and plain.startswith(own + "-")):
            return f"--{own}"
    distance, nearest = min((_distance(plain, own), own) for own in names)
    shortest = min(len(plain), len(nearest))
    # Of three letters, one more or less makes another word, unless it is at the end: `--cpus`.
    is_like = shortest > 3 or len(plain) == len(nearest) or plain[:-1] == nearest
    return f"--{nearest}" if is_like and distance <= (2 if shortest >= SHORTEST_WITH_TWO else 1) else ""


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
