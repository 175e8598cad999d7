"""What is trusted, and what is secret: paths, programs, variables and values, judged the same way for every feature."""
