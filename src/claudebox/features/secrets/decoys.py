"""Makes decoys: files as the box sees them, with their keys and their shape, and with made-up values.

What stands for a secret is as long as it, and of the same characters, and drawn with a key that no box sees
(`invention.py`). Whatever is not understood is left out.
"""

from __future__ import annotations

from claudebox.features.secrets.invention import MASKED, Invent, plain
from claudebox.features.secrets.keys import kind_of_key, throw_away_certificate
from claudebox.features.secrets.lines import LineMasker
from claudebox.features.secrets.table import (
    GIT,
    KEY,
    KEY_MARKS,
    LOOKS,
    MARKUP,
    PLAIN,
    QUOTED,
    SHAPE,
    SHELL,
    SURE,
    VALUES,
    is_binary_key,
)
from claudebox.features.secrets.values import (
    BEGIN,
    change,
    holds_secret,
    is_harmless,
    is_name,
    is_placeholder,
    is_reference,
    masked_key,
    stand_in,
)
from claudebox.trust.secret_values import accounts, known_token, looks_secret, names_secret, secret_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

NOTHING = f"# {MASKED}\n".encode()  # a comment, in most formats
EMPTY_DOCUMENT = b"{}\n"
# How files begin that are encrypted, with a key that is elsewhere.
SEALED = ("$ANSIBLE_VAULT;", "\x00GITCRYPT\x00", "age-encryption.org/")
SOPS = ("sops:", '"sops":', "sops_version", "[sops]")
PROGRAMS = ("#!", "\x7fELF")
SHAPES = ('"private_key"', '"client_secret"', '"refresh_token"')
WITH_TOKENS = tuple(
    "headers auths http-basic github-oauth gitlab-oauth gitlab-token bitbucket-oauth forgejo-token custom-headers "
    "bearer".split()
)
STYLES = (VALUES, LOOKS, SHELL, QUOTED, MARKUP, SHAPE, SURE, KEY, PLAIN, GIT)  # of the others, all is secret
DEEPEST = 60
NAMING = ("key", "name")  # in a table that also has a `value`, what that value is called
# A key that is one word and nothing else, as those of Rails are.
SHORTEST_WORD, LONGEST_WORD = 16, 1024
LONGEST_RAW = 256  # bytes of one that is no text
LONGEST_BARE = 1 << 14  # characters of one that has several lines, as servers of MongoDB share it


def make_decoy(content: bytes, style: str, name: str, *, is_cut: bool = False, invent: Invent = plain) -> bytes | None:
    """What the box sees instead of the content. None if there is nothing secret in it.

    Of a file that was cut, the rest was not looked at: all of it is left out, unless it cannot be of this kind.
    """
    if not content.strip():
        return NOTHING if is_cut else None
    text = _decoded(content)
    if not is_cut and (text.startswith(SEALED) or ("ENC[" in text and any(mark in text for mark in SOPS))):
        return None
    if style not in STYLES:
        return NOTHING
    is_such = style not in (PLAIN, KEY, SHAPE, SURE) or _is_such(text, style)
    is_such = is_such or (style == KEY and (is_binary_key(content) or _is_raw_key(content)))
    if not is_such and not (is_cut and style == KEY and BEGIN in text):
        return None
    if is_cut or "\0" in text or style == PLAIN:
        return EMPTY_DOCUMENT if name.lower().endswith(".json") or text.startswith("{") else NOTHING
    if style == KEY:
        return _key(text, content, invent)
    return _masked(text, style, name, invent)


