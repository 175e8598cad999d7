"""What a secret looks like: names, tokens, private keys, random text."""

from __future__ import annotations

from itertools import pairwise

# These count anywhere in a variable's name.
STRONG_WORDS = tuple(
    "apikey api_key access_key accesskey credential mnemonic passcode passphrase passwd password private_key secret "
    "token".split()
)
# These count as a word of the name, as in AWS_ACCESS_KEY_ID, unless the value is a number or a path.
WEAK_WORDS = frozenset(
    "auth authkey authorization cookie cred creds jwt headers key keys masterauth oauth pat presharedkey privatekey "
    "session sig".split()
)
# These count as a word of the name or at its end, as in `storePass`, unless the value is a path.
PASS_WORDS = ("pass", "pwd", "psk", "otp", "pw")
# With one of these as a word of its name, even a short or common word is a secret.
SECRET_WORDS = frozenset("key otp pass pat pin pw pwd salt seed".split())
NO_PASS_WORDS = frozenset("bypass compass overpass cwd pwd_cwd".split())
# What has such a part in its name is no secret because of that.
HARMLESS_PARTS = "tokeniz public_key publickey primary_key foreign_key sort_key cache_key key_name".split()
HARMLESS_NAMES = frozenset("PWD OLDPWD DESKTOP_SESSION".split())
SWITCHES = frozenset(("", "0", "1", "true", "false", "yes", "no", "on", "off"))

_TOKENS = (
    ("an Anthropic key", "sk-ant-"),
    ("an API key", "sk- xai- gsk_"),
    ("a GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_"),
    ("a GitLab token", "glpat- glrt- gldt-"),
    ("an AWS key", "AKIA ASIA"),
    ("a Google key", "AIza"),
    ("a Google token", "ya29."),
    ("a Slack token", "xoxb- xoxp- xoxa- xapp-"),
    ("an npm token", "npm_"),
    ("a PyPI token", "pypi-"),
    ("a Hugging Face token", "hf_"),
    ("a DigitalOcean token", "dop_v1_"),
    ("a Stripe key", "sk_live_ sk_test_ rk_live_"),
    ("a Stripe secret", "whsec_"),
    ("a SendGrid key", "SG."),
    ("a Tailscale key", "tskey-"),
    ("a Shopify token", "shpat_"),
    ("a Docker token", "dckr_pat_"),
    ("a Linear key", "lin_api_"),
    ("a Netlify token", "nfp_"),
    ("a Databricks token", "dapi"),
    ("a Pulumi token", "pul-"),
    ("a Figma token", "figd_"),
    ("a Notion token", "ntn_"),
    ("a Vault token", "hvs."),
    ("an age key", "AGE-SECRET-KEY-"),
    ("a signed token (JWT)", "eyJ"),
)
TOKEN_PREFIXES = tuple((prefix, title) for title, prefixes in _TOKENS for prefix in prefixes.split())
_PREFIXES = tuple(prefix for prefix, _ in TOKEN_PREFIXES)
SHORTEST_TOKEN = 20
SHORTEST_RANDOM = 32
LONGEST_SCHEME = 12
COMMIT_LENGTH = 40
PRIVATE_KEY_MARKS = ("PRIVATE KEY-----", "PRIVATE KEY BLOCK-----")
# Behind the length of a private key or a key store in DER: its version, and what comes next.
DER_SEQUENCE, DER_LONG = b"0", 0x80
DER_KEYS = (b"\2\1\0\x30", b"\2\1\1\x30", b"\2\1\0\2", b"\2\1\1\4", b"\2\1\3\x30")
ENCRYPTED_DER = b"\x2a\x86\x48\x86\xf7\x0d\x01\x05"  # how the names of ways to encrypt a key begin


def looks_secret(name: str, value: str) -> str:
    """Why a variable looks like a secret; "" if it does not."""
    return _secret_name(name, value) or secret_value(value) or ("it looks random" if _looks_random(value) else "")


