"""`python -m autograder`."""

import sys

from autograder.command_line import main

sys.exit(main(sys.argv[1:]))
