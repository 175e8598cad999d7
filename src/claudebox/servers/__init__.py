"""Programs of their own that run beside a box."""

from __future__ import annotations

from claudebox.process.companion import start_below


def start_carrier(listeners: list[tuple[int, int]]) -> None:
    """Start a process in this network that carries what arrives at each listener to a port of the loopback here.

    All that the box can do with it is to reach its own ports.
    """

    def carry() -> None:
        from claudebox.servers.carrier import carry_to_loopback

        carry_to_loopback(listeners)

    start_below(carry, tuple(listener for listener, _ in listeners))
