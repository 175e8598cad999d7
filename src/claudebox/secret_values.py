"""What a secret looks like: names, tokens, private keys, random text."""

from __future__ import annotations

import posixpath
from itertools import pairwise

# These count anywhere in a variable's name.
STRONG_WORDS = ("apikey", "api_key", "credential", "passphrase", "passwd", "password", "private_key", "secret", "token")
# These count as a word of the name, as in AWS_ACCESS_KEY_ID, unless the value is a number or a path.
WEAK_WORDS = frozenset("auth cookie cred creds jwt headers key keys otp pass pat pw pwd session".split())
HARMLESS_NAMES = frozenset("PWD OLDPWD DESKTOP_SESSION".split())
SWITCHES = frozenset(("", "0", "1", "true", "false", "yes", "no", "on", "off"))

TOKEN_PREFIXES = (
    ("sk-ant-", "an Anthropic key"),
    ("sk-", "an API key"),
    ("ghp_", "a GitHub token"),
    ("gho_", "a GitHub token"),
    ("ghu_", "a GitHub token"),
    ("ghs_", "a GitHub token"),
    ("ghr_", "a GitHub token"),
    ("github_pat_", "a GitHub token"),
    ("glpat-", "a GitLab token"),
    ("AKIA", "an AWS key"),
    ("ASIA", "an AWS key"),
    ("AIza", "a Google key"),
    ("ya29.", "a Google token"),
    ("xoxb-", "a Slack token"),
    ("xoxp-", "a Slack token"),
    ("xoxa-", "a Slack token"),
    ("xapp-", "a Slack token"),
    ("npm_", "an npm token"),
    ("pypi-", "a PyPI token"),
    ("hf_", "a Hugging Face token"),
    ("dop_v1_", "a DigitalOcean token"),
    ("sk_live_", "a Stripe key"),
    ("rk_live_", "a Stripe key"),
    ("SG.", "a SendGrid key"),
    ("tskey-", "a Tailscale key"),
    ("hvs.", "a Vault token"),
    ("AGE-SECRET-KEY-", "an age key"),
    ("eyJ", "a signed token (JWT)"),
)
SHORTEST_TOKEN = 20
SHORTEST_RANDOM = 32
COMMIT_LENGTH = 40
PRIVATE_KEY_MARK = "PRIVATE KEY-----"

SECRET_FILE_NAMES = frozenset(
    "id_rsa id_dsa id_ecdsa id_ed25519 .env .netrc .npmrc .pypirc .pgpass .git-credentials .htpasswd credentials "
    "credentials.json kubeconfig keys.txt .vault-token service-account.json secrets.yaml secrets.yml secrets.json "
    "terraform.tfstate".split()
)
SECRET_FILE_ENDINGS = tuple(".pem .key .p12 .pfx .jks .keystore .kdbx .age .gpg .asc .ppk .tfstate".split())
EXAMPLE_ENDINGS = (".example", ".sample", ".template", ".dist")


def looks_secret(name: str, value: str) -> str:
    """Why a variable looks like a secret; "" if it does not."""
    return _secret_name(name, value) or secret_value(value) or ("it looks random" if _looks_random(value) else "")


def _secret_name(name: str, value: str) -> str:
    lower = name.lower().replace("-", "_")
    if value.lower() in SWITCHES or name in HARMLESS_NAMES or name.startswith("XDG_SESSION_"):
        return ""
    if value.isdigit() and "tokens" in lower:  # a limit, as in MAX_OUTPUT_TOKENS
        return ""
    weak = not WEAK_WORDS.isdisjoint(lower.split("_")) and not value.isdigit() and not value.startswith("/")
    if weak or any(word in lower for word in STRONG_WORDS):
        return "its name says so"
    return ""


def secret_value(value: str) -> str:
    """Why a text looks like a secret: known tokens, private keys, passwords in addresses."""
    if PRIVATE_KEY_MARK in value:
        return "it holds a private key"
    for word in _words(value):
        for prefix, title in TOKEN_PREFIXES:
            if word.startswith(prefix) and len(word) >= SHORTEST_TOKEN:
                return f"it looks like {title}"
    return "it holds a password for an address" if _has_url_password(value) else ""


def secret_file(path: str) -> str:
    """Why a file that is about to be mounted looks like a secret, by its name."""
    name = posixpath.basename(path)
    if name.endswith(EXAMPLE_ENDINGS):
        return ""
    if name in SECRET_FILE_NAMES or name.startswith(".env.") or name.endswith(SECRET_FILE_ENDINGS):
        return "its name says so"
    return ""


def _words(text: str) -> list[str]:
    """The text in pieces, cut at every character that no token contains."""
    for separator in "\"'`=:,;()[]{}<>|&?@/\\":
        text = text.replace(separator, " ")
    return text.split()


def _has_url_password(text: str) -> bool:
    """Whether the text contains `scheme://user:password@host`."""
    for piece in text.split("://")[1:]:
        account, at, _ = piece.split("/", 1)[0].rpartition("@")
        if at and account.partition(":")[2]:
            return True
    return False


def _looks_random(text: str) -> bool:
    """Whether it is one long word of letters and digits in no readable order. The hash of a commit is no secret."""
    if len(text) < SHORTEST_RANDOM or text.startswith(("/", "~")) or not text.isascii():
        return False
    if not all(character.isalnum() or character in "+/=_-" for character in text):
        return False
    changes = sum(a.isdigit() != b.isdigit() for a, b in pairwise(text))
    is_commit = len(text) == COMMIT_LENGTH and set(text) <= set("0123456789abcdef")
    return changes * 8 >= len(text) and not is_commit
