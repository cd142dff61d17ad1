"""``import gatelight as gl`` is enough, and imports nothing that is not used."""

import subprocess
import sys

import gatelight as gl


def test_names_are_found_and_listed() -> None:
    assert set(gl.__all__) <= set(dir(gl))
    for name in gl.__all__:
        assert getattr(gl, name) is not None
    layer = gl.nn.LogicDense(4, 4, seed=0)
    assert gl.discretize(gl.nn.LogicNetwork(None, [layer], gl.nn.GroupSum(2))).gates == 4
    assert not hasattr(gl, "no_such_name")


def test_names_load_what_they_need_and_no_more() -> None:
    program = """
import sys, gatelight as gl
dir(gl)
assert not any(name.startswith(("torch", "gatelight.")) for name in sys.modules)
gl.Circuit, gl.Engine, gl.export.c, gl.truthtable.names(2), gl.circuit.Circuit
assert "torch" not in sys.modules
gl.nn.LogicDense
assert "torch" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
