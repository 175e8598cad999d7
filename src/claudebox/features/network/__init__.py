"""The network of the box: the host's own, the internet alone, or nothing."""
