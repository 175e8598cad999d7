"""A Plan, shown: to bwrap, to a shell, to a person, to a program."""
