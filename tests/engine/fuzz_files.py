"""Circuit files with errors put in, through ``Circuit.load`` and, where that takes them, through the engine.

    python fuzz_files.py [files] [seed]

fuzz.sh runs it with a library built under AddressSanitizer, which ends the process at the first wrong access. A file
must load or raise ValueError, and the engine must equal the circuit that was loaded.
"""

from __future__ import annotations

import json
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save as serialize

from gatelight import native
from gatelight.circuit import Circuit, evaluate, io
from gatelight.circuit.random import layered_circuit, random_circuit
from gatelight.engine import Engine

BATCHES = (0, 1, 3, 65)
#: Values at which index arithmetic goes wrong.
EDGES = (0, 1, -1, 2, 7, 63, 64, 65, 127, 128, 255, 256, 2**15, 2**16, 2**31 - 1, -(2**31), 2**32, 2**53, 2**63, 10**30)
#: More features than this would make the samples large, not the test better.
MOST_FEATURES = 10_000

CIRCUITS = (
    random_circuit(9, 60, outputs=40, classes=3, arities=(0, 1, 2, 3, 4, 5, 6)),
    random_circuit(70, 200, outputs=150, classes=10, arities=(2,), feature_kind="reals", seed=1),
    random_circuit(5, 30, outputs=12, classes=2, arities=(2, 3), reach=4, feature_kind="bits", seed=2),
    layered_circuit(40, (50, 40), classes=4),
    random_circuit(3, 0, outputs=2, classes=2),
)


def split(data: bytes) -> tuple[dict[str, Any], bytes]:
    length = int.from_bytes(data[:8], "little")
    header: dict[str, Any] = json.loads(data[8 : 8 + length])
    return header, data[8 + length :]


def join(header: dict[str, Any], body: bytes) -> bytes:
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + body


def sealed(data: bytes) -> bytes:
    """The file with the checksum of what it now holds, so that its errors get past that."""
    place = re.search(rb'sha256\\": \\"([0-9a-f]{64})', data)
    return io.seal(data[: place.start(1)] + b"0" * 64 + data[place.end(1) :]) if place else data


def flip_bits(data: bytes, rng: random.Random) -> bytes:
    spoiled = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        spoiled[rng.randrange(len(spoiled))] ^= 1 << rng.randrange(8)
    return bytes(spoiled)


def change_array_bytes(data: bytes, rng: random.Random) -> bytes:
    """Bytes behind the header, which parse whatever they are."""
    begin = 8 + int.from_bytes(data[:8], "little")
    spoiled = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        spoiled[rng.randrange(begin, len(spoiled))] = rng.randrange(256)
    return bytes(spoiled)


def cut(data: bytes, rng: random.Random) -> bytes:
    at, end = sorted((rng.randrange(len(data)), rng.randrange(len(data))))
    return rng.choice((data[:at], data[:at] + data[end:], data[:end] + data[at:], data + data[at:end]))


def change_length(data: bytes, rng: random.Random) -> bytes:
    length = int.from_bytes(data[:8], "little")
    other = rng.choice((length + rng.randint(-9, 9), rng.choice(EDGES), rng.getrandbits(64)))
    return (other % 2**64).to_bytes(8, "little") + data[8:]


def change_header(data: bytes, rng: random.Random) -> bytes:
    """Shapes, types and places of arrays, or one array under another's name."""
    header, body = split(data)
    names = [name for name in header if name != "__metadata__"]
    name, other = rng.sample(names, 2)
    entry = header[name]
    match rng.randrange(6):
        case 0:
            header[name], header[other] = header[other], entry
        case 1:
            entry["data_offsets"], header[other]["data_offsets"] = header[other]["data_offsets"], entry["data_offsets"]
        case 2:
            entry["dtype"] = rng.choice(("I32", "U32", "F32", "U8", "I64", "U64", "BOOL", "X9", 3, None))
        case 3:
            entry["shape"] = rng.choice(
                (entry["shape"][::-1], [*entry["shape"], 1], [rng.choice(EDGES)], [], "3", [-1])
            )
        case 4:
            entry["data_offsets"][rng.randrange(2)] = rng.choice((*EDGES, len(body), len(body) + 8))
        case _:
            del header[rng.choice((name, "__metadata__"))]
    return join(header, body)


