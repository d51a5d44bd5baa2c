"""A run on disk: an append-only TOML file, and what can be done with it: resume, replay, export, report."""
