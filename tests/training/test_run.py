import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gatelight import data
from gatelight.config import RunConfig, from_flat, replace
from gatelight.data.batches import Batches
from gatelight.discretization import discretize
from gatelight.training import checkpoint
from gatelight.training.metrics import evaluate
from gatelight.training.recipe import recipe_of
from gatelight.training.run import TrainingRun
from gatelight.training.run_folder import RunFolder, load_model


def with_values(**values: Any) -> RunConfig:
    tiny = {"width": 100, "layers": 2, "steps": 40, "eval_every": 10, "batch": 20, "seed": 3}
    return from_flat(tiny | values)


TINY = with_values()


@pytest.fixture(scope="module")
def digits() -> data.Dataset:
    return data.load("digits")


def run_to_end(config: RunConfig, dataset: data.Dataset, folder: Path) -> TrainingRun:
    trainer = TrainingRun(config, dataset, folder)
    trainer.start()
    assert trainer.run()
    return trainer


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return checkpoint.load(folder / "last.safetensors").tensors


def assert_same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert torch.equal(tensor, other[name]), name


def without_times(folder: Path) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k != "seconds"} for row in RunFolder(folder).metrics()]


def test_batches_cover_each_epoch_once() -> None:
    order = Batches(samples=7, batch=3, seed=1)
    stream = [i for step in range(14) for i in order.at(step)]
    for epoch in range(6):
        assert sorted(stream[7 * epoch : 7 * epoch + 7]) == list(range(7))
    assert stream[:7] != stream[7:14]
    assert Batches(7, 3, 1).at(9) == order.at(9)
    assert len(Batches(samples=4, batch=11, seed=0).at(0)) == 11


def test_learns_and_writes_everything(digits: data.Dataset, tmp_path: Path) -> None:
    config = from_flat({"width": 500, "layers": 3, "steps": 150, "eval_every": 50, "lr": 0.05})
    trainer = run_to_end(config, digits, tmp_path / "run")
    result = trainer.finish()
    assert result["best"]["discrete_accuracy"] > 0.8
    rows = RunFolder(tmp_path / "run").metrics()
    assert [row["step"] for row in rows] == [50, 100, 150]
    assert rows[-1]["loss"] < rows[0]["loss"]
    assert json.loads((tmp_path / "run/result.json").read_text()) == result
    best, header = load_model(tmp_path / "run", "best")
    assert header["step"] == max(rows, key=lambda row: row["discrete_accuracy"])["step"]
    last, _ = load_model(tmp_path / "run", "last")
    for name, tensor in last.state_dict().items():
        assert torch.equal(tensor, trainer.model.state_dict()[name])
    assert best.logic_layers[0].in_features == 64 * 7


@pytest.mark.parametrize(
    "extra", [{}, {"parametrization": "op"}, {"intervention": 0.1, "dropout": 0.02}, {"augment": "crop-flip"}]
)
def test_same_seed_same_bits_whatever_the_threads(digits: data.Dataset, tmp_path: Path, extra: dict[str, Any]) -> None:
    threads = torch.get_num_threads()
    try:
        for name, count in (("a", 1), ("b", 2)):
            torch.set_num_threads(count)
            run_to_end(with_values(width=700, **extra), digits, tmp_path / name)
    finally:
        torch.set_num_threads(threads)
    assert_same(weights(tmp_path / "a"), weights(tmp_path / "b"))
    assert without_times(tmp_path / "a") == without_times(tmp_path / "b")
    run_to_end(with_values(width=700, **(extra | {"seed": 4})), digits, tmp_path / "c")
    assert not torch.equal(
        weights(tmp_path / "a")["model.layers.0.theta"], weights(tmp_path / "c")["model.layers.0.theta"]
    )


@pytest.mark.parametrize("stop_after", [1, 10, 15, 39])
def test_stopped_and_resumed_equals_uninterrupted(digits: data.Dataset, tmp_path: Path, stop_after: int) -> None:
    config = with_values(intervention=0.05, dropout=0.01, augment="crop-flip", schedule="cosine")
    run_to_end(config, digits, tmp_path / "whole")
    trainer = TrainingRun(config, digits, tmp_path / "parts")
    trainer.start()
    calls = 0

    def stop() -> bool:
        nonlocal calls
        calls += 1
        return calls >= stop_after

    assert not trainer.run(stop)
    assert trainer.step == stop_after
    again = TrainingRun(RunFolder(tmp_path / "parts").config(), digits, tmp_path / "parts")
    again.resume()
    assert again.step == stop_after
    assert again.run()
    assert_same(weights(tmp_path / "whole"), weights(tmp_path / "parts"))
    assert without_times(tmp_path / "whole") == without_times(tmp_path / "parts")
    assert_same(
        checkpoint.load(tmp_path / "whole/best.safetensors").tensors,
        checkpoint.load(tmp_path / "parts/best.safetensors").tensors,
    )


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "gatelight", *map(str, arguments)]


