"""Boxes that were agreed to, and others."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from claudebox.consent import FORM, Agreement, News, agreement, find_news, read_agreements, write_agreements
from claudebox.features.login import grants as grants_of_login
from claudebox.features.network import grants as grants_of_network
from claudebox.model import (
    BY_DEFAULT,
    FROM_HOST,
    HIDE,
    EnvVar,
    Finding,
    Grant,
    Kernel,
    Login,
    Mount,
    Network,
    Origin,
    Outside,
    Person,
    Plan,
    Port,
    Program,
)
from claudebox.sandbox.mounts import arrange
from claudebox.settings.table import TIERS
from claudebox.state import Instance, State, memory

QUICK = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
# Few names, so that paths meet; some are hostile.
names = st.sampled_from(["a", "ab", "a b", "a as b", "\n", "*", "\\x20", "1.2.3", "\udcff", "é"])
paths = st.lists(names, min_size=1, max_size=3).map(lambda parts: "/" + "/".join(parts))
origins = st.sampled_from(
    [
        *(Origin.of_option("--env"), Origin.of_option("--mount-ro"), Origin.of_rule("claude"), Origin.of_rule("box")),
        *(Origin.of_file("~/x.toml", 3), Origin.of_file(".claudebox.toml", 3, is_project=True)),
    ]
)
grants = st.builds(
    lambda kind, path, source, origin: Mount(kind, path, origin, source=source),
    *(st.sampled_from(FROM_HOST), paths, paths, origins),
)
hides = paths.map(lambda path: Mount(HIDE, path, Origin.of_option("--hide")))
variables = st.builds(EnvVar, st.sampled_from("ABC"), st.text(max_size=3), origins, st.sampled_from(["", "a reason"]))
findings = st.builds(Finding, st.sampled_from(["secret", "risk", "note"]), paths, st.text(max_size=5))
ports = st.builds(lambda host, box: Port(host, box, Origin.of_option("--publish")), *[st.integers(1, 3)] * 2)
some_ports = st.lists(ports, max_size=3, unique=True).map(tuple)
networks = st.builds(
    lambda tier, published, host: Network(tier, "", BY_DEFAULT, published, host),
    *(st.sampled_from(TIERS), some_ports, some_ports),
)
logins = st.one_of(
    st.none(),
    st.builds(
        lambda file: Login(file, "/l", State("/h"), State("/h").instance("/o"), "/p"), st.one_of(st.just(""), paths)
    ),
)
programs = st.sampled_from(["claude", "command", "shell"]).map(lambda title: Program(title, (), Origin.of_rule("")))


def make(mounts, environment, network, program, found, login) -> Plan:  # type: ignore[no-untyped-def]
    return Plan(
        project="/p",
        bwrap="/usr/bin/bwrap",
        person=Person(1, 1, "x", "x", "/home/x"),
        hostname="box",
        mounts=mounts,
        environment=environment,
        network=network,
        grants=granted(network, login),
        program=program,
        wrapper=(),
        kernel=Kernel(b""),
        findings=found,
        outside=Outside(0, ()),
        records=(login,) if login is not None else (),
        state=Instance("/state", "/p"),
    )


def granted(network: Network, login: Login | None) -> tuple[Grant, ...]:
    """What these two features ask the user for."""
    return *grants_of_network(network), *(grants_of_login(login, "/home/x") if login is not None else ())


plans = st.builds(
    make,
    st.builds(arrange, st.lists(grants, max_size=6), st.lists(hides, max_size=3)),
    st.lists(variables, max_size=3, unique_by=lambda one: one.name).map(tuple),
    networks,
    programs,
    st.lists(findings, max_size=3).map(tuple),
    logins,
)


def read(content: bytes) -> tuple[Agreement, ...]:
    return read_agreements(memory.read(content, FORM))


def agreed(*answered: Plan) -> tuple[frozenset[str], ...]:
    """What is on file after a yes to each of them."""
    return read(write_agreements([agreement(plan) for plan in answered]))


def news(plan: Plan, *answered: Plan) -> News:
    return find_news(plan, agreed(*answered))


def granted_anew(plan: Plan, *answered: Plan) -> list[str]:
    """What is new of what features ask for, by the lines that would be noted."""
    return [" ".join(grant.lines[0]) for grant in news(plan, *answered).grants]


def is_agreed(plan: Plan, *answered: Plan) -> bool:
    return not news(plan, *answered).amount


def with_grant(plan: Plan, mount: Mount) -> Plan:
    return plan.replace(mounts=arrange([*plan.mounts, mount]))
