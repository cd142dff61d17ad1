"""``gatelight compile``, ``run``, ``export`` and ``bench``: all but ``compile`` need numpy alone."""

from __future__ import annotations

import argparse
import math
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gatelight.names import some_of

if TYPE_CHECKING:
    from gatelight.circuit import Circuit
    from gatelight.circuit.passes import Simplified

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
  gatelight run mnist.gl images.npz --rows all              a file with labels: not its test rows alone, but all
  gatelight run iris.gl iris.csv                            the table it was trained on: accuracy on its test rows
"""
#: Samples that pay for machine code: making it takes about 1 us a gate and saves about 1 ps a gate and sample.
_WORTH_CODE = 1_000_000
_BENCH_EXAMPLES = """\
examples:
  gatelight bench mnist.gl
  gatelight bench mnist.gl --threads 2 --seconds 10
  gatelight bench mnist.gl --interpret                      as where no machine code can be made
"""
_EXPORT_EXAMPLES = """\
examples:
  gatelight export mnist.gl --to c -o build/               C99 without dependencies
  gatelight export mnist.gl --to verilog --pipeline 4      Verilog, a register every 4 levels, with a testbench
  gatelight export mnist.gl --to aiger                     and-inverter graph of the gates before the sums
"""


def add_parsers(commands: Any) -> None:
    """Add this family's parsers."""
    compile_ = commands.add_parser(
        "compile", help="round a run to a circuit, simplify and prove it", epilog=_COMPILE_EXAMPLES
    )
    compile_.set_defaults(run=run_compile, parser=compile_)
    compile_.add_argument("model", type=Path, metavar="RUN", help="a run's folder or a checkpoint")
    compile_.add_argument("-o", "--output", type=Path, required=True, metavar="NET.gl", help="the circuit's file")
    compile_.add_argument("--which", choices=("best", "last"), default="best", help="which weights (default: best)")
    compile_.add_argument("--level", type=int, choices=(0, 1, 2, 3), default=1, help="0 leaves the circuit as it is")
    compile_.add_argument("--lut", type=int, metavar="K", help="map to tables of up to K inputs, 3 to 6")
    compile_.add_argument("--no-prove", action="store_true", help="do not look for a prover")
    compile_.add_argument("--overwrite", action="store_true", help="replace the file if it exists")

    run = commands.add_parser("run", help="run a circuit on data", epilog=_RUN_EXAMPLES)
    run.set_defaults(run=run_run, parser=run)
    run.add_argument("circuit", type=Path, metavar="NET.gl")
    run.add_argument("samples", metavar="DATA", help=".npz or .npy with x (and y), .csv, or a data set's name")
    run.add_argument(
        "--rows",
        choices=("all", "test", "train"),
        help="which rows of labelled data: test, those that training holds out (default), train, or all",
    )
    run.add_argument("-o", "--output", type=Path, help="write labels and scores to a .csv or .npz file")
    run.add_argument("--overwrite", action="store_true", help="replace the output if it exists")
    run.add_argument("--threads", type=int, default=1, metavar="N", help="CPU threads (default: 1)")
    run.add_argument("--data", type=Path, metavar="FOLDER", help="folder of the data sets")

    export = commands.add_parser("export", help="write a circuit as C, Verilog, AIGER or BLIF", epilog=_EXPORT_EXAMPLES)
    export.set_defaults(run=run_export, parser=export)
    export.add_argument("circuit", type=Path, metavar="NET.gl")
    export.add_argument("--to", choices=("c", "verilog", "aiger", "blif"), required=True)
    export.add_argument("-o", "--output", type=Path, default=Path(), help="folder (default: here)")
    export.add_argument("--name", help="of the functions or module (default: the file's)")
    export.add_argument("--pipeline", type=int, default=0, metavar="N", help="verilog: a register every N levels")
    export.add_argument("--ascii", action="store_true", help="aiger: text in place of binary")
    export.add_argument("--overwrite", action="store_true", help="replace files that exist")

    bench = commands.add_parser(
        "bench", help="samples a second of a circuit, and the time of one sample", epilog=_BENCH_EXAMPLES
    )
    bench.set_defaults(run=run_bench, parser=bench)
    bench.add_argument("circuit", type=Path, metavar="NET.gl")
    bench.add_argument("--batch", type=int, default=1 << 15, help="samples of a call (default: 32768)")
    bench.add_argument("--seconds", type=float, default=2.0, help="how long to measure (default: 2)")
    bench.add_argument("--interpret", action="store_true", help="make no machine code for the circuit")
    bench.add_argument("--threads", type=int, default=1, metavar="N", help="CPU threads (default: 1)")


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(text + "\n")


