"""Says by a file's name whether it may hold a secret, and how much of it then is one.

This much is loaded at every start. What a name does not say, the content may: see `finding.py`.
"""

from __future__ import annotations

from claudebox.host.walk import NameFilter, spelled
from claudebox.paths import is_inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# How much of a file is secret. Files that no name here speaks for are judged by their content alone.
ALL = "all"  # every value that is not plainly harmless
TELLING = "telling"  # values whose key or shape says so
EMPTY = "empty"  # the whole file: no part would be of use without the secret
CONTENT = "content"  # private keys, known tokens, and variables whose name says so

STRICT = (EMPTY, ALL, TELLING, CONTENT)

RULE = "secrets"
Kind = tuple[str, str]  # how much of a file is secret, and why

# Capitals, a dot at the beginning, `_` for `-` and what copies add at the end make no difference. Only where a row has
# a dot at its beginning, the file needs it as well: without it that is an ordinary word. `x*` is a beginning, `*.x` an
# ending, `*x*` a part of a name; `x/y` is y in a directory x, and `x/` every file below a directory x. What has `.env`
# in its name is found by `_by_dotenv`.
_TABLE = """
all: variables of the program: dev.vars* flaskenv .envs/ .env.d/ env.d/ env-cmdrc* .runtimeconfig.json env.json .vars
 local.settings.json .powenv .rbenv-vars .renviron gitlab-ci-local-* .gitlab-ci-local/
telling: variables of the program: env.yml env.yaml env.toml nodemon.json .valet-env.php .actrc
telling: variables of a shell: envrc* env.sh setenv.sh .exports .localrc *openrc.sh .profile config.fish .bashrc .zshrc
 .bash_profile .bash_aliases .zshenv .zprofile
empty: what was typed: *history .bash_history-* .lesshst .viminfo consolehost_history.txt
all: login of a cloud: .aws/ .awsume/ .vagrant/machines/ _config/user gcloud/ .gcloud/ .oci/ .aliyun/ .tccli/ .bluemix/
 doctl/ hcloud/ .scw/ .fly/ .heroku/ .mc/ com.vercel.cli/ .netlify/ netlify/config.json .railway/ .supabase/ .boto
 .s3cfg .wrangler/config/ .cloudflared/ .linode-cli clouds.yaml clouds.yml secure.yaml azureauth.json *.azureauth
 *.publishsettings msal_token_cache* rootkey.csv service_principal_entries* passwd-s3fs .b2_account_info
 .dropbox_uploader .minikube/
all: login of a service: gh/hosts.yml glab-cli/config.yml .clasprc.json .serverlessrc .sentryclirc .ngrok2/ .gist
 .auth/ .vercel/auth.json .render/ .planetscale/ .mcp-auth/ .codex/auth.json .opencode/auth.json .continue/auth.json
 stripe/config.toml .expo/state.json .fastlane/spaceship/ .semgrep/settings.yml .garth/ .subversion/auth/ adbkey
 secure_storage daemon/auth control_auth_cookie authorized_user.json service-account-file.json
 *-firebase-adminsdk-*.json .okta.yaml .okta/ .zuliprc .python-gitlab.cfg .vsce .nexmorc .testingbot .httr-oauth
 .idea/httprequests/ .circleci/cli.yml
all: login for data: .doltcfg/ .snowflake/ .snowsql/ .databrickscfg .databricks/ .databricks-connect kaggle.json
 .kaggle/ .irodsa .cdsapirc .ecmwfapirc .modal.toml .mlflow/ wandb/settings .dbt/ .terraform.d/
telling: settings of a cloud: .aws/config wrangler.toml vercel.json now.json samconfig.toml serverless.yml ngrok.yml
all: Kubernetes credentials: .kube/ *kubeconfig* k3s.yaml talosconfig *.rkestate admin.conf kubelet.conf
all: Docker registry logins: .docker/config.json containers/auth.json dockercfg dockerconfigjson
all: state of Terraform, with every password in it: *.tfstate
empty: plan of Terraform, with every password in it: *.tfplan tfplan
telling: variables of Terraform: *.tfvars *.tfvars.json *.tfbackend backend.hcl *.pkrvars.hcl terraformrc terraform.rc
telling: values of a deployment: values.yaml values.yml values-* *.values.yaml *-values.yaml pulumi.*
 compose.override.* docker-compose.override.* docker-compose.local.* group_vars/ host_vars/ inventory.ini inventory.yml
 hosts.ini hosts.yml
all: password of a vault: *vault-pass* *unseal* vault-init*
telling: settings of a server: *.conf *.cnf pgbouncer.ini knife.rb vault.hcl consul.hcl nomad.hcl
all: private key: id_rsa* id_dsa* id_ecdsa* id_ed25519* *_rsa *_dsa *_ecdsa *_ed25519 *.key *.p8 *.ppk *.priv *.pk8
 *.sec *.privkey *.agekey .ssh/ ssh_host_* *.rsa *.ed25519 *.ssh *.jwk identity private_keys/ .private_keys/
telling: private key: *.pem *.crt *.cer *.cert *.asc *.der *.ovpn *.nmconnection *.mobileconfig
all: key shared by servers: .nkeys/ *.nk *keyfile* .erlang.cookie .google_authenticator .meteorsession .strongbox_*
empty: keys of GnuPG: secring.gpg private-keys-v1.d/ *.gpg-key *.skr
empty: key store: *.p12 *.pfx *.jks *.jceks *.keystore *.bks *.bcfks *.pkcs12 *.snk cwallet.sso keystore/
empty: signs apps: *.mobileprovision *.provisionprofile
empty: passwords of a manager: *.kdbx *.kdb *.1pif *.1pux *.agilekeychain *.opvault *.psafe3 *.enpassdb *.keychain-db
 *.ibak bitwarden_export* .password-store/ key4.db logins.json
empty: Kerberos keys: *.keytab krb5cc_*
empty: wallet: .foundry/keystores/ .brownie/accounts/ .ape/accounts/ .starknet_accounts/ .near-credentials/
 .movement/config.yaml wallet.dat *.wallet utc--* *.macaroon
all: words or codes that stand for a login: *mnemonic* *seed-phrase* *recovery-codes* *backup-codes*
all: license: *.lic kendo-ui-license.txt telerik-license.txt
empty: somebody's session: *.session *.session-journal cookies.txt *cookies.sqlite* cookies.json .cookies .cookie
all: somebody's session: gitcookies p4tickets .jwt
telling: keys of an app: google-services* googleservice-info* *.xcconfig sentry.properties fastlane/ api_keys.xml
 google_maps_api.xml key.properties keystore.properties signing.properties release.properties
telling: password of a database: db.properties database.properties jdbc.properties datasource.properties mongoid.yml
 database.yml redis.yml cable.yml storage.yml hibernate.cfg.xml persistence.xml local.xml datasources.xml .mongorc.js
 datasources.local.xml profiles.yml profiles.yaml connections.toml odbc.ini
all: password of a database: pgpass* .mylogin.cnf userlist.txt .dbshell .usqlpass
telling: settings of a program: application*.properties application*.yml application*.yaml bootstrap*.yml newrelic.yml
 appsettings*.json connectionstrings.* launchsettings.json usersecrets/ nuget.config web.config web.*.config app.config
 app.*.config *.pubxml *.pubxml.user *.cscfg *.dtsconfig wp-config* config.php config.inc.php config.local.php
 local.php configuration.php settings.php settings.local.php localsettings.php database.php db.php local_settings.py
 settings_local.py instance/config.py instance/settings.py superset_config.py webserver_config.py jupyter_*config.json
 parameters.yml parameters.yaml ecosystem.config.js profiles.clj .irbrc appfile matchfile jupyter_notebook_config.py
 airflow.cfg mlflow.yml jupyter_server_config.py jupyter_lab_config.py
telling: login of a server: settings.xml settings-security.xml tomcat-users.xml context.xml sitemanager.xml deploy.json
 recentservers.xml filezilla.xml webservers.xml confcons.xml deployment.xml sftp.json sftp-config.json .ftpconfig
 .remote-sync.json .lftprc *.remmina *.rdp winscp.ini rclone/ .wgetrc .hgrc .hg/hgrc .msmtprc .offlineimaprc .mbsyncrc
 .muttrc .esmtprc
all: passwords that somebody has written down: .pass passwords.md credentials.md
telling: secrets of a program: secrets.py secrets.js secrets.ts credentials.clj
all: passwords for hosts: authinfo2 netrc _netrc netrc.* authinfo fetchmailrc .curlrc ipsec.secrets git-credentials
 htpasswd* htdigest sasl_passwd .ftppass .cvspass
telling: token of a package index: .npmrc .yarnrc .yarnrc.yml bunfig.toml .pnpmrc .pypirc pip.ini uv.toml poetry.toml
 .condarc .gemrc .nugetrc auth.json gradle.properties local.properties
all: token of a package index: pypoetry/auth.toml .jfrog/ .bundle/config
telling: tokens of an agent or editor: .mcp.json mcp.json mcp-*.json claude_desktop_config.json .claude.json .continue/
 .claude/settings.json .claude/settings.local.json opencode.json .vscode/settings.json *.code-workspace .aider.conf.yml
telling: requests with tokens: *.http *.rest *.bru *.har *postman* insomnia*
telling: local settings: local.json local.yml local.yaml local.toml *.local.json *.local.yml *.local.yaml *.local.toml
 *.local.ini *.local.properties config.local settings.local
telling: passwords in addresses of remotes: .gitmodules .gitconfig .lfsconfig
"""
ROWS = [row.split(": ") for row in _TABLE.strip().replace("\n ", " ").splitlines()]  # how, why, names
# Files in directories that no walk enters.
IN_SKIPPED = (".bundle/config", ".terraform/terraform.tfstate", ".gradle/gradle.properties", ".hg/hgrc")

