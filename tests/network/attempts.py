"""Ways round the filter. Runs in a box: python3 -c ATTEMPTS WORDS NAME …

Prints a JSON object: for each attempt "reached", "sent" if there is no answer to wait for, or else what went wrong.
What is sent are the words and the name, by which a server knows whom it heard.
"""

import ctypes
import fcntl
import json
import mmap
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PORT = 8080
DEVICE = next((name for _, name in socket.if_nameindex() if name in ("tap0", "eth0")), "lo")
NEIGHBOUR, HOST = "192.168.50.2", "192.168.50.10"  # not to be reached
ROUTER = "192.168.50.1"  # the resolver of the host, of which the box may use port 53, by another address
INTERNET = "198.51.100.10"  # to be reached
GATEWAY, RESOLVER = "10.255.213.1", "10.255.213.3"  # the box's
QUERY = b"\x12\x34\1\0\0\1\0\0\0\0\0\0\3nas\3lan\0\0\1\0\1"
PATIENCE = 6  # seconds; some attempts get no answer even if they arrive
DONE = b"done"  # in place of an answer

IP_OPTIONS, IP_TRANSPARENT, IP_UNICAST_IF = 4, 19, 50
IPPROTO_MPTCP, IPPROTO_UDPLITE = 262, 136
MSG_FASTOPEN = 0x20000000
NETLINK_NETFILTER = 12
NEW_NET = 0x40000000
GET_OWNER = 0xB701  # of a namespace: the user namespace that it belongs to

libc = ctypes.CDLL(None, use_errno=True)

Attempt = Callable[[bytes], bytes | None]
# By what stands in the way: the filter alone, having no capabilities over the network namespace, both of these, or that
# the box is not on the network of the host.
FILTER, CAPABILITIES, BOTH, PLACE = "filter", "capabilities", "both", "place"
attempts: dict[str, tuple[str, Attempt]] = {}


def against(obstacle: str) -> Callable[[Attempt], Attempt]:
    def register(function: Attempt) -> Attempt:
        attempts[function.__name__] = obstacle, function
        return function

    return register


def tcp(family: socket.AddressFamily = socket.AF_INET, protocol: int = 0) -> socket.socket:
    client = socket.socket(family, socket.SOCK_STREAM, protocol)
    client.settimeout(PATIENCE)
    return client


def udp(family: socket.AddressFamily = socket.AF_INET, protocol: int = 0) -> socket.socket:
    client = socket.socket(family, socket.SOCK_DGRAM, protocol)
    client.settimeout(PATIENCE)
    return client


def talk(client: socket.socket, address: str, words: bytes, port: int = PORT) -> bytes:
    client.connect((address, port))
    client.sendall(words)
    return client.recv(2000)


def tell(client: socket.socket, where: tuple[str, int], words: bytes) -> bytes:
    client.sendto(words, where)
    return client.recv(2000)


def check(status: int) -> int:
    if status < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return status


def check_kernels(status: int) -> None:
    if status < 0:
        raise OSError(-status, os.strerror(-status))


def run(*command: str) -> bytes:
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    if done.returncode != 0:
        raise OSError(0, done.stderr.strip().splitlines()[0])
    return DONE


# With nothing but a socket.


@against(FILTER)
def connection_bound_to_the_device(words: bytes) -> bytes:
    client = tcp()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, DEVICE.encode())
    return talk(client, NEIGHBOUR, words)


@against(FILTER)
def datagram_bound_to_the_device(words: bytes) -> bytes:
    client = udp()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, DEVICE.encode())
    return talk(client, NEIGHBOUR, words)


@against(FILTER)
def datagram_by_the_devices_number(words: bytes) -> bytes:
    client = udp()
    client.setsockopt(socket.IPPROTO_IP, IP_UNICAST_IF, struct.pack(">I", socket.if_nametoindex(DEVICE)))
    return talk(client, NEIGHBOUR, words)


@against(FILTER)
def connection_to_a_link_local_address(words: bytes) -> bytes:
    client = tcp(socket.AF_INET6)
    client.connect(("fe80::2", PORT, 0, socket.if_nametoindex(DEVICE)))
    client.sendall(words)
    return client.recv(100)


@against(FILTER)
def connection_opened_with_data(words: bytes) -> bytes:
    client = socket.socket()  # one that waits: with a timeout it would only begin to connect
    client.sendto(words, MSG_FASTOPEN, (NEIGHBOUR, PORT))
    return client.recv(100)


