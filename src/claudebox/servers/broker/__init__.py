"""Keeps Claude's key or login outside of the box: the box talks to a port, and the broker behind it to the API.

The broker is a process of its own beside the box, one for each launch. policy.py says what it lets pass, messages.py
reads what the box and the API send, and credentials.py gets the credential.

Each connection of the box has a thread, which does one thing after the other with sockets that block. Claude has a
handful of connections, not thousands; an event loop would turn each step that waits (TLS, a proxy, a lock on the
login) inside out, and `asyncio` alone takes more memory than all the rest.
"""
