"""Brings what an agent has changed in a decoy back into the real file, line by line.

The agent was given a decoy of a file with lines `KEY=value`, and has left something else. New and changed lines land as
they are. A line that holds a secret stays as it is in the real file, whatever became of its decoy, so that a secret is
never anywhere but behind its own key, in its own line. A line lands only if it is plain: with one that refers to
another variable, opens a quote or names another host, the secrets of the file would get elsewhere, or into hands that
they are not for. What does not land is named, and the user decides.

Files that are not of this kind, or can be read in several ways, are not brought back at all.
"""

from __future__ import annotations

from claudebox.record import Record
from claudebox.trust.secret_values import in_words

LARGEST = 1 << 18  # bytes of a file that is brought back
MOST_LINES = 20_000
LONGEST_KEY = 100
SHORTEST_MADE_UP = 6  # characters of a made-up value that is recognized anywhere in a line
QUOTES = "\"'"
LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
IN_KEYS = LETTERS | frozenset("0123456789.-")
# In a value without quotes, a shell or a parser would see more than text in these.
SPECIAL = frozenset("\"'`\\;|&<>()")
REFERENCES = ("$", "`", "\\", "{{", "%(", "%{", "#{", "<%")
YAML_MARKS = frozenset("&*!|>%@[{-?")  # with which YAML begins what is no plain text
LOCAL = ("localhost", "127.0.0.1", "::1", "[::1]")
# Words of a name under which an address is expected. With another address, secrets would be sent elsewhere.
ADDRESS_WORDS = frozenset(
    "address addresses addr base broker brokers callback connection dsn domain endpoint endpoints gateway host "
    "hostname hosts issuer mirror nodes origin peers proxy redirect registry relay remote resolver server servers site "
    "socket upstream uri url urls webhook".split()
)
# The same at the end of a word, as in PGHOST and APIURL.
ADDRESS_ENDINGS = tuple("addr address broker dsn domain endpoint gateway host hosts proxy server uri url urls".split())
PORT = "port"
# In a value, what gives an address away whatever the line is called.
ADDRESS_MARKS = ("//", "@", "host=", "server=")
# Variables that make a program of the host load or run something, or trust somebody.
OBEYED = frozenset(
    "PATH SHELL IFS EDITOR VISUAL PAGER BROWSER BASH_ENV PROMPT_COMMAND CDPATH HOME KUBECONFIG "
    "REQUESTS_CA_BUNDLE CURL_CA_BUNDLE AWS_CA_BUNDLE AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE PGSERVICEFILE "
    "PGPASSFILE PGSYSCONFDIR ZDOTDIR FPATH PS0 PS1 PS2 PS4 MAKEFLAGS MAKEFILES GNUMAKEFLAGS CC CXX CPP LD AR CLASSPATH "
    "OPENSSL_CONF LESSOPEN LESSCLOSE MANPAGER SUDO_ASKPASS PHPRC TCLLIBPATH TMPDIR "
    "HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY".split()
)
OBEYED_STARTS = tuple(
    "LD_ DYLD_ GIT_ NODE_ NPM_CONFIG_ PYTHON PERL RUBY GEM_ BUNDLE_ JAVA_ _JAVA JDK_ MAVEN_ GRADLE_ SSL_ COMPOSE_ "
    "DOCKER_ PIP_ UV_ CARGO_ RUST GO111 GOFLAGS GOPROXY DENO_ BUN_ VITE_NODE SSH_ XDG_ "
    "BASH_FUNC DOTNET_ CORECLR_ LUA_ PHP_INI ERL_ ELIXIR_ JULIA_ R_PROFILE R_ENVIRON CMAKE_ TF_CLI MSBUILD YARN_ PNPM_ "
    "POETRY_ ELECTRON_".split()
)

NOT_LINES = "it cannot be read line by line"
TOO_LARGE = "it is too large"
STALE = "the file was changed on this host meanwhile"
HELD_SECRET = "holds a secret"
HELD_GONE = "is kept: a line with a secret is missing"
HELD_TWICE = "is there already, with a secret"
HELD_MADE_UP = "has a made-up value in it"
HELD_REFERENCE = "refers to something else"
HELD_QUOTES = "needs quotes"
HELD_ADDRESS = "names another host"
HELD_OBEYED = "is a variable that programs of this host obey"
HELD_USED = "is used by another line"
HELD_WHERE = "says where secrets are sent"


