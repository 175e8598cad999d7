"""An answer that the broker gives itself, instead of the API's."""

from __future__ import annotations

# As the API names them, so that Claude shows the message.
INVALID = "invalid_request_error"
FORBIDDEN = "permission_error"
NOT_FOUND = "not_found_error"
TOO_LARGE = "request_too_large"
TOO_MANY = "rate_limit_error"
FAILED = "api_error"

REASONS = {
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    411: "Length Required",
    413: "Payload Too Large",
    417: "Expectation Failed",
    421: "Misdirected Request",
    426: "Upgrade Required",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
    505: "HTTP Version Not Supported",
}


class Refusal(Exception):
    """Goes to the box: says nothing that the box may not know."""

    def __init__(self, status: int, kind: str, message: str, *, may_retry: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message
        self.may_retry = may_retry


def malformed(what: str) -> Refusal:
    return Refusal(400, INVALID, f"malformed request: {what}")
