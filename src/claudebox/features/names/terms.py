"""What the two sides of a box on tier `names` have agreed on."""

from __future__ import annotations

READY = b"ready"
# Words that say what a socket is for which one side makes and the other uses. A port may follow.
DATAGRAMS = "datagrams"  # queries over UDP
LOOKUPS = "lookups"  # queries over TCP
CONNECTIONS = "connections"
HOST_PORT = "host-port"
PUBLISHED = "published"
MAKER = "maker"
LIFE = "life"
ALL = "all"  # there are no more
LONGEST_WORDS = 64
MEMORY = 8192  # bytes in which the process outside says what it refused: a line for each, how often and what
LENGTH = 4  # bytes at its beginning, in which the length of the rest is said
HELPS = "+"  # before a line: a longer list would allow it
STOPPED = "stopped"  # the verdict of a line that says that no more are written
FOR_IPV4, FOR_IPV6 = b"4", b"6"  # what a socket is to be made for