class Entry(Record):
    """A line of the file, or several in quotes. A blank line and a comment have no key."""

    text: str
    key: str = ""
    value: str = ""
    tail: str = ""  # a comment behind the value
    separator: str = ""  # with spaces if there are any around it
    is_quoted: bool = False


class Piece(Record):
    """A line of the real file and what the agent saw of it, with the lines before it that the agent did not see."""

    real: Entry
    shown: Entry
    hidden: tuple[str, ...]

    @property
    def is_secret(self) -> bool:
        return (self.real.key, self.real.value) != (self.shown.key, self.shown.value)


class Merged(Record):
    """What came of it."""

    content: bytes | None = None  # the real file with what has landed; None: nothing has
    landed: tuple[str, ...] = ()  # the keys of lines that were added, changed or removed
    held: tuple[tuple[str, str], ...] = ()  # keys of lines that have not landed, and why
    trouble: str = ""  # why nothing could land


def is_editable(real: bytes, given: bytes) -> bool:
    """Whether an agent may edit this decoy: whether what it changes can be brought back."""
    return _pieces(real, given) is not None


def merge(real: bytes, given: bytes, left: bytes) -> Merged:
    """The real file with what the agent has changed in its decoy."""
    if left == given:
        return Merged()
    pieces = _pieces(real, given)
    if pieces is None:
        return Merged(trouble=STALE)
    if len(left) > LARGEST:
        return Merged(trouble=TOO_LARGE)
    entries = _parse(left)
    if entries is None:
        return Merged(trouble=NOT_LINES)
    work = _Merging(*pieces)
    work.match(entries)
    lines = work.lines()
    if not work.landed:
        return Merged(held=tuple(work.held.items()))
    text = "".join(f"{line}\n" for line in lines)
    text = text.replace("\n", "\r\n") if b"\r\n" in real else text
    return Merged(text.encode(), tuple(dict.fromkeys(work.landed)), tuple(work.held.items()))


