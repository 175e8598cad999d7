"""The operating system in the box: programs, a curated /etc, empty writable places."""