def _secret_name(name: str, value: str) -> str:
    lower = in_words(name)
    if value.lower() in SWITCHES or name in HARMLESS_NAMES or name.startswith("XDG_SESSION_"):
        return ""
    if value.isdigit() and "tokens" in lower:  # a limit, as in MAX_OUTPUT_TOKENS
        return ""
    words = lower.split("_")
    weak = not WEAK_WORDS.isdisjoint(words) and not value.isdigit() and not value.startswith("/")
    passing = [word for word in words if word.endswith(PASS_WORDS[:2]) and word not in NO_PASS_WORDS]
    is_pass = (passing or not set(PASS_WORDS).isdisjoint(words)) and not value.startswith("/")
    if weak or is_pass or any(word in lower for word in STRONG_WORDS):
        return "its name says so"
    return ""


def in_words(name: str) -> str:
    """A name in lower case with `_` between its words, whether they were `words`, `Words`, `wor-ds` or `wor.ds`."""
    if not (name.isupper() or name.islower()):
        pairs = pairwise(f"{name} ")
        name = "".join(a + "_" if (a.islower() or a.isdigit()) and b.isupper() else a for a, b in pairs)
    lower = name.lower()
    for separator in "-. :":
        lower = lower.replace(separator, "_")
    for part in HARMLESS_PARTS:
        lower = lower.replace(part, "")
    return lower


def names_secret(name: str) -> bool:
    """Whether even a short or common word is a secret under this name."""
    words = in_words(name)
    return any(word in words for word in STRONG_WORDS) or any(
        part in SECRET_WORDS or part.endswith(("pass", "pwd")) for part in words.split("_")
    )


def secret_value(value: str) -> str:
    """Why a text looks like a secret: known tokens, private keys, passwords in `scheme://user:password@host`."""
    if known := known_token(value):
        return known
    return "it holds a password for an address" if any(password for _, _, password, _ in accounts(value)) else ""


def known_token(value: str) -> str:
    if any(mark in value for mark in PRIVATE_KEY_MARKS):
        return "it holds a private key"
    for word in _words(value) if any(prefix in value for prefix in _PREFIXES) else ():
        if len(word) >= SHORTEST_TOKEN and word.startswith(_PREFIXES):
            title = next(title for prefix, title in TOKEN_PREFIXES if word.startswith(prefix))
            return f"it looks like {title}"
    return ""


def is_binary_key(content: bytes) -> bool:
    """Whether this is a private key in DER: in a certificate and in a public key, something else comes first."""
    length = content[1] if content[:1] == DER_SEQUENCE else 0
    inner = content[2 + (length - DER_LONG if length > DER_LONG else 0) :]
    return length > 0 and (inner.startswith(DER_KEYS) or ENCRYPTED_DER in inner[:16])


def _words(text: str) -> list[str]:
    """The text in pieces, cut at every character that no token contains."""
    for separator in "\"'`=:,;()[]{}<>|&?@/\\":
        text = text.replace(separator, " ")
    return text.split()


def accounts(text: str) -> list[tuple[str, str, str, str]]:
    """Scheme, user, password and the rest of each address in the text that has an account.

    Programs take passwords with a slash in them, too; but what stands between a colon and a slash may be a port.
    """
    found = []
    before, *pieces = text.split("://")
    for piece in pieces:
        address = (piece.split(maxsplit=1) or [""])[0].rstrip("\"'`,;)>]}")
        account, at, _ = address.split("/", 1)[0].rpartition("@")
        if not at:
            account, at, _ = address.rpartition("@")
            user, colon, password = account.partition(":")
            at = at if colon and not password.partition("/")[0].isdigit() and "/" not in user else ""
        if at:
            user, _, password = account.partition(":")
            rest = address[len(account) + 1 :]
            found.append((before[-LONGEST_SCHEME:].lower(), user, password, rest))
        before = piece
    return found


def _looks_random(text: str) -> bool:
    """Whether it is one long word of letters and digits in no readable order. The hash of a commit is no secret."""
    if len(text) < SHORTEST_RANDOM or text.startswith(("/", "~", "sha256-", "sha512-")) or not text.isascii():
        return False
    if not all(character.isalnum() or character in "+/=_-" for character in text):
        return False
    changes = sum(a.isdigit() != b.isdigit() for a, b in pairwise(text))
    is_commit = len(text) == COMMIT_LENGTH and set(text) <= set("0123456789abcdef")
    return changes * 8 >= len(text) and not is_commit
