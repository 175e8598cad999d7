"""Claude's login in the box, which is kept the same as the host's."""
