"""Which variables enter the box."""
