"""What claudebox does besides starting a box: a module for each mode, with a function `serve`."""
