"""Draws overview.svg, the picture of the README: a relaxed network, its circuit, and measured speeds.

python docs/images/overview.py

The network on the left is an example. The bars are read from the files in results/.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
INK, GRAY, PALE, BLUE = "#24292f", "#6e7781", "#d0d7de", "#0969da"

#: Gates of the example by layer: name of the function, which two of the layer before it reads.
LAYERS = (
    (("xor", 0, 1), ("and", 1, 3), ("a", 2, 4), ("or", 4, 3)),
    (("or", 0, 1), ("xor", 1, 2), ("a", 3, 0), ("and", 2, 3)),
)
THETA = (-1.3, 1.1, 1.2, -1.0)  # of the gate whose table is shown
INPUTS_Y = (70, 110, 150, 190, 230)
GATES_Y = (80, 125, 170, 215)
SUMS_Y = (102, 193)


def text(x: float, y: float, words: str, *, size: int = 11, color: str = INK, bold: bool = False) -> str:
    """A line of text."""
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{color}"{weight}>{words}</text>'


def line(x1: float, y1: float, x2: float, y2: float, color: str = PALE) -> str:
    """A wire."""
    return f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" stroke="{color}" fill="none"/>'


def circle(x: float, y: float, radius: float, fill: str) -> str:
    """An input or a sum."""
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{fill}" stroke="{GRAY}"/>'


def symbol(function: str, x: float, y: float) -> str:
    """The usual drawing of a gate, centered, 28 x 24."""
    x0, top = x - 14, y - 12
    if function == "and":
        path = f"M{x0} {top}h14a12 12 0 0 1 0 24h-14z"
    else:
        path = f"M{x0} {top}q18 0 28 12q-10 12 -28 12q8 -12 0 -24z"
    extra = f'<path d="M{x0 - 5} {top}q8 12 0 24" fill="none" stroke="{INK}"/>' if function == "xor" else ""
    return f'<path d="{path}" fill="#fff" stroke="{INK}"/>{extra}'


def relaxed(left: float) -> Iterator[str]:
    """The network in training: every gate is there, shaded, and one shows its table."""
    xs = (left, left + 75, left + 150, left + 215)
    places = (INPUTS_Y, GATES_Y, GATES_Y)
    for depth, layer in enumerate(LAYERS):
        for y, (_, *reads) in zip(GATES_Y, layer, strict=True):
            yield from (line(xs[depth], places[depth][i], xs[depth + 1], y) for i in reads)
    yield from (line(xs[2], y, xs[3], SUMS_Y[i // 2]) for i, y in enumerate(GATES_Y))
    yield from (circle(xs[0], y, 5, "#fff") for y in INPUTS_Y)
    for x in xs[1:3]:
        for y in GATES_Y:
            yield f'<rect x="{x - 12}" y="{y - 11}" width="24" height="22" rx="4" fill="#eaeef2" stroke="{GRAY}"/>'
    yield f'<rect x="{xs[1] - 12}" y="{GATES_Y[0] - 11}" width="24" height="22" rx="4" fill="{BLUE}" stroke="{BLUE}"/>'
    yield from sums(xs[3])


def circuit(left: float) -> Iterator[str]:
    """The same network rounded and simplified: gates that pass an input on are wires now."""
    xs = (left, left + 75, left + 150, left + 215)
    sources = [(xs[0], float(y)) for y in INPUTS_Y]  # where the wires of a layer's inputs begin
    wires, gates = [], []
    for x, layer in zip(xs[1:], LAYERS, strict=False):
        outputs = []
        for y, (function, first, second) in zip(GATES_Y, layer, strict=True):
            if function == "a":
                wires.append(line(*sources[first], x, y, GRAY))
                outputs.append((x, float(y)))
                continue
            upper, lower = sorted((first, second))
            wires += [line(*sources[upper], x - 11, y - 6, GRAY), line(*sources[lower], x - 11, y + 6, GRAY)]
            gates.append(symbol(function, x, y))
            outputs.append((x + 13, float(y)))
        sources = outputs
    wires += [line(*source, xs[3], SUMS_Y[i // 2], GRAY) for i, source in enumerate(sources)]
    yield from wires
    yield from (circle(xs[0], y, 5, "#fff") for y in INPUTS_Y)
    yield from gates
    yield from sums(xs[3])


def sums(x: float) -> Iterator[str]:
    """A group sum for each of two classes."""
    for y in SUMS_Y:
        yield circle(x, y, 11, "#fff") + text(x - 4, y + 4, "&#931;", size=12)


def table(x: float, y: float) -> Iterator[str]:
    """The relaxed table of one gate beside the rounded one."""
    entries = [0.5 + 0.5 * math.sin(theta) for theta in THETA]
    yield text(x, y, "one gate:", color=BLUE)
    for k, entry in enumerate(entries):
        left = x + 58 + 56 * k
        yield text(left, y, f"{k:02b}", color=GRAY)
        yield text(left + 16, y, f"{entry:.2f}")
        yield text(left, y + 17, "&#8594;", color=GRAY)
        yield text(left + 16, y + 17, f"{round(entry)}", bold=True)
    yield text(x, y + 17, "rounded:", color=BLUE)


def bars(left: float, top: float, title: str, rows: Sequence[tuple[str, float, str]]) -> Iterator[str]:
    """Horizontal bars; the last one is ours."""
    longest = max(value for _, value, _ in rows)
    yield text(left, top, title, bold=True)
    for i, (name, value, words) in enumerate(rows):
        y = top + 12 + 27 * i
        ours = i == len(rows) - 1
        width = max(2.0, 100 * value / longest)
        yield f'<rect x="{left + 84}" y="{y}" width="{width:.1f}" height="17" fill="{BLUE if ours else PALE}"/>'
        yield text(left, y + 13, name)
        yield text(left + 90 + width, y + 13, words, bold=ours)


def measured(left: float) -> Iterator[str]:
    """Training and inference of MNIST S."""
    step = json.loads((ROOT / "results/train_step.json").read_text("utf-8"))["cases"]["mnist-s"]["milliseconds"]
    steps = [(name, step[name], f"{step[name]:.1f} ms") for name in ("plain torch", "gatelight")]
    run = json.loads((ROOT / "results/inference.json").read_text("utf-8"))["circuits"]["mnist.gl"]
    ways = {"exported C": "exported C", "interpreter": "interpreter", "machine code": "engine"}
    speeds = {name: run[f"{way}, M samples/s"] for name, way in ways.items()}
    yield from bars(left, 72, "forward and backward", steps)
    yield from bars(left, 164, "images per second", [(name, speed, f"{speed:.1f} M") for name, speed in speeds.items()])


def draw() -> str:
    """The picture as SVG."""
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 310" font-family="Helvetica, Arial, sans-serif">'
    titles = ((24, "1. Train relaxed gates"), (314, "2. Round, simplify, prove"), (612, "3. Both are fast"))
    parts = [
        '<rect width="860" height="310" rx="8" fill="#fff"/>',
        *(text(x, 34, words, size=15, bold=True) for x, words in titles),
        *relaxed(36),
        *circuit(326),
        *table(24, 268),
        *measured(612),
        text(326, 268, "Gates that pass an input on become wires.", color=GRAY),
        text(612, 285, "MNIST S, one core of an AMD EPYC (Zen 4)", color=GRAY),
    ]
    return "\n".join([head, *parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    (Path(__file__).parent / "overview.svg").write_text(draw(), "utf-8")
