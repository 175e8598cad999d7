"""Programs of their own that run beside a box, outside of it. They may use the whole standard library."""
