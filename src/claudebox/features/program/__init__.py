"""What runs in the box: Claude, a command, or a shell."""
