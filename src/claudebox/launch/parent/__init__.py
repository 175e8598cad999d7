"""The process that stays outside: it checks the mounts, passes signals on, waits, and does what comes afterwards."""
