"""Mounts, hides and directories of programs that the user asks for."""
