"""Claude Code in a bubblewrap box."""

__version__ = "0.1.0"
