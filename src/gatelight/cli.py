"""The command ``gatelight``: parses, dispatches, and turns errors into one line."""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from gatelight import __version__
from gatelight.names import nearest

_EXAMPLES = """\
examples:
  gatelight train                              train on digits, no data needed
  gatelight train mnist --size S --out runs/a  train the paper's MNIST network
  gatelight inspect runs/a                     what the gates have become
  gatelight compile runs/a -o a.gl             round, simplify, prove: a circuit
  gatelight bench a.gl                         millions of samples per second
  gatelight export a.gl --to verilog           for an FPGA
  gatelight data list                          which data sets there are
"""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line and suggests the option that was meant."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False, **kwargs}
        super().__init__(*args, **kwargs)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")

    def suggestion(self, unknown: str) -> str:
        """The known option nearest to an unknown one, as a hint."""
        options = [o for action in self._actions for o in action.option_strings]
        near = nearest(unknown.split("=")[0], options)
        return f"; did you mean {near}?" if near else ""


def make_parser() -> argparse.ArgumentParser:
    """The parser with all commands."""
    from gatelight.commands import circuit, data, info, inspect, reproduce, train

    parser = _Parser(
        prog="gatelight",
        description="Train light differentiable logic gate networks and turn them into circuits.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("--version", action="version", version=f"gatelight {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in (train, inspect, circuit, data, reproduce, info):
        module.add_parsers(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is 0, 1 if the machine failed, 2 for bad input, 130 for Ctrl-C."""
    # Torch threads that spin while they wait would take the cores from the kernels' threads.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    with _noting_interrupts() as interrupted:
        try:
            return _run(argv)
        except KeyboardInterrupt:
            return _fail(130, "interrupted")
        except Exception as error:
            # An import that Ctrl-C interrupts often ends in an ImportError, or worse, instead of the interrupt.
            if interrupted:
                return _fail(130, "interrupted")
            return _explain(error)


def _run(argv: Sequence[str] | None) -> int:
    parser = make_parser()
    args, unknown = parser.parse_known_args(argv)
    chosen: _Parser = args.parser
    if unknown:
        chosen.error(f"unknown argument {unknown[0]}{chosen.suggestion(unknown[0])}")
    return int(args.run(args) or 0)


def _explain(error: Exception) -> int:
    """One line for an error that a user can fix; others are raised again."""
    if isinstance(error, ValueError):
        return _fail(2, str(error))
    if isinstance(error, ModuleNotFoundError):
        extra = "tensorboard" if error.name == "tensorboard" else "train"
        return _fail(2, f"this needs {error.name}, which is not installed: pip install 'gatelight[{extra}]'")
    if isinstance(error, ImportError):
        return _fail(2, str(error))
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if isinstance(error, OSError | MemoryError):
        return _fail(1, str(error) or type(error).__name__)
    if isinstance(error, RuntimeError) and re.search("out of memory|can't allocate memory", str(error)):
        return _fail(1, "out of memory; try a smaller --batch, or --accumulate to split it")
    raise error


@contextmanager
def _noting_interrupts() -> Iterator[list[int]]:
    """A list that gets the number of SIGINT, which still raises KeyboardInterrupt."""
    noted: list[int] = []

    def note(number: int, _frame: types.FrameType | None) -> None:
        noted.append(number)
        raise KeyboardInterrupt

    # Replace only Python's own handler, and only in the main thread, where handlers can be set.
    try:
        ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        before = signal.signal(signal.SIGINT, note) if ours else None
    except ValueError:
        before = None
    try:
        yield noted
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)


def _fail(code: int, message: str) -> int:
    sys.stderr.write(f"gatelight: error: {' '.join(message.split())}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
