"""`python -m sessionary`: the command line, for an environment whose programs are not on the PATH."""

import sys

from sessionary.cli import main

if __name__ == "__main__":
    sys.exit(main())
