"""A word that is nearly ours stops the start. What claude knows passes, and so does what resembles nothing."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from claudebox.errors import Problem
from claudebox.features.table import SETTINGS
from claudebox.settings.files import shipped_profiles
from claudebox.settings.mistakes import DASHES, REMOVED
from claudebox.settings.words import Request
from claudebox.text import WIDTH
from saying import from_variables, parse

OPTIONS = sorted(option for option in SETTINGS.by_option if option.startswith("--"))


def refusal(*line: str) -> str:
    with pytest.raises(Problem) as caught:
        parse([*line])
    return f"{caught.value.message}; {caught.value.hint}"


@pytest.mark.req("WORK-02")
@pytest.mark.parametrize("option", ["--network", "--yes", "--hide", "--auth"])
def test_option_with_another_dash_is_refused(option: str) -> None:
    for dash in ("-", *sorted(DASHES), *(2 * dash for dash in sorted(DASHES))):
        assert f"did you mean `{option}`?" in refusal(dash + option[2:], "none"), dash


@pytest.mark.req("WORK-02")
@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        *(("--netwrok", "--network"), ("--netwok", "--network"), ("--networkk", "--network")),
        *(("--netork", "--network"),),
        *(("--NETWORK", "--network"), ("--net", "--network"), ("--no-network", "--network"), ("--evn", "--env")),
        *(("--mount_ro", "--mount-ro"), ("--mount", "--mount-ro"), ("--auth-limits", "--auth-limit")),
        *(("--cpus", "--cpu"), ("--yess", "--yes"), ("\u2060--network", "--network"), ("\u3164--network", "--network")),
        *(("--hid", "--hide"), ("--dryrun", "--dry-run"), ("--dry", "--dry-run"), ("--profil", "--profile")),
    ],
)
def test_mistyped_option_is_refused(typed: str, meant: str) -> None:
    assert f"did you mean `{meant}`?" in refusal(typed, "none")
    assert f"did you mean `{meant}`?" in refusal(f"{typed}=none")
    assert f"did you mean `{meant}`?" in refusal("-p", "hello", typed, "none")


@pytest.mark.req("WORK-02")
@settings(deadline=None, max_examples=200)
@given(st.sampled_from(OPTIONS), st.data())
def test_one_letter_too_few_is_refused(option: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(2, len(option) - 1))
    typed = option[:place] + option[place + 1 :]
    assume(typed not in SETTINGS.by_option and len(typed) > len("--abc"))
    refusal(typed)


@pytest.mark.req("WORK-02")
@pytest.mark.parametrize(
    "line",
    [
        *("help", "check", "version", "review", "review list", "network nome", "audit"),
        *("demo", "prove", "run make", "auth", "auth none", "env A=1"),
    ],
)
def test_option_without_dashes_is_no_prompt(line: str) -> None:
    words = line.split()
    assert f"did you mean `--{words[0]}`?" in refusal(*words)
    assert parse(["--", *words]) == Request(claude=tuple(words))
    assert parse(["-p", *words]) == Request(claude=("-p", *words))


@pytest.mark.req("ARGS-01")
@pytest.mark.parametrize("word", ["lsit", "lists", "shwo", "lnd", "discrad", "gaurded"])
def test_word_that_may_nearly_follow_review_is_no_prompt(word: str) -> None:
    with pytest.raises(Problem, match="may follow --review"):
        parse(["--review", word])


@pytest.mark.parametrize("prompt", ["mend the list", "go", "list them all"])
def test_prompt_may_follow_review(prompt: str) -> None:
    assert parse(["--review", prompt]).claude == (prompt,)


@pytest.mark.req("WORK-02")
def test_mistake_after_what_may_be_a_subcommand_is_one_too() -> None:
    assert "hunter2" not in refusal(" --env TOKEN=hunter2 --yes")
    assert "claudebox -- hello …" in refusal("hello", "--netwrok=none")


@pytest.mark.parametrize("said", [said for said in REMOVED if said.startswith("--") and " " not in said])
def test_removed_option_names_its_successor(said: str) -> None:
    for line in ([said, "x"], [f"{said}=x"], ["-p", "hi", said]):
        assert refusal(*line).startswith(f"there is no option `{said}` any more; {REMOVED[said]}")
    assert parse(["--", said]).claude == (said,)
    for typed in (said[1:], said.upper(), f"'{said} x'"):
        if len(said) > len("--man"):
            assert f"there is no option `{said}` any more" in refusal(typed), typed


def test_what_is_removed_is_no_setting() -> None:
    assert [text for text in REMOVED.values() if len(f"hint: {text}") > WIDTH] == []
    assert REMOVED.keys().isdisjoint({*SETTINGS.by_option, *(f"{key} =" for key in SETTINGS.by_key)})
    assert {f"--profile {name}" for name in shipped_profiles()}.isdisjoint(REMOVED)


@pytest.mark.req("ARGS-01")
@pytest.mark.parametrize(
    "line",
    [
        *(["-pc", "hi"], ["-cp", "hi"], ["-nwork"], ["--zebra"], ["--debug=network"], ["--resume", "network"]),
        *(["fix"], ["hello"], ["explain this"], ["check the tests"], ["— what is this?"], ["-r", "check"]),
        *(["fix", "network"], ["--ide"], ["agents", "--all"], ["doctor"], ["auth", "login"]),
    ],
    ids=" ".join,
)
def test_what_is_claudes_passes(line: list[str]) -> None:
    assert parse(line) == Request(claude=tuple(line))


@pytest.mark.req("WORK-02")
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("CLAUDEBOX_NETWROK", "did you mean CLAUDEBOX_NETWORK?"),
        ("CLAUDBOX_NETWORK", "did you mean CLAUDEBOX_NETWORK?"),
        ("CLAUDE_BOX_NETWORK", "did you mean CLAUDEBOX_NETWORK?"),
        ("CLAUEDBOX_NETWORK", "did you mean CLAUDEBOX_NETWORK?"),
        ("claudebox_network", "without it: unset claudebox_network"),
        ("CLAUDEBOXNETWORK", "did you mean CLAUDEBOX_NETWORK?"),
        ("CLAUDEBOX_ZEBRA", "without it: unset CLAUDEBOX_ZEBRA"),
    ],
)
def test_unknown_variable_is_refused(name: str, hint: str) -> None:
    with pytest.raises(Problem) as caught:
        from_variables({name: "none"})
    assert caught.value.hint.startswith(hint)


@pytest.mark.req("WORK-02")
def test_known_variables_pass() -> None:
    known = {setting.variable: "" for setting in SETTINGS if setting.variable}
    assert from_variables({**known, "CLAUDE_CONFIG_DIR": "x", "CLAUDECODE": "1", "XBOX_LIVE": "1"}) == []


@pytest.mark.req("WORK-02")
@pytest.mark.parametrize(
    "word",
    [
        *("--network none", "--network\xa0none", "--network:none", "--network,none", "network=none"),
        *(" --network", "\xa0--network", "'--network'", '"--network', "“--network”", "' --network none'"),
    ],
)
def test_word_that_no_shell_has_split_is_refused(word: str) -> None:
    """A variable in zsh, an element of a list in JSON, or a text from a web page."""
    assert "did you mean `--network`?" in refusal(word)


@pytest.mark.req("WORK-02")
@pytest.mark.parametrize("option", ["auth-limit", "mount-ro", "host-port=80"])
def test_option_of_two_words_without_dashes_is_refused(option: str) -> None:
    assert "did you mean `--" in refusal(option)


@pytest.mark.req("WORK-02")
@pytest.mark.parametrize(
    "prompt",
    [
        *("'--network none' does not work, why?", " explain this", '"hide" is broken', "re-run", "x=y", "/help"),
        *("- first\n- second", "«hide»", "network none is what I want"),
    ],
)
def test_prompt_that_begins_in_some_other_way_passes(prompt: str) -> None:
    assert parse([prompt]).claude == (prompt,)
