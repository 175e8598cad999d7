"""Settings in files: config.toml, profiles, and the project's .claudebox.toml."""
