"""The import name of the command `maestro wsession`; the code lives in `sessionary`."""

from sessionary.cli.maestro import main as main
from sessionary.cli.maestro import wsession_command as wsession_command
