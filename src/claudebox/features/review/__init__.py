"""Keeps what a box changes in the project in a layer, and lands it when the user says so."""
