"""A login on the host, and the place that renews it: each refresh token is good for one use."""

import json
import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from broker.standin import Asked, Pieces, reply
from patience import PATIENCE

FIRST = {"access": "access-token-0", "refresh": "refresh-token-0"}
OTHERS = {"mcpOAuth": {"tea|1": {"accessToken": "of an MCP server"}}}


def log_in(directory: Path, seconds: float, number: int = 0, **more: Any) -> Path:
    """As Claude Code stores it."""
    directory.mkdir(exist_ok=True)
    file = directory / ".credentials.json"
    login = {
        "accessToken": f"access-token-{number}",
        "refreshToken": f"refresh-token-{number}",
        "expiresAt": int((time.time() + seconds) * 1000),
        "scopes": ["user:inference", "user:profile"],
        "subscriptionType": "max",
        **more,
    }
    temporary = directory / f"new{os.getpid()}"
    temporary.write_text(json.dumps({**OTHERS, "claudeAiOauth": login}))
    temporary.chmod(0o600)
    temporary.rename(file)
    return file


def stored(file: Path) -> dict[str, Any]:
    login: dict[str, Any] = json.loads(file.read_text())["claudeAiOauth"]
    return login


@dataclass
class Issuer:
    """Renews a login, and logs everybody out if somebody uses a refresh token for the second time."""

    valid_seconds: float = 8 * 3600
    number: int = 0
    has_ended: bool = False
    go: threading.Event | None = None  # until when an answer takes
    begun: threading.Event = field(default_factory=threading.Event)
    grants: list[dict[str, Any]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, asked: Asked) -> Pieces:
        self.begun.set()
        if self.go:
            self.go.wait(PATIENCE)
        with self.lock:
            wish = asked.json
            if self.has_ended or wish["refresh_token"] != f"refresh-token-{self.number}":
                self.refused.append(wish["refresh_token"])
                yield reply({"error": "invalid_grant", "error_description": "Refresh token not found"}, 400)
                return
            self.number += 1
            self.grants.append(wish)
            yield reply(
                {
                    "access_token": f"access-token-{self.number}",
                    "refresh_token": f"refresh-token-{self.number}",
                    "expires_in": self.valid_seconds,
                    "scope": "user:inference user:profile",
                }
            )
