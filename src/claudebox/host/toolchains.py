"""The toolchains that are known: where they are in a home, what of them a box may have, and what may hold a token."""

from __future__ import annotations

import posixpath

from claudebox.paths import is_inside
from claudebox.record import Record

# Below a tree, or below one of its environments: settings of a whole installation, with tokens and passwords for
# registries, and the variables that an environment of conda sets. People keep keys for APIs there.
TOKENS = (
    *("etc/npmrc", "pip.conf", "uv-receipt.toml", "pipx_metadata.json", ".condarc", "condarc", "conda-meta/state"),
    *("etc/conda/activate.d/env_vars.sh", "etc/conda/deactivate.d/env_vars.sh"),
)


class Toolchain(Record):
    """Programs of one kind below a root. A directory on PATH is of this kind if it lies in the tree."""

    name: str
    root: str  # `~` is the home
    tree: str  # below the root, what is shown: `*` stands for one name, such as a version; "" is all of it
    variable: str = ""  # a variable of the host that may name another root
    mark: str = ""  # a file that has to be in the tree, so that it is what it seems
    sets: str = ""  # a variable of the box that names the tree


TOOLCHAINS = (
    # Node.js
    Toolchain("nvm", "~/.nvm", "versions/node/*", "NVM_DIR"),
    Toolchain("nvm", "~/.config/nvm", "versions/node/*"),
    Toolchain("fnm", "~/.local/share/fnm", "node-versions/*/installation", "FNM_DIR"),
    Toolchain("fnm", "~/.fnm", "node-versions/*/installation"),
    Toolchain("volta", "~/.volta", "tools/image/*/*", "VOLTA_HOME"),
    Toolchain("nodenv", "~/.nodenv", "versions/*", "NODENV_ROOT"),
    Toolchain("n", "~/n", "", "N_PREFIX", mark="bin/node"),
    Toolchain("npm -g", "~/.npm-global", "", mark="bin"),
    Toolchain("pnpm env", "~/.local/share/pnpm", "nodejs/*", "PNPM_HOME"),
    Toolchain("bun", "~/.bun", "bin", "BUN_INSTALL"),
    Toolchain("deno", "~/.deno", "bin", "DENO_INSTALL"),
    # Python
    Toolchain("pyenv", "~/.pyenv", "versions/*", "PYENV_ROOT"),
    Toolchain("uv", "~/.local/share/uv/python", "*", "UV_PYTHON_INSTALL_DIR"),
    Toolchain("uv tool", "~/.local/share/uv/tools", "*", "UV_TOOL_DIR"),
    Toolchain("pipx", "~/.local/share/pipx", "venvs/*", "PIPX_HOME"),
    Toolchain("pipx", "~/.local/pipx", "venvs/*"),
    Toolchain("Poetry", "~/.local/share/pypoetry", "venv"),
    *(
        Toolchain("conda", f"~/{name}", "", mark="conda-meta")
        for name in ("miniconda3", "miniforge3", "mambaforge", "anaconda3")
    ),
    # Rust. Where rustup is, `_add_rustup` adds its toolchains.
    Toolchain("cargo", "~/.cargo", "bin", "CARGO_HOME"),
    Toolchain("rustup", "~/.rustup", "toolchains/*", "RUSTUP_HOME"),
    # Go
    Toolchain("go", "~/go", "", mark="VERSION"),
    Toolchain("go install", "~/go", "bin", "GOPATH"),
    Toolchain("go", "~/sdk", "go*", mark="VERSION"),
    Toolchain("go", "~/.local/go", "", mark="VERSION"),
    Toolchain("goenv", "~/.goenv", "versions/*", "GOENV_ROOT"),
    Toolchain("gvm", "~/.gvm", "gos/*"),
    # The JVM
    Toolchain("sdkman", "~/.sdkman", "candidates/java/*", "SDKMAN_DIR", sets="JAVA_HOME"),
    Toolchain("sdkman", "~/.sdkman", "candidates/*/*", "SDKMAN_DIR"),
    Toolchain("jdk", "~/.jdks", "*", sets="JAVA_HOME"),
    # Others
    Toolchain("rbenv", "~/.rbenv", "versions/*", "RBENV_ROOT"),
    Toolchain("gem", "~/.local/share/gem", "ruby/*"),
    Toolchain("mise", "~/.local/share/mise", "installs/*/*", "MISE_DATA_DIR"),
    Toolchain("asdf", "~/.asdf", "installs/*/*", "ASDF_DATA_DIR"),
    Toolchain("dotnet", "~/.dotnet", "", "DOTNET_ROOT", mark="dotnet", sets="DOTNET_ROOT"),
    Toolchain("Composer", "~/.config/composer", "vendor"),
    Toolchain("Composer", "~/.composer", "vendor"),
    Toolchain("ghcup", "~/.ghcup", "", mark="bin"),
    Toolchain("cabal", "~/.cabal", "bin"),
)

# All of rustup's, since cargo and rustc choose one by themselves.
RUSTUPS = Toolchain("rustup", "~/.rustup", "toolchains", "RUSTUP_HOME")

# Directories for programs of every kind, scripts with tokens among them. A program is shown if it leads into one of the
# trees above, or if it is one of these, and no script.
MIXED = ("~/.local/bin", "~/bin", "~/.local/share/pnpm")
ELF = b"\x7fELF"


def match(path: str, root: str, pattern: str) -> str:
    """The tree of this pattern that the path lies in; "" if it lies in none."""
    if not is_inside(path, root):
        return ""
    parts = [part for part in path[len(root) :].split("/") if part]
    wanted = [part for part in pattern.split("/") if part]
    are_alike = (
        part.startswith(like[:-1]) if like.endswith("*") else part == like
        for part, like in zip(parts, wanted, strict=False)
    )
    return posixpath.join(root, *parts[: len(wanted)]) if len(parts) >= len(wanted) and all(are_alike) else ""
