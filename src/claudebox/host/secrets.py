"""What is secret on a host, and which of its directories may become a project or a mount.

First places, by a table of paths; then names, tokens, private keys and random text.
"""

from __future__ import annotations

from itertools import pairwise

from claudebox.errors import Problem
from claudebox.host.system import NIX_SOCKETS
from claudebox.host.tree import Tree
from claudebox.host.variables import LOGIN_FILES
from claudebox.model import SecretPlace
from claudebox.paths import OWN, absolute, is_inside, move, normalize, parents
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.settings import Word

# Parts of the system: they are never writable, and nothing below them is a project.
SYSTEM_TREES = tuple("/bin /boot /dev /etc /lib /lib32 /lib64 /libx32 /nix /proc /run /sbin /sys /usr".split())
# Where people do keep projects although it is inside a system tree.
PROJECT_TREES = ("/usr/src", "/usr/local/src", "/run/media")
NO_FILES = ("/dev", "/proc", "/sys")  # what is there are devices and the kernel's own tables
# Directories of directories: too broad as a whole, but a directory below one is fine.
BROAD = (
    *"/home /media /mnt /opt /srv /tmp /var /var/home /var/lib /var/tmp /var/cache /var/log /var/spool".split(),
    *PROJECT_TREES,
)

# The same trees as beginnings of paths, because every mount of every box is compared with them.
_SYSTEM = tuple(f"{tree}/" for tree in SYSTEM_TREES)
_PROJECTS = tuple(f"{tree}/" for tree in PROJECT_TREES)


def is_systems(path: str) -> bool:
    """Whether the path is a part of the system, where no agent can write."""
    return f"{path}/".startswith(_SYSTEM) and not path.startswith(_PROJECTS)


def refuse_writable(path: str, homes: tuple[str, ...], places: tuple[SecretPlace, ...]) -> str:
    """Why the agent may not write this directory, a project or a mount that somebody asked for; "" if it may."""
    if is_systems(path):
        return f"{path} belongs to the system"
    return refuse_readable(path, homes, places)


def refuse_readable(path: str, homes: tuple[str, ...], places: tuple[SecretPlace, ...]) -> str:
    """Why this directory or file may not become visible; "" if it may."""
    if path == "/":
        return "/ is the whole machine"
    if path in homes:
        return f"{path} is your home, with everything in it"
    if any(is_inside(home, path) for home in homes):
        return f"{path} contains your home"
    if any(is_inside(path, tree) for tree in NO_FILES):
        return f"{path} is not a place for files"
    if path in BROAD:
        return f"{path} is too broad"
    for drawer in places:
        if drawer.is_drawer and drawer.exists and is_inside(drawer.path, path):
            return f"{path} {'is' if drawer.path == path else f'contains {drawer.path},'} {drawer.reason}"
    above = {path, *parents(path), "/"}
    secret = next((place for place in places if place.path in above and not place.is_drawer), None)
    return f"{secret.path} is secret ({secret.reason})" if secret is not None else ""


def contained_secret(path: str, places: tuple[SecretPlace, ...]) -> SecretPlace | None:
    """A secret place below `path`, preferably one that exists."""
    below = f"{path}/"
    found = [place for place in places if place.path.startswith(below) and not place.is_drawer]
    return min(found, key=lambda place: not place.exists, default=None)


LONGEST_PROJECT = 4096 - 256  # bytes: the kernel takes no longer path, and the project has files


def check_project(path: str, homes: tuple[str, ...], places: tuple[SecretPlace, ...]) -> None:
    """Raise unless a box can be made for this project directory."""
    if not path.isprintable():
        raise Problem(
            f"the project's path holds control or invisible characters: {path!r}",
            "rename the directory: such a name can forge what this program shows",
        )
    if len(path.encode(errors="surrogateescape")) > LONGEST_PROJECT:
        raise Problem("the project's path is too long: the kernel knows none like it", "cd to a directory above")
    refusal = refuse_writable(path, homes, places)
    if not refusal and (secret := contained_secret(path, places)):
        verb = "contains" if secret.exists else "is where programs put"
        refusal = f"it {verb} {secret.path} ({secret.reason})"
    if refusal:
        raise Problem(
            f"{path} cannot be a project: {refusal}", "cd to the directory of one project and start claudebox there"
        )


