"""What a box can have: one folder for each feature. Which there are, and in which order: table.py."""
