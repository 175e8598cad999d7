"""Secrets that lie in the project: which files may hold one, by their names.

This much is read at every launch. What is in a file is looked at only if its name is in the table.
"""

from __future__ import annotations

from claudebox.host.tree import Tree
from claudebox.host.walk import FILE, OTHER, Entry, Wanted
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# What in such a file is secret, and so how its decoy is made.
VALUES = "values"  # every value that is not plainly harmless
LOOKS = "looks"  # only values that look secret, by their key or shape
SHELL = "shell"  # like LOOKS, in a script that shall still run
SHAPE = "shape"  # if something in it has the shape of a known secret, like VALUES
KEY = "key"  # a private key in text
BINARY = "binary"  # a key store, which begins in a known way
WHOLE = "whole"  # all of it
NETRC = "netrc"
GIT = "git"  # like LOOKS, and git still has to work with it

# `*` at one end stands for anything; `directory/name` is that name in that directory. Plain tuples: they are read at
# every start.
TABLE = (
    (".env", VALUES, "variables of the program"),
    (".env.*", VALUES, "variables of the program"),
    (".env-*", VALUES, "variables of the program"),
    (".env_*", VALUES, "variables of the program"),
    (".envrc", SHELL, "variables of the shell"),
    ("*.env", LOOKS, "variables of the program"),
    (".dev.vars", VALUES, "variables of a Cloudflare worker"),
    (".secrets", VALUES, "secrets of act"),
    ("local.settings.json", VALUES, "settings of Azure Functions"),
    ("secrets.yml", VALUES, "secrets by name"),
    ("secrets.yaml", VALUES, "secrets by name"),
    ("secrets.json", VALUES, "secrets by name"),
    ("secrets.toml", VALUES, "secrets by name"),
    ("secrets.ini", VALUES, "secrets by name"),
    ("secrets.properties", VALUES, "secrets by name"),
    ("credentials.yml", VALUES, "credentials by name"),
    ("credentials.yaml", VALUES, "credentials by name"),
    ("credentials.json", VALUES, "credentials by name"),
    ("credentials.toml", VALUES, "token of crates.io"),
    (".cargo/credentials", VALUES, "token of crates.io"),
    (".gem/credentials", VALUES, "token of RubyGems"),
    (".aws/credentials", VALUES, "AWS credentials"),
    (".aws/config", LOOKS, "AWS settings"),
    (".kube/config", VALUES, "Kubernetes credentials"),
    ("kubeconfig", VALUES, "Kubernetes credentials"),
    ("kubeconfig.*", VALUES, "Kubernetes credentials"),
    ("*.kubeconfig", VALUES, "Kubernetes credentials"),
    (".docker/config.json", VALUES, "Docker registry logins"),
    (".dockercfg", VALUES, "Docker registry logins"),
    (".dockerconfigjson", VALUES, "Docker registry logins"),
    ("*.tfstate", VALUES, "state of Terraform, with every password in it"),
    ("*.tfstate.backup", VALUES, "state of Terraform, with every password in it"),
    ("*.tfvars", LOOKS, "variables of Terraform"),
    ("*.tfvars.json", LOOKS, "variables of Terraform"),
    (".terraformrc", LOOKS, "token of Terraform Cloud"),
    (".npmrc", LOOKS, "token of npm"),
    (".yarnrc", LOOKS, "token of npm"),
    (".yarnrc.yml", LOOKS, "token of npm"),
    (".pypirc", LOOKS, "token of PyPI"),
    ("pip.conf", LOOKS, "password of a package index"),
    ("auth.json", LOOKS, "tokens of Composer"),
    ("gradle.properties", LOOKS, "passwords of Gradle"),
    ("local.properties", LOOKS, "passwords of Gradle"),
    ("database.yml", LOOKS, "password of a database"),
    (".netrc", NETRC, "passwords for hosts"),
    ("_netrc", NETRC, "passwords for hosts"),
    (".git-credentials", WHOLE, "git passwords"),
    (".pgpass", WHOLE, "PostgreSQL passwords"),
    (".my.cnf", LOOKS, "MySQL password"),
    (".htpasswd", WHOLE, "password hashes"),
    (".vault-token", WHOLE, "Vault token"),
    (".vault_pass", WHOLE, "password of an Ansible vault"),
    (".vault_pass.txt", WHOLE, "password of an Ansible vault"),
    (".vault_password", WHOLE, "password of an Ansible vault"),
    ("master.key", WHOLE, "key to the credentials of Rails"),
    (".s3cfg", VALUES, "S3 keys"),
    (".boto", VALUES, "cloud keys"),
    ("rclone.conf", VALUES, "rclone remotes"),
    (".mcp.json", LOOKS, "tokens of MCP servers"),
    ("mcp.json", LOOKS, "tokens of MCP servers"),
    (".claude/settings.json", LOOKS, "variables of Claude"),
    (".claude/settings.local.json", LOOKS, "variables of Claude"),
    (".git/config", GIT, "passwords in addresses of remotes"),
    (".git/config.worktree", GIT, "passwords in addresses of remotes"),
    (".git/credentials", WHOLE, "git passwords"),
    (".gitmodules", GIT, "passwords in addresses of remotes"),
    ("id_rsa", KEY, "private key"),
    ("id_dsa", KEY, "private key"),
    ("id_ecdsa", KEY, "private key"),
    ("id_ed25519", KEY, "private key"),
    ("*.pem", KEY, "private key"),
    ("*.key", KEY, "private key"),
    ("*.p8", KEY, "private key"),
    ("*.ppk", KEY, "private key"),
    ("*.ovpn", KEY, "VPN key"),
    ("*.agekey", KEY, "age key"),
    ("keys.txt", KEY, "age key"),
    ("key.txt", KEY, "age key"),
    ("wg*.conf", LOOKS, "VPN key"),
    ("*.p12", BINARY, "key store"),
    ("*.pfx", BINARY, "key store"),
    ("*.jks", BINARY, "key store"),
    ("*.keystore", BINARY, "key store"),
    ("*.kdbx", BINARY, "KeePass passwords"),
    ("*.keytab", BINARY, "Kerberos keys"),
    ("wallet.dat", BINARY, "wallet"),
    ("UTC--*", VALUES, "wallet"),
    # Of the many others: those that are called after what they hold, and hold a key.
    ("*.json", SHAPE, "keys of a service account, or an OAuth client"),
)
# Copies without the secrets, for others to fill in.
EXAMPLES = tuple(
    ".example .sample .template .tmpl .dist .defaults .default .schema .vault .md .d.ts .enc .encrypted .sops .gpg "
    ".age".split()
)
EXAMPLE_WORDS = ("example", "sample", "template")
JSON_WORDS = tuple("-key _key keyfile account adminsdk client_secret credential gcloud gcp google".split())
GOOGLE_ID = 12  # what Google calls a key's file ends with so many digits of a hexadecimal number