class Opening(Record):
    """A path that somebody wants writable."""

    path: str
    said: Word

    def opens(self, path: str) -> bool:
        return is_inside(path, self.path)


def openings(writable: tuple[Word, ...], project: str, home: str) -> list[Opening]:
    return [Opening(absolute(said.text, project, home), said) for said in writable]


# Each reason with its paths; `~` is the user's home. These are plain pairs because every start reads them.
_TABLE = """
SSH keys: ~/.ssh
GPG keys: ~/.gnupg
sops and age keys: ~/.age ~/.config/age ~/.config/sops
passwords: ~/.password-store ~/.passage ~/.local/share/gopass ~/.config/gopass ~/.lpass ~/.local/share/lpass
 ~/.config/op ~/.op ~/.config/Bitwarden ~/.config/keepassxc
keyring: ~/.local/share/keyrings ~/.local/share/python_keyring ~/.local/share/kwalletd
AWS credentials: ~/.aws
login of a cloud: ~/.config/gcloud ~/.azure ~/.oci ~/.config/doctl ~/.config/hcloud ~/.config/scw ~/.config/linode-cli
 ~/.fly ~/.config/heroku ~/.config/netlify ~/.netlify ~/.local/share/com.vercel.cli ~/.wrangler ~/.config/.wrangler
 ~/.cloudflared ~/.terraform.d ~/.terraformrc ~/.pulumi ~/.vault-token ~/.config/ngrok ~/.circleci
Kubernetes credentials: ~/.kube
logins of container registries: ~/.docker ~/.config/containers ~/.config/helm
login of a code host: ~/.config/gh ~/.config/hub ~/.config/glab-cli ~/.config/tea ~/.config/github-copilot
git passwords: ~/.git-credentials ~/.config/git/credentials
passwords for hosts: ~/.netrc ~/.authinfo ~/.authinfo.gpg
token of a package index: ~/.npmrc ~/.yarnrc.yml ~/.pypirc ~/.cargo/credentials ~/.cargo/credentials.toml
 ~/.gem/credentials ~/.m2/settings.xml ~/.m2/settings-security.xml ~/.gradle/gradle.properties ~/.composer/auth.json
 ~/.config/composer/auth.json
passwords of databases: ~/.pgpass ~/.my.cnf ~/.dbt ~/.snowflake
keys of storage in a cloud: ~/.config/rclone ~/.config/b2 ~/.config/storj ~/.s3cfg ~/.boto
backup keys: ~/.config/rustic ~/.config/borg
login of an AI service: ~/.cache/huggingface/token ~/.kaggle ~/.codex ~/.gemini ~/.config/anthropic
Claude's login and the history of all projects: ~/.claude
Claude's state and MCP tokens: ~/.claude.json
browser passwords and cookies: ~/.mozilla ~/.config/google-chrome ~/.config/chromium ~/.config/BraveSoftware
 ~/.config/microsoft-edge
mail and messages: ~/.thunderbird ~/.config/Signal ~/.config/Slack
wallet: ~/.bitcoin ~/.ethereum ~/.electrum ~/.lnd ~/.aptos ~/.config/solana
typed commands, with what was pasted: ~/.bash_history ~/.zsh_history ~/.local/share/fish/fish_history
 ~/.python_history ~/.node_repl_history ~/.psql_history
Tailscale keys: ~/.local/share/tailscale /var/lib/tailscale
secrets of system services: /var/lib/private
domain login cache: /var/lib/sss
containers and their secrets: /var/lib/docker /var/lib/containers
password hashes: /etc/shadow /etc/gshadow
host keys: /etc/ssh
TLS keys: /etc/ssl/private /etc/pki/tls/private /etc/letsencrypt
VPN keys: /etc/wireguard /etc/openvpn
Wi-Fi and VPN passwords: /etc/NetworkManager/system-connections
Kerberos keys: /etc/krb5.keytab
who may become root: /etc/sudoers /etc/sudoers.d
secrets of containers, sops-nix and agenix: /run/secrets /run/secrets.d /run/agenix /run/agenix.d
agent sockets of SSH, GPG, D-Bus and Wayland: /run/user
system D-Bus: /run/dbus
containers, and root on this host with them: /run/docker.sock /run/podman /run/containerd
tailscaled socket: /run/tailscale
X11 sockets: /tmp/.X11-unix
logins of Determinate Nix, and a socket: /nix/var/determinate
"""
_ROWS_OF_TABLE = [row.partition(": ") for row in _TABLE.strip().replace("\n ", " ").splitlines()]
SECRET_PLACES = (
    *((path, reason) for reason, _, paths in _ROWS_OF_TABLE for path in paths.split()),
    ("~/.config/Bitwarden CLI", "passwords"),
    (f"~/{OWN}", "state of all boxes"),
    (NIX_SOCKETS, "the Nix daemon, which enters only with --nix"),
)

