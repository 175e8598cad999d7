"""Git in the box: an identity, trust in the project, its repository, and no credentials."""
