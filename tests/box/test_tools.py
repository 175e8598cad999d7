"""What people work with works in the box: the filter and the namespaces are not in its way."""

import shutil
import sysconfig
from pathlib import Path

import pytest

from conftest import Account, Box
from samples import wheel

pytestmark = [
    pytest.mark.req("SAND-11"),
    pytest.mark.root_repeats("inside, root is an ordinary user like anybody else; test_identity.py shows it"),
]

SYSTEM = "/usr/bin:/usr/local/bin"
PATIENCE = 120  # seconds; a virtual machine starts slowly on a busy one

C = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void *work(void *number) { return (char *)number + 41; }
int main(void) {
    pthread_t thread;
    void *answer;
    if (pthread_create(&thread, NULL, work, (void *)1) || pthread_join(thread, &answer)) return 1;
    printf("%d\\n", (int)(long)answer);
    return 0;
}
"""
MAKEFILE = "answer: answer.c\n\tcc -g -pthread -o $@ $<\nall: answer\n"


def compiled(box: Box, account: Account) -> None:
    account.write(box.project / "answer.c", C)
    account.write(box.project / "Makefile", MAKEFILE)


@pytest.mark.gcc
def test_compiler_and_make(box: Box, account: Account) -> None:
    compiled(box, account)
    assert box.sh("make -s -j2 all && ./answer") == "42\n"


@pytest.mark.gcc
def test_sanitizers(box: Box, account: Account) -> None:
    """The one for leaks stops its own threads by ptrace."""
    account.write(box.project / "leak.c", "#include <stdlib.h>\nint main(void) { return malloc(7) == malloc(8); }\n")
    done = box.inside("sh", "-c", "gcc -O0 -g -fsanitize=address,undefined -o leak leak.c && ./leak")
    assert "LeakSanitizer: detected memory leaks" in done.stderr, done.stderr


@pytest.mark.gcc
@pytest.mark.gdb
def test_debugger_of_an_own_child(box: Box, account: Account) -> None:
    compiled(box, account)
    script = (
        "make -s all && gdb -nx -batch -ex 'break work' -ex run -ex 'print number' -ex bt -ex continue ./answer 2>&1"
    )
    seen = box.sh(script)
    assert all(words in seen for words in ("$1 = (void *) 0x1", "#0  work (number=0x1)", "exited normally")), seen


@pytest.mark.gcc
@pytest.mark.strace
def test_tracer_of_own_children(box: Box, account: Account) -> None:
    compiled(box, account)
    seen = box.sh("make -s all && strace -f -o trace ./answer && cat trace")
    assert seen.startswith("42\n")
    assert "clone" in seen
    assert "exited with 0" in seen


@pytest.mark.npm
def test_node_with_children_and_threads(box: Box) -> None:
    program = """
    const { execFileSync } = require("child_process"), { Worker } = require("worker_threads");
    const fs = require("fs");
    fs.writeFileSync("made", execFileSync("echo", ["child"]));
    new Worker("require('worker_threads').parentPort.postMessage('thread')", { eval: true })
      .on("message", async (text) => console.log(text, (await fs.promises.readFile("made", "utf8")).trim()));
    """
    assert box.inside("node", "-e", program).stdout == "thread child\n"


@pytest.mark.npm
def test_npm_install(box: Box, account: Account) -> None:
    """Of a package that is at hand, with a script of its own."""
    package = '{"name": "left", "version": "1.0.0", "bin": {"left": "left.js"}, "scripts": {"install": "touch ran"}}'
    account.write(box.project / "left" / "package.json", package)
    account.write(box.project / "left" / "left.js", "#!/usr/bin/env node\nconsole.log('installed')\n", 0o755)
    account.write(box.project / "package.json", '{"name": "shop", "version": "1.0.0"}')
    script = "npm install --silent --offline --install-links ./left && test -e node_modules/left/ran && npx left"
    assert box.sh(script, timeout=PATIENCE) == "installed\n"


def test_pip_install(box: Box, account: Account) -> None:
    package = box.project / "left-1.0-py3-none-any.whl"
    package.write_bytes(wheel("left", "print('installed')\n"))
    account.own(package)
    script = f"python3 -m venv env && env/bin/pip install -q --no-index ./{package.name} && env/bin/python -m left"
    assert box.sh(script, timeout=PATIENCE) == "installed\n"


def test_pytest(box: Box, account: Account) -> None:
    packages = sysconfig.get_path("purelib")
    account.write(box.project / "test_shop.py", "def test_shop(tmp_path, capfd):\n    print('x')\n    assert 1\n")
    options = ("--mount-ro", packages, "--env", f"PYTHONPATH={packages}")
    assert "1 passed" in box.sh("python3 -m pytest -q -p no:cacheprovider test_shop.py", options=options)


MULTIPROCESSING = """
import multiprocessing, multiprocessing.shared_memory

