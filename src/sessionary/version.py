"""The version, in a separate module: the command line reads it without loading the package's public names."""

__version__ = "0.1.0"
