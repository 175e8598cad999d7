"""The process that stays outside: it looks at the mounts, passes signals on, waits, and does what comes after."""
