"""Claude Code in a bubblewrap box."""

from claudebox.importing import import_quickly

__version__ = "0.2.0"

import_quickly()
