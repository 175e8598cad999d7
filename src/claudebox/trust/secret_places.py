"""Which host directories may become a project or a mount."""

from __future__ import annotations

from claudebox.host.system import NIX_SOCKETS
from claudebox.host.tree import Tree
from claudebox.model import SecretPlace
from claudebox.paths import absolute, is_inside, move, normalize, parents
from claudebox.problem import Problem
from claudebox.record import Record
from claudebox.settings.values import Word
from claudebox.state import SHOWN

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


# Each reason with its paths; `~` is the user's home.
_PLACES: tuple[tuple[str, ...], ...] = (
    ("SSH keys", "~/.ssh"),
    ("GPG keys", "~/.gnupg"),
    ("sops and age keys", "~/.age", "~/.config/age", "~/.config/sops"),
    ("passwords of pass", "~/.password-store", "~/.passage", "~/.local/share/gopass", "~/.config/gopass"),
    ("passwords of LastPass", "~/.lpass", "~/.local/share/lpass"),
    ("keyring", "~/.local/share/keyrings", "~/.local/share/python_keyring", "~/.local/share/kwalletd"),
    ("1Password login", "~/.config/op", "~/.op"),
    ("Bitwarden vault", "~/.config/Bitwarden", "~/.config/Bitwarden CLI"),
    ("KeePassXC settings", "~/.config/keepassxc"),
    ("AWS credentials", "~/.aws"),
    ("Google Cloud credentials", "~/.config/gcloud"),
    ("Azure credentials", "~/.azure"),
    ("Oracle Cloud credentials", "~/.oci"),
    ("DigitalOcean token", "~/.config/doctl"),
    ("Hetzner Cloud token", "~/.config/hcloud"),
    ("Scaleway keys", "~/.config/scw"),
    ("Linode token", "~/.config/linode-cli"),
    ("Fly.io token", "~/.fly"),
    ("Heroku login", "~/.config/heroku"),
    ("Netlify token", "~/.config/netlify", "~/.netlify"),
    ("Vercel token", "~/.local/share/com.vercel.cli"),
    ("Cloudflare token", "~/.wrangler", "~/.config/.wrangler"),
    ("Cloudflare tunnel keys", "~/.cloudflared"),
    ("Terraform Cloud token", "~/.terraform.d", "~/.terraformrc"),
    ("Pulumi token", "~/.pulumi"),
    ("Vault token", "~/.vault-token"),
    ("Kubernetes credentials", "~/.kube"),
    ("Docker registry logins", "~/.docker"),
    ("Podman registry logins", "~/.config/containers"),
    ("Helm registry logins", "~/.config/helm"),
    ("GitHub token", "~/.config/gh", "~/.config/hub"),
    ("GitLab token", "~/.config/glab-cli"),
    ("Gitea token", "~/.config/tea"),
    ("GitHub Copilot token", "~/.config/github-copilot"),
    ("git passwords", "~/.git-credentials", "~/.config/git/credentials"),
    ("passwords for hosts", "~/.netrc", "~/.authinfo", "~/.authinfo.gpg"),
    ("npm token", "~/.npmrc", "~/.yarnrc.yml"),
    ("PyPI token", "~/.pypirc"),
    ("crates.io token", "~/.cargo/credentials", "~/.cargo/credentials.toml"),
    ("RubyGems token", "~/.gem/credentials"),
    ("Maven passwords", "~/.m2/settings.xml", "~/.m2/settings-security.xml"),
    ("Gradle passwords", "~/.gradle/gradle.properties"),
    ("Composer tokens", "~/.composer/auth.json", "~/.config/composer/auth.json"),
    ("PostgreSQL passwords", "~/.pgpass"),
    ("MySQL password", "~/.my.cnf"),
    ("keys of storage in a cloud", "~/.config/rclone", "~/.config/b2", "~/.config/storj", "~/.s3cfg", "~/.boto"),
    ("backup keys", "~/.config/rustic", "~/.config/borg"),
    ("ngrok token", "~/.config/ngrok"),
    ("CircleCI token", "~/.circleci"),
    ("passwords of data warehouses", "~/.dbt", "~/.snowflake"),
    ("Hugging Face token", "~/.cache/huggingface/token"),
    ("Kaggle key", "~/.kaggle"),
    ("OpenAI login", "~/.codex"),
    ("Gemini login", "~/.gemini"),
    ("Anthropic login", "~/.config/anthropic"),
    ("Claude's login and the history of all projects", "~/.claude"),
    ("Claude's state and MCP tokens", "~/.claude.json"),
    ("state of all boxes", SHOWN.directory),
    ("browser passwords and cookies", "~/.mozilla", "~/.config/google-chrome", "~/.config/chromium"),
    ("browser passwords and cookies", "~/.config/BraveSoftware", "~/.config/microsoft-edge"),
    ("mail and its passwords", "~/.thunderbird"),
    ("messages", "~/.config/Signal", "~/.config/Slack"),
    ("wallet", "~/.bitcoin", "~/.ethereum", "~/.electrum", "~/.lnd", "~/.aptos", "~/.config/solana"),
    ("typed commands, with what was pasted", "~/.bash_history", "~/.zsh_history", "~/.local/share/fish/fish_history"),
    ("typed commands, with what was pasted", "~/.python_history", "~/.node_repl_history", "~/.psql_history"),
    ("Tailscale keys", "~/.local/share/tailscale", "/var/lib/tailscale"),
    ("secrets of system services", "/var/lib/private"),
    ("domain login cache", "/var/lib/sss"),
    ("containers and their secrets", "/var/lib/docker", "/var/lib/containers"),
    ("password hashes", "/etc/shadow", "/etc/gshadow"),
    ("host keys", "/etc/ssh"),
    ("TLS keys", "/etc/ssl/private", "/etc/pki/tls/private", "/etc/letsencrypt"),
    ("VPN keys", "/etc/wireguard", "/etc/openvpn"),
    ("Wi-Fi and VPN passwords", "/etc/NetworkManager/system-connections"),
    ("Kerberos keys", "/etc/krb5.keytab"),
    ("who may become root", "/etc/sudoers", "/etc/sudoers.d"),
    ("secrets of containers and sops-nix", "/run/secrets"),
    ("secrets of sops-nix and agenix", "/run/secrets.d", "/run/agenix", "/run/agenix.d"),
    ("agent sockets of SSH, GPG, D-Bus and Wayland", "/run/user"),
    ("system D-Bus", "/run/dbus"),
    ("Docker: root on this host", "/run/docker.sock"),
    ("Podman socket", "/run/podman"),
    ("containerd: root on this host", "/run/containerd"),
    ("tailscaled socket", "/run/tailscale"),
    ("X11 sockets", "/tmp/.X11-unix"),
    ("the Nix daemon, which enters only with --nix", NIX_SOCKETS),
    ("logins of Determinate Nix, and a socket", "/nix/var/determinate"),
)
# These are plain pairs because every start reads the table.
SECRET_PLACES = tuple((path, reason) for reason, *paths in _PLACES for path in paths)

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
    return [(move(row, home, path), why) for home, path in moved for row, why in _ROWS if is_inside(row, home)]


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
