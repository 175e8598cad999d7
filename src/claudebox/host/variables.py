"""Variables that claudebox knows: what becomes of each if nobody asks for it, and why.

The host's own variables enter by this table, and so does the `env` block of the user's Claude settings. What is in
neither place stays outside, whatever it looks like.
"""

from __future__ import annotations

from claudebox.host.system import CERTIFICATE_VARIABLES
from claudebox.host.tree import sha256

# What becomes of a variable.
PLAIN = "plain"  # it says how programs look or behave, and enters as it is
LOCALE = "locale"  # it enters unless it is a path
ZONE = "zone"  # the same, and most zones have a slash
PROXY = "proxy"  # it enters if it has no password and the box can reach what it names
AROUND = "around"  # it enters beside a proxy
BUNDLE = "bundle"  # it enters if it names certificates that no agent can have written
ROUTE = "route"  # it says who gets the credential
KEY = "key"  # it enters, but never without the route that it has on the host
STAYS = "stays"  # it enters only if somebody asks for it

API_KEY, AUTH_TOKEN, OAUTH_TOKEN = "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"
BASE_URL = "ANTHROPIC_BASE_URL"
# Other ways in which Claude Code is logged in: what it sends, what names a file or directory of it, and what chooses.
GATEWAY_TOKEN = "CLAUDE_CODE_GATEWAY_TOKEN"
LOGIN_TOKENS = (GATEWAY_TOKEN, "ANTHROPIC_IDENTITY_TOKEN", "CLAUDE_CODE_OAUTH_REFRESH_TOKEN")
LOGIN_FILES = ("ANTHROPIC_IDENTITY_TOKEN_FILE", "CLAUDE_CODE_HOST_CREDS_FILE", "CLAUDE_CODE_FEDERATION_CACHE_DIR")
PROFILE, PROFILES, FEDERATION = "ANTHROPIC_PROFILE", "ANTHROPIC_CONFIG_DIR", "ANTHROPIC_FEDERATION_RULE_ID"
DEVICE_TOKEN = "CLAUDE_TRUSTED_DEVICE_TOKEN"
SHORTEST_SECRET = 8  # a value that is shorter occurs in every text, and is no secret

