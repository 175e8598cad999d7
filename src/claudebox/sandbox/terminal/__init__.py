"""The terminal that a box has of its own."""
