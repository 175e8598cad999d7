"""Makes decoys: files as the box sees them, with their keys and their shape, and with made-up values.

Nothing in a decoy is computed from a secret, not even its length. Whatever is not understood is left out.
"""

from __future__ import annotations

from claudebox.features.secrets.lines import LineMasker
from claudebox.features.secrets.table import GIT, KEY, LOOKS, SHAPE, SHELL, VALUES
from claudebox.features.secrets.values import (
    BEGIN,
    MASKED,
    change,
    is_harmless,
    is_name,
    is_reference,
    masked_key,
    names_secret,
    stand_in,
)
from claudebox.secret_values import looks_secret, secret_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NOTHING = f"# {MASKED}\n".encode()  # a comment, in most formats
# How files begin that are encrypted, with a key that is elsewhere.
SEALED = ("$ANSIBLE_VAULT;", "\x00GITCRYPT\x00", "age-encryption.org/")
SOPS = ("sops:", '"sops":', "sops_version", "[sops]")
KEY_MARKS = ("PRIVATE KEY-----", "PuTTY-User-Key-File", "AGE-SECRET-KEY-", "OpenVPN Static key")
SHAPES = ('"private_key"', '"client_secret"', '"refresh_token"')
WITH_TOKENS = ("headers", "auths", "http-basic", "github-oauth", "gitlab-token", "bearer")
STYLES = (VALUES, LOOKS, SHELL, SHAPE, KEY, GIT)  # of the others, all is secret
DEEPEST = 60


def make_decoy(content: bytes, style: str, name: str) -> bytes | None:
    """What the box sees instead of the content. None if there is nothing secret in it."""
    if not content.strip():
        return None
    text = content.decode(errors="replace")
    if text.startswith(SEALED) or ("ENC[" in text and any(mark in text for mark in SOPS)):
        return None
    if style not in STYLES or "\0" in text:
        return NOTHING
    if style == KEY:
        return _key(text).encode() if any(mark in text for mark in KEY_MARKS) else None
    if style == SHAPE and not (secret_value(text) or any(shape in text for shape in SHAPES)):
        return None
    if style == SHELL:
        return _lines(text, LineMasker(gently=True, is_script=True))
    return _document(text, name, gently=style in (LOOKS, GIT), is_git=style == GIT)


def _document(text: str, name: str, *, gently: bool, is_git: bool) -> bytes | None:
    if text.lstrip().startswith("{") or name.endswith(".json"):
        return _json(text, gently=gently)
    is_yaml = name.endswith((".yml", ".yaml")) or "kube" in name or _is_yaml(text)
    return _lines(text, LineMasker(gently=gently, is_yaml=is_yaml, drops_accounts=is_git))


def _lines(text: str, masker: LineMasker) -> bytes | None:
    decoy = masker.mask(text)
    return (decoy.encode() or NOTHING) if masker.changed else None


def _is_yaml(text: str) -> bool:
    return text.startswith(("apiVersion:", "---\n", "kind:"))


def _key(text: str) -> str:
    """Keep what is public, such as a certificate in the same file, and the label of everything else."""
    if BEGIN not in text:
        return f"{MASKED}\n"
    blocks = []
    for piece in text.split(BEGIN)[1:]:
        label, _, rest = piece.partition("-----")
        body, end, _ = rest.partition("-----END")
        is_public = end and label in ("CERTIFICATE", "PUBLIC KEY", "RSA PUBLIC KEY", "X509 CRL")
        blocks.append(f"{BEGIN}{label}-----{body}-----END {label}-----\n" if is_public else masked_key(label))
    return "".join(blocks)


def _json(text: str, *, gently: bool) -> bytes | None:
    import json

    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return b"{}\n"  # with comments, or cut: all of it is left out
    masker = _JsonMasker(gently=gently)
    decoy = masker.masked("", value, 0)
    return (json.dumps(decoy, indent=2) + "\n").encode() if masker.changed else None


class _JsonMasker:
    def __init__(self, *, gently: bool) -> None:
        self.gently = gently
        self.changed = False

    def masked(self, key: str, value: Any, depth: int) -> Any:
        if depth > DEEPEST:
            self.changed = True
            return None
        if isinstance(value, dict):
            return self._table(key, value, depth)
        if isinstance(value, list):
            return self._list(key, value, depth)
        if isinstance(value, str):
            return self._noted(value, self._text(key, value))
        if isinstance(value, bool) or value is None or self.gently:
            return value
        return value if is_harmless(key, repr(value)) else self._noted(value, 12345)

    def _noted(self, old: Any, new: Any) -> Any:
        self.changed = self.changed or old != new
        return new

    def _table(self, key: str, table: dict[str, Any], depth: int) -> dict[str, Any]:
        # What such a table holds is secret, whatever its keys are called.
        strictly = self.gently and key.lower() in WITH_TOKENS
        self.gently = self.gently and not strictly
        result = {}
        for number, (name, value) in enumerate(table.items()):
            shown = name if not name or is_name(name) else self._noted(name, f"{MASKED}-{number}")
            result[shown] = self.masked(f"{key}_{name}" if names_secret(key) else name, value, depth + 1)
        self.gently = self.gently or strictly
        return result

    def _list(self, key: str, items: list[Any], depth: int) -> list[Any]:
        """Judge each item by the word before it, which may say what it is: `--token`, `x`."""
        result = []
        before = ""
        for item in items:
            option = before.lstrip("-") if before.startswith("-") and "=" not in before else key
            result.append(self.masked(option, item, depth + 1))
            before = item if isinstance(item, str) else ""
        return result

    def _text(self, key: str, value: str) -> str:
        if self.gently and value.startswith("-") and "=" in value:
            option, _, inner = value.partition("=")
            return f"{option}={change(option.lstrip('-'), inner, gently=True)}"
        if self.gently and value.startswith("-"):
            return stand_in(value) if secret_value(value) else value
        changed = change(key, value, gently=self.gently)
        if changed == value and not is_reference(value) and secret_value(value):
            return stand_in(value)
        return changed


def looks_revealing(content: bytes) -> str:
    """Why a file that git tracks gives away more than settings; "" if it does not."""
    text = content.decode(errors="replace")
    return secret_value(text) or next(
        (
            "a value of it looks secret"
            for line in text.splitlines()
            if (pair := line.partition("="))[1] and pair[2].strip() and looks_secret("", pair[2].strip().strip("\"'"))
        ),
        "",
    )
