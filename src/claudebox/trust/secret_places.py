"""Which host directories may become a project or a mount."""

from __future__ import annotations

from claudebox.host.system import NIX_SOCKETS
from claudebox.host.tree import Tree
from claudebox.model import SecretPlace
from claudebox.paths import absolute, is_inside, parents
from claudebox.problem import Problem
from claudebox.record import Record
from claudebox.settings.values import Word
from claudebox.state import SHOWN, State

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
    above = {path, *parents(path), "/"}
    secret = next((place for place in places if place.path in above), None)
    return f"{secret.path} is secret ({secret.reason})" if secret is not None else ""


def contained_secret(path: str, places: tuple[SecretPlace, ...]) -> SecretPlace | None:
    """A secret place below `path`, preferably one that exists."""
    below = f"{path}/"
    found = [place for place in places if place.path.startswith(below)]
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
            f"{path} cannot be a project: {refusal}",
            "cd to the directory of one project and start claudebox there",
        )


class Opening(Record):
    """A path that somebody wants writable."""

    path: str
    said: Word

    def opens(self, path: str) -> bool:
        return is_inside(path, self.path)


def openings(writable: tuple[Word, ...], project: str, home: str) -> list[Opening]:
    return [Opening(absolute(said.text, project, home), said) for said in writable]


OWN_STATE = "state of all boxes"
# Each path with the reason; `~` is the user's home. These are plain pairs because every start reads the table.
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
    (SHOWN.directory, OWN_STATE),
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
    (NIX_SOCKETS, "the Nix daemon, which enters only with --nix"),
    ("/nix/var/determinate", "logins of Determinate Nix, and a socket"),
)


def secret_places(tree: Tree, homes: tuple[str, ...], kept: tuple[State, ...]) -> tuple[SecretPlace, ...]:
    """The table for these homes: each path as written and, if it is a symlink, also the place that it leads to.

    The directories of claudebox itself are in it wherever they are.
    """
    places: list[SecretPlace] = []
    for number, home in enumerate(homes):
        names = set(tree.entries(home))  # most people have few of them: listing the home once saves a hundred lookups
        for written, reason in SECRET_PLACES:
            path, is_missing = written, False
            if written.startswith("~"):
                path, first = home + written[1:], written[2:].partition("/")[0]
                is_missing = bool(names) and first not in names
            elif number:
                continue
            real = None if is_missing else tree.resolve(path)
            # A symlink does not count as existing; the place that it leads to does.
            places.append(SecretPlace(path, reason, real == path))
            if real is not None and real != path:
                places.append(SecretPlace(real, reason, True))
    own = {path for state in kept for path in state.guarded()} - {place.path for place in places}
    return *places, *(SecretPlace(path, OWN_STATE, tree.lstat(path) is not None) for path in sorted(own))
