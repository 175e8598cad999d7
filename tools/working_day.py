#!/usr/bin/env python3
"""Play a working day in a terminal, with the real programs, and put what was seen into docs/working-day.md.

    tools/working_day.py [--only WORD] [FILE]

An ordinary user, with node, Python and Rust in the home as nvm, pyenv and rustup leave them, clones a repository and
works in it with Claude Code. A stand-in on loopback plays the part of the API, another that of the registry. Whatever
is expected and does not come ends the day with status 1. Run as root, it makes the account and removes it.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
import shutil
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from recording import ROOT, Person, Surprise, Terminal, person, terminals

from claude.api import FAREWELL, StandIn
from running import pins

PAGE = ROOT / "docs/working-day.md"
BEGIN, END = "<!-- the day: written by tools/working_day.py -->\n", "<!-- the day ends -->\n"
REGISTRY_PORT = 4873
CLAUDE_IS_READY = "bypass permissions on"
LEAVING = "again to exit"
LEFT = "Resume this session"
A_MOMENT = 5  # seconds

PACKAGE = {
    "name": "shop",
    "version": "1.0.0",
    "scripts": {"lint": "node --check shop.js && echo clean", "test": "node test.js", "dev": "node server.js"},
    "dependencies": {"tiny-total": "^1.0.0"},
}
SERVER = """\
const http = require('http');
http.createServer((_, answer) => answer.end('the shop is open\\n')).listen(3000, '::1', () => console.log('ready'));
"""
TEST = """\
const { total } = require('./shop');
require('assert').strictEqual(total([2, 3]), 5);
console.log('1 test passed');
"""
SHOP = "const sum = require('tiny-total');\nexports.total = (prices) => sum(prices.slice(1));\n"
WORKFLOW = "on: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - run: npm test\n"
REPOSITORY = {
    "package.json": json.dumps(PACKAGE, indent=2) + "\n",
    ".npmrc": f"registry=http://127.0.0.1:{REGISTRY_PORT}/\n",
    ".gitignore": "node_modules\n.env\n",
    ".github/workflows/ci.yml": WORKFLOW,
    ".husky/pre-commit": "#!/bin/sh\nnpm run --silent lint\n",
    "server.js": SERVER,
    "shop.js": SHOP,
    "test.js": TEST,
}
DOT_ENV = """\
DATABASE_URL=postgres://shop:hTq7vRw2pLx9@db.example:5432/shop
JWT_SECRET=9f2c41d86b7e5a0334c8d1f7e6092b5a
DEBUG=0
"""
SECRETS = ("hTq7vRw2pLx9", "9f2c41d86b7e5a0334c8d1f7e6092b5a", "canary-ssh", "canary-aws")


def furnish(who: Person) -> None:
    """A home as people have them: toolchains, keys, a login of Claude, and a remote repository."""
    node = who.run("node", "--version").strip()
    version = f".nvm/versions/node/{node}"
    (who.home / version / "bin").mkdir(parents=True)
    shutil.copy(shutil.which("node") or "", who.home / version / "bin/node")
    npm = Path(os.path.realpath(shutil.which("npm") or "")).parent.parent
    shutil.copytree(npm, who.home / version / "lib/node_modules/npm", symlinks=True)
    (who.home / version / "bin/npm").symlink_to("../lib/node_modules/npm/bin/npm-cli.js")
    python = ".pyenv/versions/3.12.7/bin/python3"
    who.write(python, '#!/bin/sh\nexec /usr/bin/python3 "$@"\n', mode=0o755)
    who.write(".pyenv/version", "3.12.7\n")
    who.write(".pyenv/shims/python3", '#!/bin/sh\nexec pyenv exec python3 "$@"\n', mode=0o755)
    toolchain = ".rustup/toolchains/stable-x86_64-unknown-linux-gnu"
    who.write(f"{toolchain}/bin/rustc", "#!/bin/sh\necho rustc 1.89.0\n", mode=0o755)
    who.write(".rustup/settings.toml", f'default_toolchain = "{Path(toolchain).name}"\nversion = "12"\n')
    rustup = f'#!/bin/sh\nexec ~/{toolchain}/bin/"${{0##*/}}" "$@"\n'  # stands in for it: the default toolchain
    who.write(".cargo/bin/rustup", rustup, mode=0o755)
    (who.home / ".cargo/bin/rustc").symlink_to("rustup")
    who.environ["PATH"] = ":".join(
        [f"{who.home}/{place}" for place in (f"{version}/bin", ".pyenv/shims", ".cargo/bin")] + [who.environ["PATH"]]
    )
    claude = who.home / ".local/share/claude/versions" / pins.CLAUDE
    claude.parent.mkdir(parents=True)
    shutil.copy(os.path.realpath(pins.claude()), claude)
    (who.home / ".local/bin/claude").symlink_to(claude)
    login = {"accessToken": "access", "refreshToken": "refresh", "scopes": ["user:inference", "user:profile"]}
    login |= {"subscriptionType": "max", "expiresAt": int(time.time() + 8 * 3600) * 1000}  # type: ignore[dict-item]
    who.write(".claude/.credentials.json", json.dumps({"claudeAiOauth": login}), mode=0o600)
    who.write(".ssh/id_ed25519", "canary-ssh\n", mode=0o600)
    who.write(".aws/credentials", "[default]\naws_secret_access_key = canary-aws\n", mode=0o600)
    who.write(".gitconfig", "[user]\n\tname = Maya\n\temail = maya@example.org\n[init]\n\tdefaultBranch = main\n")
    for name, text in REPOSITORY.items():
        who.write(f"draft/{name}", text, mode=0o755 if ".husky" in name else 0o644)
    for words in (
        ("init", "-q"),
        ("add", "."),
        ("commit", "-q", "-m", "a shop"),
        ("clone", "-q", "--bare", ".", "../shop.git"),
    ):
        who.run("git", *words, cwd=who.home / "draft")
    shutil.rmtree(who.home / "draft")
    who.write("shop.env", DOT_ENV, mode=0o600)


def tarball() -> bytes:
    """tiny-total, as npm packs it."""
    files = {
        "package/package.json": json.dumps({"name": "tiny-total", "version": "1.0.0", "main": "index.js"}),
        "package/index.js": "module.exports = (numbers) => numbers.reduce((sum, number) => sum + number, 0);\n",
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()


@contextmanager
def registry() -> Iterator[Callable[[], None]]:
    """A registry of one package on loopback; what it gives is closed by calling it."""
    content = tarball()
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()
    where = f"http://127.0.0.1:{REGISTRY_PORT}/tiny-total/-/tiny-total-1.0.0.tgz"
    version = {"name": "tiny-total", "version": "1.0.0", "dist": {"tarball": where, "integrity": integrity}}
    about = {"name": "tiny-total", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Log nothing."""

        def do_GET(self) -> None:
            body = content if self.path.endswith(".tgz") else json.dumps(about).encode()
            self.send_response(200 if self.path.startswith("/tiny-total") else 404)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", REGISTRY_PORT), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def stop() -> None:
        server.shutdown()
        server.server_close()

    yield stop


