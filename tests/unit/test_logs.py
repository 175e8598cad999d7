"""What `--auth-log` shows of the journal."""

import pytest

from claudebox.commands.show import auth_log_text
from claudebox.text import WIDTH

USUAL: dict[str, object] = {
    "time": "2026-11-17T21:07:53Z",
    "box": 4194304,
    "path": "/v1/messages",
    "status": 200,
    "model": "claude-opus-5-5",
    "input_tokens": 199999,
    "output_tokens": 64000,
    "ms": 183000,
}


@pytest.mark.req("AUTH-03")
def test_line_of_a_usual_request_fits_the_terminal() -> None:
    head, line = auth_log_text([USUAL]).splitlines()
    assert max(len(head), len(line)) <= WIDTH
    assert line.split() == [*"11-17 21:07 4194304 200 199999 64000 183000 messages claude-opus-5-5".split()]


@pytest.mark.req("AUTH-03")
def test_line_of_a_refusal_is_plain_whatever_the_box_asked_for() -> None:
    text = auth_log_text([{"time": "2026-11-17T21:07:53Z", "box": 7, "path": "/v2/\x1b[2J", "status": 403}])
    assert "\x1b" not in text
    assert text.splitlines()[1].split()[:4] == ["11-17", "21:07", "7", "403"]
