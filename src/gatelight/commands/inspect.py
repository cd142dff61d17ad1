"""``gatelight inspect``: what the gates have become."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any


def add_parsers(commands: Any) -> None:
    """Add this family's parsers."""
    inspect = commands.add_parser("inspect", help="gradients, gate outputs and functions of each layer of a run")
    inspect.set_defaults(run=run_inspect, parser=inspect)
    inspect.add_argument("model", type=Path, metavar="RUN", help="a run's folder or a checkpoint")
    inspect.add_argument("--which", choices=("best", "last"), default="best", help="which weights (default: best)")
    inspect.add_argument("--samples", type=int, default=100, help="training samples to measure on (default: 100)")
    inspect.add_argument("--data", type=Path, metavar="FOLDER", help="folder of the data sets")
    inspect.add_argument("-o", "--output", type=Path, help="PNG or SVG (default: inspect.png in the run's folder)")
    inspect.add_argument("--json", action="store_true", help="print the measures as JSON in place of the table")


def run_inspect(args: argparse.Namespace) -> int:
    """Print the measures as a table and draw them."""
    import numpy as np
    import torch

    from gatelight import data, metrics, plots
    from gatelight.log import console, percent, table
    from gatelight.run import load_model

    if args.samples < 1:
        raise ValueError(f"--samples must be at least 1, got {args.samples}")
    folder = args.model if args.model.is_dir() else args.model.parent
    output = args.output or folder / "inspect.png"
    if output.suffix not in (".png", ".svg"):
        raise ValueError(f"the picture must end in .png or .svg, got {output}")
    model, header = load_model(args.model, args.which)
    dataset = data.load(header["config"]["dataset"], args.data)
    model.eval()
    x, y = (torch.from_numpy(a[: args.samples]) for a in (dataset.train.x, dataset.train.y))
    gradients = metrics.gradient_norms(model, x, y)
    histograms = np.asarray(metrics.activation_histograms(model, x), np.float64)
    functions = metrics.function_shares(model)
    distances = metrics.table_distances(model)
    title = f"{args.model} ({args.which}, step {header['step']:,})"
    plots.save(plots.inspection(gradients, histograms, functions, distances, title), output)
    if args.json:
        measures = {
            "gradient_norms": gradients,
            "activation_histograms": histograms.tolist(),
            "function_shares": functions,
            "table_distances": distances,
        }
        console.print_json(json.dumps(measures))
        return 0
    rows = []
    for index, layer in enumerate(model.logic_layers):
        undecided = float(histograms[index, 2:-2].sum())
        common = ", ".join(f"{name} {100 * share:.0f} %" for name, share in list(functions[index].items())[:4])
        gates = f"{layer.out_features:,}"
        rows.append(
            [str(index + 1), gates, f"{gradients[index]:.2e}", percent(undecided), f"{distances[index]:.4f}", common]
        )
    columns = [
        "layer",
        "gates",
        "mean |dLoss/dtheta|",
        "outputs in [0.1, 0.9]",
        "distance from {0,1}",
        "commonest functions",
    ]
    console.print(table(title, columns, rows))
    console.print(f"wrote {output}")
    return 0
