from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gatelight import data
from gatelight.cli import main
from gatelight.data import catalog, sets
from gatelight.data.fetch import Remote
from gatelight.data.source import Source
from gatelight.data.task import Task
from gatelight.listing import values_in


def test_names() -> None:
    assert data.names()[:11] == (
        "digits",
        "mnist",
        "mnist20",
        "fashion-mnist",
        "cifar10",
        "cifar100",
        "adult",
        "breast-cancer",
        "monk1",
        "monk2",
        "monk3",
    )


def test_a_data_set_is_one_file(tmp_path: Path) -> None:
    (tmp_path / "stripes.py").write_text(
        "from gatelight.data.source import Source\n"
        "from gatelight.data.task import Task\n"
        "STRIPES = Source('stripes', Task((4,), 2, binary=True), 'stripes', load=None)\n"
    )
    made = subprocess.run(
        [
            sys.executable,
            "-c",
            "import importlib, sys; from gatelight.data import catalog, names, sets\n"
            "sets.__path__.append(sys.argv[1]); importlib.reload(catalog)\n"
            "from gatelight import models\n"
            "print(names()[-1], models.build('stripes', width=10, seed=0).gates)",
            str(tmp_path),
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    assert made.stdout == "stripes 40\n"


def test_names_are_declared_once() -> None:
    declared = [source.name for source in values_in(sets, Source)]
    assert sorted(declared) == sorted(data.names())


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("minst", "did you mean 'mnist'"),
        ("MONK2", "did you mean 'monk2'"),
        ("cifar-10", "did you mean 'cifar10'"),
        ("imagenet22k", "known are digits, mnist"),
        ("", "known are digits"),
        ("table.parquet", "path of an .npz or .csv file"),
    ],
)
def test_an_unknown_name_gets_a_hint(name: str, hint: str) -> None:
    for function in (data.load, data.check, data.get):
        with pytest.raises(ValueError, match=hint):
            function(name)


def test_load_from_a_folder(tmp_path: Path, make: Any, few_rows: None, monkeypatch: pytest.MonkeyPatch) -> None:
    make.monk(tmp_path / "uci", 3)
    assert data.load("monk3", tmp_path, download=False).name == "monk3"
    assert data.load("monk3", str(tmp_path), download=False).name == "monk3"
    monkeypatch.setenv("GATELIGHT_DATA", str(tmp_path))
    assert data.load("monk3", download=False).name == "monk3"
    with pytest.raises(ValueError, match=r"monks-1\.train is missing in .*archive\.ics\.uci\.edu"):
        data.load("monk1", download=False)


def test_load_of_own_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "own.npz", x=np.eye(6), y=np.arange(6) % 2)
    assert data.load(str(tmp_path / "own.npz")).binary
    (tmp_path / "own.CSV").write_text("a,label\n1,x\n0,y\n")
    assert data.load(str(tmp_path / "own.CSV")).classes == ("x", "y")
    with pytest.raises(ValueError, match=r"cannot read .*none\.npz: No such file"):
        data.load(str(tmp_path / "none.npz"))


def test_every_loader_loads_what_its_name_says(
    tmp_path: Path, make: Any, few_rows: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    make.mnist(tmp_path / "mnist")
    make.mnist(tmp_path / "fashion-mnist")
    make.adult(tmp_path / "uci")
    make.cancer(tmp_path / "uci")
    for number in (1, 2, 3):
        make.monk(tmp_path / "uci", number)
    for name in data.names():
        if not name.startswith("cifar"):
            loaded = data.load(name, tmp_path, download=False)
            assert loaded.name == name
            assert catalog.task(name) == Task(tuple(loaded.input_shape), loaded.num_classes, loaded.binary)
    states = {row.name: row.state for row in data.available(tmp_path)}
    assert states == {name: "missing" if name.startswith("cifar") else "present" for name in data.names()}


def test_status_of_present_missing_and_damaged(tmp_path: Path, make: Any) -> None:
    make.mnist(tmp_path / "mnist")
    path = tmp_path / "mnist/train-images-idx3-ubyte.gz"
    assert data.check("mnist", tmp_path).state == "present"
    path.write_bytes(path.read_bytes()[:-9])
    damaged = data.check("mnist", tmp_path)
    assert (damaged.state, damaged.path) == ("damaged", path)
    assert "train-images" in damaged.detail
    assert data.check("mnist", tmp_path, deep=False).state == "present"
    missing = data.check("cifar10", tmp_path)
    assert missing.state == "missing"
    assert missing.path == tmp_path / "cifar-10-batches-bin/data_batch_1.bin"
    assert "cifar-10-binary.tar.gz" in missing.detail
    assert [row.name for row in data.available(tmp_path, deep=False)] == list(data.names())


def test_get_fetches_and_checks(
    server: Any,
    tmp_path: Path,
    make: Any,
    few_rows: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import hashlib

    make.monk(tmp_path / "origin", 1)
    remotes = []
    for part in ("train", "test"):
        name = f"monks-1.{part}"
        content = (tmp_path / "origin" / name).read_bytes()
        server.files[name] = content
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        remotes.append(Remote(f"uci/{name}", (server.url("ok", name),), digest, len(content)))
    monkeypatch.setitem(catalog.SOURCES, "monk1", dataclasses.replace(catalog.SOURCES["monk1"], files=tuple(remotes)))
    folder = tmp_path / "data"
    assert data.get("monk1", folder).state == "present"
    (folder / "uci/monks-1.test").write_text("rubbish")
    assert data.get("monk1", folder).state == "damaged"
    assert data.get("monk1", folder, replace=True).state == "present"
    path = folder / "uci/monks-1.train"
    path.write_text("".join(sorted(path.read_text().splitlines(keepends=True), reverse=True)))
    assert data.check("monk1", folder).detail == "differs from the published file: monks-1.train"
    (folder / "uci/monks-1.test").write_text("rubbish")
    assert main(["data", "check", "monk1", "--data", str(folder)]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "monk1 is damaged: " in said
    assert main(["data", "get", "monk1", "--data", str(folder)]) == 0
    assert data.check("monk1", folder).detail == ""
    seen: list[str] = []
    assert data.load("monk1", tmp_path / "other", progress=lambda *call: seen.append(call[0])).name == "monk1"
    assert seen == ["uci/monks-1.train", "uci/monks-1.test"]


def test_loaders_do_not_import_torch() -> None:
    code = "import sys, gatelight.data as d; d.names(); sys.exit('torch' in sys.modules or 'sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_remote_is_pinned() -> None:
    for source in catalog.SOURCES.values():
        for remote in source.files:
            kind, _, digest = remote.digest.partition(":")
            assert len(digest) == {"sha256": 64, "md5": 32}[kind]
            assert remote.size > 0
            assert len(remote.urls) >= 2
            assert all(url.startswith("http") for url in remote.urls)
            assert all(len(member.md5) == 32 for member in remote.members)
