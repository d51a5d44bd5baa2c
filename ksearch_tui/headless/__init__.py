"""The commands that need no screen, and the doors to those that do."""
