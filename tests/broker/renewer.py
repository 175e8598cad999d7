"""One of several processes around one login: a broker, or a stand-in for Claude Code on the host.

    renewer.py broker|claude FILE TOKEN_URL OWN_LOCK ENOUGH

Goes on until the file ENOUGH exists, prints which tokens it used, and stops with an error when it has none.
"""

import json
import os
import random
import sys
import time
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any

STALE = 10.0


def renew_as_claude(file: Path, url: str) -> None:
    """The same locks in the same order, written without a look at the broker's own."""
    directory = file.parent
    held: list[Path] = []
    try:
        for lock in (directory / ".oauth_refresh.lock", directory.with_name(directory.name + ".lock")):
            lock.mkdir()
            held.append(lock)
        login = json.loads(file.read_text())["claudeAiOauth"]
        if login["expiresAt"] / 1000 - 300 > time.time():
            return
        new = post(url, {"grant_type": "refresh_token", "refresh_token": login["refreshToken"]})
        lock = directory / ".storage-write.lock"
        while True:
            try:
                lock.mkdir()
                break
            except FileExistsError:
                time.sleep(0.01)
        held.append(lock)
        content = json.loads(file.read_text())
        content["claudeAiOauth"] |= {
            "accessToken": new["access_token"],
            "refreshToken": new["refresh_token"],
            "expiresAt": int((time.time() + new["expires_in"]) * 1000),
        }
        temporary = directory / f".tmp{os.getpid()}"
        temporary.write_text(json.dumps(content))
        temporary.rename(file)
    except FileExistsError:
        time.sleep(random.uniform(0.02, 0.1))
    finally:
        for lock in reversed(held):
            lock.rmdir()


def post(url: str, value: Any) -> Any:
    request = urllib.request.Request(url, json.dumps(value).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def access_as_claude(file: Path, url: str) -> str:
    while True:
        login = json.loads(file.read_text())["claudeAiOauth"]
        if login["expiresAt"] / 1000 - 300 > time.time():
            return str(login["accessToken"])
        renew_as_claude(file, url)


def main() -> None:
    kind, file, token_url, own_lock, enough = sys.argv[1:]
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))
    from claudebox.features.broker.credential import parse_address
    from claudebox.servers.broker.credentials import Subscription, renew
    from claudebox.servers.broker.upstream import Upstream, trust

    endpoint = Upstream(parse_address(token_url), trust(""))
    login = Subscription(file, str(Path(file).parent), own_lock, partial(renew, endpoint))
    used = []
    while not os.path.exists(enough):
        if kind == "broker":
            used.append(dict(login.headers())["authorization"].removeprefix("Bearer "))
        else:
            used.append(access_as_claude(Path(file), token_url))
        time.sleep(0.01)
    print(json.dumps(sorted(set(used))))


if __name__ == "__main__":
    main()
