"""What training does only on a GPU: steps recorded as CUDA graphs, and advice if memory runs out.

At small batches a launch from Python takes longer than the kernel it starts; a graph starts all of them at once.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn import Parameter

from gatelight.ops import supports

#: Runs before recording, which compile kernels and allocate memory.
WARM_UP = 3


@contextmanager
def advice_on_memory(device: torch.device, batch: int, accumulate: int) -> Iterator[None]:
    """Turn an out-of-memory error of a GPU into one line that says what to do."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        more = next((n for n in range(2 * accumulate, batch + 1) if batch % n == 0), None)
        what = "a smaller network" if more is None else f"--accumulate {more}, which gives the same gradients"
        pieces = "one piece" if accumulate == 1 else f"{accumulate} pieces"
        raise MemoryError(f"{device} is out of memory with a batch of {batch} in {pieces}; try {what}") from error


def wanted(device: torch.device, parameters: list[Parameter]) -> bool:
    """Whether steps should be recorded: on a GPU with its kernels, unless ``GATELIGHT_CUDA_GRAPHS=0``."""
    if device.type != "cuda" or os.environ.get("GATELIGHT_CUDA_GRAPHS") == "0":
        return False
    return supports("triton", *parameters)


def record(run: Callable[[], list[Tensor]]) -> tuple[list[Tensor], Callable[[], None]]:
    """Record the kernels that ``run`` launches; its results, and a function that recomputes them in the same memory."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = run()
    return results, graph.replay


class GraphedStep:
    """Loss and gradients of batches of one shape, recorded with the first of them.

    Args:
        loss: The loss of (bits, labels), to be differentiated; the same kernels every time, nothing random.
        parameters: Receive the gradients.
        bits: A batch of inputs.
        labels: Their labels.
    """

    def __init__(
        self, loss: Callable[[Tensor, Tensor], Tensor], parameters: list[Parameter], bits: Tensor, labels: Tensor
    ) -> None:
        self._loss, self._parameters = loss, parameters
        self._bits, self._labels = bits.clone(), labels.clone()
        (self._value, *self._gradients), self._replay = record(self._run)

    def takes(self, bits: Tensor, labels: Tensor) -> bool:
        """Whether a batch has the recorded shape."""
        return bits.shape == self._bits.shape and labels.shape == self._labels.shape

    def __call__(self, bits: Tensor, labels: Tensor) -> Tensor:
        """The loss of a batch; gradients replace those that the parameters had."""
        self._bits.copy_(bits)
        self._labels.copy_(labels)
        self._replay()
        for parameter, gradient in zip(self._parameters, self._gradients, strict=True):
            parameter.grad = gradient
        return self._value

    def _run(self) -> list[Tensor]:
        for parameter in self._parameters:
            parameter.grad = None
        value = self._loss(self._bits, self._labels)
        value.backward()
        return [value.detach(), *[p.grad for p in self._parameters if p.grad is not None]]


def try_to_record(
    loss: Callable[[Tensor, Tensor], Tensor], parameters: list[Parameter], bits: Tensor, labels: Tensor
) -> GraphedStep | None:
    """A recorded step, or None with a warning if the driver or a kernel does not allow recording."""
    try:
        return GraphedStep(loss, parameters, bits, labels)
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        warnings.warn(f"steps run without CUDA graphs: {reason}", RuntimeWarning, stacklevel=2)
        return None
