"""Our reader of git's configuration against git itself."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from claudebox.features.git import Identity, identity_in, quote_value, read_users
from claudebox.host.git import load_config, parse_config
from claudebox.host.tree import Tree

pytestmark = pytest.mark.req("GIT-01")

WITH_GIT = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


def ask_git(
    path: Path, *words: str, cwd: Path | None = None, home: str = "/nonexistent"
) -> list[tuple[str, str]] | None:
    """All pairs as git sees them; None if it refuses the file."""
    environment = {"PATH": os.environ["PATH"], "HOME": home, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
    command = ["git", "config", "-f", str(path), *words, "--list", "-z"]
    result = subprocess.run(command, cwd=cwd or path.parent, env=environment, capture_output=True, check=False)
    if result.returncode != 0:
        return None
    pairs = (os.fsdecode(item).partition("\n") for item in result.stdout.split(b"\0")[:-1])
    return [(name, value if separator else "true") for name, separator, value in pairs]


# Pieces from which nearly every text is a valid file, and which together reach every corner of the grammar.
sections = st.sampled_from(
    [
        *("[user]", "[USER]", "[core] ", '[remote "Origin"]', '[url "a]b"]', '[x "q\\"uote"]', '[x "back\\\\slash"]'),
        *('[x "odd\\escape"]', "[branch.Main]", "  [a-b]", "[user] name = inline", '[x ""]', '[a "b"] # comment'),
    ]
)
keys = st.sampled_from(["name", "Email", "a-1", "x"])
plain = st.text(alphabet="abcXYZ019 .@<>-/[]=é\u3000", max_size=12)
quoted = plain.map(lambda text: f'"{text}"') | st.sampled_from(
    ['"a # b"', '"a ; b"', '"\\"in\\""', '"\\\\"', '"\\n"', '"\\t"', '"  "', '"a" b "c"', 'a"b"c']
)
endings = st.sampled_from(["", "  ", " # comment", " ; comment", "# c", "\\\n  more", " \\\n", "\r", " # c \\", "\t"])
values = st.builds(lambda text, end: text + end, plain | quoted, endings)
assignments = st.builds(
    lambda indent, key, equals, value: indent + key + equals + value,
    st.sampled_from(["", " ", "\t"]),
    keys,
    st.sampled_from([" = ", "=", " =", "= ", "\t=\t"]),
    values,
)
lines = sections | assignments | keys | st.sampled_from(["", "# comment", "; comment", "  # x", "# ends with \\", "\r"])
files = st.builds(lambda first, rest: "\n".join([first, *rest]) + "\n", sections, st.lists(lines, max_size=8))


@WITH_GIT
@given(files)
@example("[user]\n# a comment does not continue \\\nname = Alice\n")
@example("[user]\nname = Alice # nor does this one \\\nemail = a@example.org\n")
@example('[x "odd\\escape"]\nkey = 1\n')
@example("\ufeff[user]\nname = written by Notepad\n")
@example('[user]\r\n\tname = Alice\r\n\temail = "a" \r\n')
@pytest.mark.git
def test_reads_what_git_reads(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text, newline="")
    expected = ask_git(path)
    assume(expected is not None)
    assert parse_config(text) == expected


@settings(deadline=None)
@given(st.text(max_size=80) | st.text(alphabet='[]"=\\#; \nab', max_size=60))
def test_broken_file_is_no_crash(text: str) -> None:
    parse_config(text)


@WITH_GIT
@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=30))
@pytest.mark.git
def test_git_reads_what_we_write(tmp_path: Path, value: str) -> None:
    path = tmp_path / "config"
    path.write_text(f"[user]\n\tname = {quote_value(value)}\n", newline="")
    assert ask_git(path) == [("user.name", value)]
    assert parse_config(path.read_bytes().decode()) == [("user.name", value)]


PATTERNS = [
    *("~/", "~/src/", "~/src/shop/", "~/src/shop/.git", "~/src/shop/.git/", "~/src/shop", "~/src", "~"),
    *("src/", "shop/", "shop/.git", "hop/", ".git", "/", "/**", "**", "**/", "*", "*/", "**/.git", "**/src/**"),
    *("~/*/shop/", "~/s?c/", "~/s[qr]c/", "~/[!a]rc/", "~/[^a]rc/", "~/**/shop/", "~/src/**/.git", "~/src/*"),
    *("~/src/**",),
    *("~/SRC/", "~/src/s*p/", "~/src/s**p/", "./", "./src/", "../", "~/src//"),
]


@pytest.mark.parametrize("kind", ["gitdir", "gitdir/i"])
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.git
def test_conditional_include_matches_as_in_git(kind: str, pattern: str, tmp_path: Path) -> None:
    home = tmp_path.resolve()
    project = home / "src" / "shop"
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "init", "-q", str(project)], env=environment, check=True, capture_output=True)
    (home / "work").write_text("[user]\n\tname = included\n")
    config = home / ".gitconfig"
    config.write_text(f"[includeIf {quote_value(f'{kind}:{pattern}')}]\n\tpath = work\n")
    command = ["git", "config", "user.name"]
    result = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    ours = dict(load_config(Tree(), str(config), str(home), f"{project}/.git"))
    assert ours.get("user.name", "") == result.stdout.strip()


@pytest.mark.git
def test_includes_are_read_where_they_stand(tmp_path: Path) -> None:
    home = tmp_path.resolve()
    (home / "conf").mkdir()
    (home / ".gitconfig").write_text(
        "[user]\nname = before\n[include]\npath = conf/one\n[user]\nemail = after\n[include]\npath = ~/conf/two\n"
        "[include]\npath = gone\n"
    )
    (home / "conf/one").write_text("[user]\nname = one\n[include]\npath = two\n")
    (home / "conf/two").write_text("[user]\nemail = two\n")
    expected = ask_git(home / ".gitconfig", "--includes", home=str(home))
    assert load_config(Tree(), str(home / ".gitconfig"), str(home), "") == expected


def test_include_of_itself_ends(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("[include]\npath = config\n[user]\nname = x\n")
    assert dict(load_config(Tree(), str(tmp_path / "config"), "/", ""))["user.name"] == "x"


def test_file_that_includes_itself_many_times_stays_small(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("[include]\n" + "path = config\n" * 6 + "[user]\nname = x\n")
    assert len(load_config(Tree(), str(tmp_path / "config"), "/", "")) < 1000


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, Identity("home", "system@example.org")),
        ({"GIT_CONFIG_GLOBAL": "/elsewhere"}, Identity("elsewhere", "system@example.org")),
        ({"XDG_CONFIG_HOME": "/xdg"}, Identity("home", "xdg@example.org")),
        (
            {"GIT_CONFIG_GLOBAL": "/empty", "GIT_CONFIG_SYSTEM": "/empty"},
            Identity("claudebox", "claudebox@localhost", True),
        ),
        ({"GIT_CONFIG_SYSTEM": "/empty"}, Identity("home", "claudebox@localhost", True)),
    ],
)
def test_identity_comes_from_the_files_that_git_reads(
    environ: dict[str, str], expected: Identity, tmp_path: Path
) -> None:
    for name, text in {
        "etc/gitconfig": "[user]\nname = system\nemail = system@example.org\n",
        "home/alice/.gitconfig": "[user]\nname = home\n",
        "elsewhere": "[user]\nname = elsewhere\n",
        "xdg/git/config": "[user]\nname = xdg\nemail = xdg@example.org\n",
        "empty": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert identity_in(read_users(Tree(str(tmp_path)), environ, "/home/alice", "")) == expected
