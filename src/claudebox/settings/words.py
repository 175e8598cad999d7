"""Which words of the command line are ours. Everything else is claude's, unchanged and in order."""

from __future__ import annotations

from claudebox.problem import Problem
from claudebox.record import Record
from claudebox.settings.table import BY_OPTION, COMMAND, MODE, ON, SWITCH, Setting

LAUNCH = "launch"
PROFILES = "profiles"  # list them: `--profile` without a name
COLLECT = "gc"
DROP_CACHE = "drop-cache"  # of this project
DROP_CACHES = "drop-caches"  # of all projects
OF_A_PROJECT = "project"
# Words that a mode may have.
MAY_FOLLOW = {
    "instances": (COLLECT, DROP_CACHE, DROP_CACHES),
    "schema": (OF_A_PROJECT,),
}
WITH_ARGUMENT = ("explain", "completion")  # modes that take a word
# Modes without any claude.
WITHOUT_CLAUDE = frozenset("instances review demo completion man schema uninstall network_log setup".split())
REVIEW = "review"  # with one of these words after it, it tends what is kept, and starts nothing
REVIEW_DEEDS = ("list", "show", "land", "discard")
PACK = "bundle"  # claudebox calls itself with it
# Modes that print data: each can print it as JSON. Some do only if nothing follows that does something.
JSON_MODES = (
    *("audit", "dry_run", "check", "explain", "network_log", "auth_log", "prove", "version", PROFILES),
    *("instances", "review"),
)

# Options of claude that take the next word. Whatever it looks like, it is not an option of ours.
CLAUDE_TAKES_VALUE = frozenset(
    "--add-dir --agent --agents --allowedTools --allowed-tools --append-system-prompt --append-system-prompt-file "
    "--autocompact --betas --debug-file --disallowedTools --disallowed-tools --effort --environment --fallback-model "
    "--file --input-format --json-schema --max-budget-usd --max-turns --mcp-config --model -n --name --output-format "
    "--permission-mode --permission-prompt-tool --permission-prompts --plugin-dir --plugin-url "
    "--remote-control-session-name-prefix --session-id --setting-sources --settings --system-prompt "
    "--system-prompt-file --system-prompt-snapshot --tools".split()
)
# The others. A word that is none of all these may be a mistyped option of ours.
CLAUDE_OPTIONS = CLAUDE_TAKES_VALUE | frozenset(
    "--allow-dangerously-skip-permissions --ax-screen-reader --background --bare --bg --brief --chrome --cloud -c "
    "--continue --dangerously-skip-permissions -d --debug --desktop --disable-slash-commands "
    "--exclude-dynamic-system-prompt-sections --fork-session --forward-subagent-text --from-pr --ide "
    "--include-hook-events --include-partial-messages --init --init-only --maintenance --mcp-debug --no-chrome "
    "--no-session-persistence -p --print --prompt-suggestions --remote --remote-control --replay-user-messages "
    "--restricted -r --resume --safe-mode --strict-mcp-config --teleport --tmux -v --verbose -w --worktree".split()
)
# Subcommands of claude. Every word after one belongs to it, as in `mcp add --env KEY=VALUE`.
CLAUDE_SUBCOMMANDS = frozenset(
    "agents attach auth auto-mode config gateway import install kill logs mcp migrate-installer plugin plugins project "
    "purge remote-control rc respawn rm setup-token stop ultrareview update upgrade".split()
)
# What an option of ours may begin with: quotes and spaces come from a variable or a list that a shell did not split.
AROUND_A_DASH = frozenset("-'\" \t\n")


class Request(Record):
    """The command line, understood."""

    mode: str = LAUNCH
    yes: bool = False
    quiet: bool = False
    json: bool = False
    shell: bool = False
    strict: bool = False
    suggest: bool = False
    run: tuple[str, ...] | None = None
    said: tuple[tuple[str, str], ...] = ()  # settings with a value, in order
    claude: tuple[str, ...] = ()
    review: tuple[str, ...] = ()  # what to do with what is kept, and the number of the layer


