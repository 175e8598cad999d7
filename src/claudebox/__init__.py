"""Claude Code in a bubblewrap box."""

__version__ = "0.3.0.dev0"