@dataclass
class Day:
    """The terminals, what the agent is told to do, and what was seen so far."""

    who: Person
    windows: dict[str, Terminal]
    api: StandIn
    stop_registry: Callable[[], None]
    page: list[str] = field(default_factory=list)
    surprises: list[str] = field(default_factory=list)

    @property
    def desk(self) -> Terminal:
        return self.windows["desk"]

    @property
    def aside(self) -> Terminal:
        return self.windows["aside"]

    def say(self, text: str) -> None:
        self.page.append(text + "\n")

    def show(self, seen: str, *expected: str) -> str:
        """Put what was seen on the page, and look whether it is what was expected."""
        seen = seen.replace(str(ROOT), "~/claudebox").replace(str(self.who.home), "/home/maya")
        seen = seen.replace(str(self.api.port), "8000")  # it is another one every time
        for text in expected:
            if text not in re.sub(r"\s+", " ", seen):
                self.surprises.append(f"expected {text!r} in:\n{seen}")
        self.page.append(f"```text\n{seen}\n```\n")
        print(seen, flush=True)
        return seen

    def run(self, command: str, *expected: str) -> str:
        return self.show(self.desk.run(command), *expected)

    def tell(self, *commands: str) -> None:
        """What the agent runs when it is next asked."""
        self.api.commands = commands
        self.api.results = []

    def leave_claude(self, window: Terminal) -> str:
        """Ctrl-C twice, the second one soon after the first. If it came too late, it was a first one again."""
        while True:
            window.type("C-c")
            window.shows(LEAVING)
            window.type("C-c")
            if has_left(window):
                break
        seen: str = window.finish()
        return LEFT + seen.rpartition(LEFT)[2]


def has_left(window: Terminal) -> bool:
    """Whether Claude is ending. Otherwise it shows, after a moment, what it shows below its prompt."""
    end = time.monotonic() + A_MOMENT
    while LEFT not in window.screen() and time.monotonic() < end:
        time.sleep(0.1)
    seen = window.screen()
    return LEFT in seen or CLAUDE_IS_READY not in seen


