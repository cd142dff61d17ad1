from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatelight.circuit import Circuit, evaluate
from gatelight.circuit.passes import PASSES, Simplified, run_passes, simplify
from gatelight.circuit.passes.netlist import Index, Netlist
from gatelight.circuit.random import layered_circuit


def scores(circuit: Circuit, bits: np.ndarray) -> np.ndarray:
    """By the definition, not by the fast evaluator."""
    return evaluate.group_sums(circuit, evaluate.outputs(circuit, bits))


def build(
    inputs: int, gates: list[tuple[list[int], int]], outputs: list[int], classes: int = 1, bias: int = 0
) -> Circuit:
    """A circuit of (fanins, packed table) pairs."""
    width = max((len(fanin) for fanin, _ in gates), default=0)
    return Circuit(
        inputs=inputs,
        fanin=np.array([f + [-1] * (width - len(f)) for f, _ in gates], np.int32).reshape(len(gates), width),
        arity=np.array([len(fanin) for fanin, _ in gates], np.uint8),
        table=np.array([table for _, table in gates], np.uint64),
        outputs=np.array(outputs, np.int32),
        group_start=np.linspace(0, len(outputs), classes + 1).astype(np.int32),
        bias=np.full(classes, bias, np.int32),
        temperature=1.0,
        features=inputs,
        encoder_feature=np.arange(inputs, dtype=np.int32),
        encoder_threshold=np.full(inputs, 0.5, np.float32),
    )


AND, OR, XOR, NAND, A, NOT_A, B = 0b1000, 0b1110, 0b0110, 0b0111, 0b1100, 0b0011, 0b1010


def check_account(circuit: Circuit, done: Simplified) -> None:
    report = done.report
    assert (report.before, report.after) == (circuit.gates, done.circuit.gates)
    assert report.before - sum(report.removed.values()) == report.after
    assert report.outputs_folded == int((done.folded >= 0).sum())
    assert len(done.origin) + report.outputs_folded == len(circuit.outputs)


@pytest.mark.parametrize("passes", [PASSES, *((name,) for name in PASSES)])
@given(data=st.data())
def test_scores_stay_and_gates_never_grow(
    passes: tuple[str, ...], data: st.DataObject, circuits: Any, every_input: Any
) -> None:
    circuit = data.draw(circuits())
    done = run_passes(circuit, passes)
    bits = every_input(circuit.inputs)
    assert np.array_equal(scores(done.circuit, bits), scores(circuit, bits))
    assert done.circuit.gates <= circuit.gates
    check_account(circuit, done)
    before, after = evaluate.outputs(circuit, bits), evaluate.outputs(done.circuit, bits)
    assert np.array_equal(after, before[:, done.origin])
    folded = done.folded >= 0
    assert (before[:, folded] == done.folded[folded]).all()


@given(data=st.data())
def test_simplify_is_a_fixpoint(data: st.DataObject, circuits: Any) -> None:
    once = simplify(data.draw(circuits())).circuit
    again = simplify(once)
    assert again.circuit.equal(once)
    assert again.report.outputs_folded == again.report.inputs_dropped == 0


@given(data=st.data())
def test_ten_inputs_exhaustively(data: st.DataObject, circuits: Any, every_input: Any) -> None:
    circuit = data.draw(circuits(max_inputs=10, max_gates=25, max_arity=4))
    bits = every_input(circuit.inputs)
    assert np.array_equal(scores(circuit.simplify(), bits), scores(circuit, bits))


def only(circuit: Circuit, *passes: str) -> Circuit:
    return run_passes(circuit, passes).circuit


def test_constants_reach_through_levels() -> None:
    circuit = build(2, [([0, 1], 0), ([2, 0], AND), ([3, 1], OR)], [4])
    done = run_passes(circuit, ("constants", "support"))
    assert done.report.removed["constants"] == 2
    assert done.circuit.arity.tolist() == [1]


def test_chains_of_inverters_vanish() -> None:
    circuit = build(2, [([0], 0b01), ([2], 0b01), ([3], 0b01), ([4, 1], AND)], [5])
    result = only(circuit, "wires")
    assert result.gates == 1
    assert result.table[0] in (0b0010, 0b0100)


def test_inverted_output_is_taken_into_its_gate() -> None:
    circuit = build(3, [([0, 1], AND), ([3], 0b01), ([3, 2], XOR)], [4, 5])
    result = only(circuit, "wires")
    assert result.gates == 2
    assert NAND in result.table


def test_net_put_out_both_ways_keeps_one_inverter() -> None:
    circuit = build(2, [([0, 1], AND), ([0, 1], NAND), ([1, 0], NAND)], [2, 3, 4])
    result = circuit.simplify()
    assert result.gates == 2
    assert result.arity.tolist() == [2, 1]
    assert result.table.tolist() == [AND, 0b01]  # the gate itself stays as it was
    assert result.simplify().equal(result)


