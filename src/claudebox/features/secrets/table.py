"""Finds the files in the project that may hold a secret, by their names, and private keys by a look inside.

This much is loaded at every launch. What is in a file is read only if its name is in the table, or if it is small and
has a name without an ending, as private keys have it.
"""

from __future__ import annotations

from itertools import islice

from claudebox.host.git.repository import find_submodules
from claudebox.host.tree import Tree
from claudebox.host.walk import DIRECTORY, FILE, HEAD_LENGTH, LINK, OTHER, Entry, NameFilter
from claudebox.paths import is_inside
from claudebox.record import Record
from claudebox.trust.secret_values import PRIVATE_KEY_MARKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# Names are compared without regard to capitals. One `*` stands for anything; `directory/name` is that name in that
# directory; `directory/` is every file below a directory of that name. Plain tuples: they are read at every start.
#
# Styles: what in such a file is secret, and so how its decoy is made.
VALUES = "values"  # every value that is not plainly harmless
LOOKS = "looks"  # only values that look secret, by their key or shape
SHELL = "shell"  # like LOOKS, in a script that must still run
QUOTED = "quoted"  # like LOOKS, in source code: only texts in quotes
MARKUP = "markup"  # like LOOKS, in XML
SHAPE = "shape"  # like VALUES, if something in it has the shape of a known secret
SURE = "sure"  # like LOOKS, if something in it has the shape of a known secret
KEY = "key"  # a private key in text, or one long word
WHOLE = "whole"  # all of it: no part would be of use without the secret
PLAIN = "plain"  # like WHOLE, unless it is a program
GIT = "git"  # like LOOKS, and git still has to work with it
NOTED = "noted"  # source code that programs need as it is: never masked, but mentioned if something looks secret
# What hides most comes first. A style of another version hides all.
STRICTEST = (WHOLE, PLAIN, VALUES, SHAPE, KEY, SHELL, QUOTED, MARKUP, LOOKS, SURE, GIT, NOTED)

