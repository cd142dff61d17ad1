"""``gatelight inspect``: what the gates of a run or of a circuit have become."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

_EXAMPLES = """\
examples:
  gatelight inspect runs/mnist        gradients, gate outputs and functions of each layer, as table and picture
  gatelight inspect mnist.gl          gates by kind and level, fan-out, which features are read
"""


def add_parsers(commands: Any) -> None:
    """Add this family's parsers."""
    inspect = commands.add_parser("inspect", help="what the gates of a run or a circuit have become", epilog=_EXAMPLES)
    inspect.set_defaults(run=run_inspect, parser=inspect)
    inspect.add_argument("model", type=Path, metavar="RUN|NET.gl", help="a run's folder, a checkpoint or a circuit")
    inspect.add_argument("--which", choices=("best", "last"), help="of a run: which weights (default: best)")
    inspect.add_argument("--samples", type=int, help="of a run: training samples to measure on (default: 100)")
    inspect.add_argument("--data", type=Path, metavar="FOLDER", help="of a run: folder of the data sets")
    inspect.add_argument(
        "-o", "--output", type=Path, help="PNG or SVG (default: inspect.png in the run's folder, NET.inspect.png)"
    )
    inspect.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run_inspect(args: argparse.Namespace) -> int:
    """Print the measures as a table and draw them."""
    from gatelight.circuit.io import is_circuit

    if args.output is not None and args.output.suffix not in (".png", ".svg"):
        raise ValueError(f"the picture must end in .png or .svg, got {args.output}")
    if args.model.suffix == ".gl" or is_circuit(args.model):
        return _inspect_circuit(args)
    return _inspect_run(args)


def _inspect_run(args: argparse.Namespace) -> int:
    """Print and draw gradients, gate outputs and functions of each layer."""
    import torch

    from gatelight import inspection, plots
    from gatelight.training.progress import console, percent, say, table
    from gatelight.training.run_folder import load_data, load_model

    samples, which = 100 if args.samples is None else args.samples, args.which or "best"
    if samples < 1:
        raise ValueError(f"--samples must be at least 1, got {samples}")
    folder = args.model if args.model.is_dir() else args.model.parent
    output = args.output or folder / "inspect.png"
    model, header = load_model(args.model, which)
    dataset = load_data(header, folder=args.data)
    found = inspection.inspect(model, *(torch.from_numpy(a[:samples]) for a in (dataset.train.x, dataset.train.y)))
    title = f"{args.model} ({which}, step {header['step']:,})"
    measures = (found.gradient_norms, found.activation_histograms, found.function_shares, found.table_distances)
    plots.save(plots.inspection(*measures, title), output)
    if args.json:
        console.print_json(json.dumps(found.as_dict()))
        return 0
    rows = []
    for index, gates in enumerate(found.gates):
        common = list(found.function_shares[index].items())[:4]
        rows.append(
            [
                str(index + 1),
                f"{gates:,}",
                f"{found.gradient_norms[index]:.2e}",
                percent(found.undecided[index]),
                f"{found.table_distances[index]:.4f}",
                ", ".join(f"{name} {100 * share:.0f} %" for name, share in common),
            ]
        )
    columns = [
        "layer",
        "gates",
        "mean |dLoss/dtheta|",
        "outputs in [0.1, 0.9]",
        "distance from {0,1}",
        "most common functions",
    ]
    console.print(table(title, columns, rows))
    say(f"wrote {output}")
    return 0


def _inspect_circuit(args: argparse.Namespace) -> int:
    """Print a circuit's summary and draw it; only the picture needs matplotlib."""
    import importlib.util

    from gatelight.circuit import Circuit
    from gatelight.circuit.describe import facts, feature_reads

    for name in ("which", "samples", "data"):
        if getattr(args, name) is not None:
            raise ValueError(f"--{name} applies to runs, and {args.model} is a circuit")
    circuit = Circuit.load(args.model)
    read = feature_reads(circuit)
    if args.json:
        sys.stdout.write(json.dumps(facts(circuit)) + "\n")
    else:
        sys.stdout.write(f"{circuit.summary()}\n")
        sys.stdout.write(f"features  {int((read > 0).sum())} of {circuit.features} are read\n")
    if importlib.util.find_spec("matplotlib") is None:
        sys.stderr.write("no picture: pip install 'gatelight[train]' for matplotlib\n")
        return 0
    from gatelight import plots

    output = args.output or args.model.with_suffix(".inspect.png")
    plots.save(plots.circuit(circuit, read, args.model.name), output)
    if not args.json:
        sys.stdout.write(f"wrote {output}\n")
    return 0
