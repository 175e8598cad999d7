"""The process outside of the box that knows the list: it answers the box's DNS and carries its connections.

It lives on the host's network and holds sockets that were made in the box's. What it does not carry leads nowhere:
the box's network has one device, its loopback, and every address of the world is local there.

`relay.py` accepts, refuses and carries; `dial.py` finds an address and connects; `dns.py` is the name server;
`greeting.py` reads and writes messages and touches nothing; `notes.py` remembers what happened.
"""