ROWS = (
    # Variables and shells. Everything with `.env` in its name is found by a rule of the table.
    (SHELL, "variables of the shell", ".envrc .envrc.* env.sh setenv.sh .exports .localrc *openrc.sh"),
    (SHELL, "settings of a shell", ".bashrc .bash_profile .bash_aliases .profile .zshrc .zshenv .zprofile config.fish"),
    (WHOLE, "what was typed", "*_history .bash_history-* .lesshst .viminfo consolehost_history.txt"),
    (VALUES, "variables of the program", ".flaskenv .dev.vars .dev.vars.* .envs/ .env-cmdrc* .runtimeconfig.json"),
    (VALUES, "variables of the program", "env.json"),
    (LOOKS, "variables of the program", "env.yml env.yaml env.toml nodemon.json"),
    (VALUES, "settings of Azure Functions", "local.settings.json"),
    (VALUES, "secrets of CI, for a run at home", ".secrets .vars .drone.secret .gitlab-ci-local-* variables.env"),
    (LOOKS, "options with which CI is run at home", ".actrc"),
    # Clouds
    (VALUES, "login of a cloud", ".aws/ gcloud/ .gcloud/ .oci/ .aliyun/ .tccli/ .bluemix/ doctl/ hcloud/"),
    (VALUES, "login of a cloud", ".scw/"),
    (VALUES, "login of a cloud", ".fly/ .heroku/ com.vercel.cli/ netlify/config.json .netlify/ .railway/ .supabase/"),
    (VALUES, "login of a cloud", ".linode-cli clouds.yaml clouds.yml secure.yaml azureauth.json *.azureauth"),
    # Not all of the directory: pipelines lie there, too.
    (VALUES, "login of a cloud", ".azure/accessTokens.json .azure/msal_token_cache.json"),
    (VALUES, "login of a cloud", ".azure/service_principal_entries.json"),
    (VALUES, "login of a cloud", ".bluemixrc"),
    (VALUES, "login of a cloud", ".cloudflared/ .wrangler/ .boto .s3cfg .passwd-s3fs .mc/ *.publishsettings"),
    (VALUES, "login of a service", "gh/hosts.yml glab-cli/config.yml .clasprc.json .serverlessrc .sentryclirc"),
    (VALUES, "login of a service", ".ngrok2/"),
    (VALUES, "login of a service", ".codex/auth.json .gist .todoist.config.json .vercel/auth.json .render/"),
    (VALUES, "login of a service", ".planetscale/"),
    (LOOKS, "settings of a cloud", ".aws/config wrangler.toml vercel.json now.json samconfig.toml serverless.yml"),
    (LOOKS, "settings of a cloud", "ngrok.yml"),
    # Containers and machines
    (VALUES, "Kubernetes credentials", ".kube/ kubeconfig kubeconfig.* *.kubeconfig *-kubeconfig *kubeconfig*.yaml"),
    (VALUES, "Kubernetes credentials", "k3s.yaml"),
    (VALUES, "Kubernetes credentials", "*kubeconfig*.yml talosconfig *.rkestate admin.conf kubelet.conf .minikube/"),
    (LOOKS, "values of Helm", "values.yaml values.yml values-*.yaml values-*.yml *-values.yaml *.values.yaml"),
    (VALUES, "Docker registry logins", ".docker/config.json containers/auth.json .dockercfg .dockerconfigjson"),
    (LOOKS, "passwords of containers", "docker-compose.override.* compose.override.* docker-compose.local.*"),
    (VALUES, "state of Terraform, with every password in it", "*.tfstate *.tfstate.*"),
    (WHOLE, "plan of Terraform, with every password in it", "*.tfplan tfplan"),
    (LOOKS, "variables of Terraform", "*.tfvars *.tfvars.json *.tfbackend backend.hcl *.pkrvars.hcl *.pkrvars.json"),
    (LOOKS, "token of Terraform Cloud", ".terraformrc terraform.rc"),
    (LOOKS, "settings of Pulumi", "pulumi.*.yaml pulumi.*.yml"),
    (LOOKS, "variables of Ansible", "group_vars/ host_vars/ inventory.ini inventory.yml hosts.ini hosts.yml"),
    (WHOLE, "password of an Ansible vault", "*vault_pass* *vault-pass*"),
    (WHOLE, "Vault token", ".vault-token *unseal*.txt *unseal*.json vault-init*"),
    (LOOKS, "settings with secrets of Chef and HashiCorp", "knife.rb vault.hcl consul.hcl nomad.hcl"),
    # Keys
    (KEY, "private key", "id_rsa* id_dsa* id_ecdsa* id_ed25519* *.pem *.key *.p8 *.ppk *.priv *.pk8 *.asc .ssh/"),
    (KEY, "private key", "*.crt *.cer *.cert identity *.ssh *.rsa *.ed25519 *.privkey *.sec *.der"),
    (KEY, "VPN key", "*.ovpn"),
    (KEY, "age key", "*.agekey keys.txt key.txt *key.txt *keys.txt"),
    (LOOKS, "VPN key", "wg0.conf wg1.conf *.nmconnection *.mobileconfig"),
    (WHOLE, "keys of GnuPG", "secring.gpg private-keys-v1.d/ *.gpg-key *.skr"),
    (WHOLE, "key store", "*.p12 *.pfx *.jks *.jceks *.keystore *.bks *.bcfks *.pkcs12 *.snk cwallet.sso"),
    (WHOLE, "signs apps", "*.mobileprovision *.provisionprofile"),
    (WHOLE, "passwords of a manager", "*.kdbx *.kdb *.1pif *.1pux *.agilekeychain *.opvault bitwarden_export*"),
    (WHOLE, "Kerberos keys", "*.keytab krb5cc_*"),
    (VALUES, "wallet", "utc--* *.wallet mnemonic.json *.jwk"),
    (WHOLE, "wallet", "wallet.dat mnemonic mnemonic.txt *seed-phrase* *seed_phrase*"),
    (WHOLE, "license", "*.lic kendo-ui-license.txt telerik-license.txt"),
    (KEY, "key shared by servers", "*keyfile *key-file .erlang.cookie"),
    # Phones
    (LOOKS, "keys of an app", "google-services.json google-services-*.json *.xcconfig sentry.properties fastlane/"),
    (MARKUP, "keys of an app", "googleservice-info.plist googleservice-info-*.plist google_maps_api.xml api_keys.xml"),
    (LOOKS, "passwords of key stores", "key.properties keystore.properties signing.properties release.properties"),
    # Java and .NET
    (LOOKS, "settings of Spring", "application*.properties application*.yml application*.yaml bootstrap*.yml"),
    (LOOKS, "password of a database", "db.properties database.properties jdbc.properties datasource.properties"),
    (LOOKS, "passwords of Gradle", "gradle.properties local.properties"),
    (MARKUP, "passwords of Maven and of servers", "settings.xml settings-security.xml tomcat-users.xml context.xml"),
    (MARKUP, "password of a database", "hibernate.cfg.xml persistence.xml local.xml datasources.xml"),
    (LOOKS, "settings of .NET", "appsettings*.json connectionstrings.json launchsettings.json usersecrets/"),
    (MARKUP, "settings of .NET", "nuget.config web.config web.*.config app.config app.*.config"),
    (MARKUP, "settings of .NET", "connectionstrings.config"),
    (MARKUP, "password of a server", "*.pubxml *.pubxml.user *.cscfg *.dtsconfig"),
    # Ruby, PHP, Python
    (LOOKS, "password of a database", "database.yml mongoid.yml redis.yml cable.yml storage.yml newrelic.yml"),
    (KEY, "key to the credentials of Rails", "master.key credentials/*.key"),
    (QUOTED, "settings of PHP", "wp-config*.php .env.php .env.*.php env.php config.php config.inc.php"),
    (QUOTED, "settings of PHP", "config.local.php"),
    (QUOTED, "settings of PHP", "configuration.php settings.php settings.local.php localsettings.php local.php"),
    (QUOTED, "settings of PHP", "parameters.php database.php db.php"),
    (LOOKS, "settings of Symfony", "parameters.yml parameters.yaml parameters.ini"),
    (LOOKS, "tokens of Composer", "auth.json"),
    (QUOTED, "settings of Python", "local_settings.py settings_local.py instance/config.py instance/settings.py"),
    (QUOTED, "settings of Python", "superset_config.py webserver_config.py"),
    (QUOTED, "settings of Jupyter", "jupyter_*config.py"),
    (LOOKS, "settings of Jupyter", "jupyter_*config.json"),
    (QUOTED, "secrets in source code", "ecosystem.config.js .mongorc.js profiles.clj .irbrc appfile matchfile"),
    # Packages
    (LOOKS, "token of npm", ".npmrc .yarnrc .yarnrc.yml bunfig.toml .pnpmrc"),
    (LOOKS, "token of PyPI", ".pypirc"),
    (LOOKS, "password of a package index", "pip.conf pip.ini uv.toml poetry.toml .condarc .gemrc .nugetrc"),
    (VALUES, "token of a package index", "pypoetry/auth.toml .cargo/credentials .gem/credentials .jfrog/"),
    (VALUES, "token of a package index", ".bundle/config"),
    # Data
    (LOOKS, "connections to data", "profiles.yml profiles.yaml airflow.cfg connections.toml odbc.ini .odbc.ini"),
    (LOOKS, "connections to data", "mlflow.yml"),
    (VALUES, "login for data", ".snowflake/ .snowsql/ .databrickscfg .databricks/ kaggle.json .cdsapirc .modal.toml"),
    (VALUES, "login for data", ".mlflow/ wandb/settings .kaggle/ .dbt/.user.yml"),
    (LOOKS, "password of a server", "redis.conf redis-*.conf mongod.conf rabbitmq.conf *.my.cnf my.cnf"),
    (LOOKS, "password of a server", "pgbouncer.ini sentinel.conf"),
    (WHOLE, "passwords of databases", ".pgpass pgpass.conf .mylogin.cnf userlist.txt .dbshell"),
    # Tools
    (LOOKS, "login of a server", "sftp.json sftp-config.json .ftpconfig .ftppass .remote-sync.json .lftprc"),
    (LOOKS, "login of a server", "deploy.json"),
    (MARKUP, "login of a server", "sitemanager.xml recentservers.xml filezilla.xml webservers.xml"),
    (MARKUP, "login of a server", "datasources.local.xml"),
    (MARKUP, "login of a server", "confcons.xml deployment.xml"),
    (LOOKS, "login of a server", "*.remmina *.rdp winscp.ini rclone.conf .rclone.conf rclone/"),
    (WHOLE, "passwords for hosts", ".netrc _netrc .netrc.* .authinfo .fetchmailrc .curlrc ipsec.secrets"),
    (WHOLE, "passwords for hosts", ".git-credentials .htpasswd* .htdigest sasl_passwd"),
    (LOOKS, "tokens of an editor", ".vscode/settings.json *.code-workspace .continue/ .aider.conf.yml opencode.json"),
    (LOOKS, "requests with tokens", "*.http *.rest *.bru *.postman_* *.postman_*.json insomnia*.json insomnia*.yaml"),
    (LOOKS, "requests with tokens", "*.har"),
    (LOOKS, "passwords for mail", ".msmtprc .offlineimaprc .mbsyncrc .muttrc .esmtprc"),
    (LOOKS, "options of a program that loads files", ".wgetrc .hgrc .hg/hgrc"),
    (LOOKS, "tokens of MCP servers", ".mcp.json mcp.json mcp-*.json mcp_*.json claude_desktop_config.json"),
    (LOOKS, "tokens of MCP servers", ".claude.json"),
    (LOOKS, "variables of Claude", ".claude/settings.json .claude/settings.local.json"),
    (WHOLE, "somebody's session", "*.session *.session-journal cookies.txt *cookies.sqlite* cookies.json"),
    (WHOLE, "somebody's session", "logins.json key4.db"),
    (LOOKS, "local settings", "local.json local.yml local.yaml local.toml *.local.json *.local.yml *.local.yaml"),
    (LOOKS, "local settings", "*.local.toml"),
    (LOOKS, "local settings", "local.conf *.local.ini *.local.properties *.local.php.ini config.local settings.local"),
    (SURE, "settings", "config.json config.yml config.yaml config.toml config.ini config.cfg settings.json"),
    (SURE, "settings", "settings.yml"),
    (SURE, "settings", "settings.yaml settings.toml settings.ini production.json production.yml docker-compose*.yml"),
    (SURE, "settings", "compose.yml compose.yaml docker-compose*.yaml default.json development.json settings.conf"),
    (NOTED, "settings", "settings.py config.py settings.js config.js config.ts"),
    # Git
    (GIT, "passwords in addresses of remotes", ".git/config .git/config.worktree .gitmodules .gitconfig .lfsconfig"),
    (WHOLE, "git passwords", ".git/credentials"),
    # There are many others: only those count that are called after a key, and hold one.
    (SHAPE, "keys of a service account, or an OAuth client", "*.json"),
)