# What becomes of the variables, the reason, and their names. For what stays, what to say instead: {} is `--env NAME`.
ROWS = (
    (PLAIN, "what the terminal can do", "TERM COLORTERM TERM_PROGRAM TERM_PROGRAM_VERSION"),
    (PLAIN, "whether programs use colours", "NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE"),
    (PLAIN, "the name of an editor", "EDITOR VISUAL"),
    (
        *(LOCALE, "language and number formats"),
        """LANG LANGUAGE LC_ALL LC_CTYPE LC_MESSAGES LC_TIME LC_NUMERIC LC_COLLATE LC_MONETARY LC_PAPER LC_MEASUREMENT
        LC_NAME LC_ADDRESS LC_TELEPHONE LC_IDENTIFICATION""",
    ),
    (ZONE, "the time zone", "TZ"),
    (
        *(PLAIN, "which model Claude uses, and how"),
        """ANTHROPIC_MODEL ANTHROPIC_SMALL_FAST_MODEL ANTHROPIC_DEFAULT_OPUS_MODEL ANTHROPIC_DEFAULT_SONNET_MODEL
        ANTHROPIC_DEFAULT_HAIKU_MODEL CLAUDE_CODE_SUBAGENT_MODEL CLAUDE_CODE_EFFORT_LEVEL MAX_THINKING_TOKENS
        CLAUDE_CODE_MAX_OUTPUT_TOKENS DISABLE_INTERLEAVED_THINKING DISABLE_PROMPT_CACHING
        DISABLE_PROMPT_CACHING_HAIKU DISABLE_PROMPT_CACHING_OPUS DISABLE_PROMPT_CACHING_SONNET""",
    ),
    (
        *(PLAIN, "how Claude behaves"),
        """API_TIMEOUT_MS BASH_DEFAULT_TIMEOUT_MS BASH_MAX_OUTPUT_LENGTH BASH_MAX_TIMEOUT_MS MAX_MCP_OUTPUT_TOKENS
        MCP_TIMEOUT MCP_TOOL_TIMEOUT SLASH_COMMAND_TOOL_CHAR_BUDGET CLAUDE_AUTOCOMPACT_PCT_OVERRIDE
        CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR CLAUDE_CODE_DISABLE_BACKGROUND_TASKS
        CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS CLAUDE_CODE_DISABLE_TERMINAL_TITLE
        CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS CLAUDE_CODE_HIDE_ACCOUNT_INFO CLAUDE_CODE_IDE_SKIP_AUTO_INSTALL
        DISABLE_AUTO_COMPACT DISABLE_COST_WARNINGS DISABLE_MICROCOMPACT ENABLE_TOOL_SEARCH USE_BUILTIN_RIPGREP""",
    ),
    (
        *(PLAIN, "what Claude does not send"),
        """CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC DISABLE_BUG_COMMAND DISABLE_ERROR_REPORTING
        DISABLE_NON_ESSENTIAL_MODEL_CALLS DISABLE_TELEMETRY DO_NOT_TRACK""",
    ),
    (PROXY, "the proxy of this host", "HTTPS_PROXY https_proxy HTTP_PROXY http_proxy ALL_PROXY all_proxy"),
    (AROUND, "what is reached without the proxy", "NO_PROXY no_proxy"),
    (
        *(BUNDLE, "certificates that programs trust on this host"),
        "NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE CURL_CA_BUNDLE GIT_SSL_CAINFO PIP_CERT CARGO_HTTP_CAINFO",
    ),
    (ROUTE, "who gets Claude's requests, and the credential with them", BASE_URL),
    (KEY, "passed on if the host has it", API_KEY),
    (STAYS, "{}, or --auth broker, which keeps it outside", f"{AUTH_TOKEN} {OAUTH_TOKEN}"),
    (STAYS, "{}", "ANTHROPIC_CUSTOM_HEADERS AWS_BEARER_TOKEN_BEDROCK ANTHROPIC_FOUNDRY_API_KEY"),
    (STAYS, "{}", " ".join((*LOGIN_TOKENS, DEVICE_TOKEN))),
    (
        *(STAYS, "profiles and files with a login never enter; /login in the box makes one for boxes"),
        " ".join((*LOGIN_FILES, PROFILE, PROFILES, FEDERATION)),
    ),
    (
        *(STAYS, "{}, and --env for each variable with which that provider knows you"),
        """CLAUDE_CODE_USE_BEDROCK CLAUDE_CODE_USE_VERTEX CLAUDE_CODE_USE_FOUNDRY CLAUDE_CODE_USE_MANTLE
        CLAUDE_CODE_USE_ANTHROPIC_AWS""",
    ),
    (STAYS, "{}", "ANTHROPIC_BEDROCK_BASE_URL ANTHROPIC_VERTEX_BASE_URL ANTHROPIC_FOUNDRY_BASE_URL"),
    (STAYS, "{}, and --mount-ro for the file", "CLAUDE_CODE_CLIENT_CERT CLAUDE_CODE_CLIENT_KEY"),
)
KINDS = {name: kind for kind, _, names in ROWS for name in names.split()}
REASONS = {name: reason for _, reason, names in ROWS for name in names.split()}

# A credential, and the variable that says who gets it. Without that, a gateway's key would go to somebody else.
ROUTE_OF = {
    API_KEY: BASE_URL,
    AUTH_TOKEN: BASE_URL,
    GATEWAY_TOKEN: BASE_URL,
    "ANTHROPIC_CUSTOM_HEADERS": BASE_URL,
    "AWS_BEARER_TOKEN_BEDROCK": "ANTHROPIC_BEDROCK_BASE_URL",
    "ANTHROPIC_FOUNDRY_API_KEY": "ANTHROPIC_FOUNDRY_BASE_URL",
}
ROUTES = frozenset(ROUTE_OF.values())
# What leads requests, or the trust in an answer, somewhere else. If its value changes, the user is asked again.
LEADING = ROUTES.union(
    (name for name, kind in KINDS.items() if kind in (PROXY, AROUND, BUNDLE, ROUTE)),
    CERTIFICATE_VARIABLES,
)
# These need a closer look than most launches have to take.
JUDGED = frozenset(name for name, kind in KINDS.items() if kind in (PROXY, AROUND, BUNDLE, ROUTE, STAYS))