def _decoded(content: bytes) -> str:
    """The text, in whichever encoding an editor may have saved it."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", errors="replace")
    return content.decode("utf-8-sig", errors="replace").replace("\r\n", "\n")


def _is_such(text: str, style: str) -> bool:
    """Whether a file is what others of its name often are not."""
    text = text.replace("\0", "")  # as in UTF-16 without a mark
    if style == PLAIN:
        return not text.startswith(PROGRAMS)
    if style == KEY:
        return _is_bare_key(text.strip()) or any(mark in text for mark in (*KEY_MARKS, "<auth-user-pass>"))
    if style == SHAPE:
        return bool(secret_value(text) or any(shape in text for shape in SHAPES))
    return bool(known_token(text)) or _has_password(text) or any(map(_is_surely_secret, _pieces(text)))


def _is_bare_key(text: str) -> bool:
    """Whether there is a key and nothing else: one word, known tokens, or Base64 on several lines."""
    lines = text.splitlines()
    if len(lines) == 1 and SHORTEST_WORD <= len(text) <= LONGEST_WORD and text.isprintable() and " " not in text:
        return True
    if BEGIN in text:
        return False
    return bool(known_token(text)) or (len(text) <= LONGEST_BARE and bool(lines[1:]) and all(map(_is_code, lines[:-1])))


def _is_raw_key(content: bytes) -> bool:
    """Whether there are some random bytes and nothing else: not a certificate or public key, and no slides."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return SHORTEST_WORD <= len(content) <= LONGEST_RAW and not content.startswith((b"0", b"PK"))
    return False


def _is_code(line: str) -> bool:
    """Whether a line is one of Base64 or of hexadecimal digits, and no name of something."""
    line = line.strip()
    is_plain = len(line) >= SHORTEST_WORD and line.isascii() and all(one.isalnum() or one in "+/=" for one in line)
    return is_plain and any(map(str.isdigit, line)) and any(map(str.isalpha, line))


def _pieces(text: str) -> list[str]:
    """Lines, and the parts of documents that are on one line."""
    for separator in "{},":
        text = text.replace(separator, "\n")
    return text.splitlines()


def _has_password(text: str) -> bool:
    return any(
        password and not is_placeholder(password) and password != user for _, user, password, _ in accounts(text)
    )


def _is_surely_secret(line: str) -> bool:
    """Whether a line has a long word of letters and digits under a name that says so."""
    for separator in "=:":
        key, found, value = line.partition(separator)
        value = value.strip().strip("\"',;")
        is_mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value)) and " " not in value
        if (
            found
            and is_mixed
            and len(value) >= SHORTEST_WORD
            and "://" not in value
            and names_secret(key.strip(" \"'-"))
        ):
            return True
    return False


def _masked(text: str, style: str, name: str, invent: Invent) -> bytes | None:
    if style == SHELL:
        from claudebox.features.secrets.scripts import mask_script

        return _made(lambda by: mask_script(text, invent=by), text, invent)
    if style == QUOTED:
        from claudebox.features.secrets.markup import mask_quoted

        return _made(lambda by: mask_quoted(text, by), text, invent)
    if style == MARKUP:
        from claudebox.features.secrets.markup import mask_markup

        return _made(lambda by: mask_markup(text, by), text, invent)
    return _document(text, name.lower(), invent, gently=style in (LOOKS, GIT, SURE), is_git=style == GIT)


def _made(mask: Callable[[Invent], str], text: str, invent: Invent) -> bytes | None:
    decoy = mask(invent)
    if decoy == text and not known_token(text):
        return None
    # What was made up may look like a token, and has to. Without it there must be none.
    if known_token(decoy) and known_token(mask(plain).replace(MASKED, "").replace("PRIVATE KEY", "")):
        return NOTHING  # in a place that was not understood
    return (decoy if decoy.endswith("\n") else f"{decoy}\n").encode(errors="replace")


def _document(text: str, name: str, invent: Invent, *, gently: bool, is_git: bool) -> bytes | None:
    if text.lstrip().startswith("{") or name.endswith(".json"):
        return _json(text, invent, gently=gently)
    is_yaml = name.endswith((".yml", ".yaml")) or "kube" in name or _is_yaml(text, name)
    return _lines(text, LineMasker(gently=gently, is_yaml=is_yaml, drops_accounts=is_git, invent=invent))


def _lines(text: str, masker: LineMasker) -> bytes | None:
    decoy = masker.mask(text)
    return (decoy.encode() or NOTHING) if masker.changed else None


