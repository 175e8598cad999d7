"""The list of tier `allowlist`: how it is read, and what it means for a name and a port."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudebox.errors import Problem
from claudebox.features.allowlist.rules import (
    EVERY_PORT,
    FORGES,
    GROUPS,
    as_text,
    read_allowed,
)
from claudebox.model import Origin
from claudebox.servers.allowlist import Allowed, HostList, is_name
from claudebox.settings import Word

pytestmark = pytest.mark.req("NAME-01")

TYPED = Origin.of_option("--allow")
labels = st.from_regex(r"[a-z0-9_][a-z0-9_-]{0,20}", fullmatch=True)
names = st.lists(labels, min_size=1, max_size=4).map(lambda parts: ".".join([*parts, "example"]))
ports = st.integers(1, 65535).filter(lambda port: port != 53)


def words(*texts: str) -> list[Word]:
    return [Word(text, TYPED) for text in texts]


def listing(*texts: str) -> HostList:
    return HostList(read_allowed(words(*texts)))


def read(text: str) -> tuple[str, tuple[int, ...]]:
    (row,) = read_allowed(words(text))
    return row.host, row.ports


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("example.org", ("example.org", (80, 443))),
        ("EXAMPLE.Org.", ("example.org", (80, 443))),
        ("example.org:22", ("example.org", (22,))),
        ("example.org.:22", ("example.org", (22,))),
        ("example.org:*", ("example.org", ())),
        ("*.example.org:8443", ("*.example.org", (8443,))),
        ("github.com", ("github.com", (22, 80, 443))),
        ("xn--e1afmkfd.example", ("xn--e1afmkfd.example", (80, 443))),
        ("_service.example.org", ("_service.example.org", (80, 443))),
        ("198.51.100.7", ("198.51.100.7", (80, 443))),
        ("198.51.100.7:25", ("198.51.100.7", (25,))),
        ("2001:DB8::0001", ("2001:db8::1", (80, 443))),
        ("[2001:db8::1]:25", ("2001:db8::1", (25,))),
        ("[2001:db8::1]", ("2001:db8::1", (80, 443))),
    ],
)
def test_row_is_read(text: str, meaning: tuple[str, tuple[int, ...]]) -> None:
    assert read(text) == meaning


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "*", "**", "*.", "*.com", "a.*.example", "*x.example", "x", "localhost", "x.localhost"),
        *("-a.example",),
        *("a b.example", "a\0.example", "a\n.example", "example.org/", "https://example.org", "user@example.org"),
        *("пример.example", "ex\u0430mple.org", "a..example", ".example.org", "a.example..", f"{'a' * 64}.example"),
        *(
            ".".join(["a" * 60] * 5),
            "example.org:0",
            "example.org:65536",
            "example.org:-1",
            "example.org:",
            "a.example:1:2",
        ),
        *("example.org:²", "example.org:53", "example.org:22,443", "1.2.3", "1.2.3.256", "0x7f.1", "1.2.3.4.5", "[::1"),
        *("::1%lo",),
        *("[1.2.3.4]:80", "[2001:db8::1]x", "@", "@nobody", "@NPM", "2130706433"),
    ],
)
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(Problem):
        read_allowed(words(text))


@given(names, ports)
def test_name_and_port_are_permitted_as_written(name: str, port: int) -> None:
    names = listing(f"{name}:{port}")
    assert names.permits(name, port)
    assert not names.permits(name, port % 65535 + 1)
    assert not names.knows(f"x.{name}")
    assert not names.knows(name.partition(".")[2] or "x")


@given(names, names)
def test_star_means_everything_below_and_nothing_else(name: str, other: str) -> None:
    names = listing(f"*.{name}")
    assert not names.knows(name)
    assert names.knows(f"a.{name}")
    assert names.knows(f"a.b.{name}")
    assert names.knows(other) == other.endswith(f".{name}")
    assert not names.knows(f"x{name}")


def test_address_is_no_name() -> None:
    names = listing("198.51.100.7:25", "*.100.example")
    assert names.permits("198.51.100.7", 25)
    assert not names.permits("198.51.100.7", 80)
    assert not names.knows("198.51.100.8")


def test_groups_are_read_and_have_reasons() -> None:
    for group, rows in GROUPS.items():
        read = read_allowed(words(f"@{group}"))
        assert [(row.host, row.reason) for row in read] == [(host, reason) for host, reason in rows]
        assert all(row.group == f"@{group}" and row.reason for row in read)
    everybody = [host for rows in GROUPS.values() for host, _ in rows]
    assert len(everybody) == len(set(everybody))
    assert all(is_name(host) for host in (*everybody, *FORGES))


@given(names, st.one_of(st.just(EVERY_PORT), ports.map(str), st.just("")))
def test_row_can_be_written_again(name: str, port: str) -> None:
    (row,) = read_allowed(words(f"{name}:{port}" if port else name))
    assert read_allowed(words(as_text(row))) == (row,)


def test_row_that_is_added_later_counts() -> None:
    names = listing()
    assert not names.permits("a.example", 443)
    names.allow(Allowed("a.example", (443,), TYPED))
    assert names.permits("a.example", 443)
