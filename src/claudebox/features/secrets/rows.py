"""The rows of the table: which files usually hold a secret, by their names, and what in them is secret.

Names are compared without regard to capitals. One `*` stands for anything; `directory/name` is that name in that
directory; `directory/` is every file below a directory of that name. Plain tuples: they are read at every start.
"""

from __future__ import annotations

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
