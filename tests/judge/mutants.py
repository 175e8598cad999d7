"""Sabotage of features and views that the judge has to notice: each row shows or reaches what no box may have.

The home of all of them, as `furnish` makes it (`CANARY…` is what must stay outside):

    ~/.ssh/id_ed25519, ~/.ssh/agent.sock, ~/.aws/credentials, ~/.git-credentials, ~/.bash_history
    ~/.config/gh/hosts.yml, ~/.config/editor/settings, ~/.local/share/app/state
    ~/.claude/{.credentials.json,history.jsonl,CLAUDE.md,agents/}, ~/.claude.json, ~/bin/claude (a stand-in)
    ~/.claude/commands, ~/.kube         symlinks to ~/.config and to ~/dotfiles/kube
    ~/prompt.txt                        standard input of each start; the home itself is descriptor 9
    ~/.nvm/versions/node/v20.1.0        a toolchain, on PATH
    ~/other-project, ~/src/other        of no concern to this box; the first is a repository, and has a state
    ~/reference, ~/tools/gh, ~/.tool    mounted by some rows; the second is named by GH_CONFIG_DIR
    ~/src/shop                          the project: git, .env, .github/workflows, .vscode, private/, docs/,
                                        .claudebox.toml, a symlink to ~/.ssh, and `host-namespaces`: those of whoever
                                        starts boxes

`furnish_machine` adds the host's sockets, /tmp and shared memory, on a machine of `tests/running/machine.py` alone.
"""

import os
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

from claudebox.state import instance_name

KEY = "sk-ant-api03-CANARY7f3Kq9ZpX2vB8nM4tR6yW1sD5gH0jL"
LOGIN = """{"claudeAiOauth": {"accessToken": "sk-ant-oat01-CANARY-login-4f7Kq9Zp", "refreshToken":
"sk-ant-ort01-CANARY-login-8nM4tR6y", "expiresAt": 4102444800000, "scopes": ["user:inference"]}}"""
NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
SOCKETS = ("/run/docker.sock", "/run/dbus/system_bus_socket", "/run/user/{uid}/bus", "/tmp/.X11-unix/X0")
MADE = ("/tmp/.X11-unix/X0", "/tmp/host-file", "/dev/shm/host-file")  # outside of /run


@dataclass(frozen=True)
class Mutant:
    name: str  # its kind, and what it does
    file: str  # below src/claudebox
    old: str  # occurs there once
    new: str
    shell: str  # run in the box: prints CANARY or SHOWN if the mutant has its effect
    named: str  # what a good refusal says; {home}, {project} and {uid} are filled in
    options: tuple[str, ...] = ()
    needs: str = ""  # "root", "user" or "overlay"
    stopped_by: str = ""  # "gate", "launch" or "bwrap", if that refuses it already
    is_refused: bool = False  # without the mutant, claudebox refuses these options


def variables(home: Path) -> dict[str, str]:
    """Those of the host, beside what every account has."""
    return {
        "ANTHROPIC_API_KEY": KEY,
        "AWS_SECRET_ACCESS_KEY": "CANARY/aws/7f3Kq9ZpX2vB8nM4tR6yW1sD",
        "GITHUB_TOKEN": "ghp_CANARY7f3Kq9ZpX2vB8nM4tR6yW1sD5gH0",
        "EDITOR": "vi",
        "GH_CONFIG_DIR": f"{home}/tools/gh",
        "SSH_AUTH_SOCK": f"{home}/.ssh/agent.sock",
        "PATH": f"{home}/.nvm/versions/node/v20.1.0/bin:{home}/bin:/usr/local/bin:/usr/bin:/bin",
    }


def furnish(home: Path, project: Path) -> None:
    """Make the home and the project in it. The caller hands them to the account."""
    own, other = (
        home / ".claudebox/instances" / instance_name(str(root)) for root in (project, home / "other-project")
    )
    files = {
        home / ".ssh/id_ed25519": "-----BEGIN OPENSSH PRIVATE KEY-----\nCANARY-ssh\n",
        home / ".aws/credentials": "[default]\naws_secret_access_key = CANARY-aws-file\n",
        home / ".git-credentials": "https://me:CANARY-git@example.org\n",
        home / ".bash_history": "export TOKEN=CANARY-typed\n",
        home / ".config/gh/hosts.yml": "github.com:\n  oauth_token: gho_CANARY-gh\n",
        home / ".config/editor/settings": "CANARY-drawer\n",
        home / ".local/share/app/state": "CANARY-share\n",
        home / ".local/share/claude/versions/2.1.0": "#!/bin/sh\necho a stand-in\n",
        home / ".claude/.credentials.json": LOGIN,
        home / ".claude/history.jsonl": '{"display": "CANARY-history"}\n',
        home / ".claude/CLAUDE.md": "Be brief.\n",
        home / ".claude/agents/helper.md": "a helper\n",
        home / ".claude.json": '{"oauthAccount": {"emailAddress": "CANARY-account"}}\n',
        home / ".nvm/versions/node/v20.1.0/bin/node": "#!/bin/sh\n",
        home / ".nvm/versions/node/v20.1.0/etc/npmrc": "_authToken=CANARY-npm\n",
        home / "dotfiles/kube/settings": "CANARY-kube\n",
        home / "prompt.txt": "a prompt\n",
        home / "other-project/notes.txt": "CANARY-other\n",
        home / "src/other/beside.txt": "CANARY-beside\n",
        home / "reference/plan.txt": "CANARY-plan\n",
        home / "reference/docs/page.md": "a page\n",
        home / "tools/gh/config.txt": "CANARY-tools\n",
        home / ".tool/credentials.json": '{"token": "CANARY-tool"}\n',
        # A box of the past left a login here; and the state of another project.
        own / "claude/.credentials.json": LOGIN.replace("login", "old"),
        own / "project": f"{project}\n",
        other / "claude/history.jsonl": '{"display": "CANARY-state"}\n',
        other / "cache/pip/wheel": "CANARY-cache\n",
        other / "project": f"{home}/other-project\n",
        project / ".env": "DB_PASSWORD=CANARY7f3Kq9ZpX2\n",
        project / ".env.example": "DB_PASSWORD=\n",
        project / ".claudebox.toml": "# nothing yet\n",
        project / ".github/workflows/ci.yml": "on: push\n",
        project / ".vscode/tasks.json": "{}\n",
        project / "README.md": "a shop\n",
        project / "notes.txt": "CANARY-notes\n",
        project / "private/notes.txt": "CANARY-private\n",
        project / "docs/page.md": "a page\n",
        project / "resolv.conf": "nameserver 127.0.0.1\n",
        project / "host-namespaces": "".join(f"{os.readlink(f'/proc/self/ns/{name}')}\n" for name in NAMESPACES)
        + f"pts:{os.stat('/dev/pts').st_dev}\n",
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if text.startswith("#!") else 0o600 if "CANARY" in text else 0o644)
    (home / "bin").mkdir()
    (home / "bin/claude").symlink_to(home / ".local/share/claude/versions/2.1.0")
    (home / ".kube").symlink_to(home / "dotfiles/kube")
    (home / ".claude/commands").symlink_to(home / ".config")
    (project / "link").symlink_to(home / ".ssh")
    _make_socket(home / ".ssh/agent.sock")
    for where in (project, home / "other-project"):
        for words in ("init -q", "add notes.txt", "-c user.name=Old -c user.email=old@host commit -q -m one"):
            subprocess.run(("git", *words.split()), cwd=where, check=True)
        hook = where / ".git/hooks/pre-commit"
        hook.write_text("#!/bin/sh\n")
        hook.chmod(0o755)