# A name with such a word counts by its ending; so does every file below a directory that is called like it.
WORDS = tuple(
    "secret credential creds passw passphrase apikey api-key privatekey private-key privkey deploykey authkey "
    "accesskey token".split()
)
BY_NAME = "its name says so"
# What of a repository may hold a password, its submodules and worktrees included.
IN_GIT = {"config": TELLING, "config.worktree": TELLING, "credentials": ALL}
ROOTS = ("secret", "cred", "pass", "key", "token")  # one of which is in each of them
NAMED_DIRECTORIES = frozenset(("secrets", "credentials", ".secrets", ".credentials"))
# Files of settings: there `token` may be a word of a language, or a colour.
SETTINGS = frozenset("json json5 jsonc yml yaml toml ini cfg conf config cnf properties props plist".split())
# In a script or a page only what tells is masked, so that it still runs.
SCRIPTS = frozenset("sh bash zsh fish ps1 xml h php".split())
CODE = frozenset(
    "py js ts mjs cjs jsx tsx rb go rs java kt c cc cpp cs swift scala clj ex lua pl r sql vue md rst".split()
)
# Pages and pictures, which only show something about a secret.
SHOWN = frozenset("html htm css scss less svg png jpg jpeg gif ico webp erb haml ejs hbs j2 svelte pdf snap".split())
# Names of copies that hold no secrets, for others to fill in, or only encrypted ones.
EXAMPLES = tuple(
    ".example .sample .template .tmpl .dist .defaults .schema .vault .md .rst .html .d.ts .enc .encrypted .sops .gpg "
    ".age .pub .baseline".split()
)
EXAMPLE_WORDS = frozenset("example examples sample samples template templates".split())
SWAPS = frozenset("swp swo swn swm swx un".split())  # what vim writes, in its own form, while somebody edits
COPIES = frozenset(("bak", "old", "orig", "save", "tmp", "copy", "backup", "prev", *SWAPS))  # and numbers
STAGES = ("prod", "dev", "local", "stag", "test")


