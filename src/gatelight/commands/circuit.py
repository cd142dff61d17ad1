"""``gatelight compile``, ``run``, ``export`` and ``bench``: all but ``compile`` need only numpy."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import Any

_LEVEL_HELP = "how far to simplify: 0 not at all, 1 by local rules, 2 and 3 also merge equal nets (default: 1)"
_COMPILE_EXAMPLES = """\
examples:
  gatelight compile runs/mnist -o mnist.gl
  gatelight compile runs/mnist -o mnist.gl --level 2       also merge nets found equal by simulation
  gatelight compile runs/mnist -o mnist6.gl --lut 6        then map to six-input tables, for an FPGA
"""
_RUN_EXAMPLES = """\
examples:
  gatelight run mnist.gl mnist                              accuracy on the test split
  gatelight run mnist.gl images.npz -o labels.csv           x: 0..255 or float in [0, 1]; y if there are labels
  gatelight run mnist.gl images.npz --rows all              a file with labels: all rows, not only its test rows
  gatelight run iris.gl iris.csv                            the table it was trained on: accuracy on its test rows
"""
_BENCH_EXAMPLES = """\
examples:
  gatelight bench mnist.gl
  gatelight bench mnist.gl --threads 2 --seconds 10
  gatelight bench mnist.gl --interpret                      as on machines without machine code
"""
_EXPORT_EXAMPLES = """\
examples:
  gatelight export mnist.gl --to c -o build/               C99 without dependencies
  gatelight export mnist.gl --to verilog --pipeline 4      Verilog, a register every 4 levels, with a testbench
  gatelight export mnist.gl --to aiger                     and-inverter graph of the gates before the sums
"""


def add_parsers(commands: Any) -> None:
    """Add this family's parsers."""
    _add_compile(commands)
    _add_run(commands)
    _add_export(commands)
    _add_bench(commands)


def _add_compile(commands: Any) -> None:
    parser = commands.add_parser(
        "compile", help="round a run to a circuit, simplify and prove it", epilog=_COMPILE_EXAMPLES
    )
    parser.set_defaults(run=run_compile, parser=parser)
    parser.add_argument("model", type=Path, metavar="RUN", help="a run's folder or a checkpoint")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="NET.gl", help="the circuit's file")
    parser.add_argument("--which", choices=("best", "last"), default="best", help="which weights (default: best)")
    parser.add_argument("--level", type=int, choices=(0, 1, 2, 3), default=1, help=_LEVEL_HELP)
    parser.add_argument("--lut", type=int, metavar="K", help="map to tables of up to K inputs, 3 to 6")
    parser.add_argument("--no-prove", action="store_true", help="do not look for a prover")
    parser.add_argument("--overwrite", action="store_true", help="replace the file if it exists")


def _add_run(commands: Any) -> None:
    parser = commands.add_parser("run", help="run a circuit on data", epilog=_RUN_EXAMPLES)
    parser.set_defaults(run=run_run, parser=parser)
    parser.add_argument("circuit", type=Path, metavar="NET.gl", help="a circuit's file")
    parser.add_argument("samples", metavar="DATA", help=".npz or .npy with x (and y), .csv, or a data set's name")
    parser.add_argument(
        "--rows",
        choices=("all", "test", "train"),
        help="which rows of labeled data: test (held out by training, default), train, or all",
    )
    parser.add_argument("-o", "--output", type=Path, help="write labels and scores to a .csv or .npz file")
    parser.add_argument("--overwrite", action="store_true", help="replace the output if it exists")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="CPU threads (default: 1)")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder of the data sets")


def _add_export(commands: Any) -> None:
    parser = commands.add_parser(
        "export", help="write a circuit for other tools: C, Verilog and more", epilog=_EXPORT_EXAMPLES
    )
    parser.set_defaults(run=run_export, parser=parser)
    parse = parser.parse_known_args

    def parse_known_args(args: Any = None, namespace: Any = None) -> Any:
        # Listing the formats imports them, and no other command should wait for that.
        parser.parse_known_args = parse
        _add_export_arguments(parser)
        return parse(args, namespace)

    parser.parse_known_args = parse_known_args


def _add_export_arguments(parser: argparse.ArgumentParser) -> None:
    from gatelight.export import FORMATS

    parser.add_argument("circuit", type=Path, metavar="NET.gl", help="a circuit's file")
    described = "; ".join(f"{known.name}: {known.description}" for known in FORMATS.values())
    parser.add_argument("--to", choices=tuple(FORMATS), required=True, help=described)
    parser.add_argument("-o", "--output", type=Path, default=Path(), help="folder (default: here)")
    parser.add_argument("--name", help="name of the functions or the module (default: the file's name)")
    for name, formats in _export_options().items():
        option = next(option for option in FORMATS[formats[0]].options if option.name == name)
        shape: dict[str, Any] = {"action": "store_true"}
        if not isinstance(option.default, bool):
            shape = {"type": int, "default": option.default, "metavar": "N"}
        parser.add_argument(f"--{name}", help=f"{', '.join(formats)}: {option.help}", **shape)
    parser.add_argument("--overwrite", action="store_true", help="replace files that exist")


def _export_options() -> dict[str, list[str]]:
    """The options of the formats, each with the formats that have it."""
    from gatelight.export import FORMATS

    options: dict[str, list[str]] = {}
    for known in FORMATS.values():
        for option in known.options:
            options.setdefault(option.name, []).append(known.name)
    return options


