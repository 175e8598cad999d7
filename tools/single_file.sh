#!/bin/sh
# claudebox, a single file: this script, and a zip archive of Python modules behind it. It finds a Python by its version
# and starts it isolated and without `site`. PATH is not asked: a project can be on it. With another Python:
#   PYTHON -I -S claudebox.pyz …
for version in 3.11 3.12 3.13 3.14 3.15 3.16; do
    for place in /usr/bin /usr/local/bin /run/current-system/sw/bin; do
        [ ! -x "$place/python$version" ] || exec "$place/python$version" -I -S "$0" "$@"
    done
done
printf 'error: %s\n\nhint: %s\n' 'claudebox needs Python 3.11 or later, and there is none in /usr/bin or /usr/local/bin' \
    "with one of another place: PYTHON -I -S $0" >&2
exit 125
