"""How Claude Code is installed, seen through its symlinks, its package and its `#!` line."""

from pathlib import Path

import pytest

from claudebox.host.programs import ClaudeInstall, find, inspect
from hosts.machine import Machine

SYSTEM = "/usr/bin/env*\n/usr/bin/node*\n/bin -> usr/bin\n"
HOME = "/home/alice"
NVM = f"{HOME}/.nvm/versions/node/v22.1.0"
PNPM = f"{HOME}/.local/share/pnpm"


def look(root: Path, tree: str, search_path: str) -> ClaudeInstall:
    """The claude that is found first on this PATH."""
    host = Machine(root).plant(SYSTEM + tree).host().replace(environ={"PATH": search_path}, cwd=HOME)
    path = find(host, "claude")
    assert path
    return inspect(host, path)


NATIVE = f"{HOME}/.local/share/claude/versions/2.1.0"
# A program, and what of it is needed: its tree, PATH, and the installation.
PROGRAMS = {
    "native installer": (
        f"~/.local/bin/claude -> {NATIVE}\n{NATIVE}*: ELF\n~/.local/share/claude/versions/2.0.9*: ELF",
        f"{HOME}/.local/bin:/usr/bin",
        ClaudeInstall(f"{HOME}/.local/bin/claude", NATIVE, "native installer", (NATIVE,), "", ""),
    ),
    "Nix": (
        "~/.nix-profile -> /nix/var/x\n/nix/var/x/bin/claude -> /nix/store/aaa/claude\n/nix/store/aaa/claude*: ELF",
        f"{HOME}/.nix-profile/bin",
        ClaudeInstall(f"{HOME}/.nix-profile/bin/claude", "/nix/store/aaa/claude", "Nix", ("/nix/store",), "", ""),
    ),
    "system package": (
        "/usr/bin/claude*: ELF",
        "/usr/bin",
        ClaudeInstall("/usr/bin/claude", "/usr/bin/claude", "system package", (), "", ""),
    ),
    "one file": (
        "/opt/claude/claude*: ELF",
        "/opt/claude",
        ClaudeInstall("/opt/claude/claude", "/opt/claude/claude", "binary", ("/opt/claude/claude",), "", ""),
    ),
}


@pytest.mark.parametrize("kind", PROGRAMS)
def test_program_is_told_by_where_it_lies(kind: str, tmp_path: Path) -> None:
    tree, search_path, expected = PROGRAMS[kind]
    assert look(tmp_path, tree, search_path) == expected


def test_npm_global_needs_nothing_outside_of_the_system(tmp_path: Path) -> None:
    tree = """
        /usr/local/bin/claude -> ../lib/node_modules/@anthropic-ai/claude-code/cli.js
        /usr/local/lib/node_modules/@anthropic-ai/claude-code/cli.js*: #!/usr/bin/env node\\n
    """
    real = "/usr/local/lib/node_modules/@anthropic-ai/claude-code/cli.js"
    assert look(tmp_path, tree, "/usr/local/bin:/usr/bin") == ClaudeInstall(
        *("/usr/local/bin/claude", real, "npm"),
        files=(),
        interpreter="/usr/bin/node",
        missing="",
        way_to_interpreter="/usr/bin/node",
    )


def test_nvm_needs_its_package_and_its_node(tmp_path: Path) -> None:
    tree = f"""
        {NVM}/bin/node*
        {NVM}/bin/claude -> ../lib/node_modules/@anthropic-ai/claude-code/cli.js
        {NVM}/lib/node_modules/@anthropic-ai/claude-code/cli.js*: #!/usr/bin/env node\\n
        {NVM}/lib/node_modules/other/secret
    """
    assert look(tmp_path, tree, f"{NVM}/bin:/usr/bin") == ClaudeInstall(
        path=f"{NVM}/bin/claude",
        real=f"{NVM}/lib/node_modules/@anthropic-ai/claude-code/cli.js",
        kind="npm",
        files=(f"{NVM}/lib/node_modules/@anthropic-ai", f"{NVM}/bin/node"),
        interpreter=f"{NVM}/bin/node",
        missing="",
        way_to_interpreter=f"{NVM}/bin/node",
    )


@pytest.mark.parametrize(
    ("line", "interpreter"),
    [
        ("#!/usr/bin/env node", "/usr/bin/node"),
        ("#!/usr/bin/env -S node --no-warnings", "/usr/bin/node"),
        ("#!/usr/bin/env -S NODE_OPTIONS=--no-warnings node", "/usr/bin/node"),
        ("#! /usr/bin/node --no-warnings", "/usr/bin/node"),
        ("#!/opt/node", "/opt/node"),
    ],
)
def test_hash_bang_line_names_the_interpreter(line: str, interpreter: str, tmp_path: Path) -> None:
    install = look(tmp_path, f"/opt/node*\n~/bin/claude*: {line}\\n", f"{HOME}/bin:/usr/bin")
    outside = (interpreter,) if interpreter == "/opt/node" else ()
    assert install == ClaudeInstall(
        *(f"{HOME}/bin/claude", f"{HOME}/bin/claude", "script", (f"{HOME}/bin/claude", *outside)),
        *(interpreter, "", interpreter),
    )


@pytest.mark.parametrize(("line", "name"), [("#!/usr/bin/env bun", "bun"), ("#!/opt/gone/node", "/opt/gone/node")])
def test_missing_interpreter_is_named(line: str, name: str, tmp_path: Path) -> None:
    assert look(tmp_path, f"~/bin/claude*: {line}\\n", f"{HOME}/bin:/usr/bin").missing == name


def test_innermost_package_of_pnpm_is_needed(tmp_path: Path) -> None:
    inner = f"{PNPM}/global/5/.pnpm/@anthropic-ai+claude-code@2.1.0/node_modules/@anthropic-ai"
    tree = f"""
        {PNPM}/claude -> global/5/node_modules/@anthropic-ai/claude-code/cli.js
        {PNPM}/global/5/node_modules/@anthropic-ai/claude-code -> {inner}/claude-code
        {inner}/claude-code/cli.js*: #!/usr/bin/env node\\n
    """
    install = look(tmp_path, tree, f"{PNPM}:/usr/bin")
    assert (install.real, install.kind, install.files) == (f"{inner}/claude-code/cli.js", "npm", (inner,))


def test_first_program_on_path_wins_and_directories_do_not_count(tmp_path: Path) -> None:
    tree = "/a/claude/\n/b/claude\n/c/claude -> nowhere\n/d/claude*: ELF\n/e/claude*: ELF"
    assert look(tmp_path, tree, "/a:/b:/c:/d:/e").path == "/d/claude"