_WHOLE: dict[str, Kind] = {}
_DIRECTORIES: dict[str, Kind] = {}
_PATTERNS: dict[str, Kind] = {}
for _how, _reason, _names in ROWS:
    for _name in spelled(_names).split():
        _rows = _DIRECTORIES if _name[-1] == "/" else _PATTERNS if "*" in _name else _WHOLE
        _rows[_name] = (_how, _reason)
# The longest part of each pattern, all its parts, and what it says.
_PARTS = [
    (max(name.split("*"), key=len), name.split("*"), _PATTERNS[name])
    for name in sorted(_PATTERNS, key=len, reverse=True)
]
_AT_END = [parts[1] for _, parts, _ in _PARTS if not parts[0]]  # an ending, or a part in the middle
_LAST = [name.split("/")[-2] for name in _DIRECTORIES]
# The names that a walk has to find. Of a pattern one part is enough; then the whole pattern is compared.
WANTED = NameFilter(
    frozenset(
        {
            *(name.rpartition("/")[2] for name in _WHOLE),
            *_LAST,
            *(path.split("/")[0] for path in IN_SKIPPED),
            ".git",
            ".jj",
        }
    ),
    ("env", *(parts[0] for _, parts, _ in _PARTS if parts[0])),
    (".env", *(part for part in _AT_END if part[0] == "."), *(f".{ending}" for ending in COPIES)),
    ("~", ".env", *ROOTS, *(part for part in _AT_END if part[0] != "." and not any(root in part for root in ROOTS))),
    frozenset((*_LAST, *NAMED_DIRECTORIES)),
)


