"""What the law says of machines that do not exist: what a box there may have, whatever the features decide."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from claudebox.features import toolchains
from claudebox.host import toolchains as known
from claudebox.host.secrets import SECRET_PLACES
from claudebox.host.system import NIX_SOCKETS, NIX_STORE
from claudebox.host.variables import KEY, KINDS, STAYS
from claudebox.overlay import table as guard
from claudebox.sandbox import law as laws
from claudebox.sandbox.judge import LATER, NEVER, READ, WRITE
from claudebox.sandbox.law import Law
from claudebox.state import LOGIN_FILE, instance_name
from hosts.machine import EVERYONE, TREES, Machine, debian

pytestmark = pytest.mark.req("JUDGE-01")

NOTHING = None  # no rule: no box may have it
HOME, SHOP = "/home/alice", "/home/alice/shop"
KEPT = f"{HOME}/.claudebox/instances/{instance_name(SHOP)}"
TOKEN = "ghp_CANARY7f3Kq9ZpX2vB8nM4tR6yW1sD5gH0"
API_KEY = "sk-ant-api03-CANARY7f3Kq9ZpX2vB8nM4tR6yW1sD5gH0jL"
LOGIN = '{"claudeAiOauth": {"accessToken": "sk-ant-oat01-CANARY-4f7Kq9Zp", "scopes": ["user:inference"]}}'


def law_of(machine: Machine, *words: str) -> Law:
    law = machine.plan(*words).law
    assert law is not None
    return law


def access(law: Law, path: str) -> int | None:
    rule = law.nearest(path)
    is_meant = rule is not None and (rule.access == NEVER or rule.has_programs or rule.means(path))
    return rule.access if rule is not None and is_meant else NOTHING


@dataclass
class Case:
    expected: dict[str, int | None]  # `~` is the home, `.` the project
    words: tuple[str, ...] = ()
    plant: str = ""
    environ: dict[str, str] = field(default_factory=dict)


def expanded(path: str) -> str:
    return f"{SHOP}{path[1:]}" if path.startswith(".") else f"{HOME}{path[1:]}" if path.startswith("~") else path


OTHERS = "~/lib/x\n~/data/deep/x\n"
WORKFLOW = "~/shop/.github/workflows/ci.yml\n~/shop/.envrc\n~/shop/.claude/settings.json\n~/shop/.claude/notes.md\n"
NVM = "~/.nvm/versions/node/v20/bin/node*\n~/.cargo/bin/cargo*\n~/.cargo/credentials.toml\n"
NIX_HOST = (TREES / "debian12-nix.txt").read_text()
ENV_FILE = f"~/shop/.env: DB_PASSWORD={TOKEN}\\n\n"
CASES = {
    # The project.
    "the project is writable": Case({".": WRITE, "./src/deep": WRITE, "~/shop2": NOTHING, "~/other": NOTHING}),
    "and nothing around it": Case({"~": NOTHING, "/": NOTHING, "/home": NOTHING, "/home/bob": NOTHING}),
    "in a review it lands later": Case({".": LATER, "./src": LATER}, ("--review",)),
    "without layers it is writable": Case({".": WRITE}, ("--review", "off")),
    # Its state, and that of others.
    "the state of this project": Case(
        {
            f"{KEPT}/claude/projects": WRITE,
            f"{KEPT}/cache/pip": WRITE,
            f"{KEPT}/auth": WRITE,
            f"{KEPT}/masks/1": READ,
            f"{KEPT}/SANDBOX.md": READ,
            f"{KEPT}/layers": NEVER,
            f"{KEPT}/project": NEVER,
            f"{HOME}/.claudebox/instances/0000000000000000/claude": NEVER,
            f"{HOME}/.claudebox/config.toml": NEVER,
        },
        plant="~/.claudebox/config.toml\n",
    ),
    "the login of boxes is no business of a box with a broker": Case(
        {f"{KEPT}/auth": NOTHING, f"{KEPT}/claude": WRITE, f"{KEPT}/claude/{LOGIN_FILE}": NEVER},
        ("--auth", "broker"),
        environ={"ANTHROPIC_API_KEY": API_KEY},
    ),
    "nor of one without a login": Case({f"{KEPT}/auth": NOTHING}, ("--auth", "none")),
    # The system.
    "the system is read-only": Case(
        {
            "/usr/bin/env": READ,
            "/usr/local/bin": READ,
            "/etc/ssl/certs": READ,
            "/etc/resolv.conf": READ,
            "/etc/java-17-openjdk/security": READ,
        }
    ),
    "but not all of /etc": Case(
        {
            "/etc": NOTHING,
            "/etc/passwd": NOTHING,
            "/etc/hostname": NOTHING,
            "/etc/machine-id": NOTHING,
            "/etc/shadow": NEVER,
            "/etc/ssl/private": NEVER,
            "/etc/ssl": NOTHING,
            "/etc/ssh/ssh_host_ed25519_key": NEVER,
            "/etc/sudoers": NEVER,
        }
    ),
    "nothing of the kernel, of sockets and of other accounts": Case(
        {
            "/proc/sys": NOTHING,
            "/sys": NOTHING,
            "/dev/sda": NOTHING,
            "/run/user/1000/bus": NEVER,
            "/run/docker.sock": NEVER,
            "/var/lib/docker/overlay2": NEVER,
            "/root": NOTHING,
            "/var": NOTHING,
        },
        plant="/run/user/1000/bus\n/run/docker.sock\n/var/lib/docker/overlay2/x\n",
    ),
    # What the user names.
    "read-only": Case({"~/lib": READ, "~/lib/x": READ, "~/data": NOTHING}, ("--mount-ro", "~/lib"), OTHERS),
    "writable": Case({"~/lib/x": WRITE, "~/data": NOTHING}, ("--mount-rw", "~/lib"), OTHERS),
    "one in the other": Case(
        {"~/data": READ, "~/data/x": READ, "~/data/deep": WRITE, "~/data/deep/x": WRITE},
        ("--mount-ro", "~/data", "--mount-rw", "~/data/deep"),
        OTHERS,
    ),
    "what is named read-only does not narrow the project": Case(
        {"./src": WRITE, ".": WRITE}, ("--mount-ro", "~/shop/src"), "~/shop/src/x\n"
    ),
    "what is named writable is so in a review, too": Case(
        {".": LATER, "./src/x": WRITE}, ("--review", "--mount-rw", "~/shop/src"), "~/shop/src/x\n"
    ),
    "a symlink counts as what it leads to": Case(
        {"~/data/deep/x": READ, "~/link": NOTHING}, ("--mount-ro", "~/link"), f"{OTHERS}~/link -> data/deep\n"
    ),
    # What is hidden.
    "a hide beats the project": Case({"./private": NEVER, "./private/x": NEVER, ".": WRITE}, ("--hide", "private")),
    "a hide beats a mount below it": Case(
        {"~/data": NEVER, "~/data/deep/x": NEVER},
        ("--mount-rw", "~/data/deep", "--hide", "~/data"),
        OTHERS,
    ),
    "a hide beats a mount of the same": Case({"~/lib": NEVER}, ("--mount-ro", "~/lib", "--hide", "~/lib"), OTHERS),
    "a hide beats the system": Case({"/usr/share": NEVER, "/usr/bin": READ}, ("--hide", "/usr/share")),
    "a hide counts where a symlink leads": Case(
        {"~/data/deep/x": NEVER}, ("--hide", "~/link"), "~/link -> data/deep\n"
    ),
    "a hide beats toolchains": Case({"~/.nvm/versions/node/v20": NEVER}, ("--hide", "~/.nvm"), NVM),
    # What is held, and what is masked.
    "what this host obeys lands later": Case(
        {
            "./.github/workflows/ci.yml": LATER,
            "./.envrc": LATER,
            "./.claude/settings.json": LATER,
            "./.claude/notes.md": WRITE,
            "./.git/config": LATER,
            "./.git/HEAD": WRITE,
            "./.vscode": WRITE,  # there is none
        },
        plant=WORKFLOW,
    ),
    "but for what the user opens": Case(
        {"./.github/workflows/ci.yml": WRITE, "./.envrc": LATER}, ("--writable", ".github"), WORKFLOW
    ),
    "which counts for nothing in a review": Case(
        {"./.github/workflows/ci.yml": LATER, ".": LATER}, ("--review", "--writable", ".github"), WORKFLOW
    ),
    "a file with secrets is never there": Case({"./.env": NEVER, ".": WRITE}, plant=ENV_FILE),
    "in a review neither": Case({"./.env": NEVER, ".": LATER}, ("--review",), plant=ENV_FILE),
    "unless the user names it": Case({"./.env": WRITE}, ("--mount-ro", ".env"), plant=ENV_FILE),
    # Toolchains.
    "toolchains are bound": Case(
        {"~/.nvm/versions/node/v20": READ, "~/.cargo/bin": READ, "~/.cargo/registry": NOTHING}, plant=NVM
    ),
    "and what is secret in them is not there": Case({"~/.cargo/credentials.toml": NEVER}, plant=NVM),
    "or are not there at all": Case(
        {"~/.nvm/versions": NOTHING, "~/.cargo/bin": NOTHING, "~/.local/bin": NOTHING}, ("--toolchains", "off"), NVM
    ),
    "a variable puts one elsewhere": Case(
        {"~/tools/nvm/versions/node/v20": READ, "~/tools/nvm": NOTHING, "~/tools": NOTHING},
        environ={"NVM_DIR": f"{HOME}/tools/nvm"},
    ),
    "but not outside of the home": Case({"/srv/nvm": NOTHING, "~": NOTHING}, environ={"NVM_DIR": "/srv/nvm"}),
    "nor is it the home itself": Case({"~": NOTHING, "~/x": NOTHING}, environ={"GOPATH": HOME}),
    # Nix.
    "the store is there if Nix may be": Case({f"{NIX_STORE}/x": READ, NIX_SOCKETS: READ}),
    "and not if it may not": Case({f"{NIX_STORE}/x": NOTHING, NIX_SOCKETS: NOTHING}, ("--nix", "off")),
    "a store without a daemon": Case({f"{NIX_STORE}/x": READ, NIX_SOCKETS: NEVER}, ("--nix", "store"), NIX_HOST),
    "no daemon where there is no network": Case({NIX_SOCKETS: NEVER}, ("--network", "none"), NIX_HOST),
    "no daemon but by a word for it": Case({NIX_SOCKETS: READ}, ("--nix", "daemon", "--network", "none"), NIX_HOST),
    # Words for claude.
    "directories that claude may change": Case(
        {"~/lib": WRITE, "~/data/deep": WRITE, "~/data": NOTHING}, ("--add-dir", "../lib", "../data/deep"), OTHERS
    ),
    "in one word": Case({"~/lib": WRITE}, ("--add-dir=../lib",), OTHERS),
    "a file with settings is read": Case({"~/lib/x": READ, "~/lib": NOTHING}, ("--settings", "../lib/x"), OTHERS),
    "a word of claude means nothing to another program": Case(
        {"~/lib": NOTHING}, ("--run", "true", "--add-dir", "../lib"), OTHERS
    ),
    "no word makes the home, or a secret, visible": Case(
        {"~": NOTHING, "~/.ssh": NEVER, "/": NOTHING, "~/.aws/credentials": NEVER},
        ("-p", "/", "~", "~/.ssh", "../.aws/credentials"),
    ),
    "a prompt that is a path does not narrow the project": Case(
        {".": WRITE, "./README.md": WRITE, "./src": WRITE}, ("-p", "README.md"), "~/shop/src/x\n"
    ),
    "not even the project itself": Case({".": WRITE, "./README.md": WRITE}, ("-p", SHOP)),
    "nor what is reviewed": Case({".": LATER, "./README.md": LATER}, ("--review", "--", "-p", SHOP, "README.md")),
    "nor what is held": Case({"./.envrc": LATER}, ("-p", ".envrc"), WORKFLOW),
    "nor what is masked": Case({"./.env": NEVER}, ("-p", ".env"), ENV_FILE),
    # The user's own configuration of Claude.
    "the user's own agents are read": Case(
        {"~/.claude/agents": READ, "~/.claude": NEVER, f"~/.claude/{LOGIN_FILE}": NEVER, "~/.claude.json": NEVER},
        plant="~/.claude/agents/x.md\n~/.claude.json: {}\n",
    ),
    "a symlink among them counts, but not to a secret": Case(
        {"~/dotfiles/agents": READ, "~/.ssh": NEVER, "~/.claude/commands": NEVER},
        plant="~/dotfiles/agents/x.md\n~/.claude/agents -> ../dotfiles/agents\n~/.claude/commands -> ../.ssh\n",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_how_much_of_a_place(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    machine = debian(tmp_path, case.plant)
    machine.environ |= case.environ
    law = law_of(machine, *case.words)
    assert {path: access(law, expanded(path)) for path in case.expected} == case.expected


def test_every_secret_place_is_never(tmp_path: Path) -> None:
    wanted = [written for written, _ in SECRET_PLACES if not written.startswith("/nix/var/nix")]
    law = law_of(debian(tmp_path, "".join(f"{written}{': {}' if '.json' in written else '/'}\n" for written in wanted)))
    assert {written: access(law, expanded(written)) for written in wanted} == dict.fromkeys(wanted, NEVER)
    # What does not exist needs no rule: nothing allows it.
    without = law_of(debian(tmp_path / "bare"))
    assert {access(without, expanded(written)) for written in wanted} == {NEVER, NOTHING}


def test_secret_place_that_is_a_symlink_is_never_where_it_leads(tmp_path: Path) -> None:
    law = law_of(debian(tmp_path, "~/dotfiles/ssh/id\n~/.ssh -> dotfiles/ssh\n"))
    assert (access(law, f"{HOME}/dotfiles/ssh/id"), access(law, f"{HOME}/dotfiles")) == (NEVER, NOTHING)


def test_symlinked_home(tmp_path: Path) -> None:
    """The law is about places, and so about real paths."""
    machine = debian(tmp_path, "/home/alice -> /data/people/alice\n", home="/data/people/alice")
    machine.environ["HOME"] = "/home/alice"
    machine.plant("~/.nvm/versions/node/v20/bin/node*\n")
    law = law_of(machine)
    assert access(law, "/data/people/alice/shop/x") == WRITE
    assert access(law, "/data/people/alice/.ssh/id_ed25519") == NEVER
    assert access(law, "/data/people/alice/.nvm/versions/node/v20") == READ
    assert access(law, "/data/people/alice/other") == NOTHING


def test_worktree_has_its_repository(tmp_path: Path) -> None:
    machine = debian(
        tmp_path,
        "~/wt/.git: gitdir: ~/main/.git/worktrees/wt\\n\n"
        "~/main/.git/worktrees/wt/HEAD: ref: refs/heads/topic\\n\n"
        "~/main/.git/worktrees/wt/gitdir: ~/wt/.git\\n\n"
        "~/main/.git/worktrees/wt/commondir: ../..\\n\n"
        "~/main/.git/HEAD: ref: refs/heads/main\\n\n~/main/.git/objects/\n~/main/.git/refs/\n~/main/.git/config\n"
        "~/main/.git/hooks/pre-commit*\n~/main/README.md\n",
    )
    machine.cwd = f"{HOME}/wt"
    law = law_of(machine)
    assert access(law, f"{HOME}/main/.git/objects") == WRITE
    assert access(law, f"{HOME}/main/.git/hooks/pre-commit") == LATER
    assert access(law, f"{HOME}/main/.git/config") == LATER
    assert access(law, f"{HOME}/main/README.md") == NOTHING


NIXOS_PATH = f"{HOME}/.local/bin:/etc/profiles/per-user/alice/bin:/run/current-system/sw/bin"
MACHINES: dict[str, dict[str, object]] = {
    **{name: {} for name in ("alpine", "arch", "debian9", "debian12-nix", "fedora", "opensuse", "ubuntu2404", "wsl")},
    "nixos": {"environ": {"PATH": NIXOS_PATH}, "python": "/nix/store/hhh-python3-3.12/bin/python3.12"},
    "silverblue": {"environ": {"HOME": HOME}, "home": "/var/home/alice"},
}


@pytest.mark.parametrize("tree", MACHINES)
def test_what_the_plan_mounts_is_lawful_on_other_machines(tree: str, tmp_path: Path) -> None:
    """Each source of a mount, but for what is made for the box."""
    machine = Machine(tmp_path, **MACHINES[tree]).plant((TREES / f"{tree}.txt").read_text())  # type: ignore[arg-type]
    plan = machine.plant(EVERYONE.read_text()).plan("--review", "off")
    assert plan.law is not None
    shown = {mount.source for mount in plan.mounts if mount.identity is not None and not mount.covers}
    host = machine.host()
    found = {source: access(plan.law, host.tree.destination(source) or source) for source in shown}
    assert found
    assert {source for source, how in found.items() if how in (NOTHING, NEVER)} == set()


# Variables, and the values that stay outside.


AGENTS = {"CODEX_HOME": f"{HOME}/codex", "OPENAI_API_KEY": "sk-CANARY-openai-7f3Kq9ZpX2vB8n", "GEMINI_MODEL": "x"}


def names_of(machine: Machine, *words: str) -> frozenset[str]:
    return law_of(machine, *words).names


def test_names_of_variables(machine: Machine) -> None:
    machine.environ |= {"GITHUB_TOKEN": TOKEN, "EDITOR": "vi", "MY_OWN": "x"} | AGENTS
    names = names_of(machine)
    assert {"EDITOR", "HOME", "PATH", "LANG", "ANTHROPIC_API_KEY"} <= names
    assert not names & {"GITHUB_TOKEN", "MY_OWN", "LD_PRELOAD", *AGENTS}
    assert not names & {name for name, kind in KINDS.items() if kind == STAYS}
    assert "MY_OWN" in names_of(machine, "--env", "MY_OWN")
    assert "MY_OWN" in names_of(machine, "--env", "MY_OWN=y")


def test_names_depend_on_who_keeps_the_credential(machine: Machine) -> None:
    keys = {name for name, kind in KINDS.items() if kind == KEY}
    assert keys <= names_of(machine, "--auth", "passthrough")
    assert not keys & names_of(machine, "--auth", "none")
    assert "CLAUDE_CODE_OAUTH_TOKEN" not in names_of(machine)
    machine.environ["ANTHROPIC_API_KEY"] = API_KEY
    broker = names_of(machine, "--auth", "broker")
    assert {"ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_API_KEY"} <= broker, "what stands for it"


@pytest.mark.parametrize("program", ["codex", "gemini", "opencode", "aider"])
def test_other_agent(program: str, tmp_path: Path) -> None:
    machine = debian(tmp_path, f"/usr/bin/{program}*: \\177ELF\n~/.codex/auth.json\n~/.gemini/oauth_creds.json\n")
    machine.environ |= AGENTS
    law = law_of(machine, "--program", program)
    assert set(AGENTS) <= law.names
    assert access(law, f"{KEPT}/agents/x") == WRITE
    assert access(law, f"{HOME}/.codex/auth.json") == access(law, f"{HOME}/.gemini") == NEVER
    assert not set(AGENTS) & names_of(machine)


def test_program_of_another_agent_in_the_home(tmp_path: Path) -> None:
    planted = "~/.local/bin/codex -> ../lib/node_modules/codex/codex.js\n~/.local/lib/node_modules/codex/codex.js*\n"
    law = law_of(debian(tmp_path, planted, environ={"PATH": f"{HOME}/.local/bin:/usr/bin"}), "--program", "codex")
    assert access(law, f"{HOME}/.local/lib/node_modules/codex/codex.js") == READ
    assert access(law, f"{HOME}/.local/lib/other") == NOTHING


def withheld(machine: Machine, *words: str) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    for origin, value in law_of(machine, *words).withheld:
        found.setdefault(origin, []).append(value)
    return found


def test_withheld_values(machine: Machine) -> None:
    machine.environ |= {"GITHUB_TOKEN": TOKEN, "EDITOR": "vi", "GREETING": "plain words, many of them"}
    assert withheld(machine) == {"GITHUB_TOKEN": [TOKEN.encode()]}
    assert withheld(machine, "--env", "GITHUB_TOKEN") == {}
    assert withheld(machine, "--env", "OTHER=x") == {"GITHUB_TOKEN": [TOKEN.encode()]}


@pytest.mark.parametrize("value", ["short-token", "/run/a/path/of/a/secret", ""])
def test_value_that_would_occur_by_chance_is_not_withheld(value: str, machine: Machine) -> None:
    machine.environ["MY_TOKEN"] = value
    assert withheld(machine) == {}


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"EDITOR": TOKEN}, ()),
        ({"EDITOR": f"vi --with={TOKEN}!"}, ()),
        ({}, ("--env", f"HEADER=Bearer {TOKEN}")),
        ({"HEADER": f"Bearer {TOKEN}"}, ("--env", "HEADER")),
    ],
)
def test_secret_that_is_part_of_what_enters_is_not_withheld(
    environ: dict[str, str], words: tuple[str, ...], machine: Machine
) -> None:
    machine.environ |= {"GITHUB_TOKEN": TOKEN} | environ
    assert withheld(machine, *words) == {}


def test_login_is_withheld_unless_it_passes(tmp_path: Path) -> None:
    machine = debian(tmp_path)
    (machine.root / f"home/alice/.claude/{LOGIN_FILE}").write_text(LOGIN)
    file = f"{HOME}/.claude/{LOGIN_FILE}"
    machine.environ["ANTHROPIC_API_KEY"] = API_KEY
    for auth in ("broker", "none"):
        assert withheld(machine, "--auth", auth)[file] == [b"sk-ant-oat01-CANARY-4f7Kq9Zp"]
    assert withheld(machine) == {}


def test_api_key_is_withheld_unless_it_passes(machine: Machine) -> None:
    machine.environ["ANTHROPIC_API_KEY"] = API_KEY
    assert withheld(machine) == {}
    assert withheld(machine, "--auth", "none") == {"ANTHROPIC_API_KEY": [API_KEY.encode()]}
    assert withheld(machine, "--auth", "broker") == {"ANTHROPIC_API_KEY": [API_KEY.encode()]}


# The rest of it.


def test_networks(machine: Machine) -> None:
    tiers = {tier: law_of(machine, "--network", tier) for tier in ("full", "none")}
    assert {tier: law.has_hosts_network for tier, law in tiers.items()} == {"full": True, "none": False}
    assert tiers["none"].devices == {"lo"}


def test_kernels_own_tables(tmp_path: Path) -> None:
    user, root = debian(tmp_path / "user"), debian(tmp_path / "root", home="/root", uid=0)
    assert {"/proc/sys", "/proc/keys", "/proc/key-users", "/proc/locks"} <= dict(law_of(user).of_proc).keys()
    assert "/proc/sysrq-trigger" in dict(law_of(root).of_proc)
    assert law_of(user, "--userns", "on").of_proc == ()
    assert law_of(user).call_filter != law_of(user, "--userns", "on").call_filter


def test_symlinks_lead_where_they_lead_here(machine: Machine) -> None:
    links = dict(law_of(machine).links)
    assert links["/bin"] == ("usr/bin", "/usr/bin")
    assert links[f"{HOME}/.local/bin/claude"] == (f"{HOME}/.local/share/claude/versions/2.1.0",)


# Two tables for one matter cannot drift apart.


@pytest.mark.parametrize("row", known.TOOLCHAINS, ids=lambda row: f"{row.name} {row.root}")
def test_every_toolchain_lies_within_the_law(
    row: known.Toolchain, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.path.exists", lambda _: True)  # its mark
    """As a whole, and neither what is beside it nor what is above it."""
    elsewhere = {row.variable: f"{HOME}/elsewhere"} if row.variable else {}
    machine.environ |= elsewhere
    law = law_of(machine)
    for root in (expanded(row.root), *elsewhere.values()):
        tree = f"{root}/{row.tree.replace('*', 'x')}".rstrip("/").replace("/gox", "/go1.22")
        rule = law.nearest(tree)
        assert rule is not None
        assert (rule.path, rule.access, rule.without, rule.means(tree)) == (root, READ, known.TOKENS, True)
        assert access(law, f"{root}-beside") == NOTHING


@pytest.mark.parametrize("row", toolchains.SHIMS, ids=lambda row: row.name)
def test_every_shim_leads_into_a_toolchain(row: toolchains.Shims) -> None:
    tree = f"{row.root}/{row.installs.format(tool='node', version='20')}"
    found = [one for one in known.TOOLCHAINS if known.match(tree, one.root, one.tree)]
    assert found
    assert {one.variable for one in found} >= {row.variable}


@pytest.mark.parametrize("name", laws.HELD.split())
def test_what_the_law_holds_is_held(name: str) -> None:
    reason = guard.why(name)
    assert reason is not None
    assert reason.is_grave


@pytest.mark.parametrize("name", laws.HELD.split())
def test_what_the_law_holds_lands_later_on_a_host_that_has_it(name: str, tmp_path: Path) -> None:
    law = law_of(debian(tmp_path, f"~/shop/{name}\n"))
    assert access(law, f"{SHOP}/{name}") == LATER


HOOKS: dict[str, Callable[[Machine], object]] = {
    "config": lambda machine: machine,
    "hooks": lambda machine: machine.plant("~/shop/.git/hooks/pre-commit*\n"),
}


@pytest.mark.parametrize("name", HOOKS)
def test_what_git_obeys_lands_later(name: str, machine: Machine) -> None:
    HOOKS[name](machine)
    assert access(law_of(machine), f"{SHOP}/.git/{name}") == LATER
    assert access(law_of(machine, "--writable", f".git/{name}"), f"{SHOP}/.git/{name}") == WRITE


# Names of sessions and projects look secret by the name of the variable, and occur in paths that the user named.
# No box starts: "the command line has the secret of ZELLIJ_SESSION_NAME".
@pytest.mark.parametrize("name", ["ZELLIJ_SESSION_NAME", "JIRA_PROJECT_KEY"])
def test_name_of_a_directory_that_the_user_named_is_not_withheld(name: str, machine: Machine) -> None:
    machine.plant("~/customer-dashboard/page.md\n").environ[name] = "customer-dashboard"
    assert withheld(machine, "--mount-ro", "~/customer-dashboard") == {}


# A variable that says where a toolchain is takes the place of the rule for a secret place, or opens all that
# programs keep.
@pytest.mark.parametrize(
    ("variable", "root", "expected"),
    [("GOPATH", "~/.ssh", NEVER), ("DOTNET_ROOT", "~/.claudebox", NEVER), ("N_PREFIX", "~/.local", NOTHING)],
)
def test_variable_of_a_toolchain_opens_no_secret_place(
    variable: str, root: str, expected: int | None, machine: Machine
) -> None:
    machine.plant(f"{root}/share/state\n").environ[variable] = expanded(root)
    assert access(law_of(machine), expanded(root)) == expected


# What follows an option counts for it until the next one with two dashes, also behind `-p` or a first value.
@pytest.mark.parametrize("words", [("--debug-file", "log", "../lib"), ("--add-dir", "../data", "-p", "../lib")])
def test_prompt_behind_an_option_makes_nothing_writable(words: tuple[str, ...], tmp_path: Path) -> None:
    machine = debian(tmp_path, OTHERS)
    plan = machine.plan(*words)
    assert [mount.kind for mount in plan.mounts if mount.path == f"{HOME}/lib"] == []
    assert access(law_of(machine, *words), f"{HOME}/lib") != WRITE
