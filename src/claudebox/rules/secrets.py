"""What is secret: places that never enter the box, and how a secret looks."""

from __future__ import annotations

import posixpath
from itertools import pairwise

from claudebox.host.tree import Tree
from claudebox.model import SecretPlace
from claudebox.paths import expand_home

SECRET_PLACES = (
    SecretPlace("~/.ssh", "SSH keys"),
    SecretPlace("~/.gnupg", "GPG keys"),
    SecretPlace("~/.age", "age keys"),
    SecretPlace("~/.config/age", "age keys"),
    SecretPlace("~/.config/sops", "sops and age keys"),
    SecretPlace("~/.password-store", "passwords of pass"),
    SecretPlace("~/.local/share/gopass", "passwords of gopass"),
    SecretPlace("~/.local/share/keyrings", "GNOME keyring"),
    SecretPlace("~/.local/share/kwalletd", "KDE wallet"),
    SecretPlace("~/.config/op", "1Password login"),
    SecretPlace("~/.config/Bitwarden", "Bitwarden vault"),
    SecretPlace("~/.config/Bitwarden CLI", "Bitwarden vault"),
    SecretPlace("~/.config/keepassxc", "KeePassXC settings"),
    SecretPlace("~/.aws", "AWS credentials"),
    SecretPlace("~/.config/gcloud", "Google Cloud credentials"),
    SecretPlace("~/.azure", "Azure credentials"),
    SecretPlace("~/.oci", "Oracle Cloud credentials"),
    SecretPlace("~/.config/doctl", "DigitalOcean token"),
    SecretPlace("~/.config/hcloud", "Hetzner Cloud token"),
    SecretPlace("~/.config/scw", "Scaleway keys"),
    SecretPlace("~/.config/linode-cli", "Linode token"),
    SecretPlace("~/.fly", "Fly.io token"),
    SecretPlace("~/.config/heroku", "Heroku login"),
    SecretPlace("~/.config/netlify", "Netlify token"),
    SecretPlace("~/.local/share/com.vercel.cli", "Vercel token"),
    SecretPlace("~/.wrangler", "Cloudflare token"),
    SecretPlace("~/.config/.wrangler", "Cloudflare token"),
    SecretPlace("~/.cloudflared", "Cloudflare tunnel keys"),
    SecretPlace("~/.terraform.d", "Terraform Cloud token"),
    SecretPlace("~/.terraformrc", "Terraform Cloud token"),
    SecretPlace("~/.pulumi", "Pulumi token"),
    SecretPlace("~/.vault-token", "Vault token"),
    SecretPlace("~/.kube", "Kubernetes credentials"),
    SecretPlace("~/.docker", "Docker registry logins"),
    SecretPlace("~/.config/containers", "Podman registry logins"),
    SecretPlace("~/.config/helm", "Helm registry logins"),
    SecretPlace("~/.config/gh", "GitHub token"),
    SecretPlace("~/.config/hub", "GitHub token"),
    SecretPlace("~/.config/glab-cli", "GitLab token"),
    SecretPlace("~/.config/tea", "Gitea token"),
    SecretPlace("~/.config/github-copilot", "GitHub Copilot token"),
    SecretPlace("~/.git-credentials", "git passwords"),
    SecretPlace("~/.config/git/credentials", "git passwords"),
    SecretPlace("~/.netrc", "passwords for hosts"),
    SecretPlace("~/.authinfo", "passwords for hosts"),
    SecretPlace("~/.authinfo.gpg", "passwords for hosts"),
    SecretPlace("~/.npmrc", "npm token"),
    SecretPlace("~/.yarnrc.yml", "npm token"),
    SecretPlace("~/.pypirc", "PyPI token"),
    SecretPlace("~/.cargo/credentials", "crates.io token"),
    SecretPlace("~/.cargo/credentials.toml", "crates.io token"),
    SecretPlace("~/.gem/credentials", "RubyGems token"),
    SecretPlace("~/.m2/settings.xml", "Maven passwords"),
    SecretPlace("~/.m2/settings-security.xml", "Maven passwords"),
    SecretPlace("~/.gradle/gradle.properties", "Gradle passwords"),
    SecretPlace("~/.composer/auth.json", "Composer tokens"),
    SecretPlace("~/.config/composer/auth.json", "Composer tokens"),
    SecretPlace("~/.pgpass", "PostgreSQL passwords"),
    SecretPlace("~/.my.cnf", "MySQL password"),
    SecretPlace("~/.config/rclone", "rclone remotes"),
    SecretPlace("~/.config/rustic", "backup keys"),
    SecretPlace("~/.config/borg", "backup keys"),
    SecretPlace("~/.s3cfg", "S3 keys"),
    SecretPlace("~/.boto", "cloud keys"),
    SecretPlace("~/.config/ngrok", "ngrok token"),
    SecretPlace("~/.cache/huggingface/token", "Hugging Face token"),
    SecretPlace("~/.kaggle", "Kaggle key"),
    SecretPlace("~/.codex", "OpenAI login"),
    SecretPlace("~/.gemini", "Gemini login"),
    SecretPlace("~/.claude", "Claude's login and the history of all projects"),
    SecretPlace("~/.claude.json", "Claude's state and MCP tokens"),
    SecretPlace("~/.claudebox", "state of all boxes"),
    SecretPlace("~/.mozilla", "browser passwords and cookies"),
    SecretPlace("~/.config/google-chrome", "browser passwords and cookies"),
    SecretPlace("~/.config/chromium", "browser passwords and cookies"),
    SecretPlace("~/.config/BraveSoftware", "browser passwords and cookies"),
    SecretPlace("~/.config/microsoft-edge", "browser passwords and cookies"),
    SecretPlace("~/.thunderbird", "mail and its passwords"),
    SecretPlace("~/.config/Signal", "messages"),
    SecretPlace("~/.config/Slack", "chat login"),
    SecretPlace("~/.bitcoin", "wallet"),
    SecretPlace("~/.ethereum", "wallet"),
    SecretPlace("~/.electrum", "wallet"),
    SecretPlace("~/.config/solana", "wallet"),
    SecretPlace("~/.bash_history", "typed commands, with what was pasted"),
    SecretPlace("~/.zsh_history", "typed commands, with what was pasted"),
    SecretPlace("~/.local/share/fish/fish_history", "typed commands, with what was pasted"),
    SecretPlace("~/.python_history", "typed commands, with what was pasted"),
    SecretPlace("~/.node_repl_history", "typed commands, with what was pasted"),
    SecretPlace("~/.psql_history", "typed commands, with what was pasted"),
    SecretPlace("~/.local/share/tailscale", "Tailscale keys"),
    SecretPlace("/var/lib/tailscale", "Tailscale keys"),
    SecretPlace("/var/lib/private", "secrets of system services"),
    SecretPlace("/var/lib/sss", "domain login cache"),
    SecretPlace("/var/lib/docker", "containers and their secrets"),
    SecretPlace("/var/lib/containers", "containers and their secrets"),
    SecretPlace("/etc/shadow", "password hashes"),
    SecretPlace("/etc/gshadow", "password hashes"),
    SecretPlace("/etc/ssh", "host keys"),
    SecretPlace("/etc/ssl/private", "TLS keys"),
    SecretPlace("/etc/pki/tls/private", "TLS keys"),
    SecretPlace("/etc/letsencrypt", "TLS keys"),
    SecretPlace("/etc/wireguard", "VPN keys"),
    SecretPlace("/etc/openvpn", "VPN keys"),
    SecretPlace("/etc/NetworkManager/system-connections", "Wi-Fi and VPN passwords"),
    SecretPlace("/etc/krb5.keytab", "Kerberos keys"),
    SecretPlace("/etc/sudoers", "who may become root"),
    SecretPlace("/etc/sudoers.d", "who may become root"),
    SecretPlace("/run/secrets", "secrets of containers and sops-nix"),
    SecretPlace("/run/secrets.d", "secrets of sops-nix"),
    SecretPlace("/run/agenix", "secrets of agenix"),
    SecretPlace("/run/agenix.d", "secrets of agenix"),
    SecretPlace("/run/user", "agent sockets of SSH, GPG, D-Bus and Wayland"),
    SecretPlace("/run/dbus", "system D-Bus"),
    SecretPlace("/run/docker.sock", "Docker: root on this host"),
    SecretPlace("/run/podman", "Podman socket"),
    SecretPlace("/run/containerd", "containerd: root on this host"),
    SecretPlace("/run/tailscale", "tailscaled socket"),
    SecretPlace("/tmp/.X11-unix", "X11 sockets"),
)

# Found anywhere in a variable's name.
STRONG_WORDS = ("apikey", "api_key", "credential", "passphrase", "passwd", "password", "private_key", "secret", "token")
# Found as a word of the name, as in AWS_ACCESS_KEY_ID, unless the value is a number or a path.
WEAK_WORDS = frozenset("auth cookie cred creds jwt key keys otp pass pat pw pwd session".split())
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
    named = [(expand_home(place.path, homes[0]), place) for place in SECRET_PLACES]
    named += [
        (expand_home(place.path, home), place)
        for home in homes[1:]
        for place in SECRET_PLACES
        if place.path.startswith("~")
    ]
    for path, place in named:
        real = tree.resolve(path)
        # A symlink is not a place of its own: what counts as existing is what it leads to.
        places.append(SecretPlace(path, place.reason, real == path))
        if real is not None and real != path:
            places.append(SecretPlace(real, place.reason, True))
    return tuple(places)


def looks_secret(name: str, value: str) -> str:
    """Why a variable looks like a secret; "" if it does not."""
    return _secret_name(name, value) or secret_value(value) or ("it looks random" if _looks_random(value) else "")


def _secret_name(name: str, value: str) -> str:
    lower = name.lower()
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
