"""The internet by name: a box reaches the hosts in a list, and nothing else."""