class _CommandLine:
    """Goes over the words once and sorts them."""

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.position = 0
        self.modes: list[str] = []
        self.switches: set[str] = set()
        self.said: list[tuple[str, str]] = []
        self.run: tuple[str, ...] | None = None
        self.claude: list[str] = []
        self.review: tuple[str, ...] = ()
        self.saw_prompt = False
        self.json_at: list[int] = []  # the position that each `--json` would have among claude's words

    def next(self) -> str:
        self.position += 1
        return self.words[self.position - 1]

    def rest(self) -> list[str]:
        rest = self.words[self.position :]
        self.position = len(self.words)
        return rest

    def read(self) -> None:
        while self.position < len(self.words):
            word = self.next()
            name, has_value, value = word.partition("=")
            setting = BY_OPTION.get(name if word.startswith("--") else word)
            if word == "--":
                self.claude += self.rest()
            elif setting is None:
                self._leave_to_claude(word)
            elif setting.kind == COMMAND:
                self._take_command(setting, value if has_value else None)
            elif setting.name in WITH_ARGUMENT:
                self.modes.append(setting.name)
                self.said.append((setting.name, value if has_value else self._value_of(setting)))
            elif setting.kind in (MODE, SWITCH):
                self._take_switch(setting, word, bool(has_value))
            elif setting.name == "profile" and not has_value and self._is_last_or_before_an_option():
                self.modes.append(PROFILES)
            elif setting.name == REVIEW and not has_value:
                self._take_review(setting)
            else:
                self.said.append((setting.name, value if has_value else self._value_of(setting)))

    def _leave_to_claude(self, word: str) -> None:
        self._look_for_mistake(word)
        self.claude.append(word)
        if word in CLAUDE_TAKES_VALUE and self.position < len(self.words):
            self.claude.append(self.next())
        elif not word.startswith("-"):
            if not self.saw_prompt and word in CLAUDE_SUBCOMMANDS:
                self.claude += self.rest()
            self.saw_prompt = True

    def _look_for_mistake(self, word: str) -> None:
        """Refuse a word that was probably meant for claudebox: claude would get it, and the box start without it."""
        if word.startswith("-") and (word.isascii() and (len(word) < 3 or word.partition("=")[0] in CLAUDE_OPTIONS)):
            return
        name = word.partition("=")[0]
        if word[:1] in AROUND_A_DASH or not word[:1].isascii():
            from claudebox.settings.mistakes import refuse_nearly_ours

            refuse_nearly_ours(word)
        elif name.replace("-", "").isalpha() and not self.saw_prompt and not self._may_be_a_value():
            from claudebox.settings.mistakes import refuse_without_dashes

            refuse_without_dashes(word) if word not in CLAUDE_SUBCOMMANDS else None

    def _may_be_a_value(self) -> bool:
        """Whether the word before is an option of claude, of which some take a value if there is one."""
        return bool(self.claude) and self.claude[-1].startswith("-")

    def _take_command(self, setting: Setting, value: str | None) -> None:
        self.run = tuple(self.rest())
        if value is not None:
            raise Problem(f"{setting.option} takes the words after it", f"{setting.option} {value} …")
        if not self.run:
            raise Problem(f"{setting.option} needs a command", f"claudebox {setting.option} make test")

    def _take_switch(self, setting: Setting, word: str, has_value: bool) -> None:
        if has_value:
            raise Problem(f"{setting.option} takes no value", f"to give it to claude: -- {word}")
        if setting.name == "json":
            self.json_at.append(len(self.claude))
        elif setting.kind == MODE:
            self.modes.append(setting.name)
            if self.words[self.position : self.position + 1] and self.words[self.position] in MAY_FOLLOW.get(
                setting.name, ()
            ):
                self.said.append((setting.name, self.next()))
        else:
            self.switches.add(setting.name)

    def _take_review(self, setting: Setting) -> None:
        """It needs no value, but may have one; or it is followed by what to do with what is kept."""
        following = self.words[self.position : self.position + 1]
        if following and following[0] in (*REVIEW_DEEDS, PACK):
            self.modes.append(REVIEW)
            number = self.words[self.position + 1 : self.position + 2]
            self.review = (self.next(), *([self.next()] if number and number[0].isdigit() else []))
        elif following and following[0] in setting.choices:
            self.said.append((setting.name, self.next()))
        else:
            if following and following[0][:1] != "-":
                from claudebox.settings.mistakes import refuse_nearly_one_of

                refuse_nearly_one_of(following[0], setting.option, (*REVIEW_DEEDS, *setting.choices))
            self.said.append((setting.name, ON))

    def _is_last_or_before_an_option(self) -> bool:
        return self.position == len(self.words) or self.words[self.position].startswith("-")

    def _value_of(self, setting: Setting) -> str:
        if self.position == len(self.words):
            raise Problem(f"{setting.option} needs a value", f"{setting.option} {setting.metavar}")
        return self.next()


