"""What a program in the box can learn from environments, and what anybody can learn from arguments."""

import json
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import Account, Box
from running.versions import each_bwrap

CANARY = "canary-5f1d0c"
PLANTED = {
    "AWS_SECRET_ACCESS_KEY": f"{CANARY}-aws",
    "GITHUB_TOKEN": f"{CANARY}-github",
    "SSH_AUTH_SOCK": f"/{CANARY}/agent",
    "FOO": f"{CANARY}-foo",
    "UNKNOWN_TO_CLAUDEBOX": CANARY,
    "BASH_FUNC_evil%%": f"() {{ echo {CANARY}; }}",
}
ALL_PROCESSES = "for file in /proc/[0-9]*/environ /proc/[0-9]*/cmdline; do echo; cat $file; done; env; set"
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
SYSTEM_BIN = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def planted(account: Account) -> dict[str, str]:
    """What the host's environment holds. Claudebox keeps its files where it says, so this account must own that."""
    return {**PLANTED, "XDG_CONFIG_HOME": f"{account.home}/{CANARY}/config"}


def environment_of(result: subprocess.CompletedProcess[str]) -> dict[str, str]:
    assert result.returncode == 0, result.stderr
    return dict(entry.split("=", 1) for entry in result.stdout.split("\0") if entry)


def environment_in(box: Box, *options: str, **env: str) -> dict[str, str]:
    return environment_of(box.inside("env", "-0", options=options, env=env))


def made_by_the_box(account: Account, project: Path) -> dict[str, str]:
    uid, name = (1000, "claude") if account.is_root else (account.uid, account.name)
    return {
        "HOME": str(account.home),
        "USER": name,
        "SHELL": "/bin/bash",
        "PATH": SYSTEM_BIN,
        "TMPDIR": "/tmp",
        "XDG_RUNTIME_DIR": f"/run/user/{uid}",
        "SSL_CERT_FILE": BUNDLE,
        "NIX_SSL_CERT_FILE": BUNDLE,
        "PWD": str(project),
    }


def without_claude(variables: dict[str, str]) -> dict[str, str]:
    """A machine with claude has its directory at the front of PATH."""
    path = variables["PATH"].removeprefix(f"{variables['HOME']}/.local/bin:")
    return {**variables, "PATH": path}


@pytest.mark.req("SAND-02", "SAND-03")
def test_environment_is_exactly_what_rules_name(box: Box, account: Account, project: Path) -> None:
    variables = without_claude(environment_in(box, **planted(account)))
    assert variables == {**made_by_the_box(account, project), "TERM": "xterm", "LANG": "C.UTF-8"}


@pytest.mark.req("SAND-02")
@each_bwrap
def test_host_variables_are_in_no_process_of_the_box(box: Box, account: Account) -> None:
    """What bwrap was started with stays readable in /proc/1/environ as long as the box lives."""
    seen = box.sh(f"cat /proc/1/environ; echo; {ALL_PROCESSES}", env=planted(account))
    assert f"HOME={account.home}\0" in seen.partition("\n")[0]
    assert CANARY not in seen


@pytest.mark.req("SAND-03")
def test_unset_stays_unset(box: Box, account: Account, project: Path) -> None:
    bare = {"HOME": str(account.home), "PATH": account.environ["PATH"]}
    variables = environment_in(replace(box, account=replace(account, environ=bare)))
    assert without_claude(variables) == made_by_the_box(account, project)


@pytest.mark.req("SAND-03")
@pytest.mark.parametrize("value", ["C", "", "two words\n\tand 'quotes' \"$HOME\" é"])
def test_allowed_variable_enters_unchanged(box: Box, value: str) -> None:
    allowed = dict.fromkeys(("TERM", "EDITOR", "LANG", "LC_ALL", "ANTHROPIC_API_KEY"), value)
    assert environment_in(box, **allowed).items() >= allowed.items()


@pytest.mark.req("SAND-03", "SAND-10")
def test_what_the_box_makes_is_not_taken_from_the_host(box: Box, account: Account, project: Path) -> None:
    evil = dict.fromkeys(("USER", "SHELL", "TMPDIR", "XDG_RUNTIME_DIR", "PWD"), f"/{CANARY}")
    evil["PATH"] = f"{account.environ['PATH']}:/{CANARY}"
    variables = without_claude(environment_in(box, **evil))
    assert variables == {**made_by_the_box(account, project), "TERM": "xterm", "LANG": "C.UTF-8"}


