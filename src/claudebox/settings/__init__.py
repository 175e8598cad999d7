"""What the user can say, where it is said, and all of it merged."""
