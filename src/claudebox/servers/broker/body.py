"""Reads what a box asks of the API, and refuses what the API would fetch for it.

A box that reaches nothing could ask the API to: by a server tool, an MCP server, or a source that is an address. So
only what is known to stay between the box and the API passes, and only if every reader understands it in the same way.
"""

from __future__ import annotations

import json
import math
import re
import threading
from typing import Any, NoReturn

from claudebox.servers.broker.messages import Headers
from claudebox.servers.broker.policy import INVALID, Refusal

CONTENT_TYPE = re.compile(r'application/json(?:\s*;\s*charset="?utf-8"?)?', re.IGNORECASE)
# Another reader may take `Type` for `type`, so what the API reads is in these letters alone.
NAME = re.compile(r"[a-z][a-z0-9_]*")
VERSION = re.compile(r"_20[0-9]{6}\Z")  # of a tool or an edit: the version changes, and what it is does not
HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F]")
MOST_PARTS = 2 << 20  # of a body; a value in Python is many times as large as in JSON
SEPARATORS = (b"{", b"[", b",")
ONE_AT_A_TIME = threading.Lock()  # parsing is work for one processor anyway, and takes memory

# A newer Claude has more of them. If one is refused in the API's own words, it goes on without, as with gateways that
# know less. `thread` is no harmless one: what continues has the tools of a request that may not have come this way.
FIELDS = frozenset(
    """model messages system max_tokens metadata stream stop_sequences temperature top_k top_p tools tool_choice
    thinking output_config output_format context_management context_hint compaction cache_control diagnostics
    fallbacks inference_geo safeguards service_tier speed""".split()
)
# What an object of a request can be. Everything that the API would get from elsewhere has another type: `url`, `file`,
# `web_search_…`, `web_fetch_…`, `code_execution_…`, `container_upload`, `mcp_…`.
TYPES = frozenset(
    """text image document search_result thinking redacted_thinking tool_use tool_result tool_reference
    tool_addition tool_removal tool_definition compaction fallback mid_conv_system
    base64 content ephemeral json_schema tokens
    enabled disabled adaptive auto any tool none direct dangerous_tool_use
    custom bash text_editor computer memory advisor tool_search_tool_regex tool_search_tool_bm25
    clear_tool_uses clear_thinking compact input_tokens tool_uses thinking_turns
    server_tool_use web_search_tool_result web_search_tool_result_error web_search_result web_fetch_tool_result
    web_fetch_tool_result_error web_fetch_result advisor_tool_result advisor_tool_result_error advisor_result
    advisor_redacted_result tool_search_tool_result tool_search_tool_result_error tool_search_tool_search_result
    char_location page_location content_block_location search_result_location web_search_result_location""".split()
)
# The API looks for nothing in these.
OPAQUE = frozenset(("input", "input_schema", "input_examples", "schema", "classifier_context"))


def check_body(body: bytes, headers: Headers) -> None:
    """Raise a Refusal if the API could be asked to fetch something by this, or if it can be read in two ways."""
    with ONE_AT_A_TIME:
        try:
            request = _parse(body, dict(headers))
            for name, value in request.items():
                if value and name not in FIELDS:
                    _refuse(name, f"{name}: Extra inputs are not permitted: ")
            _check(request)
        except (ValueError, RecursionError) as error:
            what = str(error) if isinstance(error, ValueError) else "it is nested too deeply"
            raise Refusal(400, INVALID, f"the request cannot be read in one way only: {what}") from None


def _refuse(name: str, in_words_of_the_api: str = "") -> NoReturn:
    what = f"{in_words_of_the_api}with `{name}`, the API could fetch something for this box, which may not"
    raise Refusal(400, INVALID, f"{what}; the user can allow it: claudebox --broker-fetch on")


def _parse(body: bytes, headers: dict[str, str]) -> dict[str, Any]:
    if not CONTENT_TYPE.fullmatch(headers.get("content-type", "")) or "content-encoding" in headers:
        raise ValueError("it is not plain JSON in UTF-8")
    if sum(map(body.count, SEPARATORS)) > MOST_PARTS:
        raise ValueError("it has too many parts")
    value = json.loads(body.decode(), object_pairs_hook=_object, parse_float=_number, parse_constant=_number)
    if HALF_CHARACTER.search(body):
        json.dumps(value, ensure_ascii=False).encode()  # fails if the other half is missing
    if not isinstance(value, dict):
        raise ValueError("it is no object")
    return value


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(members)
    if len(value) != len(members):
        raise ValueError("a name is there twice")
    return value


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _check(value: Any) -> None:
    """Raise unless each object in there is of a known type, with names that every reader takes for the same."""
    if isinstance(value, list):
        for element in value:
            _check(element)
    elif isinstance(value, dict):
        kind = value.get("type")
        if kind is not None and VERSION.sub("", str(kind)) not in TYPES:
            _refuse(str(kind))
        for name, inner in value.items():
            if not NAME.fullmatch(name):
                raise ValueError("a name has letters that no name of the API has")
            if name == "source" and isinstance(inner, dict) and "type" not in inner:
                raise ValueError("a source does not say what it is")
            if name not in OPAQUE:
                _check(inner)