def work(number):
    return number + 1

if __name__ == "__main__":
    for way in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(way).Pool(2) as pool:
            assert pool.map(work, range(8)) == list(range(1, 9))
    memory = multiprocessing.shared_memory.SharedMemory(create=True, size=4096)
    memory.close()
    memory.unlink()
    print("done")
"""


def test_python_with_many_processes(box: Box, account: Account) -> None:
    account.write(box.project / "many.py", MULTIPROCESSING)
    assert box.sh("python3 many.py", timeout=PATIENCE) == "done\n"


@pytest.mark.sqlite3
def test_sqlite(box: Box) -> None:
    """With a log beside the file, which processes share by mapping it."""
    script = """
    sqlite3 shop.db 'pragma journal_mode=wal; create table t (a); insert into t values (42);' &&
    sqlite3 shop.db 'select a from t; pragma integrity_check;'
    """
    assert box.sh(script).split() == ["wal", "42", "ok"]


@pytest.mark.tmux
def test_terminal_multiplexer(box: Box) -> None:
    script = """
    tmux -L shop -f /dev/null new -d -s shop 'echo inside >out; tmux -L shop wait -S done; sleep 9' &&
    tmux -L shop wait done; cat out; tmux -L shop kill-server
    """
    assert box.sh(script) == "inside\n"


@pytest.mark.ps
def test_programs_that_look_at_the_system(box: Box) -> None:
    """Some complain that a socket of theirs is missing, and then look elsewhere."""
    assert " lo:" in box.sh("ip address")
    assert "State" in box.inside("ss", "-ltn").stdout
    assert "ps" in box.sh("ps -eo comm")


# Where they are installed. They are large, so nothing installs them for a test.
JAVA = """
class Answer {
    public static void main(String[] words) throws Exception {
        var thread = new Thread(() -> System.out.print("42"));
        thread.start();
        thread.join();
        System.out.println(new String(new ProcessBuilder("echo").start().getInputStream().readAllBytes()).isEmpty());
    }
}
"""
GO = """
package main

import ("fmt"; "net"; "os/exec")

func main() {
    listener, err := net.Listen("tcp", "127.0.0.1:0")
    if err != nil { panic(err) }
    go func() { net.Dial("tcp", listener.Addr().String()) }()
    if _, err = listener.Accept(); err != nil { panic(err) }
    text, _ := exec.Command("echo", "42").Output()
    fmt.Print(string(text))
}
"""
RUST = 'fn main() { println!("{}", std::thread::spawn(|| 42).join().unwrap()); }\n'
LARGE = {
    "javac": ("Answer.java", JAVA, "java Answer.java", "42false\n"),
    "go": ("main.go", GO, "go run main.go", "42\n"),
    "cargo": ("src/main.rs", RUST, "cargo init -q --name answer . && cargo run -q --offline", "42\n"),
}


def test_large_tools(box: Box, account: Account) -> None:
    for tool, (name, source, script, wanted) in LARGE.items():
        if shutil.which(tool, path=SYSTEM):
            account.write(box.project / name, source)
            assert box.sh(script, timeout=PATIENCE) == wanted


@pytest.mark.parametrize("how", ["--userns on", "--no-sandbox"])
def test_browser(box: Box, account: Account, how: str) -> None:
    """With its own sandbox, where the setting allows that, or without."""
    if not shutil.which("chromium", path=SYSTEM) or (account.is_root and how == "--userns on"):
        return  # not there; or refused, which another test holds
    account.write(box.project / "page.html", "<title>shop</title><script>document.title += 42</script>")
    flag, options = (how, []) if how.startswith("--no") else ("", how.split())
    if Path("/etc/chromium.d").exists():
        options += ["--mount-ro", "/etc/chromium.d"]  # where Debian's script of that name reads its flags
    words = f"chromium --headless --disable-gpu --disable-dev-shm-usage {flag} --dump-dom file://$PWD/page.html"
    shown = box.sh(f"{words} 2>/dev/null", options=tuple(options), timeout=PATIENCE)
    assert "<title>shop42</title>" in shown
