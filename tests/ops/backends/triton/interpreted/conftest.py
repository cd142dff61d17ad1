"""These tests run in a process of their own, where Triton's interpreter is on: see ../test_triton.py."""

import os

collect_ignore_glob = [] if os.environ.get("TRITON_INTERPRET") == "1" else ["*.py"]