class _Merging:
    """Goes through the pieces, with what the agent has left of each."""

    def __init__(self, pieces: list[Piece], rest: tuple[str, ...]) -> None:
        self.pieces = pieces
        self.rest = rest  # lines behind the last piece
        self.left: dict[int, Entry] = {}  # what is left of a piece
        self.added: dict[int, list[Entry]] = {}  # what comes behind a piece; -1: before the first
        self.landed: list[str] = []
        self.held: dict[str, str] = {}
        secret = [piece for piece in pieces if piece.is_secret]
        self.made_up = {word for one in secret for word in _words(one.shown.value) - _words(one.real.value)}
        self.secret_keys = {piece.real.key for piece in pieces if piece.is_secret}
        self.separators = {"=", *(piece.real.separator for piece in pieces)}
        self.secret_names = [in_words(key) for key in self.secret_keys]
        self.used = {name for piece in pieces for name in _references(piece.real.value)}

    def match(self, entries: list[Entry]) -> None:
        """Find out which line was which. The second line with a key is the second one that was given."""
        places: dict[str, list[int]] = {}
        for number in reversed(range(len(self.pieces))):
            places.setdefault(self.pieces[number].shown.key, []).append(number)
        last = -1
        for entry in entries:
            if entry.key and places.get(entry.key):
                last = places[entry.key].pop()
                self.left[last] = entry
            elif entry.text.strip():
                self.added.setdefault(last, []).append(entry)

    def lines(self) -> list[str]:
        lines = self._new(-1)
        keeps_all = any(piece.is_secret and number not in self.left for number, piece in enumerate(self.pieces))
        for number, piece in enumerate(self.pieces):
            lines += piece.hidden
            lines += self._line(piece, self.left.get(number), keeps_all=keeps_all)
            lines += self._new(number)
        return [*lines, *self.rest]

    def _line(self, piece: Piece, entry: Entry | None, *, keeps_all: bool) -> list[str]:
        key = piece.real.key
        if entry is not None and entry.text == piece.shown.text:
            return [piece.real.text]
        if piece.is_secret or (entry is None and keeps_all):
            self.held[key] = HELD_SECRET if piece.is_secret else HELD_GONE
            return [piece.real.text]
        why = (self._why_held(entry) if entry is not None else "") or self._why_kept(piece.real, entry)
        if why:
            self.held[key] = why
            return [piece.real.text]
        self.landed.append(key)
        return [] if entry is None else [entry.text + ("" if entry.tail else piece.real.tail)]

    def _new(self, number: int) -> list[str]:
        lines = []
        for entry in self.added.get(number, ()):
            why = HELD_REFERENCE if entry.text.endswith("\\") else ""  # a comment that would take the next line with it
            if entry.key:
                why = HELD_TWICE if entry.key in self.secret_keys else self._why_held(entry)
            if why:
                self.held[entry.key or "#"] = why
            else:
                lines.append(entry.text)
                self.landed.append(entry.key or "#")
        return lines

    def _why_kept(self, real: Entry, entry: Entry | None) -> str:
        """Why a line must not be taken away, nor be emptied; "" if it may."""
        if entry is None and real.key in self.used:
            return HELD_USED
        # Without the address of a gateway, its key would go to somebody else. With one of this machine, to a box that
        # listens there.
        is_gone = entry is None or not entry.value
        was_elsewhere = not _is_local(real.value)
        return HELD_WHERE if _is_address(real) and real.value and (is_gone or was_elsewhere) else ""

    def _why_held(self, entry: Entry) -> str:
        """Why a line must not land by itself; "" if it may."""
        value, upper = entry.value, entry.key.upper()
        if not self.made_up.isdisjoint(_words(value)):
            return HELD_MADE_UP
        # Not every program knows comments behind a value.
        if any(mark in value or mark in entry.tail for mark in REFERENCES):
            return HELD_REFERENCE
        if any(one in entry.tail for one in QUOTES):
            return HELD_QUOTES
        # A shell runs what is behind a space: `X= ./program`, `sh = x`.
        if "\n" in entry.text or entry.separator not in self.separators or not (entry.is_quoted or _is_bare(value)):
            return HELD_QUOTES
        if upper in OBEYED or upper.startswith(OBEYED_STARTS):
            return HELD_OBEYED
        if entry.key in self.used:
            return HELD_USED
        if not _is_address(entry):
            return ""
        if not _is_local(value):
            return HELD_ADDRESS
        return HELD_WHERE if self._belongs_to_secret(entry.key) else ""

    def _belongs_to_secret(self, key: str) -> bool:
        """Whether the name of an address begins as that of a secret, as DB_HOST does beside DB_PASSWORD.

        On this machine a box may listen, and get the secret.
        """
        first, *others = in_words(key).split("_")
        endings = (one for one in (*ADDRESS_WORDS, *ADDRESS_ENDINGS, PORT) if first.endswith(one))
        start = f"{first}_" if others else first.removesuffix(max(endings, key=len, default=""))
        return bool(start) and any(name.startswith(start) for name in self.secret_names)


def _is_address(entry: Entry) -> bool:
    words, value = in_words(entry.key).split("_"), entry.value
    is_named = not ADDRESS_WORDS.isdisjoint(words) or any(word.endswith(ADDRESS_ENDINGS) for word in words)
    is_numbers = value.partition(":")[0].count(".") == 3 and value.replace(".", "").replace(":", "").isdigit()
    # PORT alone is where the program itself listens.
    is_port = words != [PORT] and words[-1].endswith(PORT) and value.isdigit()
    is_marked = _begins_with_host(value) or any(mark in value for mark in ADDRESS_MARKS)
    return is_named or is_numbers or is_port or is_marked


def _begins_with_host(value: str) -> bool:
    """Whether it is `host.name/…` or `host.name:80`, and not a path, a word or the name of a file."""
    place, slash, _ = value.partition("/")
    name, colon, port = place.partition(":")
    return "." in name[1:] and not name.startswith(".") and (port[:1].isdigit() if colon else bool(slash))


def _words(value: str) -> set[str]:
    """The value, and its parts that are long enough to be recognized."""
    parts = value
    for separator in "/:@?&=#,; \n":
        parts = parts.replace(separator, " ")
    return {word for word in (value, *parts.split()) if len(word) >= SHORTEST_MADE_UP}


def _references(value: str) -> set[str]:
    """The variables that a value refers to."""
    found = set()
    for piece in value.split("$")[1:]:
        bare = piece.removeprefix("{")
        end = next((number for number, one in enumerate(bare) if one not in IN_KEYS), len(bare))
        found.add(bare[:end])
    return found