def environment() -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1"}


TINY_FLAGS = ["--width", "100", "--layers", "2", "--batch", "20", "--seed", "3", "--steps", "400", "--eval-every", "7"]


def test_killed_at_any_moment_and_resumed_ends_with_the_same_bits(tmp_path: Path) -> None:
    subprocess.run(command("train", *TINY_FLAGS, "--out", tmp_path / "whole", "--quiet"), check=True, env=environment())
    killed, folder = 0, tmp_path / "killed"
    arguments = command("train", *TINY_FLAGS, "--out", folder, "--quiet")
    rng = np.random.default_rng(0)
    while True:
        process = subprocess.Popen(arguments, env=environment())
        deadline = time.monotonic() + 60
        seen = len(list(folder.glob("*"))) and len(RunFolder(folder).metrics())
        while process.poll() is None and time.monotonic() < deadline and killed < 3:
            if folder.exists() and len(RunFolder(folder).metrics()) > seen + 3:
                time.sleep(float(rng.uniform(0, 0.05)))
                process.send_signal(signal.SIGKILL)
                break
            time.sleep(0.002)
        code = process.wait(60)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        killed += 1
        arguments = command("train", "--resume", "--out", folder, "--quiet")
    assert killed >= 2
    assert_same(weights(tmp_path / "whole"), weights(folder))
    assert without_times(tmp_path / "whole") == without_times(folder)
    assert not list(folder.glob("*.part.*"))


def test_interrupt_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    arguments = command("train", *TINY_FLAGS, "--steps", "100000", "--out", tmp_path / "run")
    process = subprocess.Popen(arguments, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "run/last.safetensors").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "continue with: gatelight train --resume --out" in out
    assert "Traceback" not in err
    assert (tmp_path / "run/curves.png").exists()
    assert load_model(tmp_path / "run", "last")[1]["step"] > 7


