"""Reads git's own files without starting git."""
