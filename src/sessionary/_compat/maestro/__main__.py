"""`python -m maestro`: the program `maestro`."""

import sys

from sessionary.cli.maestro import main

if __name__ == "__main__":
    sys.exit(main())
