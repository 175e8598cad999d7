"""The box itself: bwrap and its arguments, the process that becomes it, and the one that stays outside."""
