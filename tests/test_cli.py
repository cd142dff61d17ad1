import json
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gatelight.cli import main, make_parser
from gatelight.commands.train import _configuration
from gatelight.config import RunConfig, from_flat, to_json

FAST = ["--width", "100", "--layers", "2", "--steps", "20", "--eval-every", "10", "--quiet"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "a"
    assert main(["train", *FAST, "--out", str(folder)]) == 0
    return folder


def test_train_writes_the_run(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = {p.name for p in trained.iterdir()}
    assert names >= {
        "config.json",
        "metrics.jsonl",
        "best.safetensors",
        "last.safetensors",
        "result.json",
        "curves.png",
    }
    config = json.loads((trained / "config.json").read_text())
    assert config["steps"] == 20
    assert config["batch"] == 100
    assert config["lr"] is not None


def test_train_alone_trains_digits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", *FAST[:-1]]) == 0
    out = capsys.readouterr().out
    assert "test accuracy on digits" in out
    assert "run folder: runs/digits-dlgn-S-001" in out
    assert "next: gatelight inspect" in out
    assert "left" in out
    assert main(["train", *FAST]) == 0
    assert (tmp_path / "runs/digits-dlgn-S-002/best.safetensors").exists()


def test_config_repeats_a_run_and_flags_beat_it(trained: Path, tmp_path: Path) -> None:
    config = str(trained / "config.json")
    assert main(["train", "--config", config, "--out", str(tmp_path / "same"), "--quiet"]) == 0
    assert (tmp_path / "same/config.json").read_text() == (trained / "config.json").read_text()
    rows = [(tmp_path / "same/metrics.jsonl"), (trained / "metrics.jsonl")]
    one, two = ([json.loads(line)["loss"] for line in path.read_text().splitlines()] for path in rows)
    assert one == two
    assert main(["train", "--config", config, "--steps", "5", "--out", str(tmp_path / "less"), "--quiet"]) == 0
    assert json.loads((tmp_path / "less/config.json").read_text())["steps"] == 5


def test_eval_inspect_plot(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", str(trained), "--which", "last"]) == 0
    out = capsys.readouterr().out
    result = json.loads((trained / "result.json").read_text())
    assert f"{100 * result['last']['discrete_accuracy']:.2f} %" in out
    assert main(["inspect", str(trained), "-o", str(tmp_path / "i.svg")]) == 0
    out = capsys.readouterr().out
    assert "most common functions" in out
    assert (tmp_path / "i.svg").read_bytes().startswith(b"<?xml")
    assert main(["inspect", str(trained), "--json"]) == 0
    measures = json.loads(capsys.readouterr().out)
    assert len(measures["gradient_norms"]) == 2
    assert main(["plot", str(trained), str(trained), "-o", str(tmp_path / "p.png")]) == 0
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_tensorboard(tmp_path: Path) -> None:
    assert main(["train", *FAST, "--out", str(tmp_path / "run"), "--tensorboard"]) == 0
    assert list((tmp_path / "run").glob("events.out.tfevents*"))


def test_data_and_info(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "list", "--data", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "digits" in out
    assert "missing" in out
    assert main(["data", "check", "digits"]) == 0
    assert main(["info"]) == 0
    assert "torch" in capsys.readouterr().out


def test_own_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.random((80, 6), np.float32)
    np.savez(tmp_path / "mine.npz", x=x, y=(x[:, 0] > 0.5).astype(int))
    out = str(tmp_path / "run")
    assert main(["train", str(tmp_path / "mine.npz"), "--width", "60", "--steps", "10", "--out", out, "--quiet"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "mnits"], "did you mean 'mnist'"),
        (["train", "--size", "XXL"], "unknown size of the digits network 'XXL'"),
        (["train", "--estimator", "sni"], "did you mean 'sin'"),
        (["train", "--init", "residul"], "did you mean 'residual'"),
        (["train", "--width", "107"], "10 classes do not divide the 107 gates"),
        (["train", "--width", "107"], "the nearest width that works is 110"),
        (["train", "--width", "3"], "the nearest width that works is 10"),
        (["train", "--lr", "0"], "lr must be a positive number"),
        (["train", "--steps", "x"], "invalid int value"),
        (["train", "--stepz", "3"], "unknown argument --stepz; did you mean --steps?"),
        (["train", "--resume"], "--resume needs --out"),
        (["train", "--resume", "--out", "none"], "no run at none"),
        (["train", "--config", "none.json"], "no configuration at none.json"),
        (["train", "none.npz"], "none.npz"),
        (["train", "--device", "gpu"], "expected auto, cpu or cuda"),
        (["train", "--threads", "0"], "threads must be at least 1"),
        (["train", "adult", "--data", "none"], "adult"),
        (["train", "--augment", "crpo"], "did you mean 'crop'"),
        (["eval", "none"], "no checkpoint at none"),
        (["inspect", "none"], "no checkpoint at none"),
        (["plot", "none"], "no run at none"),
        (["plot", "none", "-o", "x.bmp"], "must end in .png or .svg"),
        (["data", "get"], "needs the name of a data set"),
        (["data", "check", "mnits"], "did you mean 'mnist'"),
        (["fly"], "invalid choice: 'fly'"),
        ([], "required: COMMAND"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("urllib.request.urlopen", lambda *_a, **_k: (_ for _ in ()).throw(OSError("no network")))
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else -1
    err = capsys.readouterr().err
    assert code == 2
    assert message in err
    assert err.count("\n") == 1
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


def test_existing_run_is_not_overwritten(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {p.name: p.read_bytes() for p in trained.iterdir()}
    assert main(["train", *FAST, "--out", str(trained)]) == 2
    assert "already holds a run" in capsys.readouterr().err
    assert main(["train", "--resume", "--out", str(trained), "--lr", "0.5"]) == 2
    assert "the run has lr" in capsys.readouterr().err
    assert {p.name: p.read_bytes() for p in trained.iterdir()} == before


def test_full_disk_is_one_line_and_keeps_what_was_there(trained: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(trained, folder)
    before = {p.name: p.read_bytes() for p in folder.iterdir()}

    def tiny_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, 5_000))

    arguments = [
        sys.executable,
        "-m",
        "gatelight",
        "train",
        "--resume",
        "--out",
        str(folder),
        "--steps",
        "40",
        "--quiet",
    ]
    done = subprocess.run(arguments, preexec_fn=tiny_files, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "File too large" in done.stderr
    assert done.stderr.count("\n") == 1
    after = {p.name: p.read_bytes() for p in folder.iterdir()}
    assert after.keys() == before.keys()
    assert all(after[name] == before[name] for name in ("best.safetensors", "last.safetensors", "result.json"))
    assert json.loads(after["config.json"])["steps"] == 40


def test_damaged_run_is_refused(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(trained, folder)
    raw = (folder / "last.safetensors").read_bytes()
    (folder / "last.safetensors").write_bytes(raw[:-5])
    assert main(["train", "--resume", "--out", str(folder), "--steps", "30", "--quiet"]) == 2
    assert "truncated" in capsys.readouterr().err
    assert main(["eval", str(folder), "--which", "last"]) == 2
    assert (folder / "last.safetensors").read_bytes() == raw[:-5]


def test_resume_can_go_on_further(trained: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(trained, folder)
    assert main(["train", "--resume", "--out", str(folder), "--steps", "30", "--quiet"]) == 0
    assert json.loads((folder / "result.json").read_text())["last"]["step"] == 30


def test_help_and_import_do_not_load_torch() -> None:
    program = "import sys, gatelight.cli as c; c.make_parser().format_help(); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("command", ["train", "eval", "plot", "inspect", "data", "reproduce", "info"])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    assert "usage: gatelight" in capsys.readouterr().out


def table(path: Path, labels: tuple[str, str] = ("no", "yes"), scale: float = 1.0) -> Path:
    rows = [((i % 2) * scale, (i // 2 % 2) * scale, labels[i % 2]) for i in range(60)]
    path.write_text("a,b,class\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    return path


def test_a_prolonged_run_remembers_its_steps(trained: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    assert main(["train", "--resume", "--out", str(run), "--steps", "40", "--quiet"]) == 0
    assert json.loads((run / "config.json").read_text())["steps"] == 40
    assert json.loads((run / "result.json").read_text())["steps"] == 40
    assert main(["train", "--resume", "--out", str(run), "--quiet"]) == 0
    assert json.loads((run / "result.json").read_text())["steps"] == 40


def test_a_run_does_not_go_on_with_other_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own, run = table(tmp_path / "own.csv"), str(tmp_path / "run")
    assert main(["train", str(own), *FAST, "--out", run]) == 0
    before = (tmp_path / "run/last.safetensors").read_bytes()
    for change in ({"scale": 0.5}, {"labels": ("yes", "zebra")}):
        table(own, **change)
        assert main(["train", "--resume", "--out", run, "--steps", "40", "--quiet"]) == 2
        assert "own has changed" in capsys.readouterr().err
    assert (tmp_path / "run/last.safetensors").read_bytes() == before


def test_eval_refuses_other_classes_and_other_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(tmp_path / "run")
    assert main(["train", str(table(tmp_path / "own.csv")), *FAST, "--out", run]) == 0
    other = table(tmp_path / "other.csv", ("ant", "zebra"))
    assert main(["eval", run, "--dataset", str(other)]) == 2
    assert "line 2, column 'class': unknown class 'ant'; known: no, yes" in capsys.readouterr().err
    np.savez(tmp_path / "other.npz", x=np.eye(2), y=[0, 1], classes=["ant", "zebra"])
    assert main(["eval", run, "--dataset", str(tmp_path / "other.npz")]) == 2
    assert "tells no, yes apart, but other has ant, zebra" in capsys.readouterr().err
    assert main(["eval", run, "--dataset", str(table(tmp_path / "soft.csv", scale=0.5))]) == 2
    assert "the network takes bits" in capsys.readouterr().err
    assert main(["eval", str(tmp_path / "run/last.safetensors")]) == 0
    assert "best" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--thresholds", "0"], "those of digits are not only 0 and 1"),
        (["--parametrization", "op", "--estimator", "sigmoid"], "the parametrization 'op' has no estimator"),
        (["--intervention-value", "one"], "needs an intervention above 0"),
        (["--tree-depth", "4"], "for the model cdlgn"),
        (["--channels-per-tree", "2"], "for the model cdlgn"),
        (["--layers", "1", "--residual-fraction", "0.5"], "needs at least two layers"),
        (["--init-std", "-1"], "init_std must be finite and not negative"),
        (["--init-spread", "nan"], "init_std must be finite and not negative"),
        (["--init-std", "1", "--init-spread", "1"], "init_std and init_spread are two names of one value"),
        (["--init-strength", "inf"], "init_strength must be finite"),
    ],
)
def test_options_that_would_do_nothing_are_refused(
    flags: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *FAST, *flags, "--out", str(tmp_path / "run")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_data_that_gives_the_same_bits_everywhere_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "raw.npz", x=rng.integers(0, 17, (90, 5)), y=rng.integers(0, 2, 90))
    assert main(["train", str(tmp_path / "raw.npz"), *FAST, "--out", str(tmp_path / "run")]) == 2
    assert "all input bits of raw are the same" in capsys.readouterr().err
    flags = ["--encoding", "quantile", "--out", str(tmp_path / "run")]
    assert main(["train", str(tmp_path / "raw.npz"), *FAST, *flags]) == 0


def test_overwriting_forgets_old_events(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    command = ["train", *FAST, "--tensorboard", "--overwrite", "--out", str(tmp_path / "run")]
    for _ in range(2):
        assert main(command) == 0
    assert len(list((tmp_path / "run").glob("events.out.tfevents.*"))) == 1


def test_a_line_that_is_no_evaluation_is_named(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    (run / "metrics.jsonl").write_text('{"step": 3}\n')
    assert main(["plot", str(run)]) == 2
    assert "line 1 is not an evaluation" in capsys.readouterr().err


def test_a_missing_package_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    assert main(["train", *FAST]) == 2
    assert "pip install gatelight[train]" in capsys.readouterr().err


def test_a_flag_that_changes_the_network_takes_its_own_sizes(tmp_path: Path) -> None:
    path = tmp_path / "config.json"

    def configured(base: dict[str, Any], *flags: str) -> tuple[RunConfig, list[str]]:
        path.write_text(to_json(from_flat(base)))
        return _configuration(make_parser().parse_args(["train", "--config", str(path), *flags]))

    digits = {"layers": 4, "width": 100, "temperature": 10.0, "thresholds": 7}
    config, notes = configured(digits, "--seed", "4", "--size", "S")
    model = config.model
    assert (model.width, model.layers, model.thresholds, config.seed) == (100, 4, 7, 4)
    assert not notes
    for flags, changed in ((["mnist"], "dataset"), (["--model", "cdlgn"], "model"), (["--size", "M"], "size")):
        config, notes = configured(digits, *flags, "--temperature", "3")
        model = config.model
        # The width was not the size's, so it was asked for and stays.
        assert (model.width, model.layers, model.thresholds, model.temperature) == (100, None, None, 3.0)
        assert notes == [f"layers, thresholds: not those of {path}, as {changed} is another here"]
    own = digits | {"dataset": "mine.csv", "width": 2002, "thresholds": 3}
    model = configured(own, "--size", "M")[0].model
    assert (model.width, model.layers, model.thresholds, model.temperature) == (None, None, None, None)
    wide = own | {"dataset": "cifar100", "width": 12_000, "temperature": 1 / 0.03, "wide_head": True}
    assert configured(wide, "--no-wide-head")[0].model.width is None


def test_resume_takes_options_that_the_run_has(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    same = ["--thresholds", "7", "--temperature", "10", "--layers", "2", "--width", "100", "--batch", "100"]
    assert main(["train", "--resume", "--out", str(run), "--quiet", *same]) == 0
    assert main(["train", "--resume", "--out", str(run), "--quiet", "--thresholds", "3"]) == 2
    assert "--resume: the run has thresholds 7, not 3" in capsys.readouterr().err


def test_an_option_of_an_older_name_works_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = [*FAST[:-1], "--steps", "1"]
    assert main(["train", *flags, "--init-spread", "0.5", "--out", str(tmp_path / "old")]) == 0
    assert "--init-spread is deprecated: it is --init-std now\n" in capsys.readouterr().out
    assert main(["train", *flags, "--init-std", "0.5", "--out", str(tmp_path / "new")]) == 0
    assert "deprecated" not in capsys.readouterr().out
    old, new = ((tmp_path / name / "config.json").read_text() for name in ("old", "new"))
    assert old == new
    assert json.loads(new)["init_spread"] == 0.5
    assert "init_std" not in json.loads(new)
