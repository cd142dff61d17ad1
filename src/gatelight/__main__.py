"""``python -m gatelight``."""

import sys

from gatelight.cli import main

sys.exit(main())
