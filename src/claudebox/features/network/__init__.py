"""What the box reaches: the host's network, the internet alone, or nothing."""
