"""Keeps Claude's key or login outside of the box: the box talks to a socket, and this to the API.

It runs in a process of its own beside the box, one for each launch. What it lets pass is in policy.py; how it reads
what the box and the API send, in messages.py and bodies.py; where the credential comes from, in credentials.py.

One thread for each connection of the box, which does one thing after the other with sockets that block. Claude has a
handful of connections, not thousands; an event loop would turn each step that waits (TLS, a proxy, a lock on the
login) inside out, and `asyncio` alone takes more memory than all the rest.
"""
