"""What is secret: places that never enter the box, and how a secret looks."""

from __future__ import annotations

import posixpath
from itertools import pairwise

from claudebox.host.tree import Tree
from claudebox.model import SecretPlace
from claudebox.state import SHOWN

NIX_SOCKETS = "/nix/var/nix/daemon-socket"
# Path and reason. `~` is the user's home. Plain pairs: the table is read at every start.
SECRET_PLACES = (
    ("~/.ssh", "SSH keys"),
    ("~/.gnupg", "GPG keys"),
    ("~/.age", "age keys"),
    ("~/.config/age", "age keys"),
    ("~/.config/sops", "sops and age keys"),
    ("~/.password-store", "passwords of pass"),
    ("~/.local/share/gopass", "passwords of gopass"),
    ("~/.local/share/keyrings", "GNOME keyring"),
    ("~/.local/share/kwalletd", "KDE wallet"),
    ("~/.config/op", "1Password login"),
    ("~/.config/Bitwarden", "Bitwarden vault"),
    ("~/.config/Bitwarden CLI", "Bitwarden vault"),
    ("~/.config/keepassxc", "KeePassXC settings"),
    ("~/.aws", "AWS credentials"),
    ("~/.config/gcloud", "Google Cloud credentials"),
    ("~/.azure", "Azure credentials"),
    ("~/.oci", "Oracle Cloud credentials"),
    ("~/.config/doctl", "DigitalOcean token"),
    ("~/.config/hcloud", "Hetzner Cloud token"),
    ("~/.config/scw", "Scaleway keys"),
    ("~/.config/linode-cli", "Linode token"),
    ("~/.fly", "Fly.io token"),
    ("~/.config/heroku", "Heroku login"),
    ("~/.config/netlify", "Netlify token"),
    ("~/.local/share/com.vercel.cli", "Vercel token"),
    ("~/.wrangler", "Cloudflare token"),
    ("~/.config/.wrangler", "Cloudflare token"),
    ("~/.cloudflared", "Cloudflare tunnel keys"),
    ("~/.terraform.d", "Terraform Cloud token"),
    ("~/.terraformrc", "Terraform Cloud token"),
    ("~/.pulumi", "Pulumi token"),
    ("~/.vault-token", "Vault token"),
    ("~/.kube", "Kubernetes credentials"),
    ("~/.docker", "Docker registry logins"),
    ("~/.config/containers", "Podman registry logins"),
    ("~/.config/helm", "Helm registry logins"),
    ("~/.config/gh", "GitHub token"),
    ("~/.config/hub", "GitHub token"),
    ("~/.config/glab-cli", "GitLab token"),
    ("~/.config/tea", "Gitea token"),
    ("~/.config/github-copilot", "GitHub Copilot token"),
    ("~/.git-credentials", "git passwords"),
    ("~/.config/git/credentials", "git passwords"),
    ("~/.netrc", "passwords for hosts"),
    ("~/.authinfo", "passwords for hosts"),
    ("~/.authinfo.gpg", "passwords for hosts"),
    ("~/.npmrc", "npm token"),
    ("~/.yarnrc.yml", "npm token"),
    ("~/.pypirc", "PyPI token"),
    ("~/.cargo/credentials", "crates.io token"),
    ("~/.cargo/credentials.toml", "crates.io token"),
    ("~/.gem/credentials", "RubyGems token"),
    ("~/.m2/settings.xml", "Maven passwords"),
    ("~/.m2/settings-security.xml", "Maven passwords"),
    ("~/.gradle/gradle.properties", "Gradle passwords"),
    ("~/.composer/auth.json", "Composer tokens"),
    ("~/.config/composer/auth.json", "Composer tokens"),
    ("~/.pgpass", "PostgreSQL passwords"),
    ("~/.my.cnf", "MySQL password"),
    ("~/.config/rclone", "rclone remotes"),
    ("~/.config/rustic", "backup keys"),
    ("~/.config/borg", "backup keys"),
    ("~/.s3cfg", "S3 keys"),
    ("~/.boto", "cloud keys"),
    ("~/.config/ngrok", "ngrok token"),
    ("~/.cache/huggingface/token", "Hugging Face token"),
    ("~/.kaggle", "Kaggle key"),
    ("~/.codex", "OpenAI login"),
    ("~/.gemini", "Gemini login"),
    ("~/.claude", "Claude's login and the history of all projects"),
    ("~/.claude.json", "Claude's state and MCP tokens"),
    (SHOWN.directory, "state of all boxes"),
    ("~/.mozilla", "browser passwords and cookies"),
    ("~/.config/google-chrome", "browser passwords and cookies"),
    ("~/.config/chromium", "browser passwords and cookies"),
    ("~/.config/BraveSoftware", "browser passwords and cookies"),
    ("~/.config/microsoft-edge", "browser passwords and cookies"),
    ("~/.thunderbird", "mail and its passwords"),
    ("~/.config/Signal", "messages"),
    ("~/.config/Slack", "chat login"),
    ("~/.bitcoin", "wallet"),
    ("~/.ethereum", "wallet"),
    ("~/.electrum", "wallet"),
    ("~/.config/solana", "wallet"),
    ("~/.bash_history", "typed commands, with what was pasted"),
    ("~/.zsh_history", "typed commands, with what was pasted"),
    ("~/.local/share/fish/fish_history", "typed commands, with what was pasted"),
    ("~/.python_history", "typed commands, with what was pasted"),
    ("~/.node_repl_history", "typed commands, with what was pasted"),
    ("~/.psql_history", "typed commands, with what was pasted"),
    ("~/.local/share/tailscale", "Tailscale keys"),
    ("/var/lib/tailscale", "Tailscale keys"),
    ("/var/lib/private", "secrets of system services"),
    ("/var/lib/sss", "domain login cache"),
    ("/var/lib/docker", "containers and their secrets"),
    ("/var/lib/containers", "containers and their secrets"),
    ("/etc/shadow", "password hashes"),
    ("/etc/gshadow", "password hashes"),
    ("/etc/ssh", "host keys"),
    ("/etc/ssl/private", "TLS keys"),
    ("/etc/pki/tls/private", "TLS keys"),
    ("/etc/letsencrypt", "TLS keys"),
    ("/etc/wireguard", "VPN keys"),
    ("/etc/openvpn", "VPN keys"),
    ("/etc/NetworkManager/system-connections", "Wi-Fi and VPN passwords"),
    ("/etc/krb5.keytab", "Kerberos keys"),
    ("/etc/sudoers", "who may become root"),
    ("/etc/sudoers.d", "who may become root"),
    ("/run/secrets", "secrets of containers and sops-nix"),
    ("/run/secrets.d", "secrets of sops-nix"),
    ("/run/agenix", "secrets of agenix"),
    ("/run/agenix.d", "secrets of agenix"),
    ("/run/user", "agent sockets of SSH, GPG, D-Bus and Wayland"),
    ("/run/dbus", "system D-Bus"),
    ("/run/docker.sock", "Docker: root on this host"),
    ("/run/podman", "Podman socket"),
    ("/run/containerd", "containerd: root on this host"),
    ("/run/tailscale", "tailscaled socket"),
    ("/tmp/.X11-unix", "X11 sockets"),
    (NIX_SOCKETS, "the Nix daemon, which enters by --nix alone"),
    ("/nix/var/determinate", "logins of Determinate Nix, and a socket"),
)

