"""The version, in a module of its own: the command line reads it without loading the package's public names."""

__version__ = "0.1.0"