GIT_FILES = ("config", "config.worktree", "credentials")
GIT_WORDS = (b"header", b"token", b"pass", b"secret", b"key")
DEEPEST_MODULE = 4
MOST_MODULES = 300

RULE = "secrets"


Row = tuple[str, str]  # what is known about a file by its name: style and reason


class Candidate(Record):
    """A file that may hold a secret."""

    path: str
    style: str
    reason: str
    is_file: bool = True


def _sorted_out() -> tuple[dict[str, Row], dict[str, Row], dict[str, Row]]:
    whole: dict[str, Row] = {}
    beginnings: dict[str, Row] = {}
    ends: dict[str, Row] = {}
    for pattern, style, reason in TABLE:
        row = (style, reason)
        if pattern.endswith("*"):
            beginnings[pattern[:-1]] = row
        elif pattern.startswith("*"):
            ends[pattern[1:]] = row
        else:
            whole[pattern] = row
    return whole, beginnings, ends


_WHOLE, _BEGINNINGS, _ENDS = _sorted_out()
_WITHIN = "wg"  # the one pattern with its `*` inside: its beginning is looked for, its end is asked for
WANTED = Wanted(
    frozenset({*(name.rpartition("/")[2] for name in _WHOLE if not name.startswith(".git/")), ".git"}),
    (*_BEGINNINGS, _WITHIN),
    tuple(_ENDS),
)


def candidates(entries: Iterable[Entry]) -> list[Candidate]:
    """What has to be looked into. A symlink never: what it leads to is judged where it is."""
    found = []
    for entry in entries:
        if entry.kind in (FILE, OTHER) and (row := row_for(entry.path)) is not None:
            found.append(Candidate(entry.path, *row, is_file=entry.kind == FILE))
    return found


def row_for(path: str) -> Row | None:
    above, _, name = path.rpartition("/")
    row = _WHOLE.get(name) or _WHOLE.get(f"{above.rpartition('/')[2]}/{name}")
    if row is not None or name.endswith(EXAMPLES):
        return row
    if name.endswith(".json") and not name.endswith(".tfvars.json"):
        return _ENDS[".json"] if _may_be_key(name.lower()) else _by_beginning(name)
    if name.startswith(_WITHIN) and name.endswith(".conf"):
        return _WHOLE["wg*.conf"]
    return _by_beginning(name) or next((row for end, row in _ENDS.items() if name.endswith(end)), None)


def _by_beginning(name: str) -> Row | None:
    if any(word in name for word in EXAMPLE_WORDS):
        return None
    return next((row for beginning, row in _BEGINNINGS.items() if name.startswith(beginning)), None)


def _may_be_key(name: str) -> bool:
    last = name[:-5].rpartition("-")[2]
    is_google = len(last) == GOOGLE_ID and set(last) <= set("0123456789abcdef")
    return is_google or any(word in name for word in JSON_WORDS)


def git_files(tree: Tree, git_dirs: Iterable[str]) -> list[Candidate]:
    """The configuration of repositories, and of their submodules."""
    found = []
    for git_dir in dict.fromkeys(git_dirs):
        for directory in (git_dir, *_modules(tree, f"{git_dir}/modules", DEEPEST_MODULE)):
            for name in GIT_FILES:
                row = _WHOLE[f".git/{name}"]
                if _may_hold_password(tree.read_plain(f"{directory}/{name}") or b""):
                    found.append(Candidate(f"{directory}/{name}", *row))
    return found


def _modules(tree: Tree, directory: str, depth: int) -> list[str]:
    """A submodule may be called `a/b`, and have submodules itself."""
    if not depth or not tree.is_plain_directory(directory):
        return []
    found = []
    for name in tree.entries(directory)[:MOST_MODULES]:
        module = f"{directory}/{name}"
        if not tree.is_plain_directory(module):
            continue
        is_module = tree.lstat(f"{module}/config") is not None
        found += [module] if is_module else []
        found += _modules(tree, f"{module}/modules" if is_module else module, depth - 1)
    return found


def _may_hold_password(content: bytes) -> bool:
    """Asked of every repository at every launch, before anything is read closely."""
    return (b"://" in content and b"@" in content) or any(word in content.lower() for word in GIT_WORDS)
