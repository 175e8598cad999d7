"""Chooses what stands in a decoy for a value: something of the same shape, made from nothing of the value itself.

Only what cannot be a secret is kept: a switch, a small number, a word that every program knows, a reference.
"""

from __future__ import annotations

from itertools import pairwise

from claudebox.secret_values import SHORTEST_TOKEN, STRONG_WORDS, TOKEN_PREFIXES, looks_secret, secret_value

MASKED = "masked-by-claudebox"
MASKED_WORD = "masked"
MASKED_NUMBER = "12345"
MASKED_HOST = "masked.invalid"
KEY_BODY = "bWFza2VkIGJ5IGNsYXVkZWJveA=="  # "masked by claudebox"
BEGIN = "-----BEGIN "

LONGEST_NAME = 80
LONGEST_NUMBER = 5
LONGEST_CHOICE = 24
LONGEST_SCHEME = 20
LONGEST_LABEL = 40
SHORTEST_RANDOM_NAME = 16

SECRET_WORDS = frozenset("key otp pass pat pin pw pwd salt seed user username".split())
CHOICES = frozenset(
    "adapter backend channel connection cluster database db dialect disk driver engine env environment format host "
    "hostname lang level lifetime locale log logger mailer mode name namespace platform port prefix profile protocol "
    "provider queue region scheme stage store timeout timezone type tz version zone".split()
)
PLACES = frozenset("dir directory file folder home path root".split())
SWITCHES = ("true", "false", "null", "none")
# How headers begin that log somebody in.
LOGINS = ("authorization:", "basic ", "bearer ", "private-token:", "x-api-key:", "cookie:")
# Words of which settings consist everywhere.
HARMLESS = frozenset(
    "true false yes no on off null none nil undefined enabled disabled default auto always never "
    "development dev production prod staging stage test testing local localhost 127.0.0.1 0.0.0.0 ::1 ::: "
    "debug info warn warning error fatal trace verbose silent quiet "
    "http https tcp udp tls ssl ws wss redis postgres postgresql mysql sqlite mongodb s3 smtp "
    "utf8 utf-8 utc en en_us de json text yaml basic bearer oauth2 strict lax memory file console stdout stderr "
    "service_account authorized_user installed web config v1 stdio sse npx node python python3 uvx docker".split()
)


def is_harmless(key: str, value: str) -> bool:
    """Whether a value can be kept although all others of the file are changed."""
    if not value or is_reference(value):
        return True
    if names_secret(key):
        return value.lower() in SWITCHES
    return value.lower() in HARMLESS or _is_small_number(value) or _is_path(key, value) or _is_choice(key, value)


def _is_choice(key: str, value: str) -> bool:
    """Whether the value is one short name under a key that asks for one, such as `DB_CONNECTION=pgsql`."""
    plain = value.replace("-", "").replace("_", "").replace(".", "")
    is_plain = plain.isascii() and plain.isalnum() and plain == plain.lower() and len(plain) <= LONGEST_CHOICE
    return _last_word(key) in CHOICES and is_plain and sum(map(str.isdigit, plain)) < LONGEST_NUMBER


def names_secret(key: str) -> bool:
    """Whether even a short or common word is a secret under this name."""
    lower = key.lower().replace("-", "_")
    return any(word in lower for word in STRONG_WORDS) or not SECRET_WORDS.isdisjoint(lower.split("_"))


def is_reference(value: str) -> bool:
    """Whether the value says where the secret is, not what it is: `${NAME}`, `<%= ENV["NAME"] %>`."""
    if value.startswith("${") and value.endswith("}"):
        name = value[2:-1]
        return name.isascii() and name.isidentifier() and name.upper() == name
    return value.startswith("<%= ENV[") and value.endswith("] %>") and is_name(value[9:-5])


def _is_small_number(value: str) -> bool:
    digits = value.removeprefix("-").replace(".", "", 1)
    return digits.isascii() and digits.isdigit() and len(digits) <= LONGEST_NUMBER


