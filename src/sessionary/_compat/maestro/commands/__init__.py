"""The import name of Maestro's commands."""