def torchrun(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "gatelight"]
    return subprocess.run(
        [*launch, *map(str, arguments)], env=environment(), capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("steps", [1, 30])
def test_two_processes_equal_one(tmp_path: Path, steps: int) -> None:
    flags = ["--width", "200", "--layers", "2", "--batch", "30", "--steps", str(steps), "--eval-every", "15", "--quiet"]
    flags += ["--augment", "crop", "--accumulate", "2"]
    subprocess.run(command("train", *flags, "--out", tmp_path / "one"), check=True, env=environment())
    done = torchrun("train", *flags, "--out", tmp_path / "two")
    assert done.returncode == 0, done.stderr
    one, two = weights(tmp_path / "one"), weights(tmp_path / "two")
    for name, tensor in one.items():
        # Adam divides by the gradient's size, so that rounding errors of tiny gradients grow into whole steps:
        # after one step its mean shows the gradients themselves, after many the weights agree as a whole.
        if name.startswith("adam.exp_avg.") and steps == 1:
            assert torch.allclose(tensor, two[name], rtol=1e-4, atol=1e-8), name
        elif tensor.is_floating_point() and not name.startswith("adam."):
            assert float((tensor - two[name]).norm() / tensor.norm()) < 1e-3, name
        elif not tensor.is_floating_point():
            assert torch.equal(tensor, two[name])
    first, second = (RunFolder(tmp_path / name).metrics() for name in ("one", "two"))
    assert [row["step"] for row in first] == [row["step"] for row in second]
    for a, b in zip(first, second, strict=True):
        assert a["soft_loss"] == pytest.approx(b["soft_loss"], abs=1e-3)
        assert a["discrete_accuracy"] == pytest.approx(b["discrete_accuracy"], abs=0.02)


def test_accumulation_equals_the_whole_batch(digits: data.Dataset, tmp_path: Path) -> None:
    for name, accumulate in (("a", 1), ("b", 4)):
        run_to_end(with_values(accumulate=accumulate, steps=1), digits, tmp_path / name)
    a, b = weights(tmp_path / "a"), weights(tmp_path / "b")
    gradients = [name for name in a if name.startswith("adam.exp_avg.")]
    assert len(gradients) == 2
    for name in gradients:
        assert torch.allclose(a[name], b[name], rtol=1e-4, atol=1e-8), name


def test_existing_run_is_never_lost(digits: data.Dataset, tmp_path: Path) -> None:
    run_to_end(with_values(steps=10), digits, tmp_path / "run")
    before = {p.name: p.read_bytes() for p in (tmp_path / "run").iterdir()}
    with pytest.raises(ValueError, match="already holds a run; use --resume to continue or --overwrite"):
        TrainingRun(TINY, digits, tmp_path / "run").start()
    assert {p.name: p.read_bytes() for p in (tmp_path / "run").iterdir()} == before
    (tmp_path / "run/notes.txt").write_text("mine")
    TrainingRun(TINY, digits, tmp_path / "run").start(overwrite=True)
    assert (tmp_path / "run/notes.txt").read_text() == "mine"
    assert not (tmp_path / "run/last.safetensors").exists()
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(ValueError, match="is a file"):
        TrainingRun(TINY, digits, file).start(overwrite=True)


def test_divergence_is_reported_and_the_last_checkpoint_kept(digits: data.Dataset, tmp_path: Path) -> None:
    trainer = TrainingRun(TINY, digits, tmp_path / "run")
    trainer.start()
    assert not trainer.run(lambda: trainer.step >= 12)
    with torch.no_grad():
        trainer.model.logic_layers[0].theta[0] = torch.inf
    with pytest.raises(ValueError, match="not finite at step 20; try a smaller lr"):
        trainer.run()
    assert load_model(tmp_path / "run", "last")[1]["step"] == 13


def test_a_cut_off_metrics_line_is_dropped(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    rows = [{"step": n, "loss": 1.0, "soft_accuracy": 0.5, "discrete_accuracy": 0.25} for n in (1, 2)]
    for row in rows:
        folder.append_metrics(row)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 3, "lo')
    assert [row["step"] for row in folder.metrics()] == [1, 2]
    folder.trim_metrics(1)
    assert (tmp_path / "metrics.jsonl").read_text() == json.dumps(rows[0]) + "\n"
    (tmp_path / "metrics.jsonl").write_text('{"st\n{"step": 2}\n')
    with pytest.raises(ValueError, match="line 1 is not JSON"):
        folder.metrics()
    (tmp_path / "metrics.jsonl").write_text("3\n")
    with pytest.raises(ValueError, match="line 1 is not an evaluation"):
        folder.metrics()


def test_no_validation_split_measures_on_the_training_set(digits: data.Dataset, tmp_path: Path) -> None:
    trainer = run_to_end(with_values(validation=0.0, steps=10), digits, tmp_path / "run")
    assert len(trainer.trainer.train) == len(digits.train)
    assert RunFolder(tmp_path / "run").metrics()[0]["on"] == "train"


def test_augmentation_touches_training_images_alone(digits: data.Dataset, tmp_path: Path) -> None:
    plain, augmented = (
        TrainingRun(with_values(augment=a, steps=10), digits, tmp_path / a) for a in ("none", "crop-flip")
    )
    assert np.array_equal(plain.trainer.held_out.x, augmented.trainer.held_out.x)
    (plain_bits, plain_labels), (bits, labels) = plain.trainer.prepare(0), augmented.trainer.prepare(0)
    assert torch.equal(plain_labels, labels)
    assert not torch.equal(plain_bits, bits)
    assert set(bits.unique().tolist()) == {0.0, 1.0}


def test_a_batch_smaller_than_a_word_and_a_batch_of_one(digits: data.Dataset, tmp_path: Path) -> None:
    for batch in (1, 7):
        run_to_end(with_values(batch=batch, steps=5, eval_every=5), digits, tmp_path / str(batch))


def test_quantile_thresholds_survive_the_checkpoint(digits: data.Dataset, tmp_path: Path) -> None:
    trainer = run_to_end(with_values(encoding="quantile", thresholds=2, steps=10), digits, tmp_path / "run")
    model, _ = load_model(tmp_path / "run", "last")
    assert model.encoder is not None
    assert trainer.model.encoder is not None
    assert torch.equal(model.encoder.thresholds, trainer.model.encoder.thresholds)
    assert model.encoder.thresholds.shape == (1, 2)


def test_weight_decay_goes_with_op_and_apart_from_the_gradients(tmp_path: Path) -> None:
    conv = from_flat({"dataset": "cifar10", "model": "cdlgn"})
    assert recipe_of(conv).weight_decay == 0.0
    assert recipe_of(replace(conv, parametrization="op")).weight_decay == 0.002
    assert recipe_of(replace(conv, weight_decay=0.1)).weight_decay == 0.1
    config = from_flat({"width": 20, "layers": 1, "weight_decay": 0.5, "lr": 0.1})
    trainer = TrainingRun(config, data.load("digits"), tmp_path / "run")
    trainer.start()
    theta = trainer.model.layers.layers[0].theta
    before = theta.detach().clone()
    theta.grad = torch.zeros_like(theta)
    trainer.trainer.optimizer.step()
    assert torch.allclose(theta, before * (1 - 0.1 * 0.5))


def test_of_equal_evaluations_the_later_weights_are_the_best(digits: data.Dataset, tmp_path: Path) -> None:
    few = data.Dataset(
        "digits", data.Split(digits.train.x[:50], digits.train.y[:50]), digits.test, digits.classes, (), False
    )
    # One sample to validate on: accuracies are 0 or 1, and tie again and again.
    config = with_values(validation=0.02, eval_every=5, steps=40)
    run_to_end(config, few, tmp_path / "whole")
    rows = RunFolder(tmp_path / "whole").metrics()
    most = max(row["discrete_accuracy"] for row in rows)
    ties = [row["step"] for row in rows if row["discrete_accuracy"] == most]
    assert len(ties) > 1
    assert load_model(tmp_path / "whole", "best")[1]["step"] == ties[-1]
    trainer = TrainingRun(config, few, tmp_path / "parts")
    trainer.start()
    assert not trainer.run(lambda: trainer.step >= 22)
    again = TrainingRun(RunFolder(tmp_path / "parts").config(), few, tmp_path / "parts")
    again.resume()
    assert again.run()
    best = (checkpoint.load(tmp_path / name / "best.safetensors") for name in ("whole", "parts"))
    assert_same(*(saved.tensors for saved in best))
    assert without_times(tmp_path / "whole") == without_times(tmp_path / "parts")


@pytest.mark.parametrize("init", ["gaussian", "residual"])
def test_a_layer_with_nothing_to_learn_trains(digits: data.Dataset, tmp_path: Path, init: str) -> None:
    config = with_values(residual_fraction=1.0, init=init, steps=20)
    whole = run_to_end(config, digits, tmp_path / "whole")
    assert whole.model.layers.layers[-1].theta.numel() == 0
    trainer = TrainingRun(config, digits, tmp_path / "parts")
    trainer.start()
    assert not trainer.run(lambda: trainer.step >= 12)
    again = TrainingRun(RunFolder(tmp_path / "parts").config(), digits, tmp_path / "parts")
    again.resume()
    assert again.run()
    assert_same(weights(tmp_path / "whole"), weights(tmp_path / "parts"))
    model, _ = load_model(tmp_path / "whole", "last")
    circuit = discretize(model)
    counts = evaluate(model, digits.test)
    assert int((circuit.predict(digits.test.x) == digits.test.y).sum()) == counts.rounded_hits


OPEN = ("layers", "width", "temperature", "thresholds")


@pytest.mark.parametrize("model", ["dlgn", "cdlgn"])
def test_the_configuration_of_a_run_is_settled_and_repeats_it(digits: data.Dataset, tmp_path: Path, model: str) -> None:
    width = 3 if model == "cdlgn" else None
    given = from_flat({"model": model, "steps": 2, "batch": 10, "width": width, "seed": 5})
    run_to_end(given, digits, tmp_path / "first")
    written = RunFolder(tmp_path / "first").config()
    expected = {"dlgn": (4, 2_000, 10.0, 7), "cdlgn": (None, 3, 5.0, 3)}[model]
    assert tuple(getattr(written.model, name) for name in OPEN) == expected
    run_to_end(written, digits, tmp_path / "again")
    assert_same(weights(tmp_path / "first"), weights(tmp_path / "again"))
    assert (tmp_path / "first/config.json").read_text() == (tmp_path / "again/config.json").read_text()
    # A run whose configuration left these values open goes on, and then has them.
    path = tmp_path / "first/config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | dict.fromkeys(OPEN if model == "dlgn" else OPEN[2:])))
    again = TrainingRun(RunFolder(tmp_path / "first").config(), digits, tmp_path / "first")
    again.resume()
    assert again.step == 2
    assert RunFolder(tmp_path / "first").config() == written
