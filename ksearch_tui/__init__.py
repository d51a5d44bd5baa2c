"""What a person touches: the Textual app and the command line."""

__version__ = "0.1.0"