# Files in directories that no walk enters.
IN_SKIPPED = (".bundle/config", ".terraform/terraform.tfstate", ".gradle/gradle.properties", ".hg/hgrc")

# A name that says what is in the file counts, if its ending is that of settings or of text, and not of source code.
WORDS = {
    "secret": "secrets by name",
    "credential": "credentials by name",
    "creds": "credentials by name",
    "token": "tokens by name",
    "passw": "passwords by name",
    "passphrase": "passphrase by name",
    "apikey": "key by name",
    "api_key": "key by name",
    "api-key": "key by name",
    "private_key": "private key by name",
    "private-key": "private key by name",
    "privatekey": "private key by name",
}
DOTENV = ".env"
# In such a directory, every file counts as if its name had the word `secret` in it.
NAMED_DIRECTORIES = ("secrets", ".secrets", "credentials", ".credentials", ".env.d", "env.d", "private_keys")
# How a file of such a name is read, by its ending. An ending that is one of the words is read line by line.
DATA = frozenset("json yml yaml toml ini cfg conf config cnf properties props env tfvars vars rc plist".split())
TEXT = frozenset("txt csv tsv bak old orig save backup dat db sqlite".split())
CODE = {
    "sh": SHELL,
    "bash": SHELL,
    "zsh": SHELL,
    "fish": SHELL,
    "ps1": SHELL,
    "xml": MARKUP,
    "h": QUOTED,
    "php": QUOTED,
}
SOURCES = {
    "secrets.py": QUOTED,
    "credentials.py": QUOTED,
    "secret.py": QUOTED,
    "secrets.js": QUOTED,
    "secrets.ts": QUOTED,
}


