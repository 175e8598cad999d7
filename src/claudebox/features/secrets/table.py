"""The table of files in the project that may hold a secret, by their names.

This much is read at every launch. The content of a file is read only if its name is in the table.
"""

from __future__ import annotations

from claudebox.host.tree import Tree
from claudebox.host.walk import FILE, OTHER, Entry, NameFilter
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# Styles: what in such a file is secret, and so how its decoy is made.
VALUES = "values"  # every value that is not plainly harmless
LOOKS = "looks"  # only values that look secret, by their key or shape
SHELL = "shell"  # like LOOKS, in a script that must still run
SHAPE = "shape"  # like VALUES, if something in it has the shape of a known secret
KEY = "key"  # a private key in text
WHOLE = "whole"  # all of it: no part would be of use without the secret
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
    (".netrc", WHOLE, "passwords for hosts"),
    ("_netrc", WHOLE, "passwords for hosts"),
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
    ("*.p12", WHOLE, "key store"),
    ("*.pfx", WHOLE, "key store"),
    ("*.jks", WHOLE, "key store"),
    ("*.keystore", WHOLE, "key store"),
    ("*.kdbx", WHOLE, "KeePass passwords"),
    ("*.keytab", WHOLE, "Kerberos keys"),
    ("wallet.dat", WHOLE, "wallet"),
    ("UTC--*", VALUES, "wallet"),
    # There are many others: only those count that are called after a key, and hold one.
    ("*.json", SHAPE, "keys of a service account, or an OAuth client"),
)
# Names of copies that hold no secrets, for others to fill in, or only encrypted ones.
EXAMPLES = tuple(
    ".example .sample .template .tmpl .dist .defaults .default .schema .vault .md .d.ts .enc .encrypted .sops .gpg "
    ".age".split()
)
EXAMPLE_WORDS = ("example", "sample", "template")
JSON_WORDS = tuple("-key _key keyfile account adminsdk client_secret credential gcloud gcp google".split())
GOOGLE_ID = 12  # hexadecimal digits with which Google ends the name of a key's file

GIT_FILES = ("config", "config.worktree", "credentials")
GIT_WORDS = (b"header", b"token", b"pass", b"secret", b"key")
DEEPEST_MODULE = 4
MOST_MODULES = 300

RULE = "secrets"


Kind = tuple[str, str]  # what is known about a file by its name: style and reason


class Candidate(Record):
    """A file that may hold a secret."""

    path: str
    style: str
    reason: str


def _sorted_out() -> tuple[dict[str, Kind], dict[str, Kind], dict[str, Kind]]:
    whole: dict[str, Kind] = {}
    beginnings: dict[str, Kind] = {}
    ends: dict[str, Kind] = {}
    for pattern, style, reason in TABLE:
        kind = (style, reason)
        if pattern.endswith("*"):
            beginnings[pattern[:-1]] = kind
        elif pattern.startswith("*"):
            ends[pattern[1:]] = kind
        else:
            whole[pattern] = kind
    return whole, beginnings, ends


_WHOLE, _BEGINNINGS, _ENDS = _sorted_out()
_WITHIN = "wg"  # of the one pattern with its `*` inside: names are found by this beginning, then judged by their end
WANTED = NameFilter(
    frozenset({*(name.rpartition("/")[2] for name in _WHOLE if not name.startswith(".git/")), ".git"}),
    (*_BEGINNINGS, _WITHIN),
    tuple(_ENDS),
)


def candidates(entries: Iterable[Entry]) -> list[Candidate]:
    """The files that have to be read. A symlink is none of them: what it leads to is judged where that is."""
    found = []
    for entry in entries:
        if entry.kind in (FILE, OTHER) and (kind := kind_of(entry.path)) is not None:
            found.append(Candidate(entry.path, *kind))
    return found


def kind_of(path: str) -> Kind | None:
    above, _, name = path.rpartition("/")
    kind = _WHOLE.get(name) or _WHOLE.get(f"{above.rpartition('/')[2]}/{name}")
    if kind is not None or name.endswith(EXAMPLES):
        return kind
    if name.endswith(".json") and not name.endswith(".tfvars.json"):
        return _ENDS[".json"] if _may_be_key(name.lower()) else _by_beginning(name)
    if name.startswith(_WITHIN) and name.endswith(".conf"):
        return _WHOLE["wg*.conf"]
    return _by_beginning(name) or next((kind for end, kind in _ENDS.items() if name.endswith(end)), None)


def _by_beginning(name: str) -> Kind | None:
    if any(word in name for word in EXAMPLE_WORDS):
        return None
    return next((kind for beginning, kind in _BEGINNINGS.items() if name.startswith(beginning)), None)


def _may_be_key(name: str) -> bool:
    last = name[:-5].rpartition("-")[2]
    is_google = len(last) == GOOGLE_ID and set(last) <= set("0123456789abcdef")
    return is_google or any(word in name for word in JSON_WORDS)


def git_files(tree: Tree, git_dirs: Iterable[str]) -> list[Candidate]:
    """The configuration of repositories and of their submodules, where it may hold a password."""
    found = []
    for git_dir in dict.fromkeys(git_dirs):
        for directory in (git_dir, *_modules(tree, f"{git_dir}/modules", DEEPEST_MODULE)):
            for name in GIT_FILES:
                kind = _WHOLE[f".git/{name}"]
                if _may_hold_password(tree.read_plain(f"{directory}/{name}") or b""):
                    found.append(Candidate(f"{directory}/{name}", *kind))
    return found


def _modules(tree: Tree, directory: str, depth: int) -> list[str]:
    """Find the submodules. One may be called `a/b`, and have submodules itself."""
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
    """Look quickly: every repository is asked this at every launch, before anything is read closely."""
    return (b"://" in content and b"@" in content) or any(word in content.lower() for word in GIT_WORDS)
