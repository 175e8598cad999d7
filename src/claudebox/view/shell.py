"""A Plan as a command to paste into a POSIX shell."""

from __future__ import annotations

from claudebox.errors import quote
from claudebox.features.limits import Limits
from claudebox.host.secrets import secret_value
from claudebox.model import Allowlist, Broker, EnvVar, Plan, Preparation, Uplink
from claudebox.sandbox.argv import Data, Operation, bwrap_operations, called_pasta, program_words
from claudebox.view.sandbox import sandbox_md

FIRST_DESCRIPTOR = 3
LAST_DESCRIPTOR = 9  # more are unknown to some shells
PER_CENT = 10_000  # microseconds of a second
END = "END"
CLEAR_GROUPS = "setpriv --clear-groups"
NO_LIST = """\
# --network allowlist: only claudebox starts the process that knows the list. After pasting, the box reaches nothing.
# In a launch, these rules lead its connections to that process (PORT is chosen then), in a network without a way out:
"""
NO_LAYERS = """\
# Only claudebox itself can keep changes until you land them. A launch does so for all of these; in this command their
# guarded parts are read-only, and the rest is written at once: {names}
"""
NO_BROKER = "# --auth broker: only claudebox starts the broker. After pasting, nobody answers at its port.\n"
IGNORE_CTRL_C = "trap '' INT QUIT"  # bwrap must outlive it; `env` in the box undoes this


def shell_command(plan: Plan, layered: tuple[str, ...] = ()) -> str:
    """The whole launch. What bwrap is given through descriptors is written into a directory first.

    `layered` are directories of the project that are layers in a launch, and read-only here.
    """
    files: list[Data] = []
    redirections: list[str] = []
    # With an uplink, the groups have been dropped already.
    clear_groups = plan.kernel.drop_groups and plan.network.uplink is None
    limits = "" if plan.network.uplink else _limits(plan)
    lines = [f"{limits}{CLEAR_GROUPS} env -i \\" if clear_groups else f"{limits}env -i \\"]
    lines += [f"  {_assignment(variable)} \\" for variable in plan.environment if not variable.late]
    lines += [f"  {quote(plan.bwrap)} \\"]
    operations = bwrap_operations(plan)
    lines += [f"  {_line(operation, files, redirections)} \\" for operation in operations]
    lines += [f"  {' '.join([*(_argument(word) for word in program_words(plan)), *redirections])}"]
    box = _with_files("\n".join(lines), files)
    comments = NO_LAYERS.format(names=" ".join(map(quote, layered))) if layered else ""
    return comments + _preparations(plan) + (_connected(box, plan, plan.network.uplink) if plan.network.uplink else box)


def _limits(plan: Plan) -> str:
    limits = plan.get(Limits)
    if limits is None:
        return ""
    manager = "--system" if plan.kernel.drop_groups else "--user"
    properties = [f"MemoryMax={limits.memory}", "MemorySwapMax=0"] if limits.memory else []
    properties += [f"TasksMax={limits.pids}"] if limits.pids else []
    properties += [f"CPUQuota={limits.cpu // PER_CENT}%"] if limits.cpu else []
    return f"systemd-run {manager} --scope --quiet --collect {' '.join(f'-p {words}' for words in properties)} -- \\\n"


def _connected(box: str, plan: Plan, uplink: Uplink) -> str:
    """The same pasta and filter as in a launch, arranged for a shell: here, pasta starts everything else.

    (A launch attaches pasta instead: if pasta were killed while it starts, it would leave a process behind.)
    """
    # pasta refuses to run as root of the system, so for root `unshare` makes the user namespace.
    prefix = f"{CLEAR_GROUPS} unshare --user --map-root-user -- " if plan.kernel.drop_groups else ""
    words = ["--netns-only", *uplink.options] if plan.kernel.drop_groups else [*uplink.options]
    # A launch opens these ports itself.
    published = [f"127.0.0.1/{port.host}:{port.box}" for port in plan.network.published]
    words += [word for ports in published or ["none"] for word in ("--tcp-ports", ports)]
    options = " ".join(quote(word) for word in words)
    mark = _end_mark(uplink.ruleset.encode())
    script = f"{quote(uplink.nft)} -f - <<'{mark}' || exit 125\n{uplink.ruleset}{mark}\n{box}"
    chain = _end_mark(script.encode(errors="surrogateescape"), "CHAIN")
    return (
        f"({IGNORE_CTRL_C}\n{_limits(plan)}{prefix}{quote(called_pasta(uplink.pasta))} {options} -- \\\n"
        f"/bin/sh -c \"$(cat <<'{chain}'\n{script}{chain}\n)\"\n)\n"
    )