@against(FILTER)
def datagram_to_another_than_before(words: bytes) -> bytes:
    client = udp()
    client.connect((INTERNET, PORT))
    client.send(b"hello")
    return talk(client, NEIGHBOUR, words)


@against(FILTER)
def datagram_after_a_query(words: bytes) -> bytes:
    """From the port that the filter just translated to the resolver's address."""
    client = udp()
    client.settimeout(1)
    try:
        tell(client, (RESOLVER, 53), QUERY)
    except TimeoutError:
        pass  # without the filter there is no such resolver
    return tell(client, (ROUTER, PORT), words)


@against(FILTER)
def multicast(words: bytes) -> bytes:
    client = udp()
    client.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 9)
    return tell(client, ("239.255.255.250", PORT), words)


@against(FILTER)
def ping(words: bytes) -> bytes:
    client = udp(protocol=socket.IPPROTO_ICMP)
    return tell(client, (NEIGHBOUR, 0), struct.pack(">BBHHH", 8, 0, 0, 0, 1) + words)


@against(PLACE)
def connection_by_the_kernels_ring(words: bytes) -> bytes:
    """io_uring: no system call `connect`. The box has none of it."""
    client = tcp()
    client.setblocking(True)
    check_kernels(ring_connect(client.fileno()))
    client.settimeout(PATIENCE)
    client.sendall(words)
    return client.recv(100)


def ring_connect(descriptor: int) -> int:
    address = struct.pack("=H", socket.AF_INET) + struct.pack(">H", PORT) + socket.inet_aton(NEIGHBOUR) + bytes(8)
    buffer = ctypes.create_string_buffer(address)
    parameters = ctypes.create_string_buffer(120)
    ring = check(libc.syscall(425, 1, parameters))
    numbers = struct.unpack("=30I", parameters)
    submitted, completed = numbers[10:20], numbers[20:30]
    size = max(submitted[6] + 4 * numbers[0], completed[5] + 16 * numbers[1])
    queue = mmap.mmap(ring, size, offset=0)
    results = mmap.mmap(ring, completed[5] + 16 * numbers[1], offset=0x8000000)
    entries = mmap.mmap(ring, 64, offset=0x10000000)
    entries[:64] = struct.pack("=BBHiQQ", 16, 0, 0, descriptor, 16, ctypes.addressof(buffer)) + bytes(40)
    queue[submitted[6] : submitted[6] + 4] = bytes(4)
    queue[submitted[1] : submitted[1] + 4] = struct.pack("=I", 1)
    check(libc.syscall(426, ring, 1, 1, 1, None, 0))
    os.close(ring)
    return int(struct.unpack_from("=Qi", results, completed[5])[1])


# What takes a capability over the network namespace.


@against(BOTH)
def raw_socket(words: bytes) -> None:
    client = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
    client.sendto(udp_packet(words), (NEIGHBOUR, 0))


@against(BOTH)
def datagram_by_source_route(words: bytes) -> bytes:
    """The first place is where it is sent, and the one that it is sent to comes after."""
    client = udp()
    client.setsockopt(socket.IPPROTO_IP, IP_OPTIONS, b"\x83\x07\x04" + socket.inet_aton(NEIGHBOUR) + b"\0")
    return tell(client, (INTERNET, PORT), words)


@against(BOTH)
def datagram_from_a_foreign_address(words: bytes) -> None:
    client = udp()
    client.setsockopt(socket.IPPROTO_IP, IP_TRANSPARENT, 1)
    client.bind((HOST, 0))
    client.sendto(words, (NEIGHBOUR, PORT))


@against(CAPABILITIES)
def packet_socket(words: bytes) -> None:
    """Behind the filter already."""
    packet = udp_packet(words)
    source, destination = socket.inet_aton("10.255.213.2"), socket.inet_aton(NEIGHBOUR)
    header = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(packet), 1, 0, 64, 17, 0, source, destination)
    header = header[:10] + struct.pack(">H", internet_checksum(header)) + header[12:]
    client = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
    client.sendto(header + packet, (DEVICE, 0x0800, 0, 0, b"\xff" * 6))


def udp_packet(words: bytes) -> bytes:
    return struct.pack(">HHHH", 40000, PORT, 8 + len(words), 0) + words


def internet_checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


@against(CAPABILITIES)
def flush_by_nft(words: bytes) -> bytes:
    run("nft", "flush", "ruleset")
    return talk(tcp(), NEIGHBOUR, words)


