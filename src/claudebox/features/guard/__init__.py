"""What the host may run later: held read-only in the box, and looked at when the box has ended."""