# Names of copies that hold no secrets, for others to fill in, or only encrypted ones.
EXAMPLES = tuple(
    ".example .sample .template .tmpl .dist .defaults .schema .vault .md .rst .html .d.ts .enc .encrypted .sops .gpg "
    ".age .pub".split()
)
EXAMPLE_WORDS = frozenset("example examples sample samples template templates".split())
JSON_WORDS = tuple("-key _key keyfile account adminsdk client_secret credential gcloud gcp google".split())
GOOGLE_ID = 12  # hexadecimal digits with which Google ends the name of a key's file
NOT_TOKENS = ("tokeniz", "detoken")

# Marks of a private key, wherever it lies.
KEY_MARKS = (
    *PRIVATE_KEY_MARKS,
    "PuTTY-User-Key-File",
    "AGE-SECRET-KEY-",
    "OpenVPN Static key",
    "encrypted secret key",
    "signify secret key",
)
# Behind the length of a private key or a key store in DER: its version, and what comes next. In a certificate and in a
# public key, something else comes first.
DER_SEQUENCE, DER_LONG = 0x30, 0x80
DER_KEYS = (b"\2\1\0\x30", b"\2\1\1\x30", b"\2\1\0\2", b"\2\1\1\4", b"\2\1\3\x30")
ENCRYPTED_DER = b"\x2a\x86\x48\x86\xf7\x0d\x01\x05"  # how the names of ways to encrypt a key begin
VPN_MARKS = (b"PrivateKey", b"PresharedKey")
SERVER_MARKS = (b"requirepass ", b"masterauth ")
_MARKS = tuple(mark.encode() for mark in KEY_MARKS)
LARGEST_KEY = 1 << 14  # bytes of a file that may be a private key and nothing else
MOST_PEEKED = 20_000  # such files, of which each costs some microseconds
PEEKED = (".conf", ".bak", ".old", ".orig", ".save", ".age", ".gpg", ".enc")
# Endings of copies that editors and people leave: what is in them is what the name before the ending says.
COPIES = ("~", ".bak", ".old", ".orig", ".save", ".swp", ".swo")
BARE_TEXTS = frozenset("license copying readme makefile dockerfile changelog authors notice gemfile rakefile".split())