def _load(path: Path) -> Circuit:
    from gatelight.circuit import Circuit

    return Circuit.load(path)


def run_compile(args: argparse.Namespace) -> int:
    """Round, check against the model, simplify, prove, save, report."""
    from gatelight.circuit.passes import map_to_arity, simplify
    from gatelight.circuit.prover import provers
    from gatelight.discretization import SAMPLES, discretize
    from gatelight.training.run_folder import load_model

    if args.lut is not None and not 3 <= args.lut <= 6:
        raise ValueError(f"--lut must be from 3 to 6, got {args.lut}")
    if args.level == 3 and not provers():
        raise ValueError("--level 3 needs a prover: install abc, or pip install 'gatelight[verify]'")
    _prepare_target(args.output, args.overwrite)
    model, header = load_model(args.model, args.which)
    circuit = discretize(model, class_names=header.get("classes", ()))
    say(f"rounded      {circuit.gates:,} gates in {circuit.depth} levels")
    say(f"checked      equal to the rounded model on {SAMPLES:,} random inputs")
    original = circuit
    done: Simplified | None = None
    if args.level:
        done = simplify(circuit, level=args.level)
        circuit = done.circuit
        say(f"simplified   {circuit.gates:,} gates in {circuit.depth} levels, {len(circuit.outputs):,} bits summed")
        say("             " + ", ".join(f"{name} {count:,}" for name, count in done.report.removed.items() if count))
    if args.lut is not None:
        before = circuit
        circuit = map_to_arity(circuit, args.lut)
        say(f"mapped       {before.gates:,} gates to {circuit.gates:,} tables of up to {args.lut} inputs")
    say(f"proof        {'left out' if args.no_prove else _proof(original, circuit, done)}")
    circuit.save(args.output)
    say(circuit.summary())
    net = shlex.quote(str(args.output))
    say(f"wrote {args.output}; next: gatelight bench {net}    gatelight export {net} --to c")
    return 0


def _proof(original: Circuit, circuit: Circuit, done: Simplified | None) -> str:
    """Prove the circuit equal to the original one and say how, or why not."""
    from gatelight.circuit import equivalence
    from gatelight.circuit.prover import provers

    if not provers():
        return "not made: install abc, or pip install 'gatelight[verify]'"
    begun = time.monotonic()
    match = equivalence.match_of(done) if done is not None else None
    try:
        verdict = equivalence.prove(original, circuit, match)
    except RuntimeError as error:
        return f"not made: {error}"
    if verdict.equal is False:
        raise RuntimeError("the prover found the simplified circuit to differ; please report this as a bug")
    if verdict.equal is None:
        return "not made: the prover gave up"
    return f"every output equal to the unsimplified circuit's, formally, in {time.monotonic() - begun:.1f} s"


