"""What claudebox does instead of starting a box."""
