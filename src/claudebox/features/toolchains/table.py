"""The toolchains that are known: where they lie in a home, what is shown of them, and what may hold a token."""

from __future__ import annotations

from claudebox.record import Record

NPMRC, PIP_CONF = "etc/npmrc", "pip.conf"  # settings of a whole installation, with tokens and passwords for registries
# The same of one environment of conda, and the variables that it sets: people keep keys for APIs there.
OF_CONDA = (
    *(".condarc", "condarc", PIP_CONF, "conda-meta/state"),
    *("etc/conda/activate.d/env_vars.sh", "etc/conda/deactivate.d/env_vars.sh"),
)


class Toolchain(Record):
    """Programs of one kind below a root. A directory on PATH is of this kind if it lies in the tree."""

    name: str
    root: str  # `~` is the home
    tree: str  # below the root, what is shown: `*` stands for one name, such as a version; "" is all of it
    variable: str = ""  # a variable of the host that may name another root
    hidden: tuple[str, ...] = ()  # below the tree: it may hold tokens; one `*` stands for any name
    mark: str = ""  # a file that has to be in the tree, so that it is what it seems
    sets: str = ""  # a variable of the box that names the tree
    sets_for: str = ""  # only if this name is on the way to the tree


class Shims(Record):
    """Small programs on PATH that look up, at each call, which version the current directory is to have."""

    name: str
    root: str
    installs: str  # below the root: where a version is; the words are the tool and its version
    variable: str = ""
    directory: str = "shims"
    version_variable: str = ""
    files: tuple[str, ...] = ()  # in the project or above it
    default: str = ""  # below the root


def _versions(name: str, root: str, variable: str, *hidden: str) -> Toolchain:
    return Toolchain(name, root, "versions/*", variable, hidden)


TOOLCHAINS = (
    # Node.js
    Toolchain("nvm", "~/.nvm", "versions/node/*", "NVM_DIR", (NPMRC,)),
    Toolchain("nvm", "~/.config/nvm", "versions/node/*", "", (NPMRC,)),
    Toolchain("fnm", "~/.local/share/fnm", "node-versions/*/installation", "FNM_DIR", (NPMRC,)),
    Toolchain("fnm", "~/.fnm", "node-versions/*/installation", "", (NPMRC,)),
    Toolchain("volta", "~/.volta", "tools/image/*/*", "VOLTA_HOME", (NPMRC,)),
    _versions("nodenv", "~/.nodenv", "NODENV_ROOT", NPMRC),
    Toolchain("n", "~/n", "", "N_PREFIX", (NPMRC,), mark="bin/node"),
    Toolchain("npm -g", "~/.npm-global", "", "", (NPMRC,), mark="bin"),
    Toolchain("pnpm env", "~/.local/share/pnpm", "nodejs/*", "PNPM_HOME", (NPMRC,)),
    Toolchain("bun", "~/.bun", "bin", "BUN_INSTALL"),
    Toolchain("deno", "~/.deno", "bin", "DENO_INSTALL"),
    # Python
    _versions("pyenv", "~/.pyenv", "PYENV_ROOT", PIP_CONF, f"envs/*/{PIP_CONF}"),
    Toolchain("uv", "~/.local/share/uv/python", "*", "UV_PYTHON_INSTALL_DIR", (PIP_CONF,)),
    Toolchain("uv tool", "~/.local/share/uv/tools", "*", "UV_TOOL_DIR", ("uv-receipt.toml", PIP_CONF)),
    Toolchain("pipx", "~/.local/share/pipx", "venvs/*", "PIPX_HOME", ("pipx_metadata.json", PIP_CONF)),
    Toolchain("pipx", "~/.local/pipx", "venvs/*", "", ("pipx_metadata.json", PIP_CONF)),
    Toolchain("Poetry", "~/.local/share/pypoetry", "venv", "", (PIP_CONF,)),
    *(
        Toolchain("conda", f"~/{name}", "", "", (*OF_CONDA, *(f"envs/*/{one}" for one in OF_CONDA)), mark="conda-meta")
        for name in ("miniconda3", "miniforge3", "mambaforge", "anaconda3")
    ),
    # Rust. Where rustup is, features/toolchains/decide.py adds its toolchains.
    Toolchain("cargo", "~/.cargo", "bin", "CARGO_HOME"),
    Toolchain("rustup", "~/.rustup", "toolchains/*", "RUSTUP_HOME"),
    # Go
    Toolchain("go", "~/go", "", "", mark="VERSION"),
    Toolchain("go install", "~/go", "bin", "GOPATH"),
    Toolchain("go", "~/sdk", "go*", mark="VERSION"),
    Toolchain("go", "~/.local/go", "", mark="VERSION"),
    _versions("goenv", "~/.goenv", "GOENV_ROOT"),
    Toolchain("gvm", "~/.gvm", "gos/*"),
    # The JVM
    Toolchain("sdkman", "~/.sdkman", "candidates/*/*", "SDKMAN_DIR", sets="JAVA_HOME", sets_for="java"),
    Toolchain("jdk", "~/.jdks", "*", sets="JAVA_HOME"),
    # Others
    _versions("rbenv", "~/.rbenv", "RBENV_ROOT"),
    Toolchain("gem", "~/.local/share/gem", "ruby/*"),
    Toolchain("mise", "~/.local/share/mise", "installs/*/*", "MISE_DATA_DIR", (NPMRC, PIP_CONF)),
    Toolchain("asdf", "~/.asdf", "installs/*/*", "ASDF_DATA_DIR", (NPMRC, PIP_CONF)),
    Toolchain("dotnet", "~/.dotnet", "", "DOTNET_ROOT", mark="dotnet", sets="DOTNET_ROOT"),
    Toolchain("Composer", "~/.config/composer", "vendor"),
    Toolchain("Composer", "~/.composer", "vendor"),
    Toolchain("ghcup", "~/.ghcup", "", mark="bin"),
    Toolchain("cabal", "~/.cabal", "bin"),
)

SHIMS = (
    *(
        Shims(
            *(name, f"~/.{name}", "versions/{version}", f"{name.upper()}_ROOT", "shims", f"{name.upper()}_VERSION"),
            *((f".{language}-version",), "version"),
        )
        for name, language in (("pyenv", "python"), ("rbenv", "ruby"), ("nodenv", "node"), ("goenv", "go"))
    ),
    Shims("asdf", "~/.asdf", "installs/{tool}/{version}", "ASDF_DATA_DIR", files=(".tool-versions",)),
    Shims(
        *("mise", "~/.local/share/mise", "installs/{tool}/{version}", "MISE_DATA_DIR"),
        files=("mise.toml", ".mise.toml", ".tool-versions"),
        default="~/.config/mise/config.toml",
    ),
    Shims(
        *("volta", "~/.volta", "tools/image/{tool}/{version}", "VOLTA_HOME", "bin"),
        files=("package.json",),
        default="tools/user/platform.json",
    ),
)

# Where a virtual environment of the project may have its Python from. An agent can write what it says.
PYTHONS = frozenset(("pyenv", "uv", "conda", "mise", "asdf"))

# Directories for programs of every kind, scripts with tokens among them. A program is shown if it leads into one of the
# trees above, or if it is one of these, and no script.
MIXED = ("~/.local/bin", "~/bin", "~/.local/share/pnpm")
PROGRAMS = frozenset(
    "uv uvx mise fnm volta pnpm bun bunx deno ruff ty pixi just task biome rg fd jq yq hugo zig cmake ninja buf".split()
)
