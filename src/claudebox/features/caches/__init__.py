"""Caches of package managers, kept for the project."""
