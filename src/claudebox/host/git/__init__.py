"""Git's own files, read without starting git."""