GIT_FILES = ("config", "config.worktree", "credentials")
GIT_WORDS = (b"header", b"token", b"pass", b"secret", b"key", b"credential", b"auth", b"proxy")
LARGEST_CONFIG = 1 << 18
MOST_MODULES = 2000  # and worktrees, of a repository

RULE = "secrets"


Kind = tuple[str, str]  # what is known about a file by its name: style and reason


class Candidate(Record):
    """A file that may hold a secret."""

    path: str
    style: str
    reason: str
    is_guess: bool = False  # whether only a word in its name speaks for it
    inode: int = 0  # of the file that has to be there, if it is known
    was: str = ""  # where the file was masked before, if it has been moved


Pattern = tuple[list[str], Kind]  # what is between the stars


def _sorted_out() -> tuple[dict[str, Kind], dict[str, Kind], dict[str, Kind], dict[str, list[Pattern]]]:
    """The rows by how they are looked up: whole names, endings, directories, and patterns by their beginning."""
    whole: dict[str, Kind] = {}
    endings: dict[str, Kind] = {}
    directories: dict[str, Kind] = {}
    patterns: dict[str, list[Pattern]] = {}
    for style, reason, names in ROWS:
        kind = (style, reason)
        for name in names.split():
            if name.endswith("/"):
                directories[name[:-1]] = kind
            elif name.startswith("*.") and name.count("*") == 1:
                endings[name[1:]] = kind
            elif "*" in name:
                patterns.setdefault(name.partition("*")[0][:HEAD_LENGTH], []).append((name.split("*"), kind))
            else:
                whole[name] = kind
    return whole, endings, directories, patterns