def morning(day: Day) -> None:
    day.say("## Morning: a clone and the first box")
    day.run("git clone -q ~/shop.git ~/src/shop && cd ~/src/shop && ls -A", "package.json")
    day.run("git config core.hooksPath .husky; cp ~/shop.env .env; which node rustc")
    day.say("The first start. This is the whole screen, on a terminal of 80 by 24:")
    day.tell("npm install --no-audit --no-fund", "npm test", "sed -i 's/.slice(1)//' shop.js", "npm test",
             "git switch -c total && git commit -qam 'count the first price' && git log --oneline")  # fmt: skip
    desk = day.desk
    desk.start("claudebox")
    desk.shows("Start?")
    first = desk.screen().rstrip("\n")
    day.show(first, "a box around ~/src/shop", "masked", "login")
    if not re.match(r"(?:\$ claudebox\n)?claudebox \S+: a box around", first):
        day.surprises.append("the first screen does not fit: its first line has scrolled away")
    desk.type("y", "Enter")
    desk.shows(CLAUDE_IS_READY)
    desk.type("-l", "the total is wrong, please fix it")
    desk.type("Enter")
    desk.shows(FAREWELL)
    day.say("Claude installs, tests, mends, tests, and commits on a branch; the hook of the project runs:")
    day.show(desk.screen().rstrip("\n"), "Bash")
    day.say("What it ran, and what it got:")
    day.show(
        "\n".join(f"> {command}\n{result}" for command, result in zip(day.api.commands, day.api.results, strict=False)),
        "1 test passed",
        "clean",
    )
    day.say("After Ctrl-C twice:")
    ended = day.show(day.leave_claude(desk), "claudebox --resume")
    day.run("git log --oneline --all", "count the first price")
    resume = re.search(r"claudebox --resume [0-9a-f-]+", ended)
    if resume:
        day.say("The line at the end can be pasted:")
        day.tell()
        desk.start(resume[0])
        desk.shows(CLAUDE_IS_READY)
        day.show(desk.screen().rstrip("\n"), "Updated shop.js")
        day.leave_claude(desk)


def packages(day: Day) -> None:
    day.say("## The registry is gone, and the work goes on")
    day.stop_registry()
    day.run("rm -r node_modules; claudebox --yes --run npm ci --no-audit --no-fund", "added 1 package")
    day.run("claudebox --yes --quiet --run sh -c 'node --version; rustc --version; python3 --version'", "rustc 1.89.0")


def branches(day: Day) -> None:
    day.say("## Branches, a rebase, worktrees")
    desk = day.desk
    desk.start("claudebox --shell")
    desk.shows("Start?")
    desk.type("Enter")
    desk.wait("the shell of the box", lambda: desk.screen().rstrip().endswith("$"))
    for command in (
        "git switch -q main && sed -i 's/npm test/npm ci \\&\\& npm test/' .github/workflows/ci.yml",
        "git commit -qam 'CI installs first' && git switch -q total && git rebase main",
        "git worktree add -q .worktrees/sale -b sale && ls .worktrees/sale",
        "git worktree remove .worktrees/sale && git worktree list",
        "git worktree add ../elsewhere",
        "git push origin total",
    ):
        desk.type("-l", command + "; echo status=$?")
        marks = desk.screen("-S", "-").count("\nstatus=")
        desk.type("Enter")
        desk.wait("the end of " + command, lambda marks=marks: desk.screen("-S", "-").count("\nstatus=") > marks)
    desk.type("exit", "Enter")
    desk.shows("Land")
    day.show(desk.screen("-S", "-", "-J").rstrip("\n"), "Successfully rebased", "host runs .github/workflows/ci.yml")
    day.say("The workflow is what CI would run, so it is asked about; `s` shows it, `a` lands it:")
    desk.type("a", "Enter")
    day.show(last(desk.finish(), "Landed"), "Landed")
    day.run("git status --short; git log --oneline --graph --all")
    day.run("git push -q origin main total && echo pushed", "pushed")


def last(shown: str, word: str) -> str:
    """From the last line on that begins with a word."""
    before, found, after = f"\n{shown}".rpartition(f"\n{word}")
    return found.removeprefix("\n") + after if found else before


def secrets(day: Day) -> None:
    day.say("## The secrets of the project")
    day.run("claudebox --yes --quiet --run cat .env", "postgres://shop:")
    day.say("A masked file is read-only. The agent is told so, and to name the line instead:")
    day.run("claudebox --yes --quiet --run sed -i s/DEBUG=0/DEBUG=1/ .env", "Device or resource busy")
    day.run("claudebox --yes --quiet --run sh -c 'echo PAGE_SIZE=20 >>.env'", "Read-only file system")
    day.run("cat .env", "DEBUG=0", *SECRETS[:2])
    day.say("A file that is saved on the host while the box runs is masked again:")
    save = "( (sleep 3; sed -i s/DEBUG=0/DEBUG=2/ .env) & )"
    day.run(f"{save}; claudebox --yes --quiet --run sh -c 'sleep 6; cat .env'", "DEBUG=2", ".env was saved")
    day.run("claudebox --yes --quiet --run cat ~/.ssh/id_ed25519", "No such file")


