"""``gatelight reproduce``: figures and claims of the paper."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

_EXAMPLES = """\
experiments:
  gradient-norm   mean |dLoss/dtheta| over 40 layers right after init: OP and IWP, gaussian and residual

examples:
  gatelight reproduce gradient-norm --data ~/data
  gatelight reproduce gradient-norm --scale smoke     seconds, on digits
"""


def add_parsers(commands: Any) -> None:
    """Add this family's parsers."""
    reproduce = commands.add_parser("reproduce", help="rerun a figure of the paper", epilog=_EXAMPLES)
    reproduce.set_defaults(run=run_reproduce, parser=reproduce)
    reproduce.add_argument("name", choices=("gradient-norm",), help="the experiment")
    reproduce.add_argument("--scale", choices=("smoke", "cpu", "paper"), default="cpu", help="size (default: cpu)")
    reproduce.add_argument("--seed", type=int, default=0, help="draws networks and samples (default: 0)")
    reproduce.add_argument("--data", type=Path, metavar="FOLDER", help="folder of the data sets")
    reproduce.add_argument("--out", type=Path, default=Path("reproduction"), help="folder for figures and data")


def run_reproduce(args: argparse.Namespace) -> int:
    """Run one experiment, print its numbers and draw it."""
    from gatelight.experiments import gradient_norm
    from gatelight.log import console, table

    result = gradient_norm.run(args.scale, args.seed, args.data)
    paths = gradient_norm.write(result, args.out)
    rows = [[name, f"{norms[0]:.1e}", f"{norms[-1]:.1e}"] for name, norms in result.norms.items()]
    console.print(table(result.title, ["network", "first layer", "last layer"], rows))
    console.print("wrote " + ", ".join(map(str, paths)))
    return 0
