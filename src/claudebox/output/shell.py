"""A Plan as a command to paste into a POSIX shell."""

from __future__ import annotations

from claudebox.errors import quote
from claudebox.host.programs import called_pasta
from claudebox.host.secrets import secret_value
from claudebox.model import EnvVar, Plan, Preparation, Uplink
from claudebox.output.section import Section
from claudebox.sandbox.argv import Data, Operation, bwrap_operations, program_words
from claudebox.text import escape

FIRST_DESCRIPTOR = 3
LAST_DESCRIPTOR = 9  # more are unknown to some shells
END = "END"
CLEAR_GROUPS = "setpriv --clear-groups"
IGNORE_CTRL_C = "trap '' INT QUIT"  # bwrap must outlive it; `env` in the box undoes this


def shell_command(plan: Plan, sections: tuple[Section, ...]) -> str:
    """The whole launch. What bwrap is given through descriptors is written into a directory first."""
    files: list[Data] = []
    redirections: list[str] = []
    # With an uplink, the groups have been dropped already.
    clear_groups = plan.kernel.drop_groups and plan.network.uplink is None
    start = "".join(section.start for section in sections)
    lines = [f"{'' if plan.network.uplink else start}{f'{CLEAR_GROUPS} ' if clear_groups else ''}env -i \\"]
    lines += [f"  {_assignment(variable)} \\" for variable in plan.environment if not variable.late]
    lines += [f"  {quote(plan.bwrap)} \\"]
    operations = bwrap_operations(plan)
    lines += [f"  {_line(operation, files, redirections)} \\" for operation in operations]
    lines += [f"  {' '.join([*(_argument(word) for word in program_words(plan)), *redirections])}"]
    box = _with_files("\n".join(lines), files)
    comments = "".join(f"# {escape(line)}\n" for one in sections for line in one.comment.splitlines())
    connected = _connected(box, plan, plan.network.uplink, start) if plan.network.uplink else box
    return comments + _preparations(plan) + connected


def _connected(box: str, plan: Plan, uplink: Uplink, start: str) -> str:
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
        f"({IGNORE_CTRL_C}\n{start}{prefix}{quote(called_pasta(uplink.pasta))} {options} -- \\\n"
        f"/bin/sh -c \"$(cat <<'{chain}'\n{script}{chain}\n)\"\n)\n"
    )


def _preparations(plan: Plan) -> str:
    """What claudebox writes before it starts the box, except what is private."""
    directories = [item.path for item in plan.preparations if item.kind == Preparation.DIRECTORY]
    text = f"mkdir -p -m 700 {' '.join(map(quote, dict.fromkeys(directories)))}\n" if directories else ""
    for item in plan.preparations:
        if item.kind == Preparation.EMPTY_FILE:
            # `>>` would follow a symlink, which the agent may have put there.
            text += f"rm -f {quote(item.path)} && : >{quote(item.path)}\n"
        elif item.kind == Preparation.LINK:
            text += f"[ -e {quote(item.path)} ] || ln -sf {quote(item.content.decode())} {quote(item.path)}\n"
        elif item.is_private:
            text += f"# claudebox also writes {quote(item.path)}\n"
        elif item.kind == Preparation.FILE:
            text += _written(quote(item.path), item.content)
    return text


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
