import csv
import json
import os
import shutil
import subprocess
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from gatelight import data, engine
from gatelight.circuit import Circuit
from gatelight.circuit.proof import prover
from gatelight.circuit.proof.prover import provers
from gatelight.cli import main

needs_engine = pytest.mark.skipif(not engine.available(), reason="the native library is not built")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained run and the circuit that compile made of it."""
    base = tmp_path_factory.mktemp("circuit")
    flags = ["--width", "200", "--layers", "3", "--steps", "150", "--lr", "0.05", "--quiet"]
    assert main(["train", *flags, "--out", str(base / "run")]) == 0
    assert main(["compile", str(base / "run"), "-o", str(base / "net.gl")]) == 0
    return base


def test_compile_reports_and_proves(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", str(folder / "run"), "-o", str(tmp_path / "a.gl"), "--level", "2", "--lut", "6"]) == 0
    out = capsys.readouterr().out
    assert "rounded      600 gates" in out
    assert "equal to the rounded model on 1,000 random inputs" in out
    assert "mapped" in out
    expected = "every output equal to the unsimplified circuit's, formally" if provers() else "not made: install abc"
    assert expected in out
    assert main(["compile", str(folder / "run"), "-o", str(tmp_path / "b.gl"), "--level", "0", "--no-prove"]) == 0
    assert "proof        left out" in capsys.readouterr().out
    assert Circuit.load(tmp_path / "b.gl").gates == 600
    x = np.random.default_rng(0).integers(0, 256, (300, 64), np.uint8)
    scores = [Circuit.load(p).scores(x) for p in (tmp_path / "a.gl", tmp_path / "b.gl", folder / "net.gl")]
    assert np.array_equal(scores[0], scores[1])
    assert np.array_equal(scores[0], scores[2])


@needs_engine
def test_run_on_the_test_split_gives_the_rounded_accuracy(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(folder / "net.gl"), "digits"]) == 0
    result = json.loads((folder / "run/result.json").read_text())
    assert f"accuracy {100 * result['best']['discrete_accuracy']:.2f} %" in capsys.readouterr().out


@needs_engine
def test_run_on_files(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    test = data.load("digits").test
    np.savez(tmp_path / "some.npz", x=test.x[:70], y=test.y[:70])
    np.save(tmp_path / "some.npy", test.x[:70])
    net = str(folder / "net.gl")
    flags = ["--rows", "all", "-o", str(tmp_path / "labels.csv"), "--threads", "2"]
    assert main(["run", net, str(tmp_path / "some.npz"), *flags]) == 0
    assert "accuracy" in capsys.readouterr().out
    assert main(["run", net, str(tmp_path / "some.npy"), "-o", str(tmp_path / "labels.npz")]) == 0
    assert "accuracy" not in capsys.readouterr().out
    expected = Circuit.load(folder / "net.gl").predict(test.x[:70])
    with np.load(tmp_path / "labels.npz") as written:
        assert np.array_equal(written["labels"], expected)
    with (tmp_path / "labels.csv").open() as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["label", *(f"score {i}" for i in range(10))]
    assert [int(row[0]) for row in rows[1:]] == expected.tolist()


def accuracy_in(text: str) -> str:
    """The last percentage of a line that begins with accuracy."""
    return next(line for line in text.splitlines() if line.startswith("accuracy"))


def trained_on(path: Path, folder: Path, *flags: str) -> tuple[str, str]:
    """A run on a file, and its circuit."""
    run, net = str(folder / "run"), str(folder / "net.gl")
    flags = ("--width", "40", "--layers", "2", "--steps", "60", "--lr", "0.1", "--temperature", "4", "--quiet", *flags)
    assert main(["train", str(path), *flags, "--out", run]) == 0
    assert main(["compile", run, "-o", net, "--no-prove"]) == 0
    return run, net


#: What circuits take besides uint8 and float32 is known to those that know what their features are.


@needs_engine
@pytest.mark.parametrize(
    ("dtype", "shape"),
    [
        ("float32", (12,)),
        ("float32", (2, 6)),
        *((dtype, (12,)) for dtype in ("uint8", "int64", "bool", "float16", ">f8")),
        *((dtype, (1, 2, 6)) for dtype in ("uint8", "bool")),
    ],
)
def test_run_reads_bits_as_training_does(
    dtype: str, shape: tuple[int, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x = np.random.default_rng(0).integers(0, 2, (600, 12))
    y = (x[:, 0] & x[:, 1]) | x[:, 2]
    np.savez(tmp_path / "bits.npz", x=x.reshape(600, *shape).astype(dtype), y=y)
    run, net = trained_on(tmp_path / "bits.npz", tmp_path)
    assert json.loads((tmp_path / "run/config.json").read_text())["thresholds"] == 0
    held = data.load(str(tmp_path / "bits.npz")).test
    expected = 100 * float((Circuit.load(net).predict(held.x) == held.y).mean())
    capsys.readouterr()
    assert main(["eval", run]) == 0
    assert f"{expected:.2f} %" in capsys.readouterr().out
    assert main(["run", net, str(tmp_path / "bits.npz")]) == 0
    out = capsys.readouterr().out
    assert f"accuracy {expected:.2f} %" in out
    assert "the 120 test rows of " in out
    assert ("nearly black" in out) == (dtype == "uint8" and not hasattr(Circuit, "feature_kind"))
    assert expected > 70
    assert main(["bench", net, "--batch", "50", "--seconds", "0.01"]) == 0


@needs_engine
def test_run_on_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(i % 7, i % 5, "abc"[i % 7 // 3]) for i in range(100)]
    header = "first,second,class\n"
    (tmp_path / "all.csv").write_text(header + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    (tmp_path / "some.csv").write_text(header + "".join(f"{a},{b},{c}\n" for a, b, c in rows if c != "a"))
    run, net = str(tmp_path / "run"), str(tmp_path / "net.gl")
    flags = ["--width", "60", "--layers", "2", "--steps", "60", "--lr", "0.1", "--quiet"]
    assert main(["train", str(tmp_path / "all.csv"), *flags, "--out", run]) == 0
    assert main(["compile", run, "-o", net, "--no-prove"]) == 0
    capsys.readouterr()
    assert main(["run", net, str(tmp_path / "all.csv")]) == 0
    out = capsys.readouterr().out
    assert f"the 20 test rows of {tmp_path / 'all.csv'} (of 100)" in out
    assert "right for the table that the circuit was trained on, wrong for any other" in out
    assert main(["run", net, str(tmp_path / "some.csv")]) == 2
    assert "has the classes b, c, the circuit a, b, c" in capsys.readouterr().err


def test_run_without_the_native_library(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(engine, "available", lambda: False)
    assert main(["run", str(folder / "net.gl"), "digits"]) == 0
    out = capsys.readouterr().out
    assert "without the native engine" in out
    result = json.loads((folder / "run/result.json").read_text())
    assert f"accuracy {100 * result['best']['discrete_accuracy']:.2f} %" in out
    assert main(["bench", str(folder / "net.gl")]) == 2
    assert "needs the native library" in capsys.readouterr().err


def test_a_prover_that_fails_does_not_take_the_circuit_with_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "abc").write_text("#!/bin/sh\necho some other program\n")
    (tmp_path / "abc").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert main(["compile", str(folder / "run"), "-o", str(tmp_path / "new/net.gl")]) == 0
    assert "not made:" in capsys.readouterr().out
    assert Circuit.load(tmp_path / "new/net.gl").gates > 0


def test_level_3_asks_for_a_prover_first(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(prover, "provers", lambda: ())
    assert main(["compile", str(folder / "run"), "-o", str(tmp_path / "a.gl"), "--level", "3"]) == 2
    assert "--level 3 needs a prover" in capsys.readouterr().err


@needs_engine
def test_bench(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", str(folder / "net.gl"), "--batch", "700", "--seconds", "0.1"]) == 0
    assert "M samples/s" in capsys.readouterr().out


@needs_engine
@pytest.mark.parametrize("code", [False, True])
def test_run_makes_code_where_samples_pay_for_it(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, code: bool
) -> None:
    with mock.patch.object(engine, "Engine", wraps=engine.Engine) as made:
        monkeypatch.setattr("gatelight.inference.CODE_PAYS", 1 if code else 1_000_000)
        assert main(["run", str(folder / "net.gl"), "digits"]) == 0
    assert made.call_args.kwargs["code"] is code
    assert "360 samples in" in capsys.readouterr().out


@needs_engine
def test_bench_says_how_the_circuit_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quick = ["bench", str(folder / "net.gl"), "--batch", "70", "--seconds", "0.01"]
    assert main([*quick, "--interpret"]) == 0
    assert ", interpreted, prepared in" in capsys.readouterr().out
    assert main(quick) == 0
    code = engine.Engine(Circuit.load(folder / "net.gl")).stats.code_bytes
    assert (", machine code, " in capsys.readouterr().out) == (code > 0)


def test_export_writes_files_and_never_overwrites(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net = str(folder / "net.gl")
    for flags in (["c"], ["verilog", "--pipeline", "2"], ["aiger"], ["aiger", "--ascii"], ["blif"]):
        assert main(["export", net, "-o", str(tmp_path), "--name", "digits", "--to", *flags]) == 0
    names = {p.name for p in tmp_path.iterdir()}
    assert names >= {"digits.c", "digits.v", "digits_tb.v", "digits.aig", "digits.aag", "digits.blif"}
    assert main(["export", net, "-o", str(tmp_path), "--name", "digits", "--to", "blif"]) == 2
    assert "exists already; use --overwrite" in capsys.readouterr().err
    assert main(["export", net, "-o", str(tmp_path), "--name", "digits", "--to", "blif", "--overwrite"]) == 0


def test_exported_c_compiles(folder: Path, tmp_path: Path) -> None:
    assert main(["export", str(folder / "net.gl"), "-o", str(tmp_path), "--to", "c"]) == 0
    sources = [str(p) for p in tmp_path.glob("*.c")]
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-c"]
    subprocess.run(["gcc", *flags, *sources, "-o", str(tmp_path / "net.o")], check=True)


def test_inspect(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(folder / "net.gl"), "-o", str(tmp_path / "net.png")]) == 0
    out = capsys.readouterr().out
    assert "by level" in out
    assert "of 64 are read" in out
    assert (tmp_path / "net.png").read_bytes().startswith(b"\x89PNG")
    assert main(["inspect", str(folder / "net.gl"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert sum(facts["kinds"].values()) == facts["gates"]
    assert len(facts["reads_of_feature"]) == 64
    copy = tmp_path / "circuit"
    copy.write_bytes((folder / "net.gl").read_bytes())
    assert main(["inspect", str(copy), "--json", "-o", str(tmp_path / "json.svg")]) == 0
    assert json.loads(capsys.readouterr().out) == facts
    assert (tmp_path / "json.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compile", "none", "-o", "x.gl"], "no checkpoint at none"),
        (["compile", "RUN", "-o", "net.gl", "--lut", "9"], "--lut must be from 3 to 6"),
        (["compile", "RUN", "-o", "NET"], "exists already; use --overwrite"),
        (["run", "none.gl", "digits"], "none.gl"),
        (["run", "NET", "none.npz"], "cannot read none.npz"),
        (["run", "NET", "none.npy"], "cannot read none.npy"),
        (["run", "NET", "column.npz"], "need labels of shape [9], got [9, 1]"),
        (["run", "NET", "one.npz"], "need labels of shape [9], got []"),
        (["run", "NET", "words.npz"], "labels must be whole numbers"),
        (["run", "NET", "many.npz", "--rows", "all"], "labels up to 10, but the circuit only 10 classes"),
        (["run", "NET", "named.npz"], "has the classes"),
        (["run", "NET", "few.npz"], "has labels up to 8, but names only 2 classes"),
        (["run", "NET", "column.npz", "-o", "column.npz", "--overwrite"], "column.npz is the input"),
        (["run", "NET", "digits", "-o", "column.npz"], "exists already; use --overwrite"),
        (["compile", "RUN", "-o", "."], "is a folder, not a file"),
        (["export", "NET", "--to", "aiger", "--name", "../x"], "name must be letters"),
        (["export", "NET", "--to", "blif", "--name", ""], "name must be letters"),
        (["inspect", "NET", "--samples", "5"], "--samples applies to runs"),
        (["inspect", "NET", "-o", "x.txt"], "must end in .png or .svg"),
        (["run", "NET", "bad.npz"], "bad.npz"),
        (["run", "NET", "empty.npz"], "has no array x"),
        (["run", "NET", "digits", "-o", "x.txt"], "must end in .csv or .npz"),
        (["run", "NET", "wide.npz"], "64"),
        (["export", "NET", "--to", "c", "--pipeline", "2"], "--pipeline applies only to --to verilog"),
        (["export", "NET", "--to", "c", "--ascii"], "--ascii applies only to --to aiger"),
        (["export", "NET", "--to", "c", "--name", "a b"], "a b"),
        (
            ["export", "int.gl", "--to", "c"],
            "'int', from the file's name; choose another with --name, such as --name int_net",
        ),
        (["export", "module.gl", "--to", "verilog"], "--name module_net"),
        (["run", "NET", "one.npy"], "holds a single sample; add the batch axis: x[None]"),
        (["run", "NET", "flat.npy"], "a single sample is [1, 64]: pass x[None]"),
        (["run", "NET", "one.npy", "--rows", "test"], "has no test rows: nothing is held out of a file without labels"),
        (["run", "NET", "column.npz", "--rows", "some"], "invalid choice: 'some'"),
        (["export", "NET", "--to", "verilog", "--name", "module"], "module"),
        (["bench", "NET", "--batch", "0"], "must be positive"),
        (["bench", "bad.npz"], "bad.npz"),
        (["inspect", "broken.gl"], "broken.gl"),
    ],
)
@needs_engine
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str],
    message: str,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04 not really")
    (tmp_path / "broken.gl").write_bytes((folder / "net.gl").read_bytes()[:-9])
    x, y = np.zeros((9, 64), np.float32), np.arange(9)
    odd = {"column": y[:, None], "one": np.array(3), "words": y.astype(str), "many": y + 2}
    for name, labels in odd.items():
        np.savez(tmp_path / f"{name}.npz", x=x, y=labels)
    np.savez(tmp_path / "named.npz", x=x, y=y, classes=np.array(list("987654321x")))
    np.savez(tmp_path / "few.npz", x_test=x, y_test=y, classes=np.array(["0", "1"]))
    np.savez(tmp_path / "empty.npz", z=np.zeros(3))
    np.save(tmp_path / "one.npy", np.zeros((8, 8), np.float32))
    np.save(tmp_path / "flat.npy", np.zeros(64, np.float32))
    for name in ("int.gl", "module.gl"):
        shutil.copyfile(folder / "net.gl", tmp_path / name)
    np.savez(tmp_path / "wide.npz", x=np.zeros((3, 65), np.uint8))
    before = {p.name for p in tmp_path.iterdir()}
    places = {"RUN": str(folder / "run"), "NET": str(folder / "net.gl")}
    try:
        code = main([places.get(a, a) for a in arguments])
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else -1
    assert code == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert {p.name for p in tmp_path.iterdir()} == before