def _is_yaml(text: str, name: str) -> bool:
    """Whether a file whose name does not say so is YAML, by what its lines have between key and value."""
    if "." in name:
        return text.startswith(("apiVersion:", "---\n", "kind:"))
    lines = text.splitlines()
    return sum(": " in line or line.endswith(":") for line in lines) > sum("=" in line for line in lines)


def _key(text: str, content: bytes, invent: Invent) -> bytes:
    """A worthless key of the same kind. A certificate in the same file becomes that of the worthless key."""
    if BEGIN not in text:
        bare = text.strip()
        is_word = bare.isascii() and bare.isprintable() and " " not in bare and not is_binary_key(content)
        return f"{stand_in(bare, invent, 'key') if is_word else MASKED}\n".encode()
    blocks, kind = [], ""
    for piece in text.split(BEGIN)[1:]:
        label, _, rest = piece.partition("-----")
        body, end, _ = rest.partition("-----END")
        is_public = end and label in ("CERTIFICATE", "PUBLIC KEY", "RSA PUBLIC KEY", "X509 CRL", "EC PARAMETERS")
        kind = kind if is_public else kind_of_key(label, body)
        blocks.append((label, body, bool(is_public)))
    shown: list[str] = []
    own = throw_away_certificate(kind)
    for label, body, is_public in blocks:
        if label == "CERTIFICATE" and own:  # the first one is that of the key, the others are of those who signed it
            shown.append(own)
            own = ""
        else:
            block = f"{BEGIN}{label}-----{body}-----END {label}-----\n"
            shown.append(block if is_public else masked_key(label, body))
    return "".join(shown).encode()


def _json(text: str, invent: Invent, *, gently: bool) -> bytes | None:
    import json

    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        if not gently:
            return EMPTY_DOCUMENT  # with comments, or broken: all of it is left out
        from claudebox.features.secrets.markup import mask_quoted

        return _made(lambda by: mask_quoted(text, by), text, invent)
    masker = _JsonMasker(invent, gently=gently)
    decoy = masker.masked("", value, 0)
    return (json.dumps(decoy, indent=2) + "\n").encode() if masker.changed else None


class _JsonMasker:
    def __init__(self, invent: Invent, *, gently: bool) -> None:
        self.gently = gently
        self.invent = invent
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
        if isinstance(value, bool) or value is None:
            return value
        if self.gently:
            return self._noted(value, 12345) if change(key, str(value), gently=True) != str(value) else value
        return value if is_harmless(key, repr(value)) else self._noted(value, 12345)

    def _noted(self, old: Any, new: Any) -> Any:
        self.changed = self.changed or old != new
        return new

    def _table(self, key: str, table: dict[str, Any], depth: int) -> dict[str, Any]:
        # What such a table holds is secret, whatever its keys are called.
        strictly = self.gently and key.lower() in WITH_TOKENS
        self.gently = self.gently and not strictly
        result = {}
        said = next((table[one] for one in NAMING if isinstance(table.get(one), str) and "value" in table), "")
        for number, (name, value) in enumerate(table.items()):
            if self.invent.shows(name):
                result[name] = value
                continue
            shown = name if not name or self._is_kept(name) else self._noted(name, f"{MASKED}-{number}")
            under = said if said and name == "value" else f"{key}_{name}" if names_secret(key) else name
            result[shown] = self.masked(under, value, depth + 1)
        self.gently = self.gently or strictly
        return result

    def _is_kept(self, name: str) -> bool:
        return is_name(name) or (self.gently and not holds_secret(name) and not looks_secret("", name))

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
            return f"{option}={change(option.lstrip('-'), inner, gently=True, invent=self.invent)}"
        if self.gently and value.startswith("-"):
            return stand_in(value, self.invent, gently=True) if holds_secret(value) else value
        changed = change(key, value, gently=self.gently, invent=self.invent)
        if changed == value and not is_reference(value) and not self.gently and secret_value(value):
            return stand_in(value, self.invent, key)
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
