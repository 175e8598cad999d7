"""Nix in the box: a store, the daemon if that is no way out, and packages."""