def furnish_machine(uid: int) -> None:
    """Where the host's programs listen. Only on a machine that is made for tests, with a /run in memory."""
    for path in SOCKETS:
        _make_socket(Path(path.format(uid=uid)))
    for path in MADE[1:]:
        Path(path).write_text("CANARY-memory\n")


def _make_socket(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


# Places in the sources at which many rows add something. They are in the order of a box's making.


def grant(more: str) -> tuple[str, str, str]:
    """A mount by a feature, before what is secret is hidden."""
    old = "Mount(TMPFS, person.home, BOX, mode=0o700, size=size),"
    return "features/system.py", old, f"{old} {more},"


def project_too(more: str) -> tuple[str, str, str]:
    return "features/project.py", "mounts=(project, *file),", f"mounts=(project, *file, {more}),"


def late_grant(more: str) -> tuple[str, str, str]:
    """The same, by a feature that decides after that."""
    old = 'mounts=(Mount(COVER, f"{DIRECTORY}/git", ORIGIN, content=content, mode=0o555),'
    return "features/git/__init__.py", old, f"{old} {more},"


def config(more: str) -> tuple[str, str, str]:
    """A file of Claude's home."""
    old = 'mounts.append(_shown_file(home, "CLAUDE.md", memory or home.instance.memory))'
    return "features/claude/__init__.py", old, f"{old}; mounts.append({more})"


def option(more: str) -> tuple[str, str, str]:
    """Options of bwrap that no Plan knows."""
    old = '("--remount-ro", "/"),'
    return "sandbox/argv.py", old, f"{more}, {old}"


def descriptor(opened: str) -> tuple[str, str, str]:
    old = "descriptors = [gate.for_bwrap]"
    return "sandbox/launch.py", old, f"descriptors = [gate.for_bwrap, os.dup2({opened}, 99)]"


def before_bwrap(statement: str) -> tuple[str, str, str]:
    """Done in the builder's own namespaces."""
    old = "    become_bwrap(launch, options, descriptors)\n"
    return "sandbox/launch.py", old, f"    {statement}\n{old}"


MASKS = """\
            mounts=(*masks, *hides),
            pins=tuple(mount.path for mount in (*masks, *hides)),  # else the agent moves a directory with a secret
            findings=secrets.findings,
            preparations=secrets.preparations,
            # In a project without secrets somebody may make one while the box runs.
            steps=(Step(Step.BESIDE, self), Step(Step.MADE, self)),
"""


def masks(what: str) -> str:
    """The same, with other masks, and without the steps that keep them on."""
    return MASKS.replace("mounts=(*masks,", f"mounts=(*{what},").partition("            # In")[0]


def line(path: str, options: str = "") -> str:
    """Whether the box has a mount at a path, with options that begin like that."""
    return f'grep -q " {path} {options}" /proc/self/mountinfo && echo SHOWN'


def no_line(path: str, options: str = "") -> str:
    return f'grep -q " {path} {options}" /proc/self/mountinfo || echo SHOWN'


def namespace(name: str) -> str:
    return f"grep -qF $(readlink /proc/self/ns/{name}) host-namespaces && echo SHOWN"


def there(path: str) -> str:
    return f"test -e {path} && echo SHOWN"


ARGV, LAUNCH, SYSTEM, CLAUDE = (
    "sandbox/argv.py",
    "sandbox/launch.py",
    "features/system.py",
    "features/claude/__init__.py",
)
CREDENTIAL, KERNEL, MOUNTING = "features/broker/credential.py", "features/kernel/__init__.py", "overlay/mounting.py"
PROGRAMS, WISHES, GUARD, SECRETS = (
    *("host/programs.py", "features/wishes.py", "features/guard.py", "features/secrets/__init__.py"),
)
ENVIRONMENT, GIT, REVIEW, PROJECT = (
    *("features/environment/__init__.py", "features/git/__init__.py", "features/review.py", "features/project.py"),
)
CAPABILITIES = "grep -q 'CapEff:.*[1-9a-f]' /proc/self/status && echo SHOWN"
BROKER = ("--auth", "broker")
NONE = ("--network", "none")
HOST_VARIABLE = '__import__("os").environ["{}"]'
CALL = "/usr/bin/python3 -c 'import ctypes; c = ctypes.CDLL(None, use_errno=True); {}'"

MUTANTS = (
    # The home, and what is above it
    Mutant(
        *("home: under another name", *grant('Mount(RO, "/srv/home", BOX, source=person.home)')),
        *("cat /srv/home/other-project/notes.txt", "/srv/home"),
    ),
    Mutant(
        *("home: in its place, writable", *grant("")[:2], 'Mount("rw", person.home, BOX, source=person.home),'),
        *("cat ~/other-project/notes.txt", "{home}"),
    ),
    Mutant(
        *("home: with all secrets, by an option", *option('("--ro-bind", plan.person.home, "/opt/data")')),
        *("cat /opt/data/.ssh/id_ed25519", "/opt/data"),
    ),
    Mutant(
        *("home: ~/.config", *grant('Mount(RO, f"{person.home}/.config", BOX, source=f"{person.home}/.config")')),
        *("cat ~/.config/editor/settings", "{home}/.config"),
    ),
    Mutant(
        *("home: ~/.local/share under another name",),
        *grant('Mount(RO, "/opt/share", BOX, source=f"{person.home}/.local/share")'),
        *("cat /opt/share/app/state", "/opt/share"),
    ),
    Mutant(
        *("home: the directory above it", *option('("--ro-bind", plan.person.home.rpartition("/")[0], "/opt/homes")')),
        *("cat /opt/homes/*/.ssh/id_ed25519", "/opt/homes"),
    ),
    Mutant(
        *("home: the root of the host", *option('("--ro-bind", "/", "/mnt")')),
        *(there("/mnt/etc/shadow"), "/mnt"),
    ),
    Mutant(
        *("home: the directory above the project",),
        *project_too('Mount("ro", facts.project.rpartition("/")[0], PROJECT, source=facts.project.rpartition("/")[0])'),
        *("cat ../other/beside.txt", "{home}/src"),
    ),
    Mutant(
        *("home: at a name with a line break", *option('("--ro-bind", plan.person.home, "/opt/a b\\n\\\\040c")')),
        *('cat "/opt/a b"*/.ssh/id_ed25519', "/opt/a"),
    ),
    # Secret places
    Mutant(
        *("secret: a key in its place",),
        *grant('Mount(RO, f"{person.home}/.ssh/id_ed25519", BOX, source=f"{person.home}/.ssh/id_ed25519")'),
        *("cat ~/.ssh/id_ed25519", "{home}/.ssh"),
    ),
    Mutant(
        *("secret: ~/.ssh under another name",),
        *late_grant('Mount(RO, "/etc/claudebox/ssh", ORIGIN, source=f"{facts.home}/.ssh")'),
        *("cat /etc/claudebox/ssh/id_ed25519", "/etc/claudebox/ssh"),
    ),
    Mutant(
        *("secret: shown on purpose", GIT, "mounts=(*shown, *config, *lfs),"),
        'mounts=(*shown, *config, *lfs, Mount(RO, f"{facts.home}/.config/gh", ORIGIN, source=f"{facts.home}/.config/gh"'
        ')), shown_places=(f"{facts.home}/.config/gh",),',
        *("cat ~/.config/gh/hosts.yml", "{home}/.config/gh"),
    ),
    Mutant(
        *("secret: a file under another name",),
        *late_grant('Mount(RO, "/run/aws", ORIGIN, source=f"{facts.home}/.aws/credentials", is_dir=False)'),
        *("cat /run/aws", "/run/aws"),
    ),
    Mutant(
        *("secret: conversations of all projects",),
        *config('_shown_file(home, "history.jsonl", f"{home.users}/history.jsonl")'),
        *("cat ~/.claude/history.jsonl", ".claude/history.jsonl"),
    ),
    Mutant(
        *("secret: the login with --auth none",),
        *config('_shown_file(home, ".credentials.json", f"{home.users}/.credentials.json")'),
        *("grep -o CANARY-login ~/.claude/.credentials.json", ".credentials.json"),
        options=("--auth", "none"),
    ),
    Mutant(
        *("secret: Claude's state on the host",),
        *late_grant('Mount(RO, "/opt/claude.json", ORIGIN, source=f"{facts.home}/.claude.json", is_dir=False)'),
        *("cat /opt/claude.json", "/opt/claude.json"),
    ),
    # What hides
    Mutant(
        *("hide: a secret place in a mount", WISHES),
        *("*hides_inside(tree, draft.mounts, draft.hidden_places(facts.places)),", ""),
        *("cat ~/tools/gh/config.txt", "{home}/tools/gh"),
        options=("--mount-ro", "~/tools"),
    ),
    Mutant(
        *("hide: a credential in a mount", "features/secrets/mounted.py"),
        *("hides=tuple(hides.values()), pins=tuple(hides),", ""),
        *("cat ~/.tool/credentials.json", "{home}/.tool/credentials.json"),
        options=("--mount-ro", "~/.tool"),
    ),
    Mutant(
        *("hide: the user's", WISHES, "*find_hides(tree, hides, facts.project, facts.home, draft.mounts),", ""),
        *("cat private/notes.txt", "{project}/private"),
        options=("--hide", "private"),
    ),
    Mutant(
        *("hide: a directory bound onto itself", ARGV),
        *(
            'return [("--perms", "0555", "--tmpfs", path), ("--remount-ro", path)]',
            'return [("--ro-bind", path, path)]',
        ),
        *("cat private/notes.txt", "{project}/private"),
        options=("--hide", "private"),
    ),
    Mutant(
        *("hide: a file bound onto itself", ARGV, '("--ro-bind", "/dev/null", path)', '("--ro-bind", path, path)'),
        *("test -s /usr/bin/git && echo SHOWN", "/proc/keys"),
        options=("--hide", "/usr/bin/git"),
    ),
    Mutant(
        *("hide: of a mount's part that the user hides", "sandbox/mounts.py"),
        *("within_reach = [mount for mount in mounts if _may_hide(hide, mount)]", "within_reach = mounts[:1]"),
        *("cat ~/reference/plan.txt", "{home}/reference"),
        options=("--mount-ro", "~/reference", "--hide", "~/reference/plan.txt"),
    ),
    Mutant(
        *("hide: an old login", CREDENTIAL, "mounts=_hide_old_login(facts.claude, facts.tree),", "mounts=(),"),
        *("grep -o CANARY-old ~/.claude/.credentials.json", ".credentials.json"),
        options=BROKER,
    ),
    Mutant(
        *("hide: names of keys", KERNEL, '    "/proc/keys": "names of what you have unlocked",\n', ""),
        *("grep -q . /proc/keys && echo SHOWN", "/proc/key"),
    ),
    Mutant(
        *("hide: interrupts of a device", KERNEL, '    "/proc/irq": "the same, a file for each device",\n', ""),
        *("cat /proc/irq/*/spurious | grep -q . && echo SHOWN", "/proc/irq is open"),
    ),
    Mutant(
        *("hide: settings of the kernel", KERNEL, "(KERNEL_SETTINGS,), tuple(HIDDEN))", "(), tuple(HIDDEN))"),
        *(no_line("/proc/sys", "ro"), "/proc/sys"),
    ),
    Mutant(
        *("hide: root's part of the kernel", KERNEL),
        *("covered += covers(tree, ROOTS, ROOT_READ_ONLY, ROOT_HIDDEN)", "covered += []"),
        *(no_line("/proc/fs"), "/proc/"),
        needs="root",
    ),
    Mutant(
        *(
            "hide: tokens of a toolchain",
            "features/toolchains.py",
            "for place in environments for token in TOKENS)",
            "for place in environments for token in TOKENS[1:])",
        ),
        *("cat ~/.nvm/versions/node/*/etc/npmrc", "{home}/.nvm"),
    ),
    Mutant(
        *("hide: where a variable puts a secret place", "host/secrets.py", " GH_CONFIG_DIR=~/.config/gh", ""),
        *("cat ~/tools/gh/config.txt", "{home}/tools/gh"),
        options=("--mount-ro", "~/tools"),
    ),
    Mutant(
        *(
            "hide: what a secret place leads to",
            "host/secrets.py",
            "if real is not None and real != path:",
            "if False:",
        ),
        *("cat ~/dotfiles/kube/settings", "{home}/dotfiles"),
        options=("--mount-ro", "~/dotfiles"),
    ),
    Mutant(
        *("hide: no place is secret", "facts.py"),
        *("tuple(place for place in places if place.path not in self.shown_places)", "()"),
        *("cat ~/tools/gh/config.txt", "{home}/tools/gh"),
        options=("--mount-ro", "~/tools"),
    ),
    Mutant(
        *("hide: none in the Plan", "plan.py", "arrange(draft.mounts, draft.hides)", "arrange(draft.mounts)"),
        *("cat private/notes.txt", "{project}/private"),
        options=("--hide", "private"),
    ),
    # What nobody may ask for
    Mutant(
        *("refusal: of the home", WISHES, "if refusal := refuse(real, homes, places):", 'if refusal := "":'),
        *("cat /opt/home/other-project/notes.txt", "/opt/home"),
        options=("--mount-ro", "~:/opt/home"),
        is_refused=True,
    ),
    Mutant(
        *("refusal: of ~/.config", WISHES, "if refusal := refuse(real, homes, places):", 'if refusal := "":'),
        *("cat ~/.config/editor/settings", "{home}/.config"),
        options=("--mount-ro", "~/.config"),
        is_refused=True,
    ),
    Mutant(
        *("refusal: of the system, writable", WISHES, "refuse_writable if wish.access == RW else refuse_readable"),
        *("refuse_readable", line("/opt/usr", "rw"), "/opt/usr"),
        options=("--mount-rw", "/usr/share:/opt/usr"),
        is_refused=True,
    ),
    # Read-only becomes writable
    Mutant(
        *(
            "rw: the system",
            SYSTEM,
            "[Mount(RO, path, SYSTEM, source=path) for",
            '[Mount("rw", path, SYSTEM, source=path) for',
        ),
        *(line("/usr", "rw"), "/usr"),
    ),
    Mutant(
        *("rw: entries of /etc", SYSTEM, "Mount(RO, path, ETC, source=real)", 'Mount("rw", path, ETC, source=real)'),
        *(line("/etc/alternatives", "rw"), "/etc/"),
    ),
    Mutant(
        *("rw: name servers", "features/network/__init__.py"),
        *('Mount(RO, "/etc/resolv.conf"', 'Mount("rw", "/etc/resolv.conf"'),
        *(line("/etc/resolv.conf", "rw"), "/etc/resolv.conf"),
    ),
    Mutant(
        *("rw: a toolchain", "features/toolchains.py", "Mount(RO, tree, origin, source=tree,"),
        *('Mount("rw", tree, origin, source=tree,', line("$HOME/.nvm/[^ ]*", "rw"), "{home}/.nvm"),
    ),
    Mutant(
        *(
            "rw: Claude itself",
            PROGRAMS,
            "Mount(RO, file, origin, source=file,",
            'Mount("rw", file, origin, source=file,',
        ),
        *(line("$HOME/.local/share/claude[^ ]*", "rw"), "{home}/.local/share/claude"),
    ),
    Mutant(
        *("rw: your agents of Claude", CLAUDE, "Mount(RO, path, YOUR_CONFIGURATION, source=real))"),
        *('Mount("rw", path, YOUR_CONFIGURATION, source=real))', line("$HOME/.claude/agents", "rw"), ".claude/agents"),
    ),
    Mutant(
        *("rw: your CLAUDE.md", CLAUDE, 'Mount(RO, f"{home.place}/{name}"', 'Mount(RW, f"{home.place}/{name}"'),
        *(line("$HOME/.claude/CLAUDE.md", "rw"), ".claude/CLAUDE.md"),
    ),
    Mutant(
        *(
            "rw: what the agent is told",
            CLAUDE,
            'Mount(RO, f"{MANAGED}/SANDBOX.md"',
            'Mount(RW, f"{MANAGED}/SANDBOX.md"',
        ),
        *(line("/etc/claude-code/SANDBOX.md", "rw"), "/etc/claude-code/SANDBOX.md"),
    ),
    Mutant(
        *("rw: a held file", GUARD, "found.append(Mount(RO, path, origin,"),
        'found.append(Mount(RW if path.endswith(".git/config") else RO, path, origin,',
        *("test -w .git/config && echo SHOWN", "{project}/.git/config"),
    ),
    Mutant(
        *("rw: a directory that nothing holds", GUARD, "for guarded in guard.held:\n        is_dir"),
        'for guarded in (one for one in guard.held if not one.path.endswith("/hooks")):\n        is_dir',
        *("test -w .git/hooks/pre-commit && echo SHOWN", "{project}/.git/hooks"),
    ),
    Mutant(
        *("rw: --mount-ro", WISHES, "Mount(wish.access, path,", "Mount(RW, path,"),
        *(line("$HOME/reference/docs", "rw"), "{home}/reference/docs"),
        options=("--mount-ro", "~/reference/docs"),
    ),
    Mutant(
        *("rw: the project's settings", PROJECT, "file = [] if content is None else [", "file = [] if True else ["),
        *("test -w .claudebox.toml && echo SHOWN", ".claudebox.toml"),
    ),
    Mutant(
        *("rw: the box's root", ARGV, '("--remount-ro", "/"),', ""),
        *("mkdir /made && echo SHOWN", "/"),
    ),
    Mutant(
        *("rw: the box's /dev", ARGV, '("--remount-ro", "/dev"),', ""),
        *("mkdir /dev/made && echo SHOWN", "/dev"),
    ),
    # Symlinks
    Mutant(
        *("symlink: of the project, as a source", *option('("--ro-bind", f"{plan.project}/link", "/opt/link")')),
        *("cat /opt/link/id_ed25519", "/opt/link"),
    ),
    Mutant(
        *("symlink: of the project, by a feature",),
        *project_too('Mount("ro", "/opt/link", PROJECT, source=f"{facts.project}/link")'),
        *("cat /opt/link/id_ed25519", "/opt/link"),
        stopped_by="gate",
    ),
    Mutant(
        *("symlink: name servers of the agent", "features/network/__init__.py"),
        'Mount(RO, "/etc/resolv.conf", RESOLVER, source=real)',
        'Mount("symlink", "/etc/resolv.conf", RESOLVER, source=f"{facts.project}/resolv.conf")',
        *('readlink /etc/resolv.conf | grep -q "$PWD" && echo SHOWN', "/etc/resolv.conf"),
    ),
    Mutant(
        *(
            "symlink: Claude of the agent",
            PROGRAMS,
            "links = {path: install.real}",
            'links = {path: f"{project}/claude"}',
        ),
        *('readlink ~/.local/bin/claude | grep -q "$PWD" && echo SHOWN', "{home}/.local/bin/claude"),
    ),
    Mutant(
        *("symlink: programs of the agent", SYSTEM, "source=tree.link_target(path))"),
        'source="/tmp" if path == "/sbin" else tree.link_target(path))',
        *("readlink /sbin | grep -qx /tmp && echo SHOWN", "/sbin"),
    ),
    Mutant(
        *("symlink: above a writable mount", *grant('Mount(SYMLINK, "/var/cache", BOX, source="/tmp")')),
        *("test -d /tmp/claudebox && echo SHOWN", "/var/cache/claudebox"),
        stopped_by="bwrap",
    ),
    Mutant(
        *("symlink: in Claude's configuration, to where none may lead", "state/reach.py"),
        *("reason = self._objection(path, real)", 'reason = ""'),
        *("cat ~/.claude/commands/editor/settings", ".claude/commands"),
    ),
    Mutant(
        *("symlink: left in the project",),
        *project_too('Mount("symlink", f"{facts.project}/planted", PROJECT, source="/etc")'),
        *("readlink planted && echo SHOWN", "{project}/planted"),
    ),
    # Variables
    Mutant(
        *(
            "variable: one more in the table",
            "host/variables.py",
            '"EDITOR VISUAL"',
            '"EDITOR VISUAL AWS_SECRET_ACCESS_KEY"',
        ),
        *("echo $AWS_SECRET_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY"),
    ),
    Mutant(
        *("variable: past the Plan", LAUNCH, "environment = {variable.name: variable.value for"),
        'environment = {"GITHUB_TOKEN": os.environ["GITHUB_TOKEN"]} | {variable.name: variable.value for',
        *("echo $GITHUB_TOKEN", "GITHUB_TOKEN"),
    ),
    Mutant(
        *("variable: by an option of bwrap",),
        *option(f'("--setenv", "AWS_KEY", {HOST_VARIABLE.format("AWS_SECRET_ACCESS_KEY")})'),
        *("echo $AWS_KEY", "AWS_KEY"),
    ),
    Mutant(
        *(
            "variable: a secret as the name of the editor",
            ENVIRONMENT,
            "EnvVar(name, environ[name], Origin.of_rule(ALLOWED",
        ),
        'EnvVar(name, environ["AWS_SECRET_ACCESS_KEY"] if name == "EDITOR" else environ[name], Origin.of_rule(ALLOWED',
        *("echo $EDITOR", "EDITOR"),
    ),
    Mutant(
        *("variable: a secret as a switch", CLAUDE, '"DISABLE_AUTOUPDATER": "1"'),
        '"DISABLE_AUTOUPDATER": facts.host.environ["GITHUB_TOKEN"]',
        *("echo $DISABLE_AUTOUPDATER", "DISABLE_AUTOUPDATER"),
    ),
    Mutant(
        *("variable: one that the user keeps out", ENVIRONMENT, "by_name.pop(drop.text, None)", "pass"),
        *('test -n "$EDITOR" && echo SHOWN', "EDITOR"),
        options=("--drop-env", "EDITOR"),
    ),
    Mutant(
        *("variable: by the words before the program", ARGV, 'return ("--", *plan.wrapper, *plan.program.argv)'),
        f'return ("--", *plan.wrapper, "GITHUB_TOKEN=" + {HOST_VARIABLE.format("GITHUB_TOKEN")}, *plan.program.argv)',
        *("echo $GITHUB_TOKEN", "GITHUB_TOKEN"),
    ),
    # What the broker keeps
    Mutant(
        *("broker: the key in the environment", CREDENTIAL),
        *("kept_out=tuple(kept_out(broker, facts.host, facts.settings[ENV]).items()),", "kept_out=(),"),
        *("echo $ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY"),
        options=BROKER,
    ),
    Mutant(
        *("broker: the key in the place of the token", CREDENTIAL, "made = {broker.token_name: token,"),
        "made = {broker.token_name: os.environ.get(broker.variable, token),",
        *("echo $ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN"),
        options=BROKER,
    ),
    Mutant(
        *("broker: the key in bwrap's command line",),
        *option(f'("--setenv", "K", {HOST_VARIABLE.format("ANTHROPIC_API_KEY")}), ("--unsetenv", "K")'),
        *("tr '\\0' ' ' </proc/1/cmdline | grep -o sk-ant-api03-CANAR[Y]7f", "ANTHROPIC_API_KEY"),
        options=BROKER,
    ),
    Mutant(
        *("broker: the key as the terminal, by an option of bwrap", LAUNCH),
        *(
            "argv = [plan.bwrap, *options,",
            'argv = [plan.bwrap, "--setenv", "TERM", os.environ["ANTHROPIC_API_KEY"], *options,',
        ),
        *("echo $TERM", "TERM"),
        options=BROKER,
    ),
    Mutant(
        *(
            "broker: a token of the login as a variable",
            CREDENTIAL,
            'EnvVar("ENABLE_TOOL_SEARCH", "true", ROUTE, is_ours=True),',
        ),
        'EnvVar("ENABLE_TOOL_SEARCH", _login(tree, broker.login)["refreshToken"], ROUTE, is_ours=True),',
        *("echo $ENABLE_TOOL_SEARCH", "ENABLE_TOOL_SEARCH"),
        options=BROKER,
    ),
    Mutant(
        *("broker: the login under another name", CREDENTIAL, "mounts=_hide_old_login(facts.claude, facts.tree),"),
        'mounts=(Mount("ro", "/opt/login", OLD_LOGIN, source=broker.login),),',
        *("cat /opt/login", "/opt/login"),
        options=BROKER,
    ),
    # Descriptors
    Mutant(
        *("descriptor: the home", *descriptor("os.open(plan.person.home, os.O_RDONLY)")),
        *("cat /proc/self/fd/99/.ssh/id_ed25519", "99"),
    ),
    Mutant(
        *("descriptor: a file of the home", *descriptor('os.open(f"{plan.person.home}/.ssh/id_ed25519", os.O_RDONLY)')),
        *("cat /proc/self/fd/99", "99"),
    ),
    Mutant(
        *("descriptor: a socket of the host's network", *descriptor('__import__("socket").socket().detach()')),
        *("readlink /proc/$$/fd/99 | grep -q socket && echo SHOWN", "99"),
        options=NONE,
    ),
    Mutant(
        *("descriptor: the host's /proc", *descriptor('os.open("/proc", os.O_RDONLY)')),
        *(there("/proc/self/fd/99/1/comm"), "99"),
    ),
    Mutant(
        *("descriptor: a process of the host", *descriptor("os.pidfd_open(os.getpid())")),
        *("readlink /proc/$$/fd/99 | grep -q pid && echo SHOWN", "99"),
    ),
    Mutant(
        *(
            "descriptor: one of the caller",
            "process/isolation.py",
            "FIRST_DATA_DESCRIPTOR = 3",
            "FIRST_DATA_DESCRIPTOR = 10",
        ),
        *("cat /proc/self/fd/9/.ssh/id_ed25519", "9"),
    ),
    Mutant(
        *("descriptor: standard input is the user's file", "process/isolation.py"),
        *("    if not stat.S_ISREG(os.fstat(0).st_mode):", "    if True:"),
        *("readlink /proc/$$/fd/0 | grep -q prompt.txt && echo SHOWN", "prompt.txt"),
    ),
    # Namespaces
    Mutant(
        *("namespace: pid", ARGV, '("--unshare-pid", "--unshare-ipc"', '("--unshare-ipc"'),
        *("true", "pid"),
        stopped_by="bwrap",
    ),
    Mutant(
        *("namespace: ipc", ARGV, '"--unshare-ipc", ', "", namespace("ipc"), "ipc"),
    ),
    Mutant(
        *("namespace: uts", ARGV, '"--unshare-uts", "--unshare-cgroup"),\n        ("--hostname", plan.hostname),'),
        *('"--unshare-cgroup"),', namespace("uts"), "uts"),
    ),
    Mutant(
        *("namespace: cgroup", ARGV, ', "--unshare-cgroup"', "", namespace("cgroup"), "cgroup"),
    ),
    Mutant(
        *("namespace: net", ARGV, '[("--unshare-net",)]', "[]"),
        *(namespace("net"), "net"),
        options=NONE,
    ),
    Mutant(
        *("namespace: net, by another tier", ARGV, "plan.network.is_hosts or", 'plan.network.tier != "inet" or'),
        *(namespace("net"), "net"),
        options=NONE,
    ),
    Mutant(
        *("namespace: user", ARGV),
        *('("--unshare-user", "--uid", str(plan.person.uid), "--gid", str(plan.person.gid)),', ""),
        *("test $(id -u) = 0 && echo SHOWN", "user"),
        options=("--userns", "on"),
        needs="user",
    ),
    # Ids, groups, capabilities
    Mutant(
        *(
            "capability: dac_override",
            ARGV,
            '("--cap-drop", "ALL"),',
            '("--cap-drop", "ALL", "--cap-add", "CAP_DAC_OVERRIDE"),',
        ),
        *(CAPABILITIES, "capabilit"),
    ),
    Mutant(
        *(
            "capability: sys_admin",
            ARGV,
            '("--cap-drop", "ALL"),',
            '("--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN"),',
        ),
        *(CAPABILITIES, "capabilit"),
    ),
    Mutant(
        *("capability: within bounds", ARGV, '("--cap-drop", "ALL"),', ""),
        *(CAPABILITIES.replace("Eff", "Bnd"), "capabilit"),
    ),
    Mutant(
        *("id: root in the box", ARGV, '"--uid", str(plan.person.uid),', '"--uid", "0",'),
        *("test $(id -u) = 0 && echo SHOWN", "uid"),
    ),
    Mutant(
        *("id: group of root in the box", ARGV, '"--gid", str(plan.person.gid)', '"--gid", "0"'),
        *("test $(id -g) = 0 && echo SHOWN", "gid"),
    ),
    Mutant(
        *(
            "id: root stays root",
            SYSTEM,
            "    if person.uid != 0:\n        return person\n",
            "    if True:\n        return person\n",
        ),
        *("test $(id -u) = 0 && echo SHOWN", "uid"),
        needs="root",
    ),
    Mutant(
        *("group: kept", LAUNCH, "os.setgroups([])", "os.setgroups([4, 27])"),
        *("grep -q 'Groups:.*[0-9]' /proc/self/status && echo SHOWN", "group"),
        needs="root",
    ),
    # Decoys. What keeps them on is taken away as well: it would mend the box a moment later
    Mutant(
        *("decoy: not mounted", SECRETS, MASKS, masks("()")),
        *("cat .env", "{project}/.env"),
    ),
    Mutant(
        *(
            "decoy: over another file",
            SECRETS,
            MASKS,
            masks('(one.replace(path=one.path + ".example") for one in masks)'),
        ),
        *("cat .env", "{project}/.env"),
    ),
    Mutant(
        *("decoy: with the true content", SECRETS, MASKS),
        masks("(one.replace(content=facts.tree.read(one.covers)) for one in masks)"),
        *("cat .env", "{project}/.env"),
    ),
    Mutant(
        *("decoy: at one of two places", SECRETS, MASKS, masks("masks[:1]")),
        *("cat .env /opt/shop/.env", "/.env"),
        options=("--mount-ro", "~/src/shop:/opt/shop"),
    ),
    Mutant(
        *("decoy: writable", ARGV, 'return [("--ro-bind", source, path)]'),
        'return [("--bind" if mount.kind == model.MASK else "--ro-bind", source, path)]',
        *(line("$PWD/.env", "rw"), "{project}/.env"),
        stopped_by="gate",
    ),
    Mutant(
        *("gate: something is bared behind it", SECRETS, "        return decoys.made(launch, root)\n"),
        """\
        deed = decoys.made(launch, root)
        import os
        from claudebox.files import c_call
        from claudebox.process.companion import enter_as_owner
        if (child := os.fork()) == 0:
            enter_as_owner(os.path.dirname(root) + "/ns/mnt", 0x20000)
            c_call("umount2", f"{launch.plan.project}/.git/config".encode(), 2)
            os._exit(0)
        os.waitpid(child, 0)
        return deed
""",
        *("test -w .git/config && echo SHOWN", "{project}/.git/config"),
        stopped_by="gate",
    ),
    # Layers
    Mutant(
        *("layer: none, and the project is written at once", REVIEW),
        "if not (facts.is_reviewed or layered) or (said.origin.is_default and facts.why_no_layers):",
        "if facts.is_reviewed or not layered or (said.origin.is_default and facts.why_no_layers):",
        *(no_line("$PWD .* - overlay"), "{project}"),
        options=("--review",),
        needs="overlay",
    ),
    Mutant(
        *("layer: none, and what is guarded is written at once", REVIEW),
        "if not (facts.is_reviewed or layered) or (said.origin.is_default and facts.why_no_layers):\n"
        "            return Contribution()",
        "if layered:\n            return Contribution(mounts=tuple(mount.replace(kind=RW) for mount in layered))",
        *(no_line("$PWD/.github .* - overlay"), "{project}/.github"),
        needs="overlay",
    ),
    Mutant(
        *("layer: over another directory as well", MOUNTING, 'names = {"lowerdir": lowers,'),
        'lowers = (*lowers, files.open_directory(covered.path + "/../other"))\n    names = {"lowerdir": lowers,',
        *("cat beside.txt", "{project}"),
        options=("--review",),
        needs="overlay",
    ),
    Mutant(
        *("layer: with a live directory in it", MOUNTING),
        "direct = {one.path: _open_direct(one) for one in review.direct}",
        'direct = {f"{review.project}/.github": _open_direct(Covered(f"{review.project}/.github", UNSEEN))}',
        *(line("$PWD/.github", "rw"), "{project}/.github"),
        options=("--review",),
        needs="overlay",
    ),
    # Mounts in the builder's own namespace
    Mutant(
        *("builder: ~/.ssh over a directory of the project", MOUNTING, "    numbers = {covered.path: number for"),
        "    home = launch.plan.person.home\n"
        '    c_call("mount", f"{home}/.ssh".encode(), f"{review.project}/docs".encode(), b"", BIND_ALL, 0)\n'
        "    numbers = {covered.path: number for",
        *("cat docs/id_ed25519", "{project}/docs"),
        needs="overlay",
    ),
    Mutant(
        *("builder: the home over a directory of the system",),
        *before_bwrap('c_call("mount", plan.person.home.encode(), b"/usr/share/doc", b"", 0x5000, 0)'),
        *("cat /usr/share/doc/.ssh/id_ed25519", "/usr/share/doc"),
    ),
    Mutant(
        *("builder: a file over a file of the project",),
        *before_bwrap(
            'c_call("mount", f"{plan.person.home}/.aws/credentials".encode(), '
            'f"{plan.project}/README.md".encode(), b"", 0x5000, 0)'
        ),
        *("cat README.md", "{project}/README.md"),
    ),
    Mutant(
        *(
            "flags: devices in the project",
            ARGV,
            'return [("--bind", source, path)]',
            'return [("--dev-bind", source, path)]',
        ),
        *('grep " $PWD rw" /proc/self/mountinfo | grep -qv nodev && echo SHOWN', "{project}"),
    ),
    # State
    Mutant(
        *("state: of another project", CLAUDE, "Mount(RW, home.place, HISTORY, source=home.state)"),
        "Mount(RW, home.place, HISTORY, "
        'source=home.all_projects.instance(f"{home.all_projects.home}/other-project").claude)',
        *("cat ~/.claude/history.jsonl", "{home}/.claude"),
    ),
    Mutant(
        *(
            "state: of all projects",
            *config('Mount(RO, "/var/lib/boxes", HISTORY, source=home.all_projects.instances)'),
        ),
        *("cat /var/lib/boxes/*/claude/history.jsonl", "/var/lib/boxes"),
    ),
    Mutant(
        *("state: all of ~/.claudebox",),
        *late_grant('Mount(RO, "/etc/claudebox/state", ORIGIN, source=f"{facts.home}/.claudebox")'),
        *("cat /etc/claudebox/state/instances/*/claude/history.jsonl", "/etc/claudebox/state"),
    ),
    Mutant(
        *("state: cache of another project", "features/caches.py", "source=state.cache)"),
        'source=facts.claude.all_projects.instance(f"{facts.home}/other-project").cache)',
        *("cat /var/cache/claudebox/pip/wheel", "/var/cache/claudebox"),
    ),
    Mutant(
        *("state: what the user agreed to",),
        *config('Mount(RW, "/var/lib/box", HISTORY, source=home.instance.directory)'),
        *(there("/var/lib/box/project"), "/var/lib/box"),
    ),
    # Sockets of the host
    Mutant(
        *("socket: agent of SSH",),
        *late_grant('Mount(RO, "/run/agent", ORIGIN, source=facts.host.environ["SSH_AUTH_SOCK"], is_dir=False)'),
        *("test -S /run/agent && echo SHOWN", "/run/agent"),
    ),
    Mutant(
        *("socket: Docker", *option('("--bind", "/run/docker.sock", "/run/docker.sock")')),
        *("test -S /run/docker.sock && echo SHOWN", "/run/docker.sock"),
    ),
    Mutant(
        *("socket: system D-Bus", *late_grant('Mount(RO, "/run/dbus", ORIGIN, source="/run/dbus")')),
        *("test -S /run/dbus/system_bus_socket && echo SHOWN", "/run/dbus"),
    ),
    Mutant(
        *("socket: X11", *option('("--ro-bind", "/tmp/.X11-unix", "/tmp/.X11-unix")')),
        *("test -S /tmp/.X11-unix/X0 && echo SHOWN", "/tmp/.X11-unix"),
    ),
    Mutant(
        *("socket: /run/user of the host", *option('("--bind", "/run/user", "/opt/run")')),
        *("ls /opt/run/*/bus && echo SHOWN", "/opt/run"),
    ),
    # What the kernel shows
    Mutant(
        *("kernel: /proc of the builder", ARGV, 'return [("--proc", path)]', 'return [("--bind", path, path)]'),
        *('read -r pid rest </proc/self/stat; test "$pid" = $$ || echo SHOWN', "/proc"),
    ),
    Mutant(
        *("kernel: /dev of the host", ARGV, 'return [("--dev", path)]', 'return [("--dev-bind", path, path)]'),
        *(there("/dev/net/tun"), "/dev"),
    ),
    Mutant(
        *("kernel: a device", *option('("--dev-bind", "/dev/net/tun", "/dev/net/tun")')),
        *(there("/dev/net/tun"), "/dev/net/tun"),
    ),
    Mutant(
        *("kernel: a device as a file of /tmp", *option('("--dev-bind", "/dev/net/tun", "/tmp/tun")')),
        *("test -c /tmp/tun && echo SHOWN", "/tmp/tun"),
    ),
    Mutant(
        *("kernel: /sys", *grant('Mount(RO, "/sys", BOX, source="/sys")')),
        *(there("/sys/kernel"), "/sys"),
    ),
    Mutant(
        *("kernel: shared memory of the host", SYSTEM),
        'Mount(TMPFS, "/dev/shm", BOX, mode=0o1777, size=size // 4),',
        'Mount("rw", "/dev/shm", BOX, source="/dev/shm"),',
        *("cat /dev/shm/host-file", "/dev/shm"),
    ),
    Mutant(
        *("kernel: /tmp of the host", SYSTEM, 'Mount(TMPFS, "/tmp", BOX, mode=0o1777, size=size),'),
        *('Mount("rw", "/tmp", BOX, source="/tmp"),', "cat /tmp/host-file", "/tmp"),
    ),
    Mutant(
        *("kernel: control groups", *option('("--bind", "/sys/fs/cgroup", "/sys/fs/cgroup")')),
        *(there("/sys/fs/cgroup"), "/sys/fs/cgroup"),
    ),
    Mutant(
        *("kernel: terminals of the host", *option('("--dev-bind", "/dev/pts", "/dev/pts")')),
        *('grep -qx "pts:$(stat -c %d /dev/pts)" host-namespaces && echo SHOWN', "/dev/pts"),
    ),
    # Copies: no mount leads to these secrets
    Mutant(
        *("copy: git's passwords in ~/.gitconfig", GIT, "as_lines(carried)"),
        "as_lines(carried) + [f\"# {facts.tree.text(facts.home + '/.git-credentials')}\"]",
        *("cat ~/.gitconfig", ".gitconfig"),
    ),
    Mutant(
        *("copy: another name of a key",),
        *before_bwrap('os.link(f"{plan.person.home}/.ssh/id_ed25519", f"{plan.state.claude}/key")'),
        *("cat ~/.claude/key", "{home}/.ssh"),
    ),
    # What others own, writable
    Mutant(
        *("writable: another project",),
        *project_too('Mount("rw", f"{facts.home}/other-project", PROJECT, source=f"{facts.home}/other-project")'),
        *("cat ~/other-project/notes.txt", "{home}/other-project"),
    ),
    Mutant(
        *("writable: another project's git", GIT, "mounts=(*shown, *config, *lfs),"),
        'mounts=(*shown, *config, *lfs, Mount(RW, "/opt/git", ORIGIN, source=f"{facts.home}/other-project/.git")),',
        *(line("/opt/git", "rw"), "/opt/git"),
    ),
    Mutant(
        *("writable: the directory above the project",),
        *project_too('Mount("rw", facts.project.rpartition("/")[0], PROJECT, source=facts.project.rpartition("/")[0])'),
        *(line("$HOME/src", "rw"), "{home}/src"),
    ),
    Mutant(
        *(
            "writable: the directory above what the user names",
            WISHES,
            "wish.origin, source=real, is_dir=tree.is_dir(real))",
        ),
        "wish.origin, source=posixpath.dirname(real), is_dir=tree.is_dir(real))",
        *("cat ~/reference/docs/plan.txt", "{home}/reference/docs"),
        options=("--mount-rw", "~/reference/docs"),
    ),
    # The filter of system calls
    Mutant(
        *(
            "seccomp: everything is allowed",
            LAUNCH,
            "Gate(plan.kernel.seccomp,",
            'Gate(b"\\6\\0\\0\\0\\0\\0\\xff\\x7f" * 4,',
        ),
        *("touch /tmp/x && chmod u+s /tmp/x && echo SHOWN", "seccomp"),
    ),
    Mutant(
        *("seccomp: another filter", KERNEL, "call_filter(host.machine, with_namespaces=has_userns,"),
        "call_filter(host.machine, with_namespaces=True,",
        *(CALL.format('print("SHOWN" if c.syscall(435, 0, 0) and ctypes.get_errno() != 38 else "")'), "seccomp"),
    ),
    Mutant(
        *("seccomp: setgid allowed", KERNEL, "with_setgid=facts.is_shared", "with_setgid=True"),
        *("touch /tmp/x && chmod g+s /tmp/x && echo SHOWN", "seccomp"),
    ),
    Mutant(
        *(
            "seccomp: a shorter table",
            "sandbox/seccomp.py",
            "modes = SETUID if with_setgid else SETUID | SETGID",
            "modes = SETGID",
        ),
        *("touch /tmp/x && chmod u+s /tmp/x && echo SHOWN", "seccomp"),
    ),
    Mutant(
        *("seccomp: no option for it", ARGV, '("--seccomp", Data(plan.kernel.seccomp, SECCOMP)),', ""),
        *("grep -q 'Seccomp:.*0' /proc/self/status && echo SHOWN", "seccomp"),
        stopped_by="launch",
    ),
    # Who and where the box is
    Mutant(
        *(
            "identity: name of the host",
            ARGV,
            '("--hostname", plan.hostname)',
            '("--hostname", __import__("os").uname().nodename)',
        ),
        *("test $(uname -n) != claudebox && echo SHOWN", "host"),
    ),
    Mutant(
        *(
            "identity: one more entry of /etc",
            SYSTEM,
            "for name in (*OF_ETC, *java):",
            'for name in ("hostname", *OF_ETC, *java):',
        ),
        *(there("/etc/hostname"), "/etc/hostname"),
    ),
    Mutant(
        *("identity: accounts of the host", *option('("--ro-bind", "/etc/passwd", "/etc/passwd")')),
        *("grep -q ^claudebox-test-9: /etc/passwd && echo SHOWN", "/etc/passwd"),
    ),
)
