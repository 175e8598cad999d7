"""Programs of their own that run beside a box."""