def parse(words: list[str]) -> Request:
    reader = _CommandLine(words)
    reader.read()
    mode = _one_mode(reader.modes)
    json = bool(reader.json_at) and mode != LAUNCH
    if json:
        _require_data(mode, reader)
    for place in reversed(reader.json_at if not json else []):
        reader.claude.insert(place, "--json")
    if mode in WITHOUT_CLAUDE and reader.claude:
        option = "--" + mode.replace("_", "-")
        raise Problem(f"{option} does not know `{reader.claude[0]}`", f"claudebox {option}")
    if "against" in dict(reader.said) and mode != "prove":
        raise Problem("--against says what --prove attacks", "claudebox --prove --against 'firejail --quiet'")
    if "suggest" in reader.switches and mode != "network_log":
        raise Problem("--suggest says what --network-log prints", "claudebox --network-log --suggest")
    shell = "shell" in reader.switches
    if shell and (reader.claude or reader.run is not None):
        raise Problem("--shell takes no command and no arguments", "to run a command in the box: --run CMD ARG…")
    if reader.run is not None and reader.claude:
        raise Problem(
            f"`{reader.claude[0]}` is meant for claude, but --run starts another program",
            "put the program's own arguments after it: --run CMD ARG…",
        )
    return Request(
        mode=mode,
        yes="yes" in reader.switches,
        quiet="quiet" in reader.switches,
        json=json,
        shell=shell,
        strict="strict" in reader.switches,
        suggest="suggest" in reader.switches,
        run=reader.run,
        said=tuple(reader.said),
        claude=tuple(reader.claude),
        review=reader.review,
    )


def _require_data(mode: str, reader: _CommandLine) -> None:
    """Refuse `--json` where nothing is printed that could be JSON. On its own it is claude's."""
    said = dict(reader.said).get(mode, "")
    does_something = (mode == "instances" and said) or (mode == REVIEW and reader.review[0] not in ("list", "show"))
    if mode in JSON_MODES and not does_something and "suggest" not in reader.switches:
        return
    option = {PROFILES: "--profile"}.get(mode, "--" + mode.replace("_", "-"))
    words = [option, said or " ".join(reader.review), "--suggest" if "suggest" in reader.switches else ""]
    raise Problem(f"{' '.join(filter(None, words))} prints no data that could be JSON", "leave out --json")


def _one_mode(modes: list[str]) -> str:
    for informative in ("help", "version"):
        if informative in modes:
            return informative
    distinct = list(dict.fromkeys(modes))
    if len(distinct) > 1:
        named = " and ".join("--" + mode.replace("_", "-") for mode in distinct)
        raise Problem(f"{named} cannot be combined", "choose one")
    return distinct[0] if distinct else LAUNCH