@pytest.mark.req("ENV-01")
def test_named_variables_are_passed_and_set(box: Box) -> None:
    options = ("--env", "NAMED", "--env=SET=a=b c", "--env", "EMPTY=", "--env", "ABSENT", "--env", "TERM=vt100")
    host = {"NAMED": "from the host", "SET": "not this", "FOO": "1", "BAR": "b=c,d", "OTHER": "nor this"}
    variables = environment_in(box, *options, CLAUDEBOX_EXTRA_ENV="FOO, BAR,SET,,ABSENT,", **host)
    expected = {"NAMED": "from the host", "SET": "a=b c", "EMPTY": "", "TERM": "vt100", "FOO": "1", "BAR": "b=c,d"}
    assert variables.items() >= expected.items(), "an option wins over CLAUDEBOX_EXTRA_ENV"
    assert variables.keys().isdisjoint({"OTHER", "ABSENT", "CLAUDEBOX_EXTRA_ENV"})


@pytest.mark.req("SAND-03", "FAIL-01")
def test_host_value_of_what_the_box_makes_is_refused(box: Box) -> None:
    for name in ("HOME", "USER", "PATH", "SHELL", "TMPDIR", "XDG_RUNTIME_DIR"):
        result = box.inside("true", options=("--env", name))
        assert (result.returncode, f"{name} is made by the box" in result.stderr) == (125, True)


@contextmanager
def living_box(box: Box, *options: str, **env: str) -> Iterator[list[str]]:
    """The arguments of every process of the machine while a box is running."""
    script = "touch started; while [ ! -e done ]; do sleep 0.02; done"
    with ThreadPoolExecutor(1) as background:
        box_ends = background.submit(box.inside, "sh", "-c", script, "the-living-box", options=options, env=env)
        try:
            while not (box.project / "started").exists() and not box_ends.done():
                time.sleep(0.02)
            yield list(arguments_of_all_processes())
        finally:
            box.account.write(box.project / "done")
        assert box_ends.result().returncode == 0


def canary_of(box: Box) -> str:
    """A canary of this box alone: where workers share their processes, another test has one that is about to start."""
    return f"{CANARY}-{box.account.home.name}"


def arguments_of_all_processes() -> Iterator[str]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes().decode(errors="replace")
        except OSError:
            continue  # ended meanwhile


@pytest.mark.req("SAND-02")
def test_values_are_in_no_arguments_of_the_host(box: Box) -> None:
    canary = canary_of(box)
    options = ("--env", "TOKEN", "--env", f"SET={canary}-set")
    secrets = {"ANTHROPIC_API_KEY": f"sk-ant-{canary}", "TOKEN": f"{canary}-token", "EXTRA": f"{canary}-extra"}
    with living_box(box, *options, CLAUDEBOX_EXTRA_ENV="EXTRA", **secrets) as arguments:
        assert [line for line in arguments if "the-living-box" in line], "the box is not among the processes"
        assert [line for line in arguments if canary_of(box) in line] == []


@pytest.mark.req("SAND-02")
@pytest.mark.parametrize("auth", ["passthrough", "broker"])
def test_values_are_not_in_the_arguments_of_what_runs_beside_the_box(box: Box, account: Account, auth: str) -> None:
    """The process that keeps the login in step, or the broker. Both are copies of claudebox."""
    claude = account.write(account.home / "opt" / "claude", "#!/bin/sh\n", mode=0o755)
    login = {"accessToken": "a" * 30, "refreshToken": "r" * 30, "expiresAt": int(time.time() + 3600) * 1000}
    account.write(account.home / ".claude" / ".credentials.json", json.dumps({"claudeAiOauth": login}), mode=0o600)
    path = f"{claude.parent}:{account.environ['PATH']}"
    with living_box(box, "--auth", auth, "--env", f"SET={canary_of(box)}-set", PATH=path) as arguments:
        assert len([line for line in arguments if line.rstrip("\0") == "claudebox"]) >= 2
        assert [line for line in arguments if canary_of(box) in line] == []


@pytest.mark.req("SAND-02")
def test_loader_variable_acts_on_the_program_and_not_on_bwrap(box: Box, project: Path) -> None:
    """bwrap runs outside of the box: a library that its loader took from the project would be an escape."""
    report = project / "loader"
    options = ("--env", "LD_DEBUG=files", "--env", f"LD_DEBUG_OUTPUT={report}")
    assert box.inside("true", options=options).returncode == 0
    lines = [line for file in project.glob("loader.*") for line in file.read_text().splitlines()]
    started = [line.split("transferring control:")[1].strip() for line in lines if "transferring control:" in line]
    assert started == ["/usr/bin/env", "true"]


@pytest.mark.req("SAND-02")
@each_bwrap
def test_loader_variables_reach_only_the_program(box: Box) -> None:
    names = "LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT GCONV_PATH LOCPATH GLIBC_TUNABLES MALLOC_CHECK_ TZDIR".split()
    options = [word for name in names for word in ("--env", f"{name}=libnone.so")]
    seen = box.sh('tr "\\0" "\\n" < /proc/1/environ; echo --; env', options=tuple(options))
    of_bwrap, _, of_program = seen.partition("--\n")
    assert [name for name in names if f"{name}=" in of_bwrap or f"{name}=libnone.so\n" not in of_program] == []