_WHOLE, _ENDINGS, _DIRECTORIES, _PATTERNS = _sorted_out()
_SKIPPED = {path.partition("/")[0]: path for path in IN_SKIPPED}


def _wanted() -> NameFilter:
    """The names that a walk has to find. Of a pattern one part is enough; then the whole pattern is compared."""
    names = {name.rpartition("/")[2] for name in _WHOLE if not name.startswith(".git/")}
    parts = [pattern for patterns in _PATTERNS.values() for pattern, _ in patterns]
    return NameFilter(
        frozenset({*names, *_SKIPPED, *_DIRECTORIES, *SOURCES, ".git", ".jj"}),
        tuple(dict.fromkeys(first for first, *_ in parts if first)),
        (*_ENDINGS, *PEEKED, *COPIES[1:]),
        _shortest([*WORDS, DOTENV, COPIES[0], *(rest[0] for first, *rest in parts if not first)]),
        frozenset((*_DIRECTORIES, *NAMED_DIRECTORIES)),
        bare=True,
    )


def _shortest(words: list[str]) -> tuple[str, ...]:
    """The words without those that contain another one."""
    return tuple(word for word in dict.fromkeys(words) if not any(one in word and one != word for one in words))


WANTED = _wanted()


def find(tree: Tree, project: str, entries: Iterable[Entry]) -> list[Candidate]:
    """The files that have to be read closely."""
    found = []
    peeked = []
    for entry in entries:
        is_file = entry.kind in (FILE, OTHER)
        if not (is_file or entry.kind in (LINK, DIRECTORY)):
            continue
        kind = kind_of(entry.path, project)
        if entry.kind == DIRECTORY:
            found += _in_skipped(tree, entry)
        elif kind is not None and is_file:
            found.append(Candidate(entry.path, *kind, is_guess=is_guess(entry.name)))
        elif is_file:
            peeked += [entry.path] if "." not in entry.name or entry.name.endswith(PEEKED) else []
        else:
            found += _behind_link(tree, project, entry.path, kind)
    return [*found, *_peek(tree, peeked)]


def _in_skipped(tree: Tree, entry: Entry) -> list[Candidate]:
    """The one file of interest in a directory that no walk enters."""
    name = _SKIPPED.get(entry.name)
    path = f"{entry.path}/{name.partition('/')[2]}" if name else ""
    kind = kind_of(path) if path else None
    return [Candidate(path, *kind)] if kind is not None and tree.lstat(path) is not None else []


