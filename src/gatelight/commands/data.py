"""``gatelight data list``, ``get`` and ``check``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

_TEXT = """\
Data sets live in --data FOLDER, in $GATELIGHT_DATA, or in the user's cache folder, as the official files.

For your own data, give a path instead of a name:
  mine.npz   x_train, y_train, x_test, y_test (or x, y): whole numbers 0..255, floats in [0, 1] or bits; labels from 0
  mine.csv   a header, one row for each sample, the label in the last column or in one called label

examples:
  gatelight data list
  gatelight data get mnist --data ~/data
  gatelight data check
"""


def add_parsers(commands: Any) -> None:
    """Add this family's parsers."""
    data = commands.add_parser("data", help="list, get and check data sets", description=_TEXT)
    data.set_defaults(run=run_data, parser=data)
    data.add_argument("action", choices=("list", "get", "check"))
    data.add_argument("names", nargs="*", metavar="NAME", help="data sets (default for list and check: all)")
    data.add_argument("--data", type=Path, metavar="FOLDER", help="folder of the data sets")


def run_data(args: argparse.Namespace) -> int:
    """List, get or check; exit code 1 if a check finds damage."""
    from gatelight import data
    from gatelight.training.progress import DownloadProgress, console, say, table

    if args.action == "get":
        if not args.names:
            raise ValueError(f"data get needs the name of a data set: {', '.join(data.names())}")
        for name in args.names:
            damaged = data.check(name, args.data).state == "damaged"
            data.get(name, args.data, replace=damaged, progress=DownloadProgress())
    rows = [data.check(name, args.data, deep=args.action != "list") for name in args.names or data.names()]
    lines = [[row.name, row.state, str(row.path), row.description] for row in rows]
    console.print(table("data sets", ["name", "state", "where", "what"], lines, text=4))
    for row in rows:
        if row.state == "damaged":
            say(f"{row.name} is damaged: {row.detail}; gatelight data get {row.name} fetches it again")
        elif row.state == "present" and row.detail:
            say(f"{row.name} can be read, but {row.detail}")
    return 1 if any(row.state == "damaged" for row in rows) else 0