def guarded(day: Day) -> None:
    day.say("## A workflow")
    day.run("git switch -q main")
    desk = day.desk
    desk.start("claudebox --yes --run sed -i 's/ubuntu-latest/ubuntu-24.04/' .github/workflows/ci.yml")
    day.show(desk.finish(), "--review land")
    day.run("git status --short")
    desk.start("claudebox --review land")
    desk.shows("Land")
    desk.type("s", "Enter")
    time.sleep(1)
    day.show(desk.screen("-S", "-").rstrip("\n"))
    if not desk.screen().rstrip().endswith("[k]"):
        desk.type("q")
    desk.type("a", "Enter")
    day.show(last(desk.finish(), "Landed"), "Landed")
    day.run("git diff --stat && git checkout -q .")


def server(day: Day) -> None:
    day.say("## A development server, and the network")
    day.run("claudebox --yes --publish 3000 --run npm run dev", "--network")
    aside = day.aside
    aside.run("cd ~/src/shop")
    aside.start("claudebox --yes --network allowlist --publish 3000 --run npm run dev")
    aside.shows("ready")
    day.show(aside.screen().rstrip("\n"))
    day.run("curl -s http://localhost:3000/", "the shop is open")
    aside.type("C-c")
    day.say("Ctrl-C ends it:")
    day.show("\n".join(aside.finish().split("\n")[-3:]), "^C")
    day.say("With a list of hosts, everything else does not exist:")
    refusals = {
        "http://192.168.1.1/": "not in this box's list",
        "http://169.254.169.254/": "not in this box's list",
        "https://example.org/": "Could not resolve host",
    }
    for address, said in refusals.items():
        day.run(f"claudebox --yes --quiet --network allowlist --run curl -sS -m 5 {address}", said)


def beside(day: Day) -> None:
    day.say("## A second agent beside the first")
    aside = day.aside
    day.tell("echo 'the second was here' > second.txt")
    aside.start("claudebox")
    aside.shows(CLAUDE_IS_READY)
    day.run("claudebox -p 'write a line'", FAREWELL)
    day.run("cat second.txt; git status --short", "the second was here")
    day.leave_claude(aside)
    day.run("claudebox --instances", "shop")


def review(day: Day) -> None:
    day.say("## Nothing lands before I say so")
    desk = day.desk
    desk.start("claudebox --review --run sh -c 'echo // sale >> shop.js; rm second.txt'")
    desk.shows("Start?")
    desk.type("Enter")
    desk.shows("Land")
    day.show(desk.screen("-S", "-").rstrip("\n"), "1 changed, 1 deleted")
    desk.type("k", "Enter")
    desk.finish()
    day.run("git status --short; claudebox --review list")
    desk.start("claudebox --review land")
    desk.shows("Land")
    desk.type("l", "Enter")
    day.show(desk.finish(), "Landed")
    day.run("git status --short", "M shop.js")


def questions(day: Day) -> None:
    day.say("## Why?")
    for thing in ("~/.ssh/id_ed25519", "node", ".github/workflows/ci.yml", ".env", "192.168.1.1"):
        day.run(f"claudebox --explain {thing}")


SCENES = (morning, packages, branches, secrets, guarded, server, beside, review, questions)


def play(only: str = "") -> Day:
    with person("maya") as who, registry() as stop, StandIn() as api:
        furnish(who)
        who.write(
            ".claudebox/config.toml",
            f'[env]\nANTHROPIC_BASE_URL = "http://127.0.0.1:{api.port}"\n'
            'CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC = "1"\n',
        )
        with terminals(who, "desk", "aside") as windows:
            day = Day(who, windows, api, stop)
            for scene in SCENES:
                if scene is morning or only in scene.__name__:
                    scene(day)
        seen = "\n".join(day.page)
        told = json.dumps(api.requests)
        day.surprises += [f"{secret} was sent to the API" for secret in SECRETS if secret in told]
        day.surprises += [f"{secret} was shown" for secret in SECRETS[2:] if secret in seen]
    return day


def main(words: list[str]) -> int:
    only = words[1] if words[:1] == ["--only"] else ""
    rest = words[2:] if only else words
    try:
        day = play(only)
    except Surprise as surprise:
        print(f"\n=== surprise: {surprise}", file=sys.stderr)
        return 1
    page = Path(rest[0]) if rest else PAGE
    before, _, old = page.read_text().partition(BEGIN) if page.exists() else ("", "", END)
    page.write_text(before + BEGIN + "\n" + "\n".join(day.page) + "\n" + END + old.partition(END)[2])
    for text in day.surprises:
        print(f"\n=== surprise: {text}", file=sys.stderr)
    return 1 if day.surprises else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
