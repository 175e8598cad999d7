"""claudebox claims its own options and leaves every other word to claude, unchanged and in order."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from claudebox.cli import MODES
from claudebox.problem import Problem
from claudebox.settings.table import BY_OPTION, COMMAND, LIST, MODE, OPERAND, SETTINGS, SWITCH, VALUE, Setting
from claudebox.settings.words import (
    CLAUDE_SUBCOMMANDS,
    CLAUDE_TAKES_VALUE,
    JSON_MODES,
    LAUNCH,
    PROFILES,
    WITH_ARGUMENT,
    WITHOUT_CLAUDE,
    Request,
    parse,
)

OURS = sorted(BY_OPTION)
VALUED = [setting.option for setting in SETTINGS if setting.kind in (VALUE, LIST)]
QUICK = settings(deadline=None, max_examples=100)

anything = st.text(max_size=8)
of_claude = st.sampled_from(
    [
        *(
            *sorted(CLAUDE_TAKES_VALUE),
            *sorted(CLAUDE_SUBCOMMANDS),
            "-p",
            "--continue",
            "--resume",
            "-c",
            "-",
            "--verbose",
        ),
        *("--zebra", "-yy", "-h2", "---", "-Y", "fix the bug", "", "--model=opus"),
    ]
)
words = st.lists(anything | of_claude | st.sampled_from([*OURS, "--", "--env=A=1", "--mount-ro=/x"]), max_size=8)


def is_subsequence(few: tuple[str, ...], many: list[str]) -> bool:
    rest = iter(many)
    return all(word in rest for word in few)


def is_ours(word: str) -> bool:
    return word in BY_OPTION or (word.startswith("--") and word.partition("=")[0] in BY_OPTION) or word == "--"


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
    assume("--" not in before and not CLAUDE_SUBCOMMANDS.intersection(before) and "--run" not in before)
    assume(not before or (before[-1] not in CLAUDE_TAKES_VALUE and before[-1] not in VALUED))
    first = understood(before)
    assume(not first.shell)
    assume("--json" not in first.claude)
    assert understood([*before, "--", *after]) == first.replace(claude=(*first.claude, *after))


@pytest.mark.req("ARGS-01")
@QUICK
@given(st.lists(anything, max_size=6), st.integers(0, 6))
def test_ours_are_claimed_wherever_they_stand(line: list[str], place: int) -> None:
    assume(not any(is_ours(word) or word in CLAUDE_TAKES_VALUE or word in CLAUDE_SUBCOMMANDS for word in line))
    with_yes = [*line[:place], "--yes", *line[place:]]
    with_env = [*line[:place], "--env", "--yes", *line[place:]]
    assert understood(with_yes) == Request(yes=True, claude=tuple(line))
    assert understood(with_env) == Request(said=(("env", "--yes"),), claude=tuple(line))


@pytest.mark.req("ARGS-01")
@QUICK
@given(st.sampled_from(sorted(CLAUDE_TAKES_VALUE)), st.sampled_from([*OURS, "--", "mcp"]))
def test_value_of_an_option_of_claude_is_not_ours(option: str, value: str) -> None:
    assert parse([option, value, "-y"]) == Request(yes=True, claude=(option, value))


@pytest.mark.req("ARGS-01")
@QUICK
@given(st.sampled_from(sorted(CLAUDE_SUBCOMMANDS)), words)
def test_everything_after_a_subcommand_is_for_claude(subcommand: str, line: list[str]) -> None:
    assert parse(["-y", subcommand, *line]) == Request(yes=True, claude=(subcommand, *line))


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
def test_word_given_twice_arrives_twice() -> None:
    assert parse(["--json", "x", "--json"]) == Request(claude=("--json", "x", "--json"))


@pytest.mark.req("ARGS-01")
@pytest.mark.parametrize("setting", BY_OPTION.values(), ids=lambda setting: setting.name)
def test_every_setting_of_the_table_is_understood(setting: Setting) -> None:
    expected = {
        COMMAND: Request(run=("value",)),
        MODE: Request(mode=setting.name, claude=("value",)),
        LIST: Request(said=((setting.name, "value"),)),
        VALUE: Request(said=((setting.name, "value"),)),
        OPERAND: None,
        SWITCH: Request(claude=("value",)),
    }[setting.kind]
    if expected is not None and setting.name in ("yes", "quiet", "strict"):
        expected = expected.replace(**{setting.name: True})
    if setting.name == "json":  # on its own it is claude's
        expected = Request(claude=("--json", "value"))
    if setting.name in WITH_ARGUMENT:
        expected = Request(mode=setting.name, said=((setting.name, "value"),))
    if setting.name == "review":  # it needs no value
        expected = Request(said=(("review", "on"),), claude=("value",))
    if setting.name in {"shell", "against", "suggest"} | (WITHOUT_CLAUDE - {"review", "completion"}):
        with pytest.raises(Problem):
            parse([setting.option, "value"])
        return
    assert parse([setting.option, "value"]) == expected


@pytest.mark.req("EXT-03")
@pytest.mark.parametrize("line", [["--profile"], ["--profile", "--network", "none"], ["--network=none", "--profile"]])
def test_profile_without_a_name_lists_them(line: list[str]) -> None:
    assert parse(line).mode == PROFILES


@pytest.mark.req("EXT-03")
@pytest.mark.parametrize("line", [["--profile", "aws", "--profile", "go"], ["--profile=aws", "-p", "--profile=go"]])
def test_profiles_are_named_one_by_one(line: list[str]) -> None:
    assert parse(line).said == (("profile", "aws"), ("profile", "go"))


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != LAUNCH])
def test_json_is_for_each_mode_that_prints_data_and_an_error_with_the_others(mode: str) -> None:
    option = {PROFILES: "--profile"}.get(mode, "--" + mode.replace("_", "-"))
    words = [option, {"explain": "git", "completion": "bash", "review": "list"}.get(mode, "")]
    line = [*filter(None, words), "--json"]
    if mode in JSON_MODES:
        assert (parse(line).mode, parse(line).json, parse(line).claude) == (mode, True, ())
    else:
        with pytest.raises(Problem, match="prints no data"):
            parse(line)


@pytest.mark.parametrize("line", ["--instances gc", "--review land", "--review discard 3", "--network-log --suggest"])
def test_json_is_an_error_where_something_is_done(line: str) -> None:
    with pytest.raises(Problem, match=f"^{line} prints no data"):
        parse([*line.split(), "--json"])


@pytest.mark.parametrize("mode", ["audit", "dry_run", "check"])
@pytest.mark.parametrize("first", [True, False])
def test_json_is_ours_only_where_it_has_a_meaning(mode: str, first: bool) -> None:
    option = "--" + mode.replace("_", "-")
    line = ["--json", option] if first else [option, "--json"]
    assert parse(line) == Request(mode=mode, json=True)
    assert parse(["-p", "--json", "x"]) == Request(claude=("-p", "--json", "x"))
