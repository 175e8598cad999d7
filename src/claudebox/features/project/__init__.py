"""The project itself: writable, at its own path."""
