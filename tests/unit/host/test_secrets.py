"""What is flagged as a secret, and what must not be: a warning seen too often is not read."""

import pytest

from claudebox.host.secrets import looks_secret, secret_value

pytestmark = pytest.mark.req("SEC-01")

BY_NAME = [
    *("GITHUB_TOKEN", "GH_TOKEN", "NPM_TOKEN", "PASSWORD", "DB_PASSWORD", "PGPASSWORD", "MYSQL_PWD", "SECRET_KEY_BASE"),
    *("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"),
    *("STRIPE_KEY", "APIKEY", "api_key", "DJANGO_SECRET", "CLIENT_SECRET", "GPG_PASSPHRASE", "RESTIC_PASSWORD"),
    *("AUTH", "BASIC_AUTH", "SESSION_COOKIE", "JWT", "DEPLOY_CREDS", "MY_PRIVATE_KEY", "SIGNING_KEY", "GITHUB_PAT"),
    *("DOCKER_AUTH_CONFIG", "VAULT_TOKEN", "CARGO_REGISTRY_TOKEN", "TWINE_PASSWORD", "HF_TOKEN", "SUDO_PASS"),
]
BY_VALUE = [
    ("sk-ant-api03-" + "a1" * 20, "sk-ant-"),
    ("sk-proj-" + "a1" * 20, "sk-"),
    ("ghp_" + "a1" * 18, "ghp_"),
    ("github_pat_" + "a1" * 20, "github_pat_"),
    ("glpat-" + "a1b2" * 5, "glpat-"),
    ("AKIA" + "ABCDEFGHIJKLMNOP", "AKIA"),
    ("AIza" + "a1" * 17, "AIza"),
    ("xoxb-" + "1" * 12 + "-abc", "xoxb-"),
    ("npm_" + "a1" * 18, "npm_"),
    ("pypi-" + "a1" * 30, "pypi-"),
    ("hf_" + "a1" * 17, "hf_"),
    ("tskey-auth-" + "a1" * 10, "tskey-"),
    ("AGE-SECRET-KEY-1" + "Q" * 58, "AGE-SECRET-KEY-"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "eyJ"),
    ("Authorization: Bearer ghp_" + "a1" * 18, "ghp_"),
    ('{"token": "ghp_' + "a1" * 18 + '"}', "ghp_"),
    ("curl -H x-api-key:sk-ant-" + "a1" * 20, "sk-ant-"),
]
OTHER_VALUES = [
    ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl", "it holds a private key"),
    ("-----BEGIN PRIVATE KEY-----", "it holds a private key"),
    ("postgres://alice:hunter2@db/shop", "it holds a password for an address"),
    ("https://alice:hunter2@example.org/x.git", "it holds a password for an address"),
    ("redis://:hunter2@localhost:6379/0", "it holds a password for an address"),
    ("d131dd02c5e6eec4693d9a0698aff95c2fcab58712467eab4004583eb8fb7f89", "it looks random"),
    ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY1a2b3c4d5e6f", "it looks random"),
]

