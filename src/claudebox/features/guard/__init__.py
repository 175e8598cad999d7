"""Guards what the host may run later: it is read-only in the box, and looked at when the box has ended."""