def _is_path(key: str, value: str) -> bool:
    """Whether the value is a path under a key that asks for one.

    What begins like a path may be a secret nevertheless, so its parts have to read like names.
    """
    if not value.startswith(("/", "./", "../", "~/")) or _last_word(key) not in PLACES:
        return False
    return all(is_name(part) for part in value.split("/") if part not in ("", ".", "..", "~"))


def _last_word(key: str) -> str:
    return key.lower().replace("-", "_").rpartition("_")[2]


def is_name(text: str) -> bool:
    """Whether a text reads like the name of something, and not like the line of a key that ends in `=`."""
    if not text or len(text) > LONGEST_NAME or not text.isprintable() or secret_value(text):
        return False
    for separator in ".-/:@ ":
        text = text.replace(separator, "_")
    if not text.replace("_", "").isalnum():
        return False
    return not any(_is_random(part) for part in text.split("_"))


def _is_random(word: str) -> bool:
    """Whether letters, digits and cases are in no readable order."""
    if len(word) < SHORTEST_RANDOM_NAME:
        return False
    kinds = [character.isdigit() * 2 + character.isupper() for character in word]
    return sum(a != b for a, b in pairwise(kinds)) * 3 >= len(word)


def stand_in(value: str) -> str:
    """Something made up that a program takes for the same kind of thing."""
    if BEGIN in value:
        key = masked_key(value.partition(BEGIN)[2].partition("-----")[0])
        return key if "\n" in value or "\\n" not in value else key.replace("\n", "\\n")
    scheme, separator, rest = value.partition("://")
    if separator and scheme.isascii() and scheme.replace("+", "").isalnum() and len(scheme) <= LONGEST_SCHEME:
        return f"{scheme}://{_address(rest)}"
    for prefix, _ in TOKEN_PREFIXES:
        if value.startswith(prefix) and len(value) >= SHORTEST_TOKEN:
            return f"{prefix}{MASKED}"
    if value.isascii() and value.isdigit():
        return MASKED_NUMBER
    if "@" in value and "." in value.rpartition("@")[2] and " " not in value:
        return f"{MASKED_WORD}@{MASKED_HOST}"
    return MASKED


def _address(rest: str) -> str:
    """Mask what comes after `://`, except for the port and whether there is an account."""
    place, slash, _ = rest.partition("/")
    account, at, host = place.rpartition("@")
    name, colon, port = host.rpartition(":")
    port = f":{port}" if colon and port.isdigit() and port.isascii() and len(port) <= LONGEST_NUMBER else ""
    login = f"{MASKED_WORD}:{MASKED_WORD}@" if ":" in account else f"{MASKED_WORD}@" if at else ""
    known = (name if port else host) in ("localhost", "127.0.0.1")
    return f"{login}{'localhost' if known else MASKED_HOST}{port}{f'/{MASKED_WORD}' if slash else ''}"


def masked_key(label: str) -> str:
    """A key with nothing in it, under the label of another one if that is a label and nothing else."""
    is_label = label.isupper() and label.isascii() and label.replace(" ", "").isalnum() and len(label) <= LONGEST_LABEL
    shown = label if is_label else "PRIVATE KEY"
    return f"{BEGIN}{shown}-----\n{KEY_BODY}\n-----END {shown}-----\n"


def change(key: str, value: str, *, gently: bool) -> str:
    """The value as the decoy has it. It is kept if it is harmless; gently, already if it does not look secret."""
    if gently:
        return stand_in_gently(value) if _looks_secret(key, value) else value
    return value if is_harmless(key, value) else stand_in(value)


def _looks_secret(key: str, value: str) -> bool:
    if not value or is_reference(value):
        return False
    return bool(looks_secret(key, value)) or value.lower().startswith(LOGINS)


def stand_in_gently(value: str) -> str:
    """Change only the account of an address: the rest is what makes the file useful."""
    if BEGIN in value or "://" not in value:
        return stand_in(value)
    scheme, _, rest = value.partition("://")
    place, slash, path = rest.partition("/")
    account, at, host = place.rpartition("@")
    if not at or not scheme.isalnum() or secret_value(f"{host}/{path}"):
        return stand_in(value)
    login = f"{MASKED_WORD}:{MASKED_WORD}" if ":" in account else MASKED_WORD
    return f"{scheme}://{login}@{host}{slash}{path}"
