"""Formats are found by listing the folder: one file each, options included."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gatelight import cli, export
from gatelight.circuit.random import layered_circuit

CIRCUIT = layered_circuit(8, (12, 8), classes=2)


def test_every_format_is_a_function_and_writes_files() -> None:
    for name, known in export.FORMATS.items():
        assert name == known.name
        assert getattr(export, name) is known.function
        files = export.files(CIRCUIT, name, "some")
        assert f"some{known.suffix}" in files
        assert all(file.startswith("some") for file in files)
        assert known.description == known.description.strip().rstrip(".")


def test_files_hold_what_the_functions_return() -> None:
    assert export.files(CIRCUIT, "blif", "some") == {"some.blif": export.blif(CIRCUIT, "some").encode()}
    assert export.files(CIRCUIT, "aiger", "some") == {"some.aig": export.aiger(CIRCUIT)}
    assert export.files(CIRCUIT, "aiger", "some", ascii=True) == {"some.aag": export.aiger(CIRCUIT, ascii=True)}
    assert export.files(CIRCUIT, "c") == {file: text.encode() for file, text in export.c(CIRCUIT).items()}
    pipelined = export.files(CIRCUIT, "verilog", "some", pipeline=1)
    assert pipelined["some.v"].decode() == export.verilog(CIRCUIT, "some", pipeline=1)
    assert b"module some_tb;" in pipelined["some_tb.v"]


def test_unknown_formats_and_options_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown export format 'verilgo'; did you mean 'verilog'"):
        export.files(CIRCUIT, "verilgo")
    with pytest.raises(ValueError, match="unknown option of C 'pipeline'"):
        export.files(CIRCUIT, "c", pipeline=2)


def test_a_new_format_is_one_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "counts.py").write_text(
        "from gatelight.export.format import Format, Option\n"
        "def counts(circuit, twice=False):\n"
        "    return str(circuit.gates * (1 + twice))\n"
        "def files(circuit, name, twice=False):\n"
        "    return {f'{name}.txt': counts(circuit, twice).encode()}\n"
        "twice = Option('twice', False, 'count twice')\n"
        "FORMAT = Format('counts', 'counts', 'the number of gates', '.txt', counts, files, (twice,))\n"
    )
    monkeypatch.setattr(export, "__path__", [*export.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "gatelight.export.counts", raising=False)
    formats = export._find_formats()
    monkeypatch.setattr(export, "FORMATS", formats)
    CIRCUIT.save(tmp_path / "net.gl")
    assert cli.main(["export", str(tmp_path / "net.gl"), "--to", "counts", "--twice", "-o", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out/net.txt").read_text() == "40"
    assert cli.main(["export", str(tmp_path / "net.gl"), "--to", "c", "--twice"]) == 2
    assert "--twice applies only to --to counts" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["export", "--help"])
    assert "counts: the number of gates" in " ".join(capsys.readouterr().out.split())
