"""What is said of the network of a box, of ports and of the allowlist."""

import os

from claudebox.features.allowlist import act
from claudebox.features.network import uplink as network
from claudebox.model import Launch, Origin, Port
from claudebox.process import isolation
from claudebox.process.companion import filter_problem, open_port
from errors.scene import Problems, Scene, old_kernel, pasta_ends, with_file
from saying import parse


def with_uplink(scene: Scene) -> Scene:
    return scene.planted("/usr/bin/pasta*\n/usr/sbin/nft*")


def without_a_default_route(scene: Scene, *words: str) -> None:
    scene.machine.neighbourhood = scene.machine.neighbourhood.replace(has_ipv4=False, has_ipv6=False)
    with_uplink(scene).plan("--network", *words)


def namespace_refused(scene: Scene, *, by_apparmor: bool = False) -> None:
    scene.monkeypatch.setattr(isolation, "c_call", lambda *_: -1)
    scene.monkeypatch.setattr(isolation, "apparmor_forbids", lambda: by_apparmor)
    isolation.enter_network_namespace(())


def namespace_without_a_user(scene: Scene) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    scene.monkeypatch.setattr(isolation, "c_call", lambda *_: 0)
    scene.monkeypatch.setattr(isolation, "write", refuse)
    scene.monkeypatch.setattr(isolation, "apparmor_forbids", lambda: True)
    isolation.fork_into_namespaces()


def filter_refused(scene: Scene) -> None:
    scene.monkeypatch.setattr(isolation, "apparmor_forbids", lambda: False)
    raise filter_problem("netlink: Error: cache initialization failed: Protocol not supported")


def tun_refused(scene: Scene) -> None:
    scene.monkeypatch.setattr(isolation, "apparmor_forbids", lambda: False)
    raise network._pasta_problem("x\nFailed to open tun socket in namespace")


def port_refused(scene: Scene, number: int) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(98, "Address already in use (while attempting to bind)")

    scene.monkeypatch.setattr("socket.create_server", refuse)
    open_port(Port(number, 80, Origin.of_option("--publish")))


def allowed(scene: Scene, *hosts: str, option: str = "--allow") -> None:
    scene.planted("/usr/sbin/nft*")
    scene.plan("--network", "allowlist", *(word for host in hosts for word in (option, host)))


def no_device(scene: Scene) -> None:
    def refuse(_: str) -> int:
        raise OSError(19, os.strerror(19))

    scene.monkeypatch.setattr(act, "enter_network_namespace", lambda *_: None)
    scene.monkeypatch.setattr(isolation, "apparmor_forbids", lambda: False)
    scene.monkeypatch.setattr("claudebox.features.allowlist.act.socket.if_nametoindex", refuse)
    act.make_network("/usr/sbin/nft", ())


def process_ended(_: Scene) -> None:
    raise act.ended()


def on_old_kernel(scene: Scene) -> None:
    old_kernel(scene.planted("/usr/sbin/nft*"))
    act.beside(Launch(scene.machine.plan("--network", "allowlist")))


PROBLEMS: Problems = {
    "network-unknown": lambda scene: scene.plan("--network", "lan"),
    "network-unknown-by-variable": lambda scene: scene.with_environ(CLAUDEBOX_NETWORK="lan").plan(),
    "network-ports-with-full": lambda scene: scene.plan("--host-port", "5432"),
    "network-publish-with-full": lambda scene: scene.plan("--publish", "8080:80"),
    "network-programs-missing": lambda scene: scene.plan("--network", "inet"),
    "network-pasta-missing": lambda scene: scene.planted("/usr/sbin/nft*").plan("--network", "none", "--publish", "80"),
    "network-pasta-in-project": lambda scene: (
        scene.planted("~/shop/pasta*\n/usr/sbin/nft*").with_environ(CLAUDEBOX_PASTA="pasta").plan("--network", "inet")
    ),
    "network-nft-named-missing": lambda scene: (
        with_uplink(scene).with_environ(CLAUDEBOX_NFT="/opt/nft").plan("--network", "inet")
    ),
    "network-no-default-route": lambda scene: without_a_default_route(scene, "inet"),
    "network-no-default-route-for-ports": lambda scene: without_a_default_route(scene, "none", "--publish", "3000"),
    "network-namespace-refused": namespace_refused,
    "network-namespace-refused-by-apparmor": lambda scene: namespace_refused(scene, by_apparmor=True),
    "network-namespace-without-a-user": namespace_without_a_user,
    "network-filter-refused": filter_refused,
    "network-pasta-silent": lambda scene: pasta_ends(scene, log=""),
    "network-pasta-fails": lambda scene: pasta_ends(scene, log="x\nCouldn't get any address"),
    "network-no-tun": tun_refused,
    "port-is-no-number": lambda scene: scene.plan("--publish", "http"),
    "port-too-large": lambda scene: scene.plan("--host-port", "65536"),
    "port-of-the-host-with-another": lambda scene: scene.plan("--host-port", "80:8080"),
    "port-both-ways": lambda scene: scene.plan("--network", "inet", "--publish", "8080:80", "--host-port", "80"),
    "port-published-twice": lambda scene: scene.plan("--publish", "80:8080", "--publish", "80:8081"),
    "port-taken": lambda scene: port_refused(scene, 3000),
    "port-too-low": lambda scene: port_refused(scene, 80),
    "port-published-twice-by-file": lambda scene: with_file(scene, "publish = ['80:8080']").plan(
        "--network", "none", "--publish", "80"
    ),
    "allowlist-old-kernel": on_old_kernel,
    "allowlist-port-of-dns": lambda scene: allowed(scene, "example.org:53"),
    "allowlist-no-host": lambda scene: allowed(scene, "-x.example"),
    "allowlist-a-single-word": lambda scene: allowed(scene, "nas"),
    "allowlist-not-ascii": lambda scene: allowed(scene, "пример.example"),
    "allowlist-everything": lambda scene: allowed(scene, "*"),
    "allowlist-a-whole-domain": lambda scene: allowed(scene, "*.com"),
    "allowlist-localhost": lambda scene: allowed(scene, "localhost:5432"),
    "allowlist-no-port": lambda scene: allowed(scene, "example.org:https"),
    "allowlist-no-address": lambda scene: allowed(scene, "1.2.3"),
    "allowlist-private-address": lambda scene: allowed(scene, "192.168.1.5:5432"),
    "allowlist-unknown-group": lambda scene: allowed(scene, "@nmp"),
    "allowlist-by-file": lambda scene: allowed(with_file(scene, "allow = ['a b']")),
    "allowlist-with-another-tier": lambda scene: scene.plan("--network", "none", "--allow", "example.org"),
    "allowlist-nobody-to-ask": lambda scene: allowed(scene, "desktop", option="--ask"),
    "allowlist-nobody-to-ask-on-a-bus": lambda scene: allowed(
        scene.planted("/usr/bin/notify-send*"), "desktop", option="--ask"
    ),
    "allowlist-old-name": lambda scene: scene.plan("--network", "names"),
    "allowlist-old-name-in-a-file": lambda scene: with_file(scene, "network = 'names'").plan(),
    "allowlist-without-nft": lambda scene: scene.plan("--network", "allowlist"),
    "allowlist-without-a-device": no_device,
    "allowlist-process-ended": process_ended,
    "allowlist-suggest-alone": lambda _: parse(["--suggest"]),
    "allowlist-log-for-claude": lambda _: parse(["--network-log", "please"]),
}
