"""What is said of the network of a box."""

from __future__ import annotations

from claudebox.errors import FAILED
from claudebox.features.network import uplink as network
from claudebox.process import isolation
from claudebox.process.companion import filter_problem
from errors.scene import Problems, Scene, pasta_ends


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


def with_tun(scene: Scene, owner: int, mode: int) -> Scene:
    scene.machine.give("/dev/net/tun", owner, mode)
    return scene


def tun_refused(scene: Scene) -> None:
    uplink = with_uplink(scene).machine.plan("--network", "inet").network.uplink
    assert uplink is not None
    scene.monkeypatch.setattr(isolation, "apparmor_forbids", lambda: False)
    raise network._pasta_problem(uplink, "x\nFailed to open tun socket in namespace")


PROBLEMS: Problems = {
    "network-unknown": (lambda scene: scene.plan("--network", "lan"), FAILED),
    "network-unknown-by-variable": (lambda scene: scene.with_environ(CLAUDEBOX_NETWORK="lan").plan(), FAILED),
    "network-ports-with-full": (lambda scene: scene.plan("--host-port", "5432"), FAILED),
    "network-publish-with-full": (lambda scene: scene.plan("--publish", "8080:80"), FAILED),
    "network-programs-missing": (lambda scene: scene.plan("--network", "inet"), FAILED),
    "network-pasta-missing": (
        lambda scene: scene.planted("/usr/sbin/nft*").plan("--network", "none", "--publish", "80"),
        FAILED,
    ),
    "network-pasta-in-project": (
        lambda scene: (
            scene.planted("~/shop/pasta*\n/usr/sbin/nft*")
            .with_environ(CLAUDEBOX_PASTA="pasta")
            .plan("--network", "inet")
        ),
        FAILED,
    ),
    "network-nft-named-missing": (
        lambda scene: with_uplink(scene).with_environ(CLAUDEBOX_NFT="/opt/nft").plan("--network", "inet"),
        FAILED,
    ),
    "network-no-default-route": (lambda scene: without_a_default_route(scene, "inet"), FAILED),
    "network-no-default-route-for-ports": (
        lambda scene: without_a_default_route(scene, "none", "--publish", "3000"),
        FAILED,
    ),
    "network-namespace-refused": (namespace_refused, FAILED),
    "network-namespace-refused-by-apparmor": (lambda scene: namespace_refused(scene, by_apparmor=True), FAILED),
    "network-namespace-without-a-user": (namespace_without_a_user, FAILED),
    "network-filter-refused": (filter_refused, FAILED),
    "network-pasta-silent": (lambda scene: pasta_ends(scene, log=""), FAILED),
    "network-pasta-fails": (lambda scene: pasta_ends(scene, log="x\nCouldn't get any address"), FAILED),
    "network-no-tun": (tun_refused, FAILED),
    "network-no-tun-in-a-container": (
        lambda scene: tun_refused(scene.planted("/.dockerenv\n/proc/self/status: Seccomp:\\t2\\n")),
        FAILED,
    ),
    "network-closed-tun": (lambda scene: tun_refused(with_tun(scene, 0, 0o600)), FAILED),
    "network-closed-tun-of-another": (lambda scene: tun_refused(with_tun(scene, 4242, 0o660)), FAILED),
    "network-broken-tun": (lambda scene: tun_refused(with_tun(scene, 0, 0o666)), FAILED),
    "network-broken-tun-of-ones-own": (lambda scene: tun_refused(with_tun(scene, 1000, 0o600)), FAILED),
}
