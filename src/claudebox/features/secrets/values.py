"""Chooses what stands in a decoy for a value: something of the same shape, of which only the secret part is made up.

What cannot be a secret is kept: a switch, a small number, a word that every program knows, a reference; and of an
address everything but passwords and tokens.
"""

from __future__ import annotations

from itertools import pairwise

from claudebox.features.secrets.invention import Invent, blank, in_sections, plain
from claudebox.features.secrets.keys import throw_away_key
from claudebox.trust.secret_values import (
    SHORTEST_TOKEN,
    TOKEN_PREFIXES,
    accounts,
    in_words,
    known_token,
    looks_secret,
    names_secret,
    secret_value,
)

MASKED_WORD = "masked"
MASKED_HOST = "masked.invalid"
SIGNED = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJtYXNrZWQtYnktY2xhdWRlYm94IiwiZXhwIjo0MTAyNDQ0ODAwfQ"
CODED = "base64:"  # how Laravel begins a key
KEY_BODY = "bWFza2VkIGJ5IGNsYXVkZWJveA=="  # "masked by claudebox"
BEGIN = "-----BEGIN "

PREFIXES = tuple(sorted((prefix for prefix, _ in TOKEN_PREFIXES), key=len, reverse=True))
LONGEST_NAME = 80
LONGEST_NUMBER = 5
LONGEST_CHOICE = 24
LONGEST_SCHEME = 20
LONGEST_LABEL = 40
SHORTEST_RANDOM_NAME = 16

