"""Exchanges a refresh token for new tokens, as Claude Code does."""

from __future__ import annotations

import json
import time

from claudebox.features.broker.server.bodies import (
    BadBody,
    read_body,
)
from claudebox.features.broker.server.credentials import (
    Revoked,
    Unavailable,
)
from claudebox.features.broker.server.login_file import Tokens
from claudebox.features.broker.server.messages import read_answer
from claudebox.features.broker.server.upstream import (
    FAILURES,
    Unreachable,
    Upstream,
    reason,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

URL = "https://platform.claude.com/v1/oauth/token"
CLIENT = "9d1c250a-e61b-44d9-88ed-5944d1962f5e"
LARGEST_ANSWER = 64 * 1024
SECONDS = 30.0
ENDED = "the login of this host has ended; start `claude` there, type /login, and try again"


class TokenEndpoint:
    """Where tokens come from."""

    def __init__(self, upstream: Upstream) -> None:
        self.upstream = upstream

    def exchange(self, old: Tokens) -> Tokens:
        """Raises Revoked if this refresh token is not accepted, and Unavailable for everything else."""
        asked = {"grant_type": "refresh_token", "refresh_token": old.refresh, "client_id": old.client or CLIENT}
        status, answer = self._post(json.dumps({**asked, "scope": " ".join(old.scopes)}).encode())
        if status in (400, 401) and "invalid_grant" in json.dumps(answer):
            raise Revoked(ENDED)
        if status != 200:
            raise Unavailable(f"the login cannot be renewed (status {status})")
        access, refresh = answer.get("access_token"), answer.get("refresh_token", old.refresh)
        seconds, scope = answer.get("expires_in"), answer.get("scope")
        if not (isinstance(access, str) and isinstance(refresh, str) and isinstance(seconds, int | float)):
            raise Unavailable("the login cannot be renewed: the answer is no login")
        scopes = tuple(scope.split()) if isinstance(scope, str) and scope else old.scopes
        return old.replace(access=access, refresh=refresh, expires_at=time.time() + seconds, scopes=scopes)

    def _post(self, body: bytes) -> tuple[int, dict[str, Any]]:
        headers = (
            ("host", self.upstream.address.name),
            ("content-type", "application/json"),
            ("accept", "application/json"),
            ("accept-encoding", "identity"),
            ("connection", "close"),
        )
        try:
            connection = self.upstream.begin("POST", "", headers, body, afresh=True)
        except Unreachable as error:
            raise Unavailable(f"the login cannot be renewed: {error}") from None
        try:
            connection.transport.settimeout(SECONDS)
            head = read_answer(connection.reader)
            content = b""
            for piece in read_body(connection.reader, head.framing):
                content += piece
                if len(content) > LARGEST_ANSWER:
                    raise BadBody
            value = json.loads(content)
        except (*FAILURES, BadBody) as error:
            raise Unavailable(f"the login cannot be renewed: {reason(error)}") from None
        except (ValueError, RecursionError):
            value = {}
        finally:
            connection.close()
        return head.status, value if isinstance(value, dict) else {}
