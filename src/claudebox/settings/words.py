"""Which words of the command line are ours. Everything else is claude's, unchanged and in order.

Ours are recognised wherever they stand before `--`. One place is ambiguous: after a single word that comes first, as
in `claudebox mcp add x --env KEY=VALUE`, an option may be that of a subcommand of claude, or ours after a short prompt.
No list of claude's subcommands decides: what would change the box is refused there, and the rest is claude's.
"""

from __future__ import annotations

from claudebox.errors import Problem
from claudebox.record import Record
from claudebox.settings.table import ON, PROFILE, PROGRAM, REVIEW, Setting, Table
from claudebox.settings.types import COMMAND, MODE, SWITCH

LAUNCH = "launch"
PROFILES = "profiles"  # list them: `--profile` without a name
TEND_LAYERS = "review"  # with one of these words after it, --review tends what is kept, and starts nothing
REVIEW_DEEDS = ("list", "show", "land", "discard")
PACK = "bundle"  # claudebox calls itself with it
# Modes that show what would start, and so may have words for claude; and those that just print.
WITH_CLAUDE = (LAUNCH, "audit", "dry_run", "explain", "law", "help", "version")
# Modes that print data: each can print it as JSON.
JSON_MODES = (
    *("audit", "dry_run", "check", "explain", "law", "network_log", "auth_log", "prove", "version", PROFILES),
    *("instances", "review"),
)
# Options that change nothing about a box: after a word that may be a subcommand of claude they are claude's.
MAY_BE_CLAUDES = ("help", "version", "json")
# Options that say more about a mode.
NEEDS_MODE = {
    "against": ("prove", "--against says what --prove attacks", "claudebox --prove --against 'firejail --quiet'"),
    "suggest": ("network_log", "--suggest says what --network-log prints", "claudebox --network-log --suggest"),
}
# What an option of ours may begin with: quotes and spaces come from a variable or a list that a shell did not split.
AROUND_A_DASH = frozenset("-'\" \t\n")


class Request(Record):
    """The command line, understood."""

    mode: str = LAUNCH
    yes: bool = False
    quiet: bool = False
    json: bool = False
    shell: bool = False
    suggest: bool = False
    run: tuple[str, ...] | None = None
    said: tuple[tuple[str, str], ...] = ()  # settings with a value, in order
    claude: tuple[str, ...] = ()
    review: tuple[str, ...] = ()  # what to do with what is kept, and the number of the layer


