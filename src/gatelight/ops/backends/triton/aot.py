"""Compiles every kernel for GPUs that need not be installed and reads what each will occupy.

python -m gatelight.ops.backends.triton.aot        a table of registers, spills and shared memory
"""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import triton
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import get_ptxas
from triton.compiler import ASTSource

from gatelight.ops.backends.triton import conv as conv_launch
from gatelight.ops.backends.triton import launch
from gatelight.ops.backends.triton.kernels import conv, dense
from gatelight.ops.convshape import ConvShape
from gatelight.ops.maps import NATIVE_MAPS

GEOMETRY = ("OUT_WIDTH", "HEIGHT", "WIDTH", "KERNEL", "STRIDE", "PADDING", "POOL")

TARGETS = {
    "sm_80": GPUTarget("cuda", 80, 32),
    "sm_90": GPUTarget("cuda", 90, 32),
    "sm_100": GPUTarget("cuda", 100, 32),
    "gfx942": GPUTarget("hip", "gfx942", 64),
}


ALL = tuple(TARGETS)

Sizes = Literal["any", "multiples of 16", "1"]


@dataclass(frozen=True)
class Build:
    """A kernel with its compile-time values, as a launch would compile it.

    Attributes:
        name: The name shown in the table and in messages.
        kernel: The jitted function.
        constants: Its compile-time values.
        storage: The type of activations, by Triton's name.
        targets: Where the tests compile it.
        sizes: What is known about sizes and strides when the kernel is compiled: nothing, that they are multiples of 16
            (loads become wider), or that all are 1 (they become constants).
    """

    name: str
    kernel: Any
    constants: dict[str, Any]
    storage: str = "fp32"
    targets: tuple[str, ...] = ALL
    sizes: Sizes = "any"

    @property
    def large(self) -> bool:
        """Whether a program holds the sums of 60 or more table entries."""
        arity, gates = self.constants.get("ARITY", 2), self.constants.get("TREE_GATES", 1)
        return bool(gates << arity >= 60)

    def source(self) -> ASTSource:
        """What the compiler takes, as at a launch with pointers that are aligned to 16 bytes."""
        names = self.kernel.arg_names
        types = {name: self._type(name) for name in names if name not in self.constants}
        constants = dict(self.constants)
        if self.sizes == "1":
            constants |= {name: 1 for name, type_ in types.items() if type_ == "i32"}
        signature = {name: "constexpr" if name in constants else types[name] for name in names}
        multiples = ("*", "i32") if self.sizes == "multiples of 16" else ("*",)
        aligned = {(i,): [["tt.divisibility", 16]] for i, n in enumerate(names) if signature[n].startswith(multiples)}
        return ASTSource(self.kernel, signature=signature, constexprs=constants, attrs=aligned)

    def _type(self, name: str) -> str:
        if name in ("x", "out", "grad_out", "grad_x"):
            return f"*{self.storage}"
        if name in ("fanin", "starts", "readers"):
            return "*i32"
        if name == "winner":
            return "*u8"
        if name in ("source", "theta", "table", "grad_theta", "grad_table", "grad_slot", "grad_leaf", "partial"):
            return "*fp32"
        return "i32"


@dataclass(frozen=True)
class Resources:
    """What a compiled kernel occupies: registers of a thread, bytes spilled by it, bytes of shared memory."""

    registers: int
    spilled: int
    shared: int


