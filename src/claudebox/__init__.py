"""Claude Code in a bubblewrap box."""

__version__ = "0.2.0"