def _behind_link(tree: Tree, project: str, path: str, kind: Kind | None) -> list[Candidate]:
    """What a symlink shows under a name of the table. Outside of the project it is none of our business."""
    name = path.lower().rpartition("/")[2]
    if kind is None and name not in _DIRECTORIES:
        return []
    target = tree.resolve(path)
    if target is None or not is_inside(target, project):
        return []
    if not tree.is_plain_directory(target):
        return [Candidate(target, *kind)] if kind is not None else []
    inner = [(f"{target}/{one}", kind_of(f"{path}/{one}", project)) for one in tree.entries(target)]
    return [Candidate(one, *its) for one, its in inner if its is not None]


def _peek(tree: Tree, paths: list[str]) -> list[Candidate]:
    """Private keys and their like, whatever they are called. They are small, and their names have no ending."""
    found = []
    for path in paths[:MOST_PEEKED]:
        if path.lower().rpartition("/")[2] in BARE_TEXTS:
            continue
        content = tree.read_plain(path, LARGEST_KEY + 1) or b""
        if len(content) > LARGEST_KEY:
            continue
        if is_binary_key(content):
            found.append(Candidate(path, KEY, "private key"))
            continue
        content = content.replace(b"\0", b"")  # as in UTF-16
        if any(mark in content for mark in VPN_MARKS) and b"\n[" in b"\n" + content:
            found.append(Candidate(path, LOOKS, "VPN key"))
        elif any(mark in content for mark in SERVER_MARKS):
            found.append(Candidate(path, LOOKS, "password of a server"))
        elif any(mark in content for mark in _MARKS):
            found.append(Candidate(path, KEY, "private key"))
    return found


def is_binary_key(content: bytes) -> bool:
    """Whether this is a private key in DER, as `*.pk8` usually are, and others for Java."""
    if content[:1] != bytes([DER_SEQUENCE]) or len(content) < 2:
        return False
    length = content[1]
    inner = content[2 + (length - DER_LONG if length > DER_LONG else 0) :]
    return inner.startswith(DER_KEYS) or ENCRYPTED_DER in inner[:16]


def kind_of(path: str, project: str = "") -> Kind | None:
    """What is known of a file, by its name or that of the file of which it is a copy, and by its directories."""
    kind, copied = _kind_of(path, project), original(path)
    return kind if kind is not None or copied == path else _kind_of(copied, project)


def original(path: str) -> str:
    """The path of which this is that of a copy; the path itself if it is of none."""
    ending = next((ending for ending in COPIES if path.endswith(ending)), "")
    above, slash, name = path.removesuffix(ending).rpartition("/")
    # The editor vi puts a dot before the name.
    return f"{above}{slash}{name.removeprefix('.') if ending in COPIES[-2:] else name}"


def _kind_of(path: str, project: str) -> Kind | None:
    """What the name says, and the directories below the project's that the file lies in."""
    above, _, name = path[len(project) :].lower().rpartition("/")
    parent = above.rpartition("/")[2]
    kind = _WHOLE.get(f"{parent}/{name}") or _WHOLE.get(name)
    if kind is not None or is_example(name):
        return kind
    kind = _by_ending(name)
    if kind is not None and kind[0] != SHAPE:
        return kind
    place = next((_DIRECTORIES[part] for part in reversed(above.split("/")) if part in _DIRECTORIES), None)
    return _by_word(name) or _by_pattern(parent, name) or place or _by_named_directory(above, name) or kind


def is_example(name: str) -> bool:
    if name.endswith(EXAMPLES):
        return True
    return not EXAMPLE_WORDS.isdisjoint(name.replace("-", ".").replace("_", ".").split("."))


def _by_ending(name: str) -> Kind | None:
    """What the longest ending of the name says: of `x.tfvars.json`, first `.tfvars.json`."""
    place = name.find(".")
    while place >= 0:
        kind = _ENDINGS.get(name[place:])
        if kind is not None and (kind[0] != SHAPE or _may_be_key(name)):
            return kind
        place = name.find(".", place + 1)
    return None


