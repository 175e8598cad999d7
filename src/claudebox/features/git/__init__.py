"""Git in the box: who commits, what comes along of the user's configuration, and what git cannot do there."""