def run_run(args: argparse.Namespace) -> int:
    """Label samples; print the accuracy if there are labels."""
    from gatelight import engine, native

    circuit = _load(args.circuit)
    if args.output is not None:
        if args.output.suffix not in (".csv", ".npz"):
            raise ValueError(f"the output must end in .csv or .npz, got {args.output}")
        _prepare_target(args.output, args.overwrite, Path(args.samples), args.circuit)
    x, y = _samples(args.samples, args.data, circuit, args.rows)
    if not engine.available():
        say(f"without the native engine ({native.why_not()}), which is much faster")
    begun = time.monotonic()
    runner: Circuit | engine.Engine = circuit
    if engine.available():
        runner = engine.Engine(circuit, threads=args.threads, code=len(x) >= _WORTH_CODE)
    scores = runner.scores(x)
    labels = scores.argmax(1) if len(scores) else np.zeros(0, np.int64)
    seconds = time.monotonic() - begun
    say(f"{len(x):,} samples in {seconds:.3f} s")
    if y is not None:
        say(f"accuracy {100 * float((labels == y).mean()):.2f} %" if len(y) else "no samples")
    if args.output is not None:
        _write_labels(args.output, circuit, labels, scores)
        say(f"wrote {args.output}")
    return 0


def _samples(
    name: str, folder: Path | None, circuit: Circuit, rows: str | None
) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
    """What to label, as the file has it, and the labels if they are known; says which rows these are."""
    path = Path(name).expanduser()
    if path.suffix.lower() in (".npz", ".npy"):
        from gatelight.data.npz import load_samples

        x, y, classes, rows, total, notes = load_samples(path, rows)
        _check_samples(x, circuit, name)
    else:
        from gatelight import data
        from gatelight.data.csvfile import all_rows

        dataset = data.load(name, folder)
        rows, total = rows or "test", len(dataset.train) + len(dataset.test)
        if rows == "all" and data.is_table(name):
            split = all_rows(dataset)
        elif rows == "all":
            split = dataset.all_rows()
        else:
            split = dataset.train if rows == "train" else dataset.test
        x, y, classes, notes = split.x, split.y, dataset.classes, dataset.notes
        if data.is_table(name):
            own = f"columns are encoded by the ranges and words of {path} itself: right for the table that the circuit"
            notes = (*notes, f"{own} was trained on, wrong for any other")
    for note in notes:
        say(note)
    say(f"all {total:,} rows of {name}" if len(x) == total else f"the {len(x):,} {rows} rows of {name} (of {total:,})")
    return x, None if y is None else _matched(y, classes, circuit, name)


def _check_samples(x: NDArray[Any], circuit: Circuit, name: str) -> None:
    """Say what is wrong with samples, or odd, where the circuit cannot know."""
    if math.prod(x.shape[1:]) != circuit.features and x.size == circuit.features:
        raise ValueError(f"{name}: holds a single sample; a batch of one has another axis in front, as x[None] gives")
    as_bytes = x.dtype == np.uint8 and getattr(circuit, "feature_kind", "bytes") == "bytes"
    if as_bytes and x.size and x.max() <= 1:
        say("x holds no value above 1 and is read as bytes, nearly black; bool or float would mean bits")


def _matched(y: NDArray[np.int64], classes: tuple[str, ...], circuit: Circuit, name: str) -> NDArray[np.int64]:
    """Labels that count as the circuit's classes do, matched by name where both have names."""
    from gatelight.data.dataset import class_order

    named = bool(classes and circuit.class_names)
    highest = int(y.max()) if len(y) else -1
    if classes and highest >= len(classes):
        raise ValueError(f"{name} has labels up to {highest}, but names only {len(classes)} classes")
    if not named and highest >= circuit.classes:
        raise ValueError(f"{name} has labels up to {highest}, but the circuit only {circuit.classes} classes")
    if not named:
        return y
    try:
        order = class_order(classes, circuit.class_names, name)
    except ValueError:
        order = np.zeros(0, np.int64)
    if len(order) != circuit.classes:
        raise ValueError(
            f"{name} has the classes {some_of(classes)}, the circuit {some_of(circuit.class_names)}: not the same"
        )
    return order[y]


