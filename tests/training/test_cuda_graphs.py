"""What training does on a GPU, with doubles in place of one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor
from torch.nn import Parameter

from gatelight import cli, data
from gatelight.config import from_flat
from gatelight.ops.backends import triton
from gatelight.training import checkpoint, cuda_graphs
from gatelight.training.run import TrainingRun
from gatelight.training.trainer import Trainer


class Double:
    """Stands for a GPU: replays by running again and writing to the memory of the first results, and nowhere else."""

    def __init__(self) -> None:
        self.replays = 0
        self.parameters: list[Parameter] = []

    def wanted(self, _device: torch.device, parameters: list[Parameter]) -> bool:
        self.parameters = parameters
        return True

    def record(self, run: Callable[[], list[Tensor]]) -> tuple[list[Tensor], Callable[[], None]]:
        results = run()

        def replay() -> None:
            self.replays += 1
            for old, new in zip(results, run(), strict=True):
                old.copy_(new)
            for parameter in self.parameters:
                parameter.grad = None

        return results, replay


def trained(folder: Path, **values: Any) -> dict[str, Tensor]:
    config = from_flat({"width": 60, "layers": 2, "steps": 6, "eval_every": 3, "batch": 10} | values)
    trainer = TrainingRun(config, data.load("digits"), folder)
    trainer.start()
    assert trainer.run()
    return checkpoint.load(folder / "last.safetensors").tensors


def test_recorded_steps_train_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    want = trained(tmp_path / "eager")
    double = Double()
    monkeypatch.setattr(cuda_graphs, "wanted", double.wanted)
    monkeypatch.setattr(cuda_graphs, "record", double.record)
    got = trained(tmp_path / "graphed")
    assert double.replays == 6
    assert got.keys() == want.keys()
    for name, tensor in got.items():
        assert torch.equal(tensor, want[name]), name


@pytest.mark.parametrize("values", [{"accumulate": 2}, {"dropout": 0.1}, {"intervention": 0.1}])
def test_steps_that_differ_are_not_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: dict[str, int | float]
) -> None:
    monkeypatch.setattr(cuda_graphs, "wanted", lambda device, parameters: True)
    monkeypatch.setattr(cuda_graphs, "record", mock.Mock(side_effect=AssertionError("recorded")))
    trained(tmp_path / "run", **values)


def test_a_step_that_cannot_be_recorded_runs_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    want = trained(tmp_path / "eager")
    monkeypatch.setattr(cuda_graphs, "wanted", lambda device, parameters: True)
    monkeypatch.setattr(cuda_graphs, "record", mock.Mock(side_effect=RuntimeError("not permitted\nmore")))
    with pytest.warns(RuntimeWarning, match="steps run without CUDA graphs: not permitted$"):
        got = trained(tmp_path / "run")
    assert all(torch.equal(tensor, want[name]) for name, tensor in got.items())


def test_recording_warms_up_on_a_stream_of_its_own() -> None:
    log: list[str] = []
    with (
        mock.patch.object(torch.cuda, "Stream"),
        mock.patch.object(torch.cuda, "current_stream"),
        mock.patch.object(torch.cuda, "stream") as stream,
        mock.patch.object(torch.cuda, "graph") as graph,
        mock.patch.object(torch.cuda, "CUDAGraph") as made,
    ):
        stream().__enter__.side_effect = lambda *_: log.append("side")
        stream().__exit__.side_effect = lambda *_: log.append("back")
        graph().__enter__.side_effect = lambda *_: log.append("record")
        graph().__exit__.side_effect = lambda *_: log.append("recorded")

        def run() -> list[Tensor]:
            log.append("run")
            return [torch.ones(1)]

        results, replay = cuda_graphs.record(run)
        replay()
    assert log == ["side", "run", "run", "run", "back", "record", "run", "recorded"]
    assert len(results) == 1
    assert made().replay.call_count == 1


def test_only_a_gpu_records(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = [torch.nn.Parameter(torch.ones(1))]
    assert not cuda_graphs.wanted(torch.device("cpu"), parameters)
    monkeypatch.setattr(cuda_graphs, "supports", lambda *operands: True)
    assert cuda_graphs.wanted(torch.device("cuda"), parameters)
    monkeypatch.setenv("GATELIGHT_CUDA_GRAPHS", "0")
    assert not cuda_graphs.wanted(torch.device("cuda"), parameters)


@pytest.mark.parametrize(
    ("batch", "accumulate", "advice"),
    [
        (100, 1, "in one piece; try --accumulate 2,"),
        (100, 4, "in 4 pieces; try --accumulate 10,"),
        (7, 1, "try --accumulate 7,"),
        (4, 4, "in 4 pieces; try a smaller network"),
    ],
)
def test_advice_on_memory(batch: int, accumulate: int, advice: str) -> None:
    out_of_memory = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
    with (
        pytest.raises(MemoryError, match=rf"cuda:0 is out of memory with a batch of {batch}.*{advice}"),
        cuda_graphs.advice_on_memory(torch.device("cuda:0"), batch, accumulate),
    ):
        raise out_of_memory


def test_the_command_gives_the_advice_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Trainer, "_step", mock.Mock(side_effect=torch.OutOfMemoryError("CUDA out of memory")))
    assert cli.main(["train", "--width", "60", "--layers", "1", "--batch", "10", "--out", str(tmp_path / "run")]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == (
        "gatelight: error: cpu is out of memory with a batch of 10 in one piece; "
        "try --accumulate 2, which gives the same gradients"
    )


def test_info_says_why_the_gpu_is_not_used(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for reason, line in [
        (None, "Triton kernels; CUDA graphs on"),
        ("torch sees no GPU", "not used: torch sees no GPU"),
    ]:
        monkeypatch.setattr(triton, "why_not", lambda reason=reason: reason)
        monkeypatch.setattr(triton, "interpreted", lambda: False)
        assert cli.main(["info"]) == 0
        assert f"GPU backend     {line}\n" in capsys.readouterr().out