CHOICES = frozenset(
    "adapter backend channel connection cluster database db dialect disk driver engine env environment format host "
    "hostname lang level lifetime locale log logger mailer mode name namespace platform port prefix profile protocol "
    "provider queue region scheme stage store timeout timezone type tz user username version zone".split()
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


def stand_in(value: str, invent: Invent = plain, name: str = "", *, gently: bool = False) -> str:
    """Something made up that a program takes for the same kind of thing."""
    if BEGIN in value:
        label, _, rest = value.partition(BEGIN)[2].partition("-----")
        key = masked_key(label, rest.partition("-----")[0])
        return key if "\n" in value or "\\n" not in value else key.replace("\n", "\\n")
    structured = address(value, invent, gently=gently) or _connection(value, invent)
    if structured:
        return structured
    if value.startswith("eyJ") and value.count(".") == 2:
        return f"{SIGNED}.{invent(value.rpartition('.')[2], 'token')}"
    if value.startswith(PREFIXES) and len(value) >= SHORTEST_TOKEN:
        prefix = next(prefix for prefix in PREFIXES if value.startswith(prefix))
        return prefix + in_sections(invent, value[len(prefix) :], "token")
    if value.startswith(CODED):
        return CODED + invent(value[len(CODED) :], name)
    scheme, space, rest = value.partition(" ")
    if space and f"{scheme.lower()} " in LOGINS and " " not in rest:
        return f"{scheme} {stand_in(rest, invent, 'token')}"
    if "@" in value and "." in value.rpartition("@")[2] and " " not in value and not names_secret(name):
        return f"{MASKED_WORD}@{MASKED_HOST}"
    return invent(value, name)


def address(value: str, invent: Invent, *, gently: bool) -> str:
    """An address with everything but its passwords and tokens; "" if it is none, or a secret may be in the rest."""
    scheme, separator, rest = value.partition("://")
    is_scheme = scheme.isascii() and scheme.replace("+", "").replace(":", "").replace(".", "").isalnum()
    if not separator or not is_scheme or len(scheme) > LONGEST_SCHEME or any(map(str.isspace, rest)) or "://" in rest:
        return ""
    left = _address(scheme, rest, blank, gently=gently).partition("://")[2]
    left = left[left.partition("/")[0].rfind("@") + 1 :]
    if not left or known_token(left) or _has_pair(left) or any(header in left.lower() for header in HEADERS):
        return ""
    return _address(scheme, rest, invent, gently=gently)


def _address(scheme: str, rest: str, invent: Invent, *, gently: bool) -> str:
    place, slash, path = rest.partition("/")
    account, at, host = place.rpartition("@")
    if not at and ":" in place and "@" in path and not place.partition(":")[2].isdigit():
        account, at, tail = rest.rpartition("@")  # a password with a slash
        host, slash, path = tail.partition("/")
    host, mark, query = host.partition("?") if "?" in host else (host, "", "")
    if not all(map(_is_host, host.split(","))) and host:
        return ""
    if not mark:
        path, mark, query = path.partition("?")
    is_door = any(door in f"{host}/{path}/".lower() for door in OPEN_DOORS) or "/t/" in f"/{path}"
    parts = [
        _segment(part, invent, is_secret=is_door and part != "services", gently=gently) for part in path.split("/")
    ]
    login = _login(scheme, account, f"{host}/{path}", invent) + at
    return f"{scheme}://{login}{host}{slash}{'/'.join(parts)}{mark}{_query(query, invent, gently=gently)}"


def _is_host(host: str) -> bool:
    name, colon, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
    name = name if colon else host
    is_port = not colon or (port.isascii() and port.isdigit() and len(port) <= LONGEST_NUMBER)
    bare = name.strip("[]").replace(":", "") if name.startswith("[") else name
    return is_port and (not bare or (bare.isascii() and is_name(bare)))


def _login(scheme: str, account: str, rest: str, invent: Invent) -> str:
    user, colon, password = account.partition(":")
    if not colon and account and _is_login(scheme.lower(), user, "", rest):
        return invent(user, "token")
    shown = user if _is_plain(user) else invent(user, "token") if user else ""
    secret = password if not password or is_reference(password) else invent(_unescaped(password), "password")
    return f"{shown}{colon}{secret}"


def _unescaped(text: str) -> str:
    """The password as it is elsewhere: in an address, some characters are written as `%40`."""
    pieces = text.split("%")
    try:
        codes = [bytes([int(piece[:2], 16)]) + piece[2:].encode() for piece in pieces[1:]]
        return b"".join([pieces[0].encode(), *codes]).decode()
    except ValueError:
        return text


def _is_plain(text: str) -> bool:
    """Whether it is a short name of something: no digits and capitals in no order, no long number."""
    bare = text.replace("-", "").replace("_", "").replace(".", "").replace("~", "").replace("@", "")
    digits = sum(map(str.isdigit, bare))
    has_both = digits > 0 and bare != bare.lower() and bare != bare.capitalize()
    is_word = not bare or (bare.isascii() and bare.isalnum() and len(bare) <= LONGEST_CHOICE)
    return is_word and digits < LONGEST_NUMBER and not has_both and not known_token(text)


def _segment(part: str, invent: Invent, *, is_secret: bool, gently: bool) -> str:
    bare = part.partition("#")[0]
    if not part or is_reference(part):
        return part
    is_kept = _is_plain(bare) or (gently and is_name(bare) and not looks_secret("", bare))
    return bare if is_kept and not (is_secret and len(bare) > LONGEST_NUMBER) else invent(bare, "token")


def _query(query: str, invent: Invent, *, gently: bool) -> str:
    pairs = []
    for pair in query.split("&"):
        name, equals, value = pair.partition("=")
        is_kept = not value or is_reference(value) or not _looks_secret(name, value)
        is_kept = is_kept and (gently or is_harmless(name, value) or _is_plain(value)) and not names_secret(name)
        made = f"{name}{equals}{value if is_kept else invent(_unescaped(value), name)}"
        pairs.append(made if is_name(name) else invent(pair, "token") if pair else "")
    return "&".join(pairs)


def _connection(value: str, invent: Invent) -> str:
    """A connection string in which only the secret parts are made up; "" if it is none.

    They look like `Server=db;Password=x`, `host=db password=x` and `joe:x@tcp(db:3306)/shop`.
    """
    account, at, place = value.rpartition("@")
    user, colon, password = account.partition(":")
    is_place = place.startswith(("tcp(", "unix(")) and all(map(_is_plain, _words_of(place)))
    if at and colon and is_place and _is_plain(user):
        return f"{user}:{invent(password, 'password')}@{place}"
    for separator in ";", " ":
        parts = value.split(separator)
        if all(is_variable_like(part.partition("=")[0].strip().replace(" ", "")) for part in parts if "=" in part) and (
            sum("=" in part for part in parts) >= 2 and all("=" in part or not part.strip() for part in parts)
        ):
            return separator.join(_part(part, invent) for part in parts)
    return ""


def _words_of(text: str) -> list[str]:
    for separator in "()/:?&=,":
        text = text.replace(separator, " ")
    return text.split()


def _part(part: str, invent: Invent) -> str:
    name, equals, value = part.partition("=")
    bare = value.strip().strip("'")
    is_kept = is_harmless(name, bare) or (not names_secret(name) and all(map(_is_plain, _words_of(bare))))
    return part if is_kept and not holds_secret(part) else f"{name}{equals}{invent(bare, name)}"


def masked_key(label: str, body: str = "") -> str:
    """A key that is worthless, of the same kind; else one with nothing in it, under the label if it is one."""
    key = throw_away_key(label, body)
    if key:
        return key
    is_label = label.isupper() and label.isascii() and label.replace(" ", "").isalnum() and len(label) <= LONGEST_LABEL
    shown = label if is_label else "PRIVATE KEY"
    return f"{BEGIN}{shown}-----\n{KEY_BODY}\n-----END {shown}-----\n"


def change(key: str, value: str, *, gently: bool, invent: Invent = plain) -> str:
    """The value as the decoy has it. It is kept if it is harmless; gently, already if it does not look secret."""
    is_kept = not _looks_secret(key, value) if gently else is_harmless(key, value)
    return value if is_kept else stand_in(value, invent, key, gently=gently)


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