def _write_labels(path: Path, circuit: Circuit, labels: NDArray[Any], scores: NDArray[np.int32]) -> None:
    from gatelight.files import replacing

    with replacing(path) as temporary:
        if path.suffix == ".npz":
            with temporary.open("wb") as file:
                np.savez(file, labels=labels, scores=scores)
            return
        names = circuit.class_names or tuple(map(str, range(circuit.classes)))
        with temporary.open("w", encoding="utf-8", newline="") as file:
            import csv

            writer = csv.writer(file)
            writer.writerow(["label", *(f"score {name}" for name in names)])
            for label, row in zip(labels.tolist(), scores.tolist(), strict=True):
                writer.writerow([names[label], *row])


def run_export(args: argparse.Namespace) -> int:
    """Write the files of one format."""
    from gatelight import export
    from gatelight.export.names import check_identifier
    from gatelight.files import replacing

    circuit = _load(args.circuit)
    name = check_identifier(args.name) if args.name is not None else _identifier(args.circuit.stem)
    if args.pipeline and args.to != "verilog":
        raise ValueError("--pipeline is for --to verilog")
    if args.ascii and args.to != "aiger":
        raise ValueError("--ascii is for --to aiger")
    files: dict[str, bytes] = {}
    if args.to == "c":
        files = {file: text.encode() for file, text in export.c(circuit, name).items()}
    elif args.to == "verilog":
        bits = np.random.default_rng(0).integers(0, 2, (100, circuit.inputs), np.uint8)
        files[f"{name}.v"] = export.verilog(circuit, name, pipeline=args.pipeline).encode()
        files[f"{name}_tb.v"] = export.verilog_testbench(circuit, bits, name, pipeline=args.pipeline).encode()
    elif args.to == "aiger":
        files[f"{name}.{'aag' if args.ascii else 'aig'}"] = export.aiger(circuit, ascii=args.ascii)
    else:
        files[f"{name}.blif"] = export.blif(circuit, name).encode()
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
    """Refuse a file that must not be replaced, and make its folder, before any work is done."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a file")
    if path.exists() and any(other.exists() and path.samefile(other) for other in inputs):
        raise ValueError(f"{path} is what is read; give the output another name")
    if path.exists() and not overwrite:
        raise ValueError(f"{path} exists already; use --overwrite to replace it")
    path.parent.mkdir(parents=True, exist_ok=True)


def run_bench(args: argparse.Namespace) -> int:
    """Measure throughput on random samples and the latency of one."""
    from gatelight import native
    from gatelight.engine import Engine, available

    if not available():
        raise ValueError(f"the engine needs the native library: {native.why_not() or 'it has no engine'}")
    if args.batch < 1 or args.seconds <= 0 or args.threads < 1:
        raise ValueError("--batch, --seconds and --threads must be positive")
    circuit = _load(args.circuit)
    begun = time.perf_counter()
    engine = Engine(circuit, threads=args.threads, code=not args.interpret)
    prepared = time.perf_counter() - begun
    levels = 2 if getattr(circuit, "feature_kind", "bytes") == "bits" else 256
    x = np.random.default_rng(0).integers(0, levels, (args.batch, circuit.features), np.uint8)
    batch = _median_seconds(lambda: engine.predict(x), args.seconds)
    one = _median_seconds(lambda: engine.predict(x[:1]), args.seconds / 4)
    say(f"circuit      {circuit.gates:,} gates in {circuit.depth} levels, {len(circuit.outputs):,} bits summed")
    stats = engine.stats
    how = f"machine code, {stats.code_bytes / 1e6:.2f} MB" if stats.code_bytes else "interpreted"
    say(f"engine       {stats.simd}, {how}, prepared in {1e3 * prepared:.1f} ms")
    say(
        f"throughput   {args.batch / batch / 1e6:.2f} M samples/s, uint8 features to labels, {engine.threads} thread(s)"
    )
    say(f"one sample   {1e6 * one:.1f} us, the call from Python included")
    return 0


def _median_seconds(function: Any, seconds: float) -> float:
    function()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        begun = time.perf_counter()
        function()
        times.append(time.perf_counter() - begun)
    return sorted(times)[len(times) // 2]