def _by_pattern(parent: str, name: str) -> Kind | None:
    for words in (name, f"{parent}/{name}"):
        for parts, kind in _PATTERNS.get(words[:HEAD_LENGTH], ()):
            if _matches(words, parts):
                return kind
    return next((kind for parts, kind in _PATTERNS[""] if parts[1] in name and _matches(name, parts)), None)


def _matches(name: str, parts: list[str]) -> bool:
    first, *middle, last = parts
    if not (name.startswith(first) and name.endswith(last) and len(name) >= len(first) + len(last)):
        return False
    return all(part in name[len(first) : len(name) - len(last)] for part in middle)


def _by_word(name: str) -> Kind | None:
    if _is_dotenv(name):
        if _ending(name) in ("js", "ts", "mjs", "cjs", "py", "php"):
            return QUOTED, "variables of the program"
        return VALUES if name.startswith(DOTENV) else LOOKS, "variables of the program"
    ending = _ending(name)
    for part in NOT_TOKENS:
        name = name.replace(part, "")
    word = next((word for word in WORDS if word in name), "")
    style = _style_of_named(name, ending, word) if word else ""
    return (style, WORDS[word]) if style else None


def _by_named_directory(above: str, name: str) -> Kind | None:
    if not any(part in NAMED_DIRECTORIES for part in above.split("/")):
        return None
    style = _style_of_named(name, _ending(name), "secret")
    return (style, "secrets by the name of their directory") if style else None


def _ending(name: str) -> str:
    return name.rpartition(".")[2] if "." in name.lstrip(".") else ""


def _is_dotenv(name: str) -> bool:
    """Whether `.env` is a word of the name: `.env`, `.env.local`, `prod.env`, `.env~`, but not `.environment`."""
    _, found, rest = name.partition(DOTENV)
    return bool(found) and not rest[:1].isalpha()


def _style_of_named(name: str, ending: str, word: str) -> str:
    if not ending:
        return PLAIN
    if ending in DATA:
        return LOOKS if word == "token" else VALUES
    if ending in TEXT or word in ending:
        return WHOLE
    return SOURCES.get(name) or CODE.get(ending, "")


def is_guess(name: str) -> bool:
    """Whether only a word in the name, or of a directory, speaks for the file."""
    name = name.lower()
    return name not in _WHOLE and not _is_dotenv(name) and _by_ending(name) is None


def _may_be_key(name: str) -> bool:
    last = name[:-5].rpartition("-")[2]
    is_google = len(last) == GOOGLE_ID and set(last) <= set("0123456789abcdef")
    return is_google or any(word in name for word in JSON_WORDS)


def git_files(tree: Tree, git_dirs: Iterable[str]) -> list[Candidate]:
    """The configuration of repositories and of their submodules, where it may hold a password."""
    found = []
    for git_dir in dict.fromkeys(git_dirs):
        directories = [git_dir]
        directories += [f"{git_dir}/worktrees/{name}" for name in tree.entries(f"{git_dir}/worktrees")[:MOST_MODULES]]
        for directory in directories:
            if len(directories) < MOST_MODULES and tree.is_plain_directory(f"{directory}/modules"):
                directories += islice(find_submodules(tree, f"{directory}/modules"), MOST_MODULES)
            for name in GIT_FILES:
                kind = _WHOLE[f".git/{name}"]
                if _may_hold_password(tree.read_plain(f"{directory}/{name}", LARGEST_CONFIG) or b""):
                    found.append(Candidate(f"{directory}/{name}", *kind))
    return found


def _may_hold_password(content: bytes) -> bool:
    """Look quickly: every repository is asked this at every launch, before anything is read closely."""
    if len(content) == LARGEST_CONFIG:
        return True
    return (b"://" in content and b"@" in content) or any(word in content.lower() for word in GIT_WORDS)
