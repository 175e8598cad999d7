"""What was written outside of the project, and is gone with the box."""