@against(CAPABILITIES)
def flush_by_netlink(words: bytes) -> bytes:
    kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
    kernel.bind((0, 0))
    tables, inet = 10, 1
    name = struct.pack("=HH", 4 + 10, 1) + b"claudebox\0\0\0"
    kernel.send(
        netlink_message(0x10, 1, struct.pack(">BBH", 0, 0, tables))
        + netlink_message(tables << 8 | 2, 5, struct.pack(">BBH", inet, 0, 0) + name)
        + netlink_message(0x11, 1, struct.pack(">BBH", 0, 0, tables))
    )
    answer = kernel.recv(2000)
    (status,) = struct.unpack_from("=i", answer, 16)
    check_kernels(status)
    return talk(tcp(), NEIGHBOUR, words)


def netlink_message(kind: int, flags: int, body: bytes) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body


@against(CAPABILITIES)
def cable_from_another_network(words: bytes) -> bytes:
    """From a namespace that belongs to who made it."""
    as_root = ["--map-root-user"] if os.geteuid() != 0 else []
    run("unshare", "--net", *as_root, *"ip link add one type veth peer name other netns 1".split())
    return DONE


@against(CAPABILITIES)
def kernel_setting(words: bytes) -> bytes:
    """Where root's part of /proc is covered, uncovered first."""
    subprocess.run(["umount", "/proc/sys"], capture_output=True, check=False)
    Path("/proc/sys/net/ipv4/ip_default_ttl").write_text("65")
    return DONE


@against(CAPABILITIES)
def network_of_the_first_process(words: bytes) -> bytes:
    check(libc.setns(os.open("/proc/1/ns/net", os.O_RDONLY), NEW_NET))
    return DONE


@against(CAPABILITIES)
def owner_of_the_network(words: bytes) -> bytes:
    fcntl.ioctl(os.open("/proc/self/ns/net", os.O_RDONLY), GET_OWNER)
    return DONE


# What is only there on the host's own network.


@against(PLACE)
def broadcast(words: bytes) -> bytes:
    client = udp()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    return tell(client, ("192.168.50.255", PORT), words)


@against(PLACE)
def broadcast_to_all(words: bytes) -> bytes:
    client = udp()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, DEVICE.encode())
    return tell(client, ("255.255.255.255", PORT), words)


@against(PLACE)
def udp_lite(words: bytes) -> None:
    udp(protocol=IPPROTO_UDPLITE).sendto(words, (NEIGHBOUR, PORT))


@against(PLACE)
def abstract_socket(words: bytes) -> bytes:
    name = words.split()[0]
    socket.socket(socket.AF_UNIX).connect(b"\0" + name)
    return DONE


# What is one step.
attempts |= {
    "connection": (FILTER, lambda words: talk(tcp(), NEIGHBOUR, words)),
    "datagram": (FILTER, lambda words: talk(udp(), NEIGHBOUR, words)),
    "datagram_in_fragments": (FILTER, lambda words: talk(udp(), NEIGHBOUR, words.ljust(4000))),
    "connection_as_ipv6": (FILTER, lambda words: talk(tcp(socket.AF_INET6), f"::ffff:{NEIGHBOUR}", words)),
    "connection_with_many_paths": (FILTER, lambda words: talk(tcp(protocol=IPPROTO_MPTCP), NEIGHBOUR, words)),
    "other_port_of_the_gateway": (FILTER, lambda words: talk(tcp(), GATEWAY, words)),
    "other_port_of_the_resolver": (FILTER, lambda words: talk(tcp(), RESOLVER, words)),
    "query_to_the_router_itself": (FILTER, lambda _: talk(udp(), ROUTER, QUERY, 53)),
    "query_to_the_router_over_tcp": (
        FILTER,
        lambda _: talk(tcp(), ROUTER, struct.pack(">H", len(QUERY)) + QUERY, 53),
    ),
    "nobodys_address": (PLACE, lambda words: talk(tcp(), "0.0.0.0", words)),
    "address_of_the_lan": (CAPABILITIES, lambda _: run("ip", "address", "add", "192.168.50.99/24", "dev", DEVICE)),
    "route_to_the_lan": (CAPABILITIES, lambda _: run("ip", "route", "add", "192.168.50.0/24", "dev", DEVICE)),
    "new_interface": (
        CAPABILITIES,
        lambda _: run("ip", "link", "add", "one", "type", "veth", "peer", "name", "other"),
    ),
}


def outcome(name: str) -> str:
    try:
        answer = attempts[name][1](f"{sys.argv[1]} {name}".encode())
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "reached" if answer else "sent"


if __name__ == "__main__":
    names = sys.argv[2:]
    with ThreadPoolExecutor(len(names)) as pool:
        print(json.dumps(dict(zip(names, pool.map(outcome, names), strict=True))))