# Where every program has a directory of its own.
DRAWERS = tuple("~/.config ~/.local ~/.local/share ~/.local/state ~/.cache ~/.var ~/.var/app ~/snap".split())
DRAWER = "where all your programs keep their files, logins among them"
_ROWS = (*SECRET_PLACES, *((drawer, DRAWER) for drawer in DRAWERS))

# Variables that put one of these elsewhere.
VARIABLES = dict(
    pair.split("=")
    for pair in (
        "XDG_CONFIG_HOME=~/.config XDG_DATA_HOME=~/.local/share XDG_STATE_HOME=~/.local/state XDG_CACHE_HOME=~/.cache "
        "ANTHROPIC_CONFIG_DIR=~/.config/anthropic AZURE_CONFIG_DIR=~/.azure CLOUDSDK_CONFIG=~/.config/gcloud "
        "DOCKER_CONFIG=~/.docker GH_CONFIG_DIR=~/.config/gh GNUPGHOME=~/.gnupg PASSWORD_STORE_DIR=~/.password-store"
    ).split()
)


def _put_elsewhere(environ: dict[str, str], project: str) -> list[tuple[str, str]]:
    """The rows as these variables have them. What a variable puts into the project is the project's own."""
    named = [(home, normalize(path)) for name, home in VARIABLES.items() if (path := environ.get(name, "/")) != "/"]
    moved = [(home, path) for home, path in named if path.startswith("/") and not is_inside(path, project)]
    logins = [normalize(path) for name in LOGIN_FILES if (path := environ.get(name, "")).startswith("/")]
    return [
        *((move(row, home, path), why) for home, path in moved for row, why in _ROWS if is_inside(row, home)),
        *((path, "a login of Claude") for path in logins if path != "/" and not is_inside(path, project)),
    ]


def secret_places(tree: Tree, homes: tuple[str, ...], environ: dict[str, str], project: str) -> tuple[SecretPlace, ...]:
    """The table for these homes: each path as written and, if it is a symlink, also the place that it leads to."""
    places: list[SecretPlace] = []
    rows = (*_ROWS, *_put_elsewhere(environ, project))
    for number, home in enumerate(homes):
        names = set(tree.entries(home))  # most people have few of them: listing the home once saves a hundred lookups
        for written, reason in rows:
            path, is_missing = written, False
            if written.startswith("~"):
                path, first = home + written[1:], written[2:].partition("/")[0]
                is_missing = bool(names) and first not in names
            elif number:
                continue
            real = None if is_missing else tree.resolve(path)
            # A symlink does not count as existing; the place that it leads to does.
            is_drawer = reason == DRAWER
            places.append(SecretPlace(path, reason, real == path, is_drawer))
            if real is not None and real != path:
                places.append(SecretPlace(real, reason, True, is_drawer))
    return tuple(places)


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
NO_PASS_WORDS = frozenset("bypass compass overpass cwd pwd_cwd".split())
# What has such a part in its name is no secret because of that.
HARMLESS_PARTS = "tokeniz public_key publickey primary_key foreign_key sort_key cache_key key_name".split()
HARMLESS_NAMES = frozenset("PWD OLDPWD DESKTOP_SESSION".split())
SWITCHES = frozenset(("", "0", "1", "true", "false", "yes", "no", "on", "off"))

