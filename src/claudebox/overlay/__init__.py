"""A layer: what a box has changed in a directory of the host, kept beside it until the user lands it."""