def strictest(kinds: Iterable[Kind | None]) -> Kind | None:
    """A file with several names, by hard links and symlinks, is as secret as the strictest of them says."""
    return min(filter(None, kinds), key=lambda kind: STRICT.index(kind[0]), default=None)


def kind_of(path: str, project: str = "") -> Kind | None:
    """What the name of a file says, and the directories of the project that it lies in."""
    above, _, own = spelled(path[len(project) :]).rpartition("/")
    if "/.git" in above and "/.git/" in f"{above}/":
        return (IN_GIT[own], "passwords in addresses of remotes") if own in IN_GIT else None
    name = original(own)
    if is_swap(own):
        return (EMPTY, "what an editor keeps of it") if kind_of(f"{above}/{name}") else None
    bare, parent = name.lstrip(".#-"), above.rpartition("/")[2]
    exact = filter(None, map(_WHOLE.get, (f"{parent}/{name}", f"{parent}/{bare}", name, bare)))
    kind = next(exact, None)
    if kind or name.endswith(EXAMPLES) or not EXAMPLE_WORDS.isdisjoint(name.replace("-", ".").split(".")):
        return kind
    # The name of source code says what it is about: `keyfile.go`, `recovery_codes.rb`.
    patterns = _PARTS if name.rpartition(".")[2] not in CODE else []
    near = [(parts, kind) for longest, parts, kind in patterns if longest in name]  # a keeper asks about every new file
    matches = (kind for parts, kind in near if _matches(name, parts) or _matches(bare, parts))
    return _by_dotenv(name) or next(matches, None) or _by_directory(f"{above}/", bare) or _by_word(bare)


def kind_by_all_names(path: str, project: str, also: Mapping[str, str]) -> Kind | None:
    """What the name of a file says, and those that symlinks give to it or to its directory."""
    above, _, name = path.rpartition("/")
    names = [path] if is_inside(path, project) else []
    if path in also:
        names.append(also[path])
    if above in also:
        names.append(f"{also[above]}/{name}")
    return strictest(kind_of(one, project) for one in names)


def is_swap(name: str) -> bool:
    return name.rstrip("~").rpartition(".")[2] in SWAPS


def original(name: str) -> str:
    """The name, or path, of which this is that of a copy."""
    while True:
        stem, dot, ending = name.rstrip("~#").rpartition(".")
        if not (dot and stem.strip(".") and (ending in COPIES or ending.isdigit())):
            return name.rstrip("~#") or name
        name = stem


def _matches(name: str, parts: list[str]) -> bool:
    first, *middle, last = parts
    is_long = len(name) >= len(first) + len(last) and name.startswith(first) and name.endswith(last)
    return is_long and all(part in name for part in middle)


def _by_dotenv(name: str) -> Kind | None:
    """Whether `.env` is a word of the name: `.env`, `.env.local`, `prod.env`, `env-prod`, but not `.environment`."""
    _, found, rest = f".{name}".partition(".env")
    is_other = rest[:1].isalpha() and not rest.startswith(STAGES)  # `.environment`
    if not found or is_other or (not rest and name == "env"):
        return None
    return TELLING if name.rpartition(".")[2] in CODE | SCRIPTS else ALL, "variables of the program"


def _by_directory(above: str, name: str) -> Kind | None:
    kind = next(
        (kind for directory, kind in _DIRECTORIES.items() if directory in above and f"/{directory}" in above), None
    )
    if kind is not None:
        return kind if name.rpartition(".")[2] not in CODE else None
    is_named = not NAMED_DIRECTORIES.isdisjoint(above.split("/"))
    return _by_ending(name, "secret") if is_named else None


def _by_word(name: str) -> Kind | None:
    words = name.replace("tokeniz", "").replace("detoken", "")
    word = next((word for word in WORDS if word in words), "")
    if not word and name.split(".")[0].rpartition("-")[2] in ("key", "keys"):
        word = "token"
    return _by_ending(name, word) if word else None


def _by_ending(name: str, word: str) -> Kind | None:
    """All endings count but those of source code, pages and pictures."""
    ending = name.rpartition(".")[2] if "." in name else ""
    if ending in CODE | SHOWN:
        return None
    return TELLING if ending in SCRIPTS or (ending in SETTINGS and word == "token") else ALL, BY_NAME