def _add_bench(commands: Any) -> None:
    parser = commands.add_parser(
        "bench", help="samples per second of a circuit, and the time of one sample", epilog=_BENCH_EXAMPLES
    )
    parser.set_defaults(run=run_bench, parser=parser)
    parser.add_argument("circuit", type=Path, metavar="NET.gl", help="a circuit's file")
    parser.add_argument("--batch", type=int, default=1 << 15, help="samples per call (default: 32768)")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long to measure (default: 2)")
    parser.add_argument("--interpret", action="store_true", help="make no machine code for the circuit")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="CPU threads (default: 1)")


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(text + "\n")


def run_compile(args: argparse.Namespace) -> int:
    """Compile a run's model and save the circuit."""
    from gatelight.circuit.proof import prover
    from gatelight.compilation import LUTS, compile
    from gatelight.training.run_folder import load_model

    # The library checks these too, but only after the model is loaded, and it calls them by other names.
    if args.lut is not None and args.lut not in LUTS:
        raise ValueError(f"--lut must be from {min(LUTS)} to {max(LUTS)}, got {args.lut}")
    if args.level == 3 and not prover.provers():
        raise ValueError(f"--level 3 needs a prover: {prover.HOW_TO_INSTALL}")
    _prepare_target(args.output, args.overwrite)
    model, header = load_model(args.model, args.which)
    circuit, _ = compile(
        model,
        level=args.level,
        lut=args.lut,
        prove=not args.no_prove,
        class_names=header.get("classes", ()),
        progress=say,
    )
    circuit.save(args.output)
    say(circuit.summary())
    net = shlex.quote(str(args.output))
    say(f"wrote {args.output}; next: gatelight bench {net}    gatelight export {net} --to c")
    return 0


def run_run(args: argparse.Namespace) -> int:
    """Label samples; print the accuracy if there are labels."""
    from gatelight import engine, inference, native
    from gatelight.circuit import Circuit

    circuit = Circuit.load(args.circuit)
    if args.output is not None:
        inference.check_suffix(args.output)
        _prepare_target(args.output, args.overwrite, Path(args.samples), args.circuit)
    samples = inference.load(circuit, args.samples, rows=args.rows, folder=args.data)
    for line in (*samples.notes, str(samples)):
        say(line)
    if not engine.available():
        say(f"without the native engine ({native.why_not()}), which is much faster")
    result = inference.run(circuit, samples.x, samples.y, threads=args.threads)
    say(f"{len(result.labels):,} samples in {result.seconds:.3f} s")
    if result.accuracy is not None:
        say(f"accuracy {100 * result.accuracy:.2f} %")
    elif samples.y is not None:
        say("no samples")
    if args.output is not None:
        result.save(args.output)
        say(f"wrote {args.output}")
    return 0


def run_export(args: argparse.Namespace) -> int:
    """Write the files of one format."""
    from gatelight import export
    from gatelight.circuit import Circuit
    from gatelight.export.names import check_identifier
    from gatelight.files import replacing

    circuit = Circuit.load(args.circuit)
    name = check_identifier(args.name) if args.name is not None else _identifier(args.circuit.stem)
    options = {}
    for option, formats in _export_options().items():
        if args.to in formats:
            options[option] = getattr(args, option)
        elif getattr(args, option):
            raise ValueError(f"--{option} applies only to --to {' or '.join(formats)}")
    files = export.files(circuit, args.to, name, **options)
    for file in files:
        _prepare_target(args.output / file, args.overwrite, args.circuit)
    for file, content in files.items():
        with replacing(args.output / file) as temporary:
            temporary.write_bytes(content)
        say(f"wrote {args.output / file}  ({len(content):,} bytes)")
    return 0


def _identifier(stem: str) -> str:
    """A name that C and Verilog take, from a file's name."""
    from gatelight.export.names import check_identifier

    cleaned = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in stem)
    name = cleaned if cleaned and not cleaned[0].isdigit() else f"net_{cleaned}"
    try:
        return check_identifier(name)
    except ValueError as error:
        raise ValueError(
            f"{error}, from the file's name; choose another with --name, such as --name {name}_net"
        ) from None


def _prepare_target(path: Path, overwrite: bool, *inputs: Path) -> None:
    """Refuse to replace a file unless asked to, and make its folder, before any work is done."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a file")
    if path.exists() and any(other.exists() and path.samefile(other) for other in inputs):
        raise ValueError(f"{path} is the input; give the output another name")
    if path.exists() and not overwrite:
        raise ValueError(f"{path} exists already; use --overwrite to replace it")
    path.parent.mkdir(parents=True, exist_ok=True)


def run_bench(args: argparse.Namespace) -> int:
    """Measure throughput on random samples and the latency of one."""
    from gatelight import engine, native
    from gatelight.circuit import Circuit

    if not engine.available():
        raise ValueError(f"the engine needs the native library: {native.why_not() or 'it has no engine'}")
    if args.batch < 1 or args.seconds <= 0 or args.threads < 1:
        raise ValueError("--batch, --seconds and --threads must be positive")
    circuit = Circuit.load(args.circuit)
    result = engine.bench(
        circuit, batch=args.batch, seconds=args.seconds, threads=args.threads, code=not args.interpret
    )
    say(str(result))
    return 0
