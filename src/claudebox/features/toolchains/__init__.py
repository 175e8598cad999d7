"""Toolchains in the user's home: at the version that the host's PATH would run, read-only."""
