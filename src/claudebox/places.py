"""Which host directories may become a project or a mount."""

from __future__ import annotations

import posixpath

from claudebox.host.tree import Tree
from claudebox.model import SecretPlace
from claudebox.paths import expand_home, is_inside, parents
from claudebox.problem import Problem
from claudebox.record import Record
from claudebox.settings.values import Named
from claudebox.state import SHOWN

# Parts of the system: never writable, and nothing below is a project.
SYSTEM_TREES = (
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
)
# Where people do keep projects although a system tree is above.
PROJECT_TREES = ("/usr/src", "/usr/local/src", "/run/media")
# Directories of directories: too broad as a whole, fine below.
NO_FILES = ("/dev", "/proc", "/sys")  # the kernel's and the devices', not files
BROAD = (
    "/home",
    "/media",
    "/mnt",
    "/opt",
    "/srv",
    "/tmp",
    "/var",
    "/var/home",
    "/var/lib",
    "/var/tmp",
    "/var/cache",
    "/var/log",
    "/var/spool",
    *PROJECT_TREES,
)


# The same as the beginnings of paths: asked about every mount of every box.
_SYSTEM = tuple(f"{tree}/" for tree in SYSTEM_TREES)
_PROJECTS = tuple(f"{tree}/" for tree in PROJECT_TREES)


def is_systems(path: str) -> bool:
    """Whether it is a part of the system, which no agent can write."""
    return f"{path}/".startswith(_SYSTEM) and not path.startswith(_PROJECTS)


class Refusal(Record):
    """Why a place may not be used."""

    reason: str


def refuse_writable(path: str, homes: tuple[str, ...], places: tuple[SecretPlace, ...]) -> Refusal | None:
    """Judge a directory that the agent would be able to write: the project, or a mount that is asked for."""
    if is_systems(path):
        return Refusal(f"{path} belongs to the system")
    return refuse_readable(path, homes, places)


def refuse_readable(path: str, homes: tuple[str, ...], places: tuple[SecretPlace, ...]) -> Refusal | None:
    """Judge a directory or file that would become visible."""
    if path == "/":
        return Refusal("/ is the whole machine")
    if path in homes:
        return Refusal(f"{path} is your home, with everything in it")
    if any(is_inside(home, path) for home in homes):
        return Refusal(f"{path} contains your home")
    if any(is_inside(path, tree) for tree in NO_FILES):
        return Refusal(f"{path} is not a place for files")
    if path in BROAD:
        return Refusal(f"{path} is too broad")
    above = {path, *parents(path), "/"}
    secret = next((place for place in places if place.path in above), None)
    return Refusal(f"{secret.path} is secret ({secret.reason})") if secret is not None else None


def contained_secret(path: str, places: tuple[SecretPlace, ...]) -> SecretPlace | None:
    """A secret place below `path`."""
    below = f"{path}/"
    found = [place for place in places if place.path.startswith(below)]
    return min(found, key=lambda place: not place.exists, default=None)


def check_project(path: str, homes: tuple[str, ...], places: tuple[SecretPlace, ...]) -> None:
    """Raise unless a box can be made for this project directory."""
    if not path.isprintable():
        raise Problem(
            f"the project's path holds control or invisible characters: {path!r}",
            "rename the directory: such a name can forge what this program shows",
        )
    refusal = refuse_writable(path, homes, places)
    if refusal is None and (secret := contained_secret(path, places)):
        verb = "contains" if secret.exists else "is where programs put"
        refusal = Refusal(f"it {verb} {secret.path} ({secret.reason})")
    if refusal is not None:
        raise Problem(
            f"{path} cannot be a project: {refusal.reason}",
            "cd to the directory of one project and start claudebox there",
        )


class Opening(Record):
    """A path that somebody wants writable."""

    path: str
    said: Named

    def opens(self, path: str) -> bool:
        return is_inside(path, self.path)


def openings(writable: tuple[Named, ...], project: str, home: str) -> list[Opening]:
    return [
        Opening(posixpath.normpath(posixpath.join(project, expand_home(said.path, home))), said) for said in writable
    ]


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
