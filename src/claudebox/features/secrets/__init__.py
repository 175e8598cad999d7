"""Secrets in the project's own files: the box sees made-up values instead."""