def change_scalars(data: bytes, rng: random.Random) -> bytes:
    header, body = split(data)
    scalars = json.loads(header["__metadata__"]["gatelight"])
    name = rng.choice(list(scalars))
    near = scalars[name] + rng.randint(-2, 2) if isinstance(scalars[name], int) else 0
    scalars[name] = rng.choice(
        (near, rng.choice(EDGES), 1e300, float("nan"), "x", "bits", "reals", None, [], [1, 2], [-1, 5], True, {})
    )
    header["__metadata__"]["gatelight"] = json.dumps(scalars)
    return join(header, body)


def change_arrays(data: bytes, rng: random.Random) -> bytes:
    """Arrays of the right types with wrong values or sizes."""
    header, _ = split(data)
    circuit = io.from_bytes(data)
    arrays = {name: getattr(circuit, name).copy() for name in header if name != "__metadata__"}
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice(list(arrays))
        array = arrays[name]
        flat = array.reshape(-1)
        if not flat.size:
            continue
        at, to = rng.randrange(flat.size), rng.randrange(flat.size)
        match rng.randrange(7):
            case 0:
                flat[at], flat[to] = flat[to], flat[at]
            case 1:
                flat[at] = flat[to]
            case 2 if array.dtype.kind == "f":
                flat[at] = rng.choice((np.nan, np.inf, -np.inf, -0.0, 1e-45, 3e38))
            case 2 | 3:
                least, most = (-(2**31), 2**31) if array.dtype.kind in "if" else (0, 2 ** (8 * array.itemsize))
                value = rng.choice((*EDGES, circuit.inputs + circuit.gates, circuit.features))
                flat[at] = min(max(value, least), most - 1)
            case 4:
                arrays[name] = array[: rng.randrange(len(array) + 1)].copy()
            case 5:
                arrays[name] = np.concatenate([array, array[: rng.randrange(len(array) + 1)]])
            case _:
                flat[:] = np.sort(flat)
    return bytes(serialize(arrays, header["__metadata__"]))


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    flip_bits,
    change_array_bytes,
    cut,
    change_length,
    change_header,
    change_scalars,
    change_arrays,
    change_arrays,
)


def check(circuit: Circuit, number: int, paths: list[str]) -> None:
    """The engine on a small batch against the circuit."""
    engine = Engine(circuit, simd=paths[number % len(paths)], threads=1 + number % 2, code=number % 5 > 0)
    if circuit.features > MOST_FEATURES:
        return
    batch = BATCHES[number // len(paths) % len(BATCHES)]
    most = 2 if circuit.feature_kind == "bits" else 256
    x = np.random.default_rng(number).integers(0, most, (batch, circuit.features), np.uint8)
    one = np.float32(255 if circuit.feature_kind == "bytes" else 1)
    given = x if number % 3 else x.astype(np.float32) / one
    if not np.array_equal(engine.scores(given), evaluate.scores(circuit, given)):
        sys.exit(f"file {number}: the engine differs from the circuit")
    engine.run_bits(np.zeros((circuit.inputs, batch % 9), np.uint64))


def main() -> None:
    """Make, load and run files; end with 1 at the first thing that is not as it should be."""
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    library = native.load()
    if library is None:
        sys.exit(f"no native library: {native.why_not()}")
    paths: list[str] = library.gl_simd_available().decode().split()
    contents = [io.to_bytes(circuit) for circuit in CIRCUITS]
    taken: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.gl"
        for number in range(first, first + files):
            rng = random.Random(number)
            mutation = MUTATIONS[number % len(MUTATIONS)]
            content = rng.choice(contents)
            altered = mutation(content, rng)
            path.write_bytes(altered if number // len(MUTATIONS) % 4 == 0 else sealed(altered))
            try:
                circuit = Circuit.load(path)
            except ValueError:
                continue
            if number // len(MUTATIONS) % 4 == 0 and altered != content:
                sys.exit(f"file {number}: an altered file loads")
            taken[mutation.__name__] += 1
            check(circuit, number, paths)
    loaded = ", ".join(f"{name} {count}" for name, count in sorted(taken.items()))
    sys.stdout.write(f"{files} files, {sum(taken.values())} of them load and run as they should ({loaded})\n")


if __name__ == "__main__":
    main()
