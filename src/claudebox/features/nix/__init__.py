"""Nix in the box: a store, a daemon if that is no way out, and packages."""
