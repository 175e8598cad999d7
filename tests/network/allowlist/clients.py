"""Runs in a box: every client against every target. Prints JSON: for each pair whether it was greeted, or what it said.

python3 clients.py '{"curl http": ["curl", "…", "http://{host}/"], …}' '{"allowed": ["allowed.example", ""], …}'
"""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

SECONDS = 60  # bounds a failure: what is refused is refused at once
HANGS = "no end in sight"


def run(command: list[str], host: str) -> str:
    words = [word.replace("{host}", host) for word in command]
    try:
        done = subprocess.run(words, capture_output=True, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return HANGS
    return (done.stdout + done.stderr).decode(errors="replace")


commands, targets = map(json.loads, sys.argv[1:])
pairs = [(client, case) for client in commands for case in targets]
with ThreadPoolExecutor(4) as pool:
    said = pool.map(lambda pair: run(commands[pair[0]], targets[pair[1]]), pairs)
    print(json.dumps({f"{client}: {case}": text for (client, case), text in zip(pairs, said, strict=True)}))
