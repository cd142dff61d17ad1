"""The command on data of one's own: what it says it read, and that it never reads other data for the same."""

import contextlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gatelight import engine
from gatelight.cli import main
from gatelight.training import checkpoint

FAST = ["--width", "60", "--layers", "2", "--steps", "40", "--lr", "0.1", "--temperature", "4", "--quiet"]
needs_engine = pytest.mark.skipif(not engine.available(), reason="the native library is not built")


def table(path: Path, ages: list[int], order: tuple[str, ...] = ("age", "colour", "answer")) -> Path:
    """People of whom the old and red ones answer yes."""
    rows = []
    for index, age in enumerate(ages):
        colour = ("red", "blue", "green")[index % 3]
        cells = {"age": str(age), "colour": colour, "answer": "yes" if age > 50 and colour == "red" else "no"}
        rows.append(",".join(cells[name] for name in order))
    path.write_text("\n".join([",".join(order), *rows]) + "\n")
    return path


def trained(data: Path, run: Path, *flags: str) -> str:
    assert main(["train", str(data), *FAST, *flags, "--out", str(run)]) == 0
    return str(run)


def edit_header(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    saved = checkpoint.load(path)
    change(saved.header)
    checkpoint.save(path, saved.tensors, saved.header)


def forget_the_data(header: dict[str, Any]) -> None:
    """Make a header what an older version wrote."""
    for name in ("data", "encoding", "feature_names"):
        del header[name]
    header["config"] |= dict.fromkeys(("temperature", "thresholds"))


AGES = [20 + 7 * i % 61 for i in range(150)]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table own.csv and a run that was trained on it."""
    folder = tmp_path_factory.mktemp("people")
    table(folder / "own.csv", AGES)
    with contextlib.chdir(folder):
        trained(Path("own.csv"), Path("run"), "--steps", "100")
    return folder


@pytest.fixture
def people(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of both in the current folder."""
    shutil.copytree(base, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_resume_notices_that_the_data_has_changed(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = people / "own.csv"
    before = own.read_text()
    resume = ["train", "--resume", "--out", "run", "--steps", "101"]
    for changed in (before.replace("\n20,red,no\n", "\n20,blue,no\n", 1), before.replace("colour", "color")):
        assert changed != before
        own.write_text(changed)
        assert main(resume) == 2
        err = capsys.readouterr().err
        assert "own has changed since the run began" in err
        assert err.count("\n") == 1
    own.write_text(before)
    assert main(resume) == 0
    assert "could not be checked" not in capsys.readouterr().out


def test_an_old_run_goes_on_and_says_that_its_data_is_not_checked(
    people: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit_header(people / "run/last.safetensors", forget_the_data)
    assert main(["train", "--resume", "--out", "run", "--steps", "101"]) == 0
    assert "whether own has changed since the run began could not be checked" in capsys.readouterr().out


def test_an_old_run_on_images_of_bits_goes_on_with_its_thermometer(tmp_path: Path) -> None:
    bits = np.random.default_rng(0).random((80, 5, 6)) > 0.5
    y = bits[:, 0, 0].astype(int)
    np.savez(tmp_path / "own.npz", x=bits * np.uint8(255), y=y)  # as images of bits used to be read
    run = trained(tmp_path / "own.npz", tmp_path / "run", "--thresholds", "2")
    edit_header(tmp_path / "run/last.safetensors", forget_the_data)
    edit_header(tmp_path / "run/last.safetensors", lambda header: header["config"].update(thresholds=2))
    np.savez(tmp_path / "own.npz", x=bits, y=y)
    for steps in ("50", "60"):  # the second time from a checkpoint that knows its data
        assert main(["train", "--resume", "--out", run, "--steps", steps, "--quiet"]) == 0
    assert json.loads((tmp_path / "run/config.json").read_text())["thresholds"] == 2
    assert main(["eval", run]) == 0


def test_eval_encodes_another_table_as_the_first(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = "run"
    # Its ages span another range, its columns stand in another order.
    other = table(people / "other.csv", [44, 60, 61, 70, 71, 72] * 20, ("answer", "colour", "age"))
    capsys.readouterr()
    for data in ([], ["--dataset", str(other)]):
        assert main(["eval", run, *data]) == 0
        assert "100.00 %" in capsys.readouterr().out
    text = other.read_text()
    for old, new, message in (
        ("blue", "pink", "unknown word 'pink'"),
        ("age", "years", "has no column 'age'"),
        ("no,", "nope,", "unknown class 'nope'"),
    ):
        other.write_text(text.replace(old, new))
        assert main(["eval", run, "--dataset", str(other)]) == 2
        assert message in capsys.readouterr().err


def test_eval_of_an_old_run_takes_its_own_table_alone(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit_header(people / "run/best.safetensors", forget_the_data)
    assert main(["eval", "run"]) == 0
    assert main(["eval", "run", "--dataset", str(people / "own.csv")]) == 0
    other = table(people / "other.csv", AGES)
    assert main(["eval", "run", "--dataset", str(other)]) == 2
    assert "does not say how its features were made from a table" in capsys.readouterr().err


def test_eval_says_that_its_own_data_has_changed(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "run"]) == 0
    assert "has changed" not in capsys.readouterr().out
    table(people / "own.csv", AGES[5:])
    assert main(["eval", "run"]) == 0
    assert "own has changed since the training" in capsys.readouterr().out
    assert main(["inspect", "run"]) == 0


def test_eval_compares_the_names_of_features(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.random.default_rng(0).random((60, 3), np.float32)
    arrays: dict[str, Any] = {"x": x, "y": (x[:, 0] > 0.5).astype(int)}
    np.savez(tmp_path / "own.npz", feature_names=["a", "b", "c"], **arrays)
    np.savez(tmp_path / "swapped.npz", feature_names=["a", "c", "b"], **arrays)
    np.savez(tmp_path / "unnamed.npz", **arrays)
    run = trained(tmp_path / "own.npz", tmp_path / "run")
    assert main(["eval", run, "--dataset", str(tmp_path / "unnamed.npz")]) == 0
    assert main(["eval", run, "--dataset", str(tmp_path / "swapped.npz")]) == 2
    assert "feature 1 was 'b' in the data that was trained on and is 'c'" in capsys.readouterr().err


def test_labels_called_otherwise_in_an_old_run_are_the_same_classes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "own.csv"
    # Words, which a run of an older version tells apart in the order of words.
    own.write_text("a,label\n" + "".join(f"{i},word{i % 12}\n" for i in range(150)))
    run = trained(own, tmp_path / "run")
    capsys.readouterr()
    assert main(["eval", run]) == 0
    before = capsys.readouterr().out
    words = checkpoint.read_header(tmp_path / "run/last.safetensors")["classes"]
    assert words[2] == "word10"
    numbers = [f"{word.removeprefix('word')}.0" for word in words]
    for name in ("best", "last"):
        edit_header(tmp_path / f"run/{name}.safetensors", forget_the_data)
        edit_header(tmp_path / f"run/{name}.safetensors", lambda header: header.update(classes=numbers))
        edit_header(tmp_path / f"run/{name}.safetensors", lambda header: header["config"].update(temperature=4.0))
    own.write_text(own.read_text().replace("word", ""))
    assert main(["eval", run]) == 0
    assert capsys.readouterr().out == before
    for steps in ("50", "60"):
        assert main(["train", "--resume", "--out", run, "--steps", steps, "--quiet"]) == 0
    assert checkpoint.read_header(tmp_path / "run/last.safetensors")["classes"] == numbers


def compiled(run: str, net: Path) -> str:
    assert main(["compile", run, "-o", str(net), "--no-prove"]) == 0
    return str(net)


@needs_engine
def test_run_and_eval_measure_on_the_same_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.random.default_rng(0).random((300, 8), np.float32)
    y = (x[:, 0] + 0.3 * np.random.default_rng(1).random(300) > 0.6).astype(int)
    own = tmp_path / "own.npz"
    np.savez(own, x=x, y=y)
    run = trained(own, tmp_path / "run")
    net = compiled(run, tmp_path / "net.gl")
    measured = {}
    for rows, said in (
        ("test", f"the 60 test rows of {own} (of 300)"),
        ("train", f"the 240 train rows of {own} (of 300)"),
        ("all", f"all 300 rows of {own}"),
    ):
        capsys.readouterr()
        assert main(["run", net, str(own), *(["--rows", rows] if rows != "test" else [])]) == 0
        out = capsys.readouterr().out
        assert said in out
        measured[rows] = next(line.split()[1] for line in out.splitlines() if line.startswith("accuracy"))
    for split in ("test", "train"):
        assert main(["eval", run, "--split", split]) == 0
        assert f"{measured[split]} %" in capsys.readouterr().out
    weighted = (60 * float(measured["test"]) + 240 * float(measured["train"])) / 300
    assert float(measured["all"]) == pytest.approx(weighted, abs=0.02)
    np.savez(own, x=x)
    assert main(["run", net, str(own)]) == 0
    assert f"all 300 rows of {own}" in capsys.readouterr().out


@needs_engine
def test_run_matches_classes_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.random.default_rng(0).random((60, 4), np.float32)
    y = (x[:, 0] > 0.5).astype(int)
    np.savez(tmp_path / "own.npz", x=x, y=y, classes=["no", "yes"])
    np.savez(tmp_path / "turned.npz", x=x, y=1 - y, classes=["yes", "no"])
    net = compiled(trained(tmp_path / "own.npz", tmp_path / "run"), tmp_path / "net.gl")
    capsys.readouterr()
    accuracies = []
    for name in ("own", "turned"):
        assert main(["run", net, str(tmp_path / f"{name}.npz")]) == 0
        accuracies.append(capsys.readouterr().out.splitlines()[-1])
    assert accuracies[0] == accuracies[1]


@needs_engine
def test_run_says_when_bytes_may_be_meant_as_bits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.random.default_rng(0).integers(0, 256, (60, 12), np.uint8)
    np.savez(tmp_path / "own.npz", x=x, y=x[:, 0] // 128)
    net = compiled(trained(tmp_path / "own.npz", tmp_path / "run"), tmp_path / "net.gl")
    capsys.readouterr()
    for top, said in ((255, False), (2, False), (1, True)):
        np.save(tmp_path / "x.npy", np.minimum(x, top).astype(np.uint8))
        assert main(["run", net, str(tmp_path / "x.npy")]) == 0
        assert ("so it is nearly black; pass bool or float for bits" in capsys.readouterr().out) == said


@needs_engine
def test_float_images_keep_what_255ths_would_lose(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    x = rng.random((200, 4, 4)).astype(np.float32)
    x[:, 0, 0] = np.where(rng.random(200) > 0.5, 0.2505, 0.2495)  # both 64/255, and the first threshold is 1/4
    y = (x[:, 0, 0] > 0.25).astype(int)
    x[:, 1] = x[:, 0, :1]
    np.savez(tmp_path / "own.npz", x=x, y=y)
    run = trained(tmp_path / "own.npz", tmp_path / "run", "--steps", "150")
    net = compiled(run, tmp_path / "net.gl")
    capsys.readouterr()
    assert main(["eval", run]) == 0
    assert "100.00 %" in capsys.readouterr().out
    assert main(["run", net, str(tmp_path / "own.npz")]) == 0
    assert "accuracy 100.00 %" in capsys.readouterr().out


@needs_engine
@pytest.mark.parametrize("augment", ["none", "crop-flip"])
def test_images_of_bits_make_convolutional_circuits_of_bits(
    augment: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bits = np.random.default_rng(0).random((90, 8, 8)) > 0.5
    np.savez(tmp_path / "own.npz", x=bits, y=bits[:, 3, 3].astype(int))
    flags = ["--model", "cdlgn", "--width", "2", "--steps", "5", "--augment", augment]
    assert main(["train", str(tmp_path / "own.npz"), *flags, "--out", str(tmp_path / "run")]) == 0
    out = capsys.readouterr().out
    assert "images of 1 x 8 x 8, bits" in out
    assert "; 64 input bits\n" in out
    net = compiled(str(tmp_path / "run"), tmp_path / "net.gl")
    np.save(tmp_path / "x.npy", bits.astype(np.float32))
    assert main(["run", net, str(tmp_path / "x.npy")]) == 0


def test_train_says_what_it_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = table(tmp_path / "own.csv", AGES)
    flags = [*FAST[:-1], "--steps", "5"]
    assert main(["train", str(own), *flags, "--out", str(tmp_path / "a")]) == 0
    out = capsys.readouterr().out
    assert (
        "own: 120 rows to train on (12 of them for validation), 30 to test; 4 features, numbers in [0, 1], "
        "label column 'answer'\n2 classes: no, yes; 12 input bits (3 for each value)\n"
    ) in out
    x = np.random.default_rng(0).integers(0, 256, (50, 6, 7, 3), np.uint8)
    np.savez(tmp_path / "own.npz", x=x, y=np.arange(50) % 10)
    assert main(["train", str(tmp_path / "own.npz"), *flags, "--validation", "0", "--out", str(tmp_path / "b")]) == 0
    out = capsys.readouterr().out
    assert "holds images with the channels last, 6 x 7 x 3; they are put first\n" in out
    assert "own: 40 rows to train on, 10 to test; images of 3 x 6 x 7, bytes\n" in out
    assert "10 classes: 0, 1, 2, 3, 4, 5, ...; 378 input bits (3 for each value)\n" in out


def test_hints_can_be_pasted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = table(tmp_path / "own.csv", AGES)
    run = tmp_path / "with a space" / ("long" * 40)
    trained(own, run, "--steps", "5")
    assert f"next: gatelight inspect '{run}'  " in capsys.readouterr().out
    net = tmp_path / "a net.gl"
    compiled(str(run), net)
    assert f"next: gatelight bench '{net}'    gatelight export '{net}' --to c\n" in capsys.readouterr().out
