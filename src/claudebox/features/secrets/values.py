"""Chooses what stands in a decoy for a value: something of the same shape, made from nothing of the value itself.

Only what cannot be a secret is kept: a switch, a small number, a word that every program knows, a reference.
"""

from __future__ import annotations

from itertools import pairwise

from claudebox.secret_values import (
    SHORTEST_TOKEN,
    STRONG_WORDS,
    TOKEN_PREFIXES,
    accounts,
    in_words,
    known_token,
    looks_secret,
    secret_value,
)

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
# How headers begin that log somebody in, and such headers inside of a command.
LOGINS = ("basic ", "bearer ", "token ", "cookie:", "digest ")
HEADERS = (
    "authorization:",
    "authorization=",
    "private-token:",
    "x-api-key:",
    "api-key:",
    "auth-token:",
    "x-auth",
    "sshpass ",
)
# Addresses that are a login by themselves.
OPEN_DOORS = ("hooks.slack.com/services/", "/api/webhooks/", "/webhookb2/", "api.telegram.org/bot", "@tcp(", "@unix(")
# The last word of a name that is about a secret, and is not the name of one.
DESCRIPTIONS = frozenset(
    "type file path dir name ttl timeout length expiry expires algorithm enabled policy field label limit count".split()
)
# What stands for a secret where there is none yet, or where it does not matter.
PLACEHOLDERS = frozenset(
    "password passwd pass secret token key changeme change-me change_me root admin postgres mysql redis user guest "
    "test testing example placeholder dummy none todo tbd default minioadmin rabbitmq sa development dev local "
    "insert-here replace-me replaceme redacted hidden empty id null nil undefined".split()
)
PLACEHOLDER_STARTS = ("your-", "your_", "<", "{{", "%(", "$(", "changeme", "replace", "insert", "example", "enter ")
NOTHING_BUT = frozenset("xX.*-_0 ")
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
    words = in_words(key)
    parts = words.split("_")
    return any(word in words for word in STRONG_WORDS) or any(
        part in SECRET_WORDS or part.endswith(("pass", "pwd")) for part in parts
    )


def is_placeholder(value: str) -> bool:
    """Whether a value that is called a secret is none: `changeme`, `<your token>`, `xxxx`, `{{ .Values.password }}`."""
    lower = value.lower()
    return (
        lower in PLACEHOLDERS
        or (lower.startswith(PLACEHOLDER_STARTS) and not any(map(str.isdigit, value)))
        or NOTHING_BUT.issuperset(value)
    )


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
    if holds_secret(value) or value.lower().startswith(LOGINS) or (value[:1] in "{[" and holds_pair(value)):
        return True
    if key.lower() == "user" and " >" in value:  # Redis
        return True
    is_described = _last_word(in_words(key)) in DESCRIPTIONS
    return bool(looks_secret("" if is_described or is_placeholder(value) else key, value)) and not _is_address(value)


def _is_address(value: str) -> bool:
    """Whether it is the address of something, which is no secret by its looks if it has no account."""
    scheme, separator, rest = value.partition("://")
    return bool(separator) and scheme.isalnum() and not any(map(str.isspace, rest)) and "?" not in rest


def holds_secret(text: str) -> bool:
    """Whether a secret is somewhere in a text: a token, a login, `password=…` in a command or an address."""
    if known_token(text) or any(_is_login(*account) for account in accounts(text)):
        return True
    lower = text.lower()
    is_door = any(door in lower for door in OPEN_DOORS) or ("://" in text and "/t/" in text)  # the latter of conda
    return is_door or any(header in lower for header in HEADERS) or _has_pair(text)


def _is_login(scheme: str, user: str, password: str, rest: str) -> bool:
    """Whether the account of an address is a secret. On the web, a user without a password is a token,
    except where the address names the user once more, as in `https://joe@git.example/joe/shop`.
    """
    if password:
        return not (is_placeholder(password) or is_reference(password) or password == user)
    named_again = user in rest.replace("?", "/").split("/")
    return scheme.endswith(("http", "https", "ftp")) and not (named_again or is_reference(user))


def holds_pair(text: str) -> bool:
    """Whether there is `{password: x}` in a list or table that is on one line."""
    for bracket in "{}[]":
        text = text.replace(bracket, " ")
    for old, new in (("://", "//"), ('"', ""), ("'", ""), (": ", ":"), (":", "="), (" = ", "=")):
        text = text.replace(old, new)
    return _has_pair(text)


def _has_pair(text: str) -> bool:
    """Whether there is `password=x`, as in a connection string, or `--password x`, as in a command."""
    before = ""
    for separator in ";&?,\"'":
        text = text.replace(separator, " ")
    for word in text.split():
        name, equals, value = word.partition("=")
        if not equals and before.startswith("-"):
            name, value = before, word
        if word.startswith("-p") and len(word) > len("-p") and "mysql" in text:
            return True
        if before in ("-u", "--user", "--proxy-user") and word.partition(":")[2]:
            return True
        name = name.lstrip("-").rpartition(":")[2]
        is_value = value and not value.startswith(("-", "$", "/")) and not is_reference(value)
        # Only the name decides: what merely looks random may be a checksum.
        if (
            is_value
            and is_variable_like(name)
            and looks_secret(name, value[:LONGEST_NUMBER])
            and not is_placeholder(value)
        ):
            return True
        before = word if not equals else ""
    return False


def is_variable_like(name: str) -> bool:
    plain = name.replace("-", "").replace(".", "").replace("_", "")
    return plain.isascii() and plain.isalnum() and len(name) <= LONGEST_LABEL


def stand_in_gently(value: str) -> str:
    """Change only the account of an address, or a part of a list: the rest is what makes the file useful."""
    if ";" in value and "=" in value and BEGIN not in value:
        return _parts_masked(value)
    if BEGIN in value or "://" not in value:
        return stand_in(value)
    scheme, _, rest = value.partition("://")
    place, slash, path = rest.partition("/")
    account, at, host = place.rpartition("@")
    if not at or not scheme.isalnum() or holds_secret(f"{host}/{path}") or "@" in path:
        return stand_in(value)
    login = f"{MASKED_WORD}:{MASKED_WORD}" if ":" in account else MASKED_WORD
    return f"{scheme}://{login}@{host}{slash}{path}"


def _parts_masked(value: str) -> str:
    """A connection string, such as `Server=db;Password=x`, with the secret parts of it made up."""
    parts = []
    for part in value.split(";"):
        name, equals, inner = part.partition("=")
        if equals and inner and (names_secret(name) or holds_secret(part)):
            part = f"{name}={MASKED}" if is_name(name.strip()) else MASKED
        parts.append(part)
    masked = ";".join(parts)
    return MASKED if holds_secret(masked.replace(MASKED, "")) or masked == value else masked
