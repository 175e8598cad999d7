"""What a box without a network of its own may ask of the API: nothing that the API would fetch for it."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.conftest import Start
from broker.talk import Talk
from claudebox.errors import Problem
from claudebox.model import Broker
from claudebox.servers.broker.body import MOST_PARTS, check_body
from claudebox.servers.broker.policy import Refusal
from hosts.machine import Machine, debian

pytestmark = pytest.mark.req("NONE-01")

JSON = (("content-type", "application/json"),)
IMAGE = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
TOOL = {
    "name": "Bash",
    "description": "run",
    "input_schema": {"type": "object", "properties": {"url": {"type": "url"}}},
}
CACHED = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


def block(**block: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [block]}]}


def judge(request: object, headers: tuple[tuple[str, str], ...] = JSON) -> str:
    """Why it is refused; "" if it passes."""
    body = request if isinstance(request, bytes) else json.dumps(request).encode()
    try:
        check_body(body, headers)
    except Refusal as refusal:
        return refusal.message
    return ""


# What Claude asks for

USUAL = [
    {
        "model": "claude-opus-5-5",
        "max_tokens": 128000,
        "stream": True,
        "system": [{"type": "text", "text": "You are …", **CACHED}],
        "tools": [TOOL, {**TOOL, "type": "custom", "defer_loading": True, "input_examples": [{"type": "url"}]}],
        "tool_choice": {"type": "auto"},
        "metadata": {"user_id": '{"device_id": "x"}'},
        "thinking": {"type": "adaptive", "display": "omitted"},
        "output_config": {"effort": "medium", "format": {"type": "json_schema", "schema": {"type": "object"}}},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "messages": [
            {"role": "user", "content": "look at https://example.org"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "…", "signature": "…"}]},
            {
                "role": "assistant",
                "content": [
                    {
                        "type": "tool_use",
                        "id": "t",
                        "name": "WebFetch",
                        "input": {"url": "x"},
                        "caller": {"type": "direct"},
                    }
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t", "content": "…", "is_error": True}],
            },
            {"role": "user", "content": [{"type": "tool_result", "content": [{"type": "image", "source": IMAGE}]}]},
            {"role": "user", "content": [{"type": "tool_reference", "tool_name": "WebSearch"}, {"type": "text"}]},
            {
                "role": "system",
                "content": [{"type": "tool_addition", "tool": {"type": "tool_definition", "definition": TOOL}}],
            },
        ],
    },
    {"tools": [{"type": "bash_20250124", "name": "bash"}, {"type": "advisor_20260301", "name": "advisor"}]},
    {"mcp_servers": [], "container": None},
    block(type="document", source={"type": "content", "content": [{"type": "text", "text": "…"}]}),
    block(type="search_result", source="https://example.org", content=[{"type": "text", "text": "…"}]),
    block(type="tool_use", input={"Type": "url", "": {"type": "url"}}),
]


@pytest.mark.parametrize("request_", USUAL)
def test_what_stays_between_the_box_and_the_api_passes(request_: object) -> None:
    assert judge(request_) == ""


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        ({"mcp_servers": [{"type": "url", "url": "https://mcp.example", "name": "x"}]}, "mcp_servers"),
        ({"container": "container_1"}, "container"),
        ({"container": {"skills": [{"type": "custom"}]}}, "container"),
        ({"new_feature": {"url": "https://example.org"}}, "new_feature"),
        ({"thread": {"type": "continue", "previous_message_id": "msg_1"}}, "thread"),
        ({"tools": [TOOL, {"type": "web_search_20250305", "name": "web_search"}]}, "web_search_20250305"),
        ({"tools": [{"type": "web_fetch_20260209", "name": "web_fetch"}]}, "web_fetch_20260209"),
        ({"tools": [{"type": "code_execution_20250825", "name": "code_execution"}]}, "code_execution_20250825"),
        ({"tools": [{"type": "mcp_toolset", "mcp_server_name": "x"}]}, "mcp_toolset"),
        ({"tools": [{"type": "new_tool_20270101"}]}, "new_tool_20270101"),
        (block(type="image", source={"type": "url", "url": "https://example.org/a.png"}), "url"),
        (block(type="document", source={"type": "url", "url": "https://example.org/a.pdf"}), "url"),
        (block(type="image", source={"type": "file", "file_id": "file_1"}), "file"),
        (block(type="container_upload", file_id="file_1"), "container_upload"),
        (block(type="mcp_tool_use", input={}), "mcp_tool_use"),
        (block(type="tool_result", content=[{"type": "image", "source": {"type": "url"}}]), "url"),
        (
            block(
                type="document", source={"type": "content", "content": [{"type": "image", "source": {"type": "url"}}]}
            ),
            "url",
        ),
        (
            block(type="tool_addition", tool={"type": "tool_definition", "definition": {"type": "web_fetch_20250910"}}),
            "web_f",
        ),
        ({"system": [{"type": "document", "source": {"type": "url"}}]}, "url"),
        ({"fallbacks": [{"tools": [{"type": "web_search_20250305"}]}]}, "web_search_20250305"),
        ({"tools": [{"type": ["web_search_20250305"]}]}, "['web_search_20250305']"),
    ],
)
def test_what_the_api_would_fetch_is_refused(request_: object, named: str) -> None:
    message = judge(request_)
    assert f"with `{named}" in message
    assert "--broker-fetch on" in message


@pytest.mark.parametrize("name", ["thread", "data_flow", "new_feature"])
def test_new_field_is_refused_so_that_claude_goes_on_without_it(name: str) -> None:
    """It looks for these words, which the API and gateways use."""
    assert judge({name: {"type": "create"}}).startswith(
        f"{name}: Extra inputs are not permitted: with `{name}`, the API"
    )


# What another reader could understand in another way

DEEP = b'{"messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "Expecting value"),
        (b"[]", "no object"),
        (b"{} {}", "Extra data"),
        (b'{"messages": [],}', "char"),
        (b'{"messages": [{"type": "image", "source": {"url": "https://example.org"}}]}', "does not say"),
        (b'{"tools": [], "tools": [{"type": "web_search_20250305"}]}', "twice"),
        (b'{"tools": [{"type": "custom", "t\\u0079pe": "web_search_20250305"}]}', "twice"),
        (b'{"messages": [{"content": [{"type": "tool_use", "input": {"a": 1, "a": 2}}]}]}', "twice"),
        (b'{"tools": [{"type": "custom", "Type": "web_search_20250305"}]}', "letters"),
        ('{"tools": [{"type": "custom", "ty\u017fe": "web_search_20250305"}]}'.encode(), "letters"),
        (b'{"messages": [{"role": "user", "content": "\\ud83d"}]}', "surrogates"),
        (b'{"messages": [{"content": [{"type": "tool_use", "input": {"\\uD800": 1}}]}]}', "surrogates"),
        (b'{"max_tokens": NaN}', "too large"),
        (b'{"max_tokens": -Infinity}', "too large"),
        (b'{"max_tokens": 1e999}', "too large"),
        (b'{"max_tokens": ' + b"9" * 5000 + b"}", "digits"),
        (b'{"max_tokens": 01}', "Expecting"),
        (b'{"model": "a\nb"}', "control character"),
        (b'{"model": "\xff"}', "utf-8"),
        (b'{"model": "\xed\xa0\x80"}', "utf-8"),
        (b"\xef\xbb\xbf{}", "BOM"),
        ('{"model": "m"}'.encode("utf-16"), "utf-8"),
        (DEEP, "too deeply"),
        (b'{"messages": [' + b"0," * MOST_PARTS + b"0]}", "too many parts"),
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(body: bytes, why: str) -> None:
    message = judge(body)
    assert message.startswith("the request cannot be read in one way only")
    assert why in message


@pytest.mark.parametrize(
    "headers",
    [
        (),
        (("content-type", "text/plain"),),
        (("content-type", "application/json; charset=utf-16"),),
        (("content-type", "application/json; charset=utf-8; charset=utf-16"),),
        (*JSON, ("content-encoding", "gzip")),
        (*JSON, ("content-encoding", "identity")),
    ],
)
def test_body_in_another_form_is_refused(headers: tuple[tuple[str, str], ...]) -> None:
    assert "plain JSON" in judge({}, headers)


@pytest.mark.parametrize(
    "said", ["application/json", "Application/JSON; charset=UTF-8", 'application/json;charset="utf-8"']
)
def test_usual_names_of_json_pass(said: str) -> None:
    assert judge({}, (("content-type", said),)) == ""


def test_whole_characters_pass_however_they_are_written() -> None:
    text = "\U0001f600 \\ud83d"
    assert judge(json.dumps(block(type="text", text=text)).encode()) == ""
    assert judge(json.dumps(block(type="text", text=text), ensure_ascii=False).encode()) == ""


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(("type", "source", "content", "Type")) | st.text(), inner)
    ),
)


@given(values)
def test_every_value_is_judged(value: object) -> None:
    judge({"messages": value})


# On the way

SEARCH = json.dumps({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}).encode()
TYPED = "Content-Type: application/json\r\n"


@pytest.mark.parametrize("target", ["/v1/messages", "/v1/messages/count_tokens?beta=true"])
def test_refusal_says_what_and_how_to_allow_it(start: Start, target: str) -> None:
    broker = start(fetches=False)
    with broker.client() as client:
        answer = client.ask(SEARCH, target, TYPED)
        assert (answer.status, answer.headers["x-should-retry"]) == (400, "false")
        assert json.loads(answer.body) == {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "claudebox: with `web_search_20250305`, the API could fetch something for this box, which "
                "may not; the user can allow it: claudebox --broker-fetch on",
            },
        }
        assert client.ask(b'{"model": "m"}', headers=TYPED).status == 200  # the connection goes on
    assert [asked.body for asked in broker.api.asked] == [b'{"model": "m"}']
    assert [entry["status"] for entry in broker.journal] == [400, 200]


def test_chunks_are_judged_as_a_whole(start: Start) -> None:
    broker = start(fetches=False)
    with broker.client() as client:
        head = f"POST /v1/messages HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {client.dummy}\r\n{TYPED}"
        pieces = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (SEARCH[:15], SEARCH[15:]))
        assert client.raw(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + pieces + b"0\r\n\r\n").status == 400
    assert broker.api.asked == []


def test_without_the_rule_the_api_is_asked(start: Start) -> None:
    broker = start(fetches=True)
    assert broker.ask(SEARCH, headers=TYPED).status == 200
    assert broker.api.asked[0].body == SEARCH


# Which box may


def machine(root: Path, special: str = "") -> Machine:
    return debian(
        root, f"{special}\n/usr/bin/pasta*\n/usr/sbin/nft*", environ={"ANTHROPIC_API_KEY": "sk-ant-x-0123456789"}
    )


@pytest.mark.parametrize(
    ("words", "fetches"),
    [
        (("--network", "none"), False),
        (("--network", "allowlist"), False),
        (("--network", "inet"), True),
        (("--network", "full"), True),
        (("--network", "none", "--broker-fetch", "on"), True),
        (("--network", "full", "--broker-fetch", "off"), False),
    ],
)
def test_api_fetches_only_for_a_box_that_could_by_itself(tmp_path: Path, words: tuple[str, ...], fetches: bool) -> None:
    broker = machine(tmp_path).plan("--auth", "broker", *words).get(Broker)
    assert broker is not None
    assert broker.fetches == fetches


def test_user_is_asked_when_the_api_may_fetch_for_a_box_without_a_network(tmp_path: Path) -> None:
    here = machine(tmp_path)
    labels = [
        {grant.lines[0]: grant.widens for grant in here.plan("--auth", "broker", *words).grants}.get(
            ("broker-fetch", "on")
        )
        for words in (("--network", "none"), ("--network", "none", "--broker-fetch", "on"), ("--broker-fetch", "on"))
    ]
    assert labels == [None, True, None]


def test_projects_file_cannot_widen(tmp_path: Path) -> None:
    here = machine(tmp_path, '~/shop/.claudebox.toml: broker_fetch = "on"\\n')
    plan = here.plan("--auth", "broker", "--network", "none")
    broker = plan.get(Broker)
    assert broker is not None
    assert not broker.fetches


def test_setting_without_a_broker_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="no meaning with --auth passthrough"):
        machine(tmp_path).plan("--broker-fetch", "off")


def test_claude_shows_why_it_cannot_search(user_with_key: Talk) -> None:
    """The real one: it asks the API in a request of its own, and tells the sentence."""
    talk = user_with_key
    with talk.api(("ToolSearch", {"query": "select:WebSearch"}), ("WebSearch", {"query": "weather"})):
        done = talk.box.claudebox(*talk.words("-p", "do it"), env=talk.environ)
    assert done.returncode == 0, done.stderr
    assert "the user can allow it: claudebox --broker-fetch on" in talk.results[1]
    assert not any(tool.get("type") for request in talk.requests for tool in request.get("tools", ()))
    with talk.api(("ToolSearch", {"query": "select:WebSearch"}), ("WebSearch", {"query": "weather"})):
        done = talk.box.claudebox("--broker-fetch", "on", *talk.words("-p", "do it"), env=talk.environ)
    assert done.returncode == 0, done.stderr
    assert any(tool.get("type") == "web_search_20250305" for one in talk.requests for tool in one.get("tools", ()))