# Found anywhere in a variable's name.
STRONG_WORDS = ("apikey", "api_key", "credential", "passphrase", "passwd", "password", "private_key", "secret", "token")
# Found as a word of the name, as in AWS_ACCESS_KEY_ID, unless the value is a number or a path.
WEAK_WORDS = frozenset("auth cookie cred creds jwt headers key keys otp pass pat pw pwd session".split())
HARMLESS_NAMES = frozenset("PWD OLDPWD DESKTOP_SESSION".split())
SWITCHES = frozenset(("", "0", "1", "true", "false", "yes", "no", "on", "off"))

TOKEN_PREFIXES = (
    ("sk-ant-", "an Anthropic key"),
    ("sk-", "an API key"),
    ("ghp_", "a GitHub token"),
    ("gho_", "a GitHub token"),
    ("ghu_", "a GitHub token"),
    ("ghs_", "a GitHub token"),
    ("ghr_", "a GitHub token"),
    ("github_pat_", "a GitHub token"),
    ("glpat-", "a GitLab token"),
    ("AKIA", "an AWS key"),
    ("ASIA", "an AWS key"),
    ("AIza", "a Google key"),
    ("ya29.", "a Google token"),
    ("xoxb-", "a Slack token"),
    ("xoxp-", "a Slack token"),
    ("xoxa-", "a Slack token"),
    ("xapp-", "a Slack token"),
    ("npm_", "an npm token"),
    ("pypi-", "a PyPI token"),
    ("hf_", "a Hugging Face token"),
    ("dop_v1_", "a DigitalOcean token"),
    ("sk_live_", "a Stripe key"),
    ("rk_live_", "a Stripe key"),
    ("SG.", "a SendGrid key"),
    ("tskey-", "a Tailscale key"),
    ("hvs.", "a Vault token"),
    ("AGE-SECRET-KEY-", "an age key"),
    ("eyJ", "a signed token (JWT)"),
)
SHORTEST_TOKEN = 20
SHORTEST_RANDOM = 32
COMMIT_LENGTH = 40
PRIVATE_KEY_MARK = "PRIVATE KEY-----"