def _preparations(plan: Plan) -> str:
    """What claudebox writes before it starts the box, except what is private."""
    directories = [item.path for item in plan.preparations if item.kind == Preparation.DIRECTORY]
    missing = [quote(package.reference) for package in plan.packages if not package.paths]
    text = NO_BROKER if plan.get(Broker) is not None else ""
    text += _allowlist(listed) if (listed := plan.get(Allowlist)) is not None else ""
    text += "".join(f"# claudebox asks Nix for {reference} first: it is not resolved yet\n" for reference in missing)
    text += f"mkdir -p -m 700 {' '.join(map(quote, dict.fromkeys(directories)))}\n" if directories else ""
    for item in plan.preparations:
        if item.kind == Preparation.EMPTY_FILE:
            # `>>` would follow a symlink, which the agent may have put there.
            text += f"rm -f {quote(item.path)} && : >{quote(item.path)}\n"
        elif item.kind == Preparation.GONE:
            text += f"rm -f {quote(item.path)}\n"
        elif item.kind == Preparation.LINK:
            text += f"[ -e {quote(item.path)} ] || ln -sf {quote(item.content.decode())} {quote(item.path)}\n"
        elif item.is_private:
            text += f"# claudebox also writes {quote(item.path)}\n"
        elif item.kind in (Preparation.FILE, Preparation.SANDBOX):
            is_file = item.kind == Preparation.FILE
            text += _written(
                quote(item.path), item.content if is_file else sandbox_md(plan).encode(errors="surrogateescape")
            )
    return text


def _allowlist(allowlist: Allowlist) -> str:
    """What a launch would do, as comments: the rules, and the list."""
    from claudebox.features.allowlist.act import ruleset
    from claudebox.features.allowlist.rules import as_text

    rules = "".join(f"#   {line}\n" for line in ruleset("PORT").expandtabs(4).splitlines())
    hosts = "".join(f"#   {as_text(row)}\n" for row in allowlist.allowed) or "#   (nothing)\n"
    return f"{NO_LIST}{rules}# The list:\n{hosts}"


def _assignment(variable: EnvVar) -> str:
    """A secret is taken from the shell that the command is pasted into."""
    return f'{variable.name}="${variable.name}"' if variable.secret else f"{variable.name}={quote(variable.value)}"


def _argument(word: str) -> str:
    return "'(secret, not shown)'" if secret_value(word) else quote(word)


def _line(operation: Operation, files: list[Data], redirections: list[str]) -> str:
    """An option. The content of a file is added to those that are written, and read by a descriptor if one is left."""
    data = next((word for word in operation if isinstance(word, Data)), None)
    if data is None:
        return " ".join(quote(str(word)) for word in operation)
    name, descriptor = f'"$made/{len(files) + 1}"', FIRST_DESCRIPTOR + len(redirections)
    if operation[2:3] == ("--ro-bind-data",) or descriptor > LAST_DESCRIPTOR:
        _, mode, _, _, path = operation
        files.append(data.replace(label=str(mode)))
        return f"--ro-bind {name} {quote(str(path))}"
    files.append(data.replace(label=""))
    redirections.append(f"{descriptor}<{name}")
    return " ".join(str(descriptor) if isinstance(word, Data) else quote(word) for word in operation)


def _with_files(command: str, files: list[Data]) -> str:
    """The command after what writes the files. Where one is bound, its label is its mode."""
    lines = [f"({IGNORE_CTRL_C}", "made=$(mktemp -d) || exit 125"]
    for number, item in enumerate(files, 1):
        lines.append(_written(f'"$made/{number}"', item.content).rstrip("\n"))
        lines += [f'chmod {item.label} "$made/{number}"'] if item.label else []
    return "\n".join([*lines, command, 'status=$?; rm -rf "$made"; exit $status)']) + "\n"


def _written(file: str, content: bytes) -> str:
    if is_visible_text(content):
        mark = _end_mark(content)
        return f"cat >{file} <<'{mark}'\n{content.decode()}{mark}\n"
    octal = "".join(f"\\{byte:03o}" for byte in content)
    return f"printf '{octal}' >{file}\n"


def is_visible_text(content: bytes) -> bool:
    """Whether a terminal can show it as it is. Names and lines of the project may hold codes that it would obey."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return False
    return text.endswith("\n") and text.replace("\n", "").replace("\t", "").isprintable()


def _end_mark(content: bytes, mark: str = END) -> str:
    """A line that the content does not contain."""
    while mark.encode() in content.split(b"\n"):
        mark += "_"
    return mark
