"""claudebox claims its own options and leaves every other word to claude, unchanged and in order."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from claudebox.errors import Problem
from claudebox.features.table import SETTINGS
from claudebox.settings.table import Setting
from claudebox.settings.types import COMMAND, LIST, MODE, OPERAND, SWITCH, VALUE
from claudebox.settings.words import JSON_MODES, PROFILES, WITH_CLAUDE, Request
from saying import parse

OURS = sorted(SETTINGS.by_option)
VALUED = [setting.option for setting in SETTINGS if setting.kind in (VALUE, LIST)]
QUICK = settings(deadline=None, max_examples=100)

anything = st.text(max_size=8)
of_claude = st.sampled_from(
    [
        *("--model", "--mcp-config", "mcp", "auth", "doctor", "-p", "--continue", "--resume", "-c", "-", "--verbose"),
        *("--zebra", "-yy", "-h2", "---", "-Y", "fix the bug", "", "--model=opus"),
    ]
)
words = st.lists(anything | of_claude | st.sampled_from([*OURS, "--", "--env=A=1", "--mount-ro=/x"]), max_size=8)


def is_subsequence(few: tuple[str, ...], many: list[str]) -> bool:
    rest = iter(many)
    return all(word in rest for word in few)


def is_ours(word: str) -> bool:
    return (
        word in SETTINGS.by_option
        or (word.startswith("--") and word.partition("=")[0] in SETTINGS.by_option)
        or word == "--"
    )


def may_be_a_subcommand(word: str) -> bool:
    return word.isascii() and word.replace("-", "").isalpha() and not word.startswith("-")


def understood(line: list[str]) -> Request:
    """The request; lines that are refused say nothing about what passes."""
    try:
        return parse(line)
    except Problem:
        assume(False)
        raise


@pytest.mark.req("ARGS-01")
@QUICK
@given(words)
def test_words_of_claude_keep_their_order(line: list[str]) -> None:
    assert is_subsequence(understood(line).claude, line)


@pytest.mark.req("ARGS-01")
@QUICK
@given(st.lists(anything | of_claude, max_size=8))
def test_words_that_are_not_ours_pass_unchanged(line: list[str]) -> None:
    assume(not any(is_ours(word) for word in line))
    assert understood(line) == Request(claude=tuple(line))


@pytest.mark.req("ARGS-01")
@QUICK
@given(words, words)
def test_everything_after_two_dashes_is_for_claude(before: list[str], after: list[str]) -> None:
    assume("--" not in before and "--run" not in before and (not before or before[-1] not in VALUED))
    first = understood(before)
    assume(not first.shell)
    # A subcommand may need it itself: `mcp add NAME -- COMMAND`.
    dashes = ("--",) if first.claude and may_be_a_subcommand(first.claude[0]) else ()
    assert understood([*before, "--", *after]) == first.replace(claude=(*first.claude, *dashes, *after))


@pytest.mark.req("ARGS-01")
@QUICK
@given(st.lists(anything, max_size=6), st.integers(0, 6))
def test_ours_are_claimed_wherever_they_stand(line: list[str], place: int) -> None:
    assume(not any(is_ours(word) for word in line))
    assume(not any(may_be_a_subcommand(word) for word in line[:1]))
    with_yes = [*line[:place], "--yes", *line[place:]]
    with_env = [*line[:place], "--env", "-x", *line[place:]]
    assert understood(with_yes) == Request(yes=True, claude=tuple(line))
    assert understood(with_env) == Request(said=(("env", "-x"),), claude=tuple(line))


# What may be a subcommand of claude, and what follows it.
@pytest.mark.req("ARGS-01")
@pytest.mark.parametrize(
    "line",
    [
        *("mcp list", "mcp --help", "mcp -h", "agents --all --json", "auth login --console", "auth status --json"),
        *("mcp add x -e KEY=VALUE -- npx -y server --env A", "plugin validate . --version", "doctor", "update"),
        *("setup-token", "hello world", "fix -- --yes", "project purge --all", "import --json=x"),
    ],
)
def test_subcommand_gets_every_word(line: str) -> None:
    assert parse(line.split()) == Request(claude=tuple(line.split()))
    assert parse(["-y", "--network", "none", *line.split()]).claude == tuple(line.split())


@pytest.mark.req("ARGS-01", "WORK-02")
@pytest.mark.parametrize("word", ["mcp", "hello", "plug-in"])
@pytest.mark.parametrize("setting", SETTINGS.by_option.values(), ids=lambda setting: setting.name)
def test_option_that_may_be_of_a_subcommand_is_refused_or_harmless(word: str, setting: Setting[object]) -> None:
    """Never is it silently left to claude, if it would change the box, nor taken from claude."""
    for option in filter(None, (setting.option, setting.short, f"{setting.option}=x")):
        if setting.name in ("help", "version", "json"):
            assert parse([word, option]).claude == (word, option)
            continue
        with pytest.raises(Problem, match=f"{option.partition('=')[0]} after `{word}` may be") as caught:
            parse([word, "add", option, "KEY=secret"])
        assert f"claudebox -- {word}" in caught.value.hint
        assert "secret" not in caught.value.hint
        assert parse(["--", word, option]).claude == (word, option)


@pytest.mark.req("WORK-02")
@pytest.mark.parametrize(
    "before", ["-p|hi", "fix the bug", "/init", "--model|opus|hi", "Fix!", "--append-system-prompt|x|hi", "", "-c"]
)
def test_box_gets_what_stands_after_words_of_claude(before: str) -> None:
    line = before.split("|")
    said = (("network", "none"), ("env", "A=1"))
    assert parse([*line, "--network", "none", "--env=A=1", "-y"]) == Request(yes=True, said=said, claude=tuple(line))


@pytest.mark.req("ARGS-01")
@QUICK
@given(words)
def test_run_takes_the_rest(line: list[str]) -> None:
    assume(line)
    assert parse(["-y", "--run", *line]) == Request(yes=True, run=tuple(line))


pieces = st.lists(
    st.sampled_from(["word", "-y", "--env", "--mount-ro", "--run", "--", "--model", "-p", "mcp"]), max_size=8
)


@pytest.mark.req("ARGS-01")
@QUICK
@given(pieces)
def test_no_word_gets_lost(line: list[str]) -> None:
    line = [f"word{number}" if word == "word" else word for number, word in enumerate(line)]
    request = understood(line)
    arrived = {*request.claude, *(request.run or ()), *(value for _, value in request.said)}
    assert {word for word in line if word.startswith("word")} <= arrived


@pytest.mark.req("ARGS-01")
def test_first_word_of_a_command_does_not_get_lost_behind_an_equals_sign() -> None:
    with pytest.raises(Problem):
        parse(["--run=make", "test"])


@pytest.mark.req("ARGS-01")
@pytest.mark.parametrize("setting", SETTINGS.by_option.values(), ids=lambda setting: setting.name)
def test_every_setting_of_the_table_is_understood(setting: Setting[object]) -> None:
    expected = {
        COMMAND: Request(run=("value",)),
        MODE: Request(mode=setting.name, claude=("value",)),
        LIST: Request(said=((setting.name, "value"),)),
        VALUE: Request(said=((setting.name, "value"),)),
        OPERAND: None,
        SWITCH: Request(claude=("value",)),
    }[setting.kind]
    if expected is not None and setting.name in ("yes", "quiet"):
        expected = expected.replace(**{setting.name: True})
    if setting.name in ("explain", "law"):
        expected = Request(mode=setting.name, said=((setting.name, "value"),))
    if setting.name == "review":  # it needs no value
        expected = Request(said=(("review", "on"),), claude=("value",))
    alone = {"shell", "against", "suggest", "json"}
    if setting.name in alone or (setting.kind == MODE and setting.name not in WITH_CLAUDE):
        with pytest.raises(Problem):
            parse([setting.option, "value"])
        return
    assert parse([setting.option, "value"]) == expected


@pytest.mark.req("EXT-03")
@pytest.mark.parametrize("line", [["--profile"], ["--profile", "--network", "none"], ["--network=none", "--profile"]])
def test_profile_without_a_name_lists_them(line: list[str]) -> None:
    assert parse(line).mode == PROFILES


@pytest.mark.req("EXT-03")
@pytest.mark.parametrize("line", [["--profile", "aws", "--profile", "own"], ["--profile=aws", "-p", "--profile=own"]])
def test_profiles_are_named_one_by_one(line: list[str]) -> None:
    assert parse(line).said == (("profile", "aws"), ("profile", "own"))


@pytest.mark.parametrize("mode", [*(one.name for one in SETTINGS if one.kind == MODE), PROFILES, "review"])
def test_json_is_for_each_mode_that_prints_data_and_an_error_with_the_others(mode: str) -> None:
    option = {PROFILES: "--profile"}.get(mode, "--" + mode.replace("_", "-"))
    words = [option, {"explain": "git", "law": "/usr", "review": "list"}.get(mode, "")]
    line = [*filter(None, words), "--json"]
    if mode in JSON_MODES:
        assert (parse(line).mode, parse(line).json, parse(line).claude) == (mode, True, ())
    else:
        with pytest.raises(Problem, match="prints no data"):
            parse(line)


@pytest.mark.parametrize("line", ["--json --audit", "--audit --json", "--dry-run --json", "--json --check"])
def test_json_may_stand_before_and_after_the_mode(line: str) -> None:
    assert parse(line.split()).json


@pytest.mark.parametrize("line", ["--json", "-p x --json", "--json --run ls"])
def test_json_without_a_mode_is_an_error(line: str) -> None:
    with pytest.raises(Problem, match="prints no data"):
        parse(line.split())


def test_help_has_two_sizes() -> None:
    assert (parse(["-h"]), parse(["--help", "all"]).said) == (Request(mode="help"), (("help", "all"),))


@pytest.mark.req("WORK-02")
@pytest.mark.parametrize("line", [["--hide", "--network=none"], ["--reveal", "--review"], ["--hide", "--netwrk"]])
def test_option_of_ours_is_no_value_of_another(line: list[str]) -> None:
    """As `--hide $UNSET --network=none` would be: a box with the whole network."""
    with pytest.raises(Problem, match="needs a value"):
        parse(line)
    assert parse([f"{line[0]}={line[1]}"]).said == ((line[0][2:], line[1]),)
