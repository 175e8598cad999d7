"""The process that becomes bwrap."""
