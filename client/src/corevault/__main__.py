"""``python -m corevault`` is the command line."""

import sys

from corevault.cli.main import main

sys.exit(main())
