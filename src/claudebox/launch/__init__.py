"""The only actor: writes state, opens descriptors, becomes bwrap."""
