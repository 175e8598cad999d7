"""claudebox at a real terminal."""
