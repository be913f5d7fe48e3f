"""`python -m daemon` is `speakd`."""

import sys

from daemon.cli import main

sys.exit(main())
