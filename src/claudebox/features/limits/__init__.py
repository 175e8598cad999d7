"""Limits of memory, processes and processor time for the box."""