def builds() -> Iterator[Build]:
    """The kernels of dense layers in every arity, with the tiles of a wide layer; batches below 32 fuse the maps."""
    for map, arity, batch in [
        *[("table", arity, 100) for arity in range(1, 7)],
        *[("iwp-sin", 2, 1), ("iwp-sin", 2, 25), ("iwp-sigmoid", 2, 1), ("op", 2, 1), ("op", 3, 1)],
    ]:
        constants = {"MAP": map, "ARITY": arity, **_tile(launch.TILE_FWD, map, arity, batch)}
        yield Build(f"fwd arity {arity} {map} batch {batch}", dense.lut_fwd_kernel, constants)
    for source, map, batch in [
        *[("table", "table", 100), ("table", "iwp-sin", 100), ("table", "op", 100)],
        *[("iwp-sin", "iwp-sin", 1), ("iwp-sin", "iwp-sin", 25), ("op", "op", 1), ("op", "op", 25)],
    ]:
        constants = {"SOURCE": source, "MAP": map, **_tile(launch.TILE_BWD, map, 2, batch)}
        yield Build(f"bwd arity 2 {map} batch {batch}", dense.lut2_bwd_kernel, constants)
    for map, arity, batch in [
        *[("table", arity, 100) for arity in (1, 3, 4, 5, 6)],
        *[("iwp-sin", 3, 1), ("op", 3, 1)],
    ]:
        flags = {"NEED_THETA": True, "NEED_SLOT": True}
        tile = _tile(launch.TILE_BWD, map, arity, batch)
        constants = {"SOURCE": map, "MAP": map, "ARITY": arity, **flags, **tile}
        yield Build(f"bwd arity {arity} {map} batch {batch}", dense.lut_bwd_kernel, constants)
    yield Build("gather", dense.gather_kernel, {"BLOCK_R": launch.TILE_GATHER // 64, "BLOCK_B": 64})
    for map, arity in [("iwp-sin", 2), ("op", 2), ("op", 3)]:
        constants = {"MAP": map, "ARITY": arity, "BLOCK_G": launch.max_gates(map, arity)}
        yield Build(f"table arity {arity} {map}", dense.table_kernel, constants)
    tile = _tile(launch.TILE_BWD, "table", 2, 100)
    constants = {"MAP": "table", "ARITY": 2, **tile}
    yield Build("fwd arity 2 table batch 100 bf16", dense.lut_fwd_kernel, constants, "bf16")
    constants = {"SOURCE": "table", "MAP": "table", **tile}
    yield Build("bwd arity 2 table batch 100 fp16", dense.lut2_bwd_kernel, constants, "fp16")


def conv_builds() -> Iterator[Build]:
    """The kernels of convolutional layers: the networks' trees of depth 3 with and without pooling, and others."""
    for arity, depth, pool in [(2, 3, 2), (2, 3, 1), (2, 4, 2), (3, 2, 2), (6, 1, 1), (1, 3, 2)]:
        shape = ConvShape(32, 16, 16, kernel=3, padding=1, arity=arity, depth=depth, pool=pool)
        assert conv_launch.supports_shape(shape)
        geometry = dict(zip(GEOMETRY, conv_launch.geometry(shape), strict=True))
        tree = {"ARITY": arity, "DEPTH": depth, "TREE_GATES": shape.tree_gates}
        block, samples = launch.blocks(shape.out_height * shape.out_width, 128, conv_launch.TILE)
        tile = {"BLOCK_P": block, "BLOCK_B": samples}
        name = f"arity {arity} depth {depth} pool {pool}"
        usual = (arity, depth) == (2, 3)
        fwd, bwd = geometry | tree | tile | {"KEEP": True}, geometry | tree | tile | {"NEED_X": True}
        yield Build(f"conv fwd {name}", conv.conv_fwd_kernel, fwd)
        yield Build(f"conv bwd {name}", conv.conv_bwd_kernel, bwd)
        if usual:
            leaves = {"LEAVES": shape.leaves}
            yield Build(f"conv gather {name}", conv.conv_gather_kernel, geometry | leaves | tile)
    for map in ("iwp-sin", "op"):
        constants = {"MAP": map, "ARITY": 2, "BLOCK_G": launch.max_gates(map, 2)}
        yield Build(f"table bwd arity 2 {map}", conv.table_bwd_kernel, constants)


def sized_builds() -> Iterator[Build]:
    """One of each kind of kernel, compiled for sizes about which something is known."""
    first: dict[tuple[str, bool], Build] = {}
    for build in (*builds(), *conv_builds()):
        # Maps with a parameter for each function have separate code.
        per_function = NATIVE_MAPS[build.constants.get("MAP", "table")].per_function
        first.setdefault((build.kernel.__name__, per_function), build)
    for build in first.values():
        for sizes in get_args(Sizes)[1:]:
            name = f"{build.name}, sizes {sizes}"
            yield dataclasses.replace(build, name=name, sizes=sizes, targets=("sm_90",))


def compile_for(build: Build, target: str) -> Resources:
    """Compile for a name in :data:`TARGETS`."""
    compiled = triton.compile(build.source(), target=TARGETS[target], options={"num_warps": launch.WARPS})
    shared = int(compiled.metadata.shared)
    if target.startswith("sm_"):
        return _assembled(compiled.asm["ptx"], TARGETS[target].arch, shared)
    text = compiled.asm["amdgcn"]
    # Spilled registers are counted one by one, with 4 bytes in each lane.
    return Resources(_number(r"\.vgpr_count: +(\d+)", text), 4 * _number(r"\.vgpr_spill_count: +(\d+)", text), shared)


def _assembled(ptx: str, arch: int, shared: int) -> Resources:
    chip = re.search(r"\.target (\w+)", ptx)
    assert chip is not None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.ptx")
        path.write_text(ptx)
        command = [get_ptxas(arch).path, "-v", f"--gpu-name={chip[1]}", str(path), "-o", str(path.with_suffix(".o"))]
        report = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    spilled = _number(r"(\d+) bytes spill stores", report) + _number(r"(\d+) bytes spill loads", report)
    return Resources(_number(r"Used (\d+) registers", report), spilled, shared)


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    if found is None:
        raise RuntimeError(f"the assembler's report does not match {pattern!r}: {text[-500:]}")
    return int(found[1])


def _tile(tiles: dict[int, int], map: str, arity: int, batch: int) -> dict[str, int]:
    block, samples = launch.blocks(128_000, batch, tiles[arity])
    return {"BLOCK_G": min(block, launch.max_gates(map, arity)), "BLOCK_B": samples}


def main() -> None:
    """Print a table in Markdown."""
    lines = ["| kernel | " + " | ".join(TARGETS) + " |", "|---|" + "---|" * len(TARGETS)]
    for build in (*builds(), *conv_builds()):
        cells = [compile_for(build, target) for target in TARGETS]
        lines.append(f"| {build.name} | " + " | ".join(f"{c.registers}, {c.spilled}, {c.shared}" for c in cells) + " |")
    sys.stdout.write("registers, bytes spilled, bytes of shared memory\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