# What a developer's shell usually has, with usual values.
HARMLESS = {
    "ANDROID_HOME": "/home/alice/Android/Sdk",
    "BROWSER": "firefox",
    "BUILD_NUMBER": "1234",
    "CARGO_HOME": "/home/alice/.cargo",
    "CC": "clang",
    "CFLAGS": "-O2 -g -fstack-protector-strong",
    "CI": "true",
    "CI_COMMIT_SHA": "9fceb02d0ae598e95dc970b74767f19372d61af8",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "32000",
    "COLORTERM": "truecolor",
    "CONDA_DEFAULT_ENV": "base",
    "COLUMNS": "80",
    "DEBUG": "app:*",
    "DESKTOP_SESSION": "gnome",
    "DISPLAY": ":0",
    "DJANGO_SETTINGS_MODULE": "shop.settings",
    "DOCKER_BUILDKIT": "1",
    "EDITOR": "nvim",
    "FZF_DEFAULT_OPTS": "--height 40% --layout=reverse --border",
    "GIT_AUTHOR_NAME": "Alice",
    "GIT_PAGER": "delta",
    "GOFLAGS": "-mod=vendor",
    "GOPATH": "/home/alice/go",
    "HISTSIZE": "10000",
    "HOME": "/home/alice",
    "HTTP_PROXY": "http://proxy.example.org:3128",
    "JAVA_HOME": "/usr/lib/jvm/java-17-openjdk-amd64",
    "KEYBOARD_LAYOUT": "de",
    "LANG": "en_GB.UTF-8",
    "LC_ALL": "C.UTF-8",
    "LESS": "-FRX",
    "LOGNAME": "alice",
    "LS_COLORS": "rs=0:di=01;34:ln=01;36:mh=00:pi=40;33:so=01;35",
    "MAKEFLAGS": "-j8",
    "MANPATH": "/usr/share/man:/usr/local/share/man",
    "MAX_THINKING_TOKENS": "10000",
    "MONKEY": "see",
    "NIX_PATH": "nixpkgs=/nix/var/nix/profiles/per-user/root/channels/nixos",
    "NODE_ENV": "development",
    "NODE_OPTIONS": "--max-old-space-size=4096",
    "NO_COLOR": "1",
    "NVM_DIR": "/home/alice/.nvm",
    "OLDPWD": "/home/alice",
    "PAGER": "less",
    "PATH": "/home/alice/.local/bin:/usr/local/bin:/usr/bin:/bin",
    "PKG_CONFIG_PATH": "/usr/local/lib/pkgconfig",
    "PORT": "8080",
    "PS1": "\\u@\\h:\\w\\$ ",
    "PWD": "/home/alice/shop",
    "PYENV_ROOT": "/home/alice/.pyenv",
    "PYTHONPATH": "src:tests",
    "RAILS_ENV": "test",
    "RUSTFLAGS": "-C target-cpu=native",
    "RUST_BACKTRACE": "1",
    "SHELL": "/bin/zsh",
    "SHLVL": "2",
    "SSH_AUTH_SOCK": "/run/user/1000/keyring/ssh",
    "SSH_CONNECTION": "192.0.2.7 51234 192.0.2.1 22",
    "TERM": "xterm-256color",
    "TERM_PROGRAM": "vscode",
    "TMUX": "/tmp/tmux-1000/default,1234,0",
    "TOKENIZERS_PARALLELISM": "false",
    "TZ": "Europe/Zurich",
    "USER": "alice",
    "VIRTUAL_ENV": "/home/alice/shop/.venv",
    "XAUTHORITY": "/run/user/1000/gdm/Xauthority",
    "XDG_CURRENT_DESKTOP": "ubuntu:GNOME",
    "XDG_DATA_DIRS": "/usr/share/gnome:/usr/local/share/:/usr/share/",
    "XDG_RUNTIME_DIR": "/run/user/1000",
    "XDG_SESSION_DESKTOP": "gnome",
    "XDG_SESSION_TYPE": "wayland",
    "ZSH": "/home/alice/.oh-my-zsh",
}


@pytest.mark.parametrize("name", BY_NAME)
def test_name_tells(name: str) -> None:
    assert looks_secret(name, "hunter2") == "its name says so"


@pytest.mark.parametrize(("value", "prefix"), BY_VALUE)
def test_known_token_is_recognised(value: str, prefix: str) -> None:
    assert secret_value(value) == f"it looks like a token: {prefix}…"
    assert looks_secret("HARMLESS", value)


@pytest.mark.parametrize(("value", "reason"), OTHER_VALUES)
def test_value_tells(value: str, reason: str) -> None:
    assert looks_secret("HARMLESS", value) == reason


def test_usual_variables_are_harmless() -> None:
    assert {name: looks_secret(name, value) for name, value in HARMLESS.items() if looks_secret(name, value)} == {}


@pytest.mark.parametrize(
    "text",
    [
        *("fix the failing test", "--model", "claude-opus-4-5", "src/claudebox/host/secrets.py", "sk-", "eyJ"),
        *("https://example.org/a@b", "git@github.com:owner/name.git", "ssh://git@example.org/x.git"),
        *("refactor-the-quite-long-function-name-of-the-module", "a" * 200, "2026-01-01T00:00:00Z", "task-1234-5678"),
    ],
)
def test_usual_argument_is_harmless(text: str) -> None:
    assert secret_value(text) == ""
