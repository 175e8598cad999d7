"""Claude Code in the box: the program, its home, its state, and the user's own configuration of it."""