# Beside these, what a box may have for itself; numbers may follow. With the broker it has more.
MADE = (
    "HOME USER SHELL PATH TMPDIR XDG_RUNTIME_DIR PWD CLAUDE_CONFIG_DIR DISABLE_AUTOUPDATER DISABLE_INSTALLATION_CHECKS "
    "CLAUDE_SECURESTORAGE_CONFIG_DIR NIX_REMOTE GIT_CONFIG_COUNT GIT_CONFIG_KEY_ GIT_CONFIG_VALUE_ JAVA_HOME "
    "DOTNET_ROOT RUSTUP_HOME GEMINI_SANDBOX OPENCODE_PERMISSION OPENCODE_DISABLE_AUTOUPDATE"
)
OF_BROKER = (
    "ANTHROPIC_BASE_URL ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN CLAUDE_CODE_OAUTH_TOKEN CLAUDE_CODE_SUBSCRIPTION_TYPE "
    "ENABLE_TOOL_SEARCH CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL"
)
OF_AGENTS = ("OPENAI_", "CODEX_", "GEMINI_", "GOOGLE_", "OPENROUTER_", "OPENCODE_")  # how variables of others begin

LOOPBACK = ("localhost", "127.0.0.1", "::1")
SCHEMES = ("http", "https", "socks4", "socks4a", "socks5", "socks5h")
LONGEST_ADDRESS = 2000


def is_harmless(name: str, value: str) -> bool:
    """Whether it enters without a closer look, by its name and by the form of its value."""
    kind = KINDS.get(name)
    if kind == LOCALE:
        return "/" not in value  # the C library takes it for a path, in bwrap too
    if kind == ZONE:
        zone = value.removeprefix(":")
        return zone == "/etc/localtime" or not (zone.startswith("/") or ".." in zone)
    return kind == PLAIN


def may_hold_password(address: str) -> bool:
    """Whether an address may have an account in it, however it is written: `http:me:pw@host`, `me%40host`."""
    return "@" in address or "%" in address


def shown_way(value: str) -> str:
    """A value that leads somewhere, so that a person sees where to; a digest if it may hold a password."""
    is_open = value.isprintable() and len(value) <= LONGEST_ADDRESS and not may_hold_password(value)
    return value if is_open else f"(not shown, {sha256(value.encode(errors='surrogateescape'))[:16]})"


def read_address(text: str) -> tuple[str, str, str] | None:
    """Scheme, host and port of an address in the plain form that most have; None for every other form.

    Programs differ in what they make of the others, so nobody can say who is meant.
    """
    scheme, has_scheme, rest = text.partition("://")
    scheme, rest = (scheme.lower(), rest) if has_scheme else ("http", text)
    place, _, path = rest.partition("/")
    host, port = split_port(place)
    is_name = bool(host) and (_plain(host, ".-_") or (place.startswith("[") and _plain(host, ":.")))
    is_fine = text.isascii() and is_name and _plain(path, "/-._~", may_be_empty=True) and (port.isdigit() or not port)
    return (scheme, host.lower(), port) if is_fine and scheme in SCHEMES and len(text) <= LONGEST_ADDRESS else None


def split_port(place: str) -> tuple[str, str]:
    """The host and the port. An IPv6 address has brackets."""
    if place.startswith("["):
        host, end, rest = place[1:].partition("]")
        return (host, rest[1:]) if end and ":" in host and rest[:1] in ("", ":") else ("", "")
    host, _, port = place.partition(":")
    return host, port


def _plain(text: str, also: str, *, may_be_empty: bool = False) -> bool:
    letters = text
    for character in also:
        letters = letters.replace(character, "")
    return (text.isascii() and letters.isalnum()) or (not letters and (may_be_empty or bool(text.strip(also))))


def is_loopback(host: str) -> bool:
    """Whether it is this machine, whoever answers for names."""
    return host in LOOPBACK or (host.startswith("127.") and host.count(".") <= 3 and host.replace(".", "").isdigit())