def _is_bare(value: str) -> bool:
    """Whether a value without quotes is one word for every parser."""
    return not any(one in SPECIAL or one.isspace() or not one.isprintable() for one in value) and "#" not in value


def _is_local(value: str) -> bool:
    """Whether an address is one of this machine, or no address at all: a number, or nothing."""
    place = value.partition("://")[2] or value
    host = place.partition("/")[0].partition("?")[0]
    name = host if host in LOCAL else host.rpartition(":")[0] or host
    return not value or value.isdigit() or name in LOCAL


def _pieces(real: bytes, given: bytes) -> tuple[list[Piece], tuple[str, ...]] | None:
    """The lines of the real file, each with what was shown of it; None if that cannot be told."""
    if len(real) > LARGEST or len(given) > 2 * LARGEST or real.startswith(b"\xef\xbb\xbf"):
        return None
    if b"\r\n" in real and real.count(b"\r\n") != real.count(b"\n"):
        return None
    entries, shown = _parse(real), _parse(given)
    if entries is None or shown is None or not any(entry.key for entry in entries):
        return None
    waiting = [entry for entry in reversed(shown) if entry.key]
    pieces: list[Piece] = []
    hidden: list[str] = []
    for entry in entries:
        if entry.key and waiting and waiting[-1].key == entry.key:
            pieces.append(Piece(entry, waiting.pop(), tuple(hidden)))
            hidden = []
        elif entry.key:
            return None  # a line that is not shown at all may be anything
        else:
            hidden.append(entry.text)
    if waiting or any(entry.text.strip() and not entry.key for entry in shown):
        return None
    return pieces, tuple(hidden)


def _parse(content: bytes) -> list[Entry] | None:
    """The lines of a file; None if it is no such file, or if programs could read it in several ways."""
    try:
        text = content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError:
        return None
    if not all(one.isprintable() or one in "\n\t" for one in text):
        return None
    lines = text.removesuffix("\n").split("\n")[::-1]
    entries: list[Entry] = []
    while lines:
        entry = _entry(lines.pop(), lines)
        if entry is None or len(entries) >= MOST_LINES:
            return None
        entries.append(entry)
    return entries


def _entry(line: str, more: list[str]) -> Entry | None:
    body = line.strip()
    if not body or body.startswith("#"):
        return Entry(line)
    body = body.removeprefix("export ").lstrip()
    place = next((number for number, one in enumerate(body) if one not in IN_KEYS), len(body))
    key, rest = body[:place], body[place:].lstrip()
    if not key or key[0] not in LETTERS or rest[:1] not in ("=", ":") or rest.startswith("://"):
        return None
    separator, value = rest[0], rest[1:].strip()
    if len(key) > LONGEST_KEY or (separator == ":" and not _is_flat(line, value)):
        return None
    has_spaces = not body.startswith(f"{key}={value}") and not value.startswith("#")
    separator = " = " if separator == "=" and has_spaces else separator
    if value[:1] in tuple(QUOTES):
        return _quoted(line, key, separator, value, more)
    value, comment, tail = _without_comment(value)
    if any(one in SPECIAL for one in value):
        return None
    return Entry(line, key, value, f"{comment}{tail}", separator)


def _is_flat(line: str, value: str) -> bool:
    """Whether `key: value` is that and nothing else, and not a part of something nested, or a reference."""
    return not line[0].isspace() and bool(value) and "=" not in value and value[0] not in YAML_MARKS


def _without_comment(value: str) -> tuple[str, str, str]:
    if value.startswith("#"):
        return "", " ", value
    bare, found, tail = value.partition(" #")
    return bare.rstrip(), found, tail


def _quoted(line: str, key: str, separator: str, value: str, more: list[str]) -> Entry | None:
    """A value in quotes, which may go on over several lines. With a quote in it, programs do not agree on its end."""
    quote, lines = value[0], [line]
    last = value[1:]
    while quote not in last and more:
        last = more.pop()
        lines.append(last)
    line = "\n".join(lines)
    inner, found, after = "\n".join((value[1:], *lines[1:])).partition(quote)
    after = after.strip()
    if not found or inner.endswith("\\") or (after and not after.startswith("#")):
        return None
    return Entry(line, key, inner, f" {after}" if after else "", separator, is_quoted=True)