def test_negated_inputs_put_out_share_an_inverter() -> None:
    circuit = build(1, [([0], 0b01), ([0], 0b01)], [1, 2])
    assert circuit.simplify().gates == 1


def test_unread_inputs_and_repeated_fanins_are_dropped() -> None:
    circuit = build(3, [([0, 1], A), ([2, 2], AND), ([0, 1, 0], 0b10000000), ([0, 1], AND)], [3, 4, 5, 6])
    done = run_passes(circuit, ("support",))
    assert done.circuit.arity.tolist() == [1, 1, 2, 2]
    assert done.report.inputs_dropped == 3
    assert done.circuit.table[2] == AND


def test_exclusive_or_of_a_net_with_itself_is_constant() -> None:
    done = simplify(build(1, [([0, 0], XOR), ([0, 0], 0b1001)], [1, 2], classes=2, bias=3))
    assert done.circuit.gates == 0
    assert done.circuit.bias.tolist() == [3, 4]
    assert done.folded.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [
        (([0, 1], 0b0010), ([1, 0], 0b0100), True),  # permuted
        (([0, 1], AND), ([0, 1], NAND), True),  # negated
        (([0, 1], 0b0010), ([1, 0], 0b1011), True),  # both
        (([0, 1], 0b0010), ([0, 1], 0b0100), False),
        (([0, 1], AND), ([0, 2], AND), False),
        (([0, 1, 2], 0xE8), ([2, 0, 1], 0xE8), True),  # majority is symmetric
        (([0, 1, 2], 0b01000000), ([2, 0, 1], 0b00001000), True),
        (([0, 1, 2], 0b01000000), ([2, 0, 1], 0b01000000), False),
    ],
)
def test_hashing_up_to_permutation_and_negation(first: Any, second: Any, merged: bool) -> None:
    circuit = build(4, [first, second, ([4, 3], AND), ([5, 3], XOR)], [6, 7])
    done = run_passes(circuit, ("hashing",))
    assert done.report.removed["hashing"] == (1 if merged else 0)


def test_hashing_reaches_through_levels() -> None:
    twins = [([0, 1], AND), ([1, 0], NAND), ([2, 0], OR), ([3, 0], 0b1011), ([4, 1], XOR), ([5, 1], XOR)]
    result = only(build(2, twins, [6, 7]), "hashing")
    assert result.gates == 3
    assert result.outputs[0] == result.outputs[1]


def test_dead_gates_go_and_live_ones_stay() -> None:
    circuit = build(2, [([0, 1], AND), ([2, 0], OR), ([0, 1], XOR), ([4, 4], AND)], [3])
    done = run_passes(circuit, ("dead",))
    assert done.circuit.gates == 2
    assert done.report.removed["dead"] == 2


def test_all_outputs_constant() -> None:
    circuit = build(2, [([], 1), ([], 0), ([0, 1], 0b1111)], [2, 3, 4, 4], classes=2)
    done = simplify(circuit)
    assert (done.circuit.gates, len(done.circuit.outputs)) == (0, 0)
    assert done.circuit.bias.tolist() == [1, 2]
    assert done.circuit.scores(np.zeros((2, 2))).tolist() == [[1, 2], [1, 2]]


def test_outputs_that_are_inputs_and_no_gates() -> None:
    circuit = build(2, [], [0, 1, 1])
    done = simplify(circuit)
    assert done.circuit.equal(circuit)
    assert done.report.rounds == 1
    assert "nothing removed" in str(done.report)


def test_report_reads_well() -> None:
    text = str(simplify(layered_circuit(16, (32, 32, 20), seed=1)).report)
    assert text.startswith("84 -> 19 gates in 3 rounds (constants 18, wires 22, dead 26, outputs -1)")


def test_unknown_pass_and_level_are_refused() -> None:
    circuit = build(1, [], [0])
    with pytest.raises(ValueError, match="got hash"):
        run_passes(circuit, ("hash",))
    with pytest.raises(ValueError, match="level must be 1, 2 or 3, got 4"):
        simplify(circuit, 4)


def test_rules_see_only_levels_that_changed() -> None:
    # A chain of 50 exclusive ors with a tail that reads gate 40 once more.
    chain = [([0, 1], XOR), *(([2 + gate, gate % 2], XOR) for gate in range(49))]
    net = Netlist(build(2, [*chain, ([42, 0], AND)], [51, 52]))
    seen: list[int] = []

    def rule(_: Netlist, gates: Index) -> int:
        seen.extend(gates.tolist())
        return 0

    net.sweep({"rule": rule})
    assert sorted(seen) == list(range(51))
    seen.clear()
    net.sweep({"rule": rule})
    assert seen == []
    net.replace(np.array([40]), 2 * 0)
    net.sweep({"rule": rule})
    # The readers of gate 40 alone; what reads them is as it was. They are seen twice, now and where they go.
    assert sorted(seen) == [41, 50]
    seen.clear()
    net.sweep({"rule": rule})
    assert {40, 49} <= set(seen)
    seen.clear()
    net.sweep({"rule": rule})
    assert seen == []
