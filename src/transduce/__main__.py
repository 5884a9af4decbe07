"""``python -m transduce``: the same as the ``transduce`` command."""

import sys

from transduce.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