SECRET_FILE_NAMES = frozenset(
    "id_rsa id_dsa id_ecdsa id_ed25519 .env .netrc .npmrc .pypirc .pgpass .git-credentials .htpasswd credentials "
    "credentials.json kubeconfig keys.txt .vault-token service-account.json secrets.yaml secrets.yml secrets.json "
    "terraform.tfstate".split()
)
SECRET_FILE_ENDINGS = tuple(".pem .key .p12 .pfx .jks .keystore .kdbx .age .gpg .asc .ppk .tfstate".split())
EXAMPLE_ENDINGS = (".example", ".sample", ".template", ".dist")


def secret_places(tree: Tree, homes: tuple[str, ...]) -> tuple[SecretPlace, ...]:
    """The table with real paths: as written and, where a symlink leads elsewhere, also the place it leads to."""
    places: list[SecretPlace] = []
    for number, home in enumerate(homes):
        names = set(tree.entries(home))  # most people have few of them: one look instead of a hundred
        for written, reason in SECRET_PLACES:
            path, is_missing = written, False
            if written.startswith("~"):
                path, first = home + written[1:], written[2:].partition("/")[0]
                is_missing = bool(names) and first not in names
            elif number:
                continue
            real = None if is_missing else tree.resolve(path)
            # A symlink is not a place of its own: what counts as existing is what it leads to.
            places.append(SecretPlace(path, reason, real == path))
            if real is not None and real != path:
                places.append(SecretPlace(real, reason, True))
    return tuple(places)


def looks_secret(name: str, value: str) -> str:
    """Why a variable looks like a secret; "" if it does not."""
    return _secret_name(name, value) or secret_value(value) or ("it looks random" if _looks_random(value) else "")


def _secret_name(name: str, value: str) -> str:
    lower = name.lower().replace("-", "_")
    if value.lower() in SWITCHES or name in HARMLESS_NAMES or name.startswith("XDG_SESSION_"):
        return ""
    if value.isdigit() and "tokens" in lower:  # a limit, as in MAX_OUTPUT_TOKENS
        return ""
    weak = not WEAK_WORDS.isdisjoint(lower.split("_")) and not value.isdigit() and not value.startswith("/")
    if weak or any(word in lower for word in STRONG_WORDS):
        return "its name says so"
    return ""


def secret_value(value: str) -> str:
    """Why a text looks like a secret: known tokens, private keys, passwords in addresses."""
    if PRIVATE_KEY_MARK in value:
        return "it holds a private key"
    for word in _words(value):
        for prefix, title in TOKEN_PREFIXES:
            if word.startswith(prefix) and len(word) >= SHORTEST_TOKEN:
                return f"it looks like {title}"
    return "it holds a password for an address" if _has_url_password(value) else ""


def secret_file(path: str) -> str:
    """Why a file that is about to be mounted looks like a secret, by its name."""
    name = posixpath.basename(path)
    if name.endswith(EXAMPLE_ENDINGS):
        return ""
    if name in SECRET_FILE_NAMES or name.startswith(".env.") or name.endswith(SECRET_FILE_ENDINGS):
        return "its name says so"
    return ""


def _words(text: str) -> list[str]:
    """The runs of characters that a token can consist of."""
    for separator in "\"'`=:,;()[]{}<>|&?@/\\":
        text = text.replace(separator, " ")
    return text.split()


def _has_url_password(text: str) -> bool:
    """`scheme://user:password@host`."""
    for piece in text.split("://")[1:]:
        account, at, _ = piece.split("/", 1)[0].rpartition("@")
        if at and account.partition(":")[2]:
            return True
    return False


def _looks_random(text: str) -> bool:
    """One long word of letters and digits in no readable order. A commit's name is not a secret."""
    if len(text) < SHORTEST_RANDOM or text.startswith(("/", "~")) or not text.isascii():
        return False
    if not all(character.isalnum() or character in "+/=_-" for character in text):
        return False
    changes = sum(a.isdigit() != b.isdigit() for a, b in pairwise(text))
    is_commit = len(text) == COMMIT_LENGTH and set(text) <= set("0123456789abcdef")
    return changes * 8 >= len(text) and not is_commit