class _CommandLine:
    """Goes over the words once and sorts them."""

    def __init__(self, table: Table, words: list[str]) -> None:
        self.words = words
        self.table = table
        self.position = 0
        self.modes: list[str] = []
        self.switches: set[str] = set()
        self.said: list[tuple[str, str]] = []
        self.run: tuple[str, ...] | None = None
        self.claude: list[str] = []
        self.review: tuple[str, ...] = ()
        self.command = ""  # the first word, if it may be a subcommand of claude

    def next(self) -> str:
        self.position += 1
        return self.words[self.position - 1]

    def following(self) -> str:
        """The next word, which is not taken yet; "" if there is none."""
        return self.words[self.position] if self.position < len(self.words) else ""

    def rest(self) -> list[str]:
        rest = self.words[self.position :]
        self.position = len(self.words)
        return rest

    def read(self) -> None:
        while self.position < len(self.words):
            word = self.next()
            name, has_value, value = word.partition("=")
            setting = self.table.by_option.get(name if word.startswith("--") else word)
            if word == "--":
                # A subcommand may need it, as `mcp add` does before the command of a server.
                self.claude += ["--", *self.rest()] if self.command else self.rest()
            elif setting is None:
                self._leave_to_claude(word)
            elif self.command and setting.name in MAY_BE_CLAUDES:
                self.claude.append(word)
            elif self.command:
                from claudebox.settings.mistakes import not_clear_whose

                raise not_clear_whose(name, self.command)
            else:
                self._take(setting, value if has_value else None)

    def _leave_to_claude(self, word: str) -> None:
        """Refuse a word that was probably meant for claudebox: the box would start without what was asked for."""
        if word[:1] in AROUND_A_DASH or not (word[:1].isascii() and word[:1].isprintable()):
            if len(word) > 2:  # a dash and a letter is an option of claude
                from claudebox.settings.mistakes import refuse_nearly_ours

                refuse_nearly_ours(self.table, word, self.command)
        elif not self.claude and word:
            if f"--{word.partition('=')[0].lower()}" in self.table.by_option:
                from claudebox.settings.mistakes import refuse_without_dashes

                refuse_without_dashes(word, self.following())
            self.command = word if word.isascii() and word.replace("-", "").isalpha() else ""
        self.claude.append(word)

    def _take(self, setting: Setting[object], value: str | None) -> None:
        if setting.kind == COMMAND:
            self._take_command(setting, value)
        elif setting.kind == SWITCH or (setting.kind == MODE and setting.metavar[:1] in ("", "[")):
            self._take_switch(setting, value)
        elif setting is PROFILE and value is None and self.following()[:1] in ("", "-"):
            self.modes.append(PROFILES)
        elif setting is REVIEW and value is None:
            self._take_review()
        else:
            if setting.kind == MODE:
                self.modes.append(setting.name)
            self.said.append((setting.name, self._value_of(setting, value)))

    def _take_command(self, setting: Setting[object], value: str | None) -> None:
        self.run = tuple(self.rest())
        if value is not None:
            raise Problem(f"{setting.option} takes the words after it", f"{setting.option} {value} …")
        if not self.run:
            raise Problem(f"{setting.option} needs a command", f"claudebox {setting.option} make test")

    def _take_switch(self, setting: Setting[object], value: str | None) -> None:
        if value is not None:
            raise Problem(f"{setting.option} takes no value", f"to give it to claude: -- {setting.option}={value}")
        if setting.kind == SWITCH:
            self.switches.add(setting.name)
            return
        self.modes.append(setting.name)
        if self.following() in setting.type.words:
            self.said.append((setting.name, self.next()))

    def _take_review(self) -> None:
        """It needs no value, but may have one; or it is followed by what to do with what is kept."""
        following = self.following()
        if following in (*REVIEW_DEEDS, PACK):
            self.modes.append(TEND_LAYERS)
            deed = self.next()
            self.review = (deed, self.next()) if self.following().isdigit() else (deed,)
        elif following in REVIEW.choices:
            self.said.append((REVIEW.name, self.next()))
        else:
            if following[:1] != "-":
                from claudebox.settings.mistakes import refuse_nearly_one_of

                refuse_nearly_one_of(following, REVIEW.option, (*REVIEW_DEEDS, *REVIEW.choices))
            self.said.append((REVIEW.name, ON))

    def _value_of(self, setting: Setting[object], value: str | None) -> str:
        """The value, or the next word. What looks like an option is none: nobody would notice that it is lost."""
        following = self.following()
        if value is None and following and not following.startswith("--") and following not in self.table.by_option:
            value = self.next()
        if not value:
            raise Problem(f"{setting.option} needs a value", f"{setting.option} {setting.metavar}")
        return value


def parse(table: Table, words: list[str]) -> Request:
    line = _CommandLine(table, words)
    line.read()
    mode = _one_mode(line.modes)
    _check_words(mode, line)
    return Request(
        mode=mode,
        **dict.fromkeys(line.switches, True),
        run=line.run,
        said=tuple(line.said),
        claude=tuple(line.claude),
        review=line.review,
    )


def _one_mode(modes: list[str]) -> str:
    for informative in ("help", "version"):
        if informative in modes:
            return informative
    distinct = list(dict.fromkeys(modes))
    if len(distinct) > 1:
        raise Problem(f"{' and '.join(map(_option, distinct))} cannot be combined", "choose one")
    return distinct[0] if distinct else LAUNCH


def _option(mode: str) -> str:
    return {PROFILES: "--profile"}.get(mode, "--" + mode.replace("_", "-"))


def _check_words(mode: str, line: _CommandLine) -> None:
    """Refuse words that do not belong together."""
    if "json" in line.switches and mode not in JSON_MODES:
        modes = " ".join(map(_option, JSON_MODES))
        what = f"this prints no data that could be JSON; --json goes with one of: {modes}"
        raise Problem(what, "claudebox --audit --json\n      for claude's answer: -p --output-format json")
    for name, (needed, message, hint) in NEEDS_MODE.items():
        if (name in line.switches or name in dict(line.said)) and mode != needed:
            raise Problem(message, hint)
    if line.claude and mode not in WITH_CLAUDE:
        raise Problem(f"{_option(mode)} does not know `{line.claude[0]}`", f"claudebox {_option(mode)}")
    if "shell" in line.switches and (line.claude or line.run is not None):
        raise Problem("--shell takes no command and no arguments", "to run a command in the box: --run CMD ARG…")
    if PROGRAM.name in dict(line.said) and (line.run is not None or "shell" in line.switches):
        raise Problem("--program names the agent to start, and --run or --shell starts none", "choose one")
    if line.claude and line.run is not None:
        what = f"`{line.claude[0]}` is meant for claude, but --run starts another program"
        raise Problem(what, "put the program's own arguments after it: --run CMD ARG…")
