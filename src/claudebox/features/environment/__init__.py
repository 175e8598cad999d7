"""The environment of the box."""
