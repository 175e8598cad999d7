"""How much memory, how many processes and how much processor time the box may use."""
