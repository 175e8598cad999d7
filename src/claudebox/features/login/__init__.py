"""Claude's login in the box, kept the same as the host's."""
