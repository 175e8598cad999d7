"""The rules of the box's network on tier `names`, as an nftables ruleset that a person can read."""

from __future__ import annotations

from claudebox.features.names.decide import BOX

DNS_PORT = 53


def ruleset(port: int | str) -> str:
    """Rules that lead every TCP connection to this port of the box, and refuse what nobody would answer."""
    return f"""\
table inet claudebox {{
	chain connections {{
		type nat hook output priority -100
		ip daddr {{ 127.0.0.0/8, {BOX} }} accept
		ip6 daddr ::1 accept
		tcp dport {DNS_PORT} accept
		meta l4proto tcp redirect to :{port}
	}}
	chain datagrams {{
		type filter hook output priority 0
		ip daddr {{ 127.0.0.0/8, {BOX} }} accept
		ip6 daddr ::1 accept
		udp dport {DNS_PORT} accept
		meta l4proto {{ udp, udplite, icmp }} reject with icmpx type admin-prohibited
	}}
}}
"""