# How tokens of known kinds begin, the longer of two that begin alike first.
TOKEN_PREFIXES = tuple(
    "sk-ant- sk- xai- gsk_ ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- glrt- gldt- AKIA ASIA AIza ya29. xoxb- xoxp- "
    "xoxa- xapp- npm_ pypi- hf_ dop_v1_ sk_live_ sk_test_ rk_live_ whsec_ SG. tskey- shpat_ dckr_pat_ lin_api_ nfp_ "
    "dapi pul- figd_ ntn_ hvs. AGE-SECRET-KEY- eyJ".split()
)
SHORTEST_TOKEN, SHORTEST_RANDOM = 20, 32
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


def secret_value(value: str) -> str:
    """Why a text looks like a secret: known tokens, private keys, passwords in `scheme://user:password@host`."""
    if known := known_token(value):
        return known
    return "it holds a password for an address" if _holds_password(value) else ""


def known_token(value: str) -> str:
    if any(mark in value for mark in PRIVATE_KEY_MARKS):
        return "it holds a private key"
    for word in _words(value) if any(prefix in value for prefix in TOKEN_PREFIXES) else ():
        if len(word) >= SHORTEST_TOKEN and word.startswith(TOKEN_PREFIXES):
            prefix = next(prefix for prefix in TOKEN_PREFIXES if word.startswith(prefix))
            return f"it looks like a token: {prefix}…"
    return ""


def is_binary_key(content: bytes) -> bool:
    """Whether this is a private key in DER: in a certificate and in a public key, something else comes first."""
    length = content[1] if content[:1] == DER_SEQUENCE and len(content) > 1 else 0
    inner = content[2 + (length - DER_LONG if length > DER_LONG else 0) :]
    return length > 0 and (inner.startswith(DER_KEYS) or ENCRYPTED_DER in inner[:16])


def _words(text: str) -> list[str]:
    """The text in pieces, cut at every character that no token contains."""
    for separator in "\"'`=:,;()[]{}<>|&?@/\\":
        text = text.replace(separator, " ")
    return text.split()


def _holds_password(text: str) -> bool:
    """Whether an address in the text has a password: `scheme://user:password@host`.

    Programs take passwords with a slash in them, too; but what stands between a colon and a slash may be a port.
    """
    for piece in text.split("://")[1:]:
        address = (piece.split(maxsplit=1) or [""])[0]
        account, at, _ = address.partition("/")[0].rpartition("@")
        if not at:
            account, at, _ = address.rpartition("@")
        user, _, password = account.partition(":")
        is_port = "/" in account and ("/" in user or password.partition("/")[0].isdigit())
        if password and not is_port:
            return True
    return False


def _looks_random(text: str) -> bool:
    """Whether it is one long word of letters and digits in no readable order. The hash of a commit is no secret."""
    if len(text) < SHORTEST_RANDOM or text.startswith(("/", "~", "sha256-", "sha512-")) or not text.isascii():
        return False
    if not all(character.isalnum() or character in "+/=_-" for character in text):
        return False
    changes = sum(a.isdigit() != b.isdigit() for a, b in pairwise(text))
    is_commit = len(text) == COMMIT_LENGTH and set(text) <= set("0123456789abcdef")
    return changes * 8 >= len(text) and not is_commit
