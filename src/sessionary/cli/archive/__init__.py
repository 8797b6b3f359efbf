"""The commands of `sessionary archive`."""
