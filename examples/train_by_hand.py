"""A network and a training loop of your own, from pixels to the labels of a circuit.

Run it: python examples/train_by_hand.py
"""

import torch
from torch import nn

import gatelight as gl


def main() -> None:
    """Train on the digits of scikit-learn, 8 x 8 pixels each."""
    digits = gl.data.load("digits")
    x, y = torch.from_numpy(digits.train.x).flatten(1), torch.from_numpy(digits.train.y)
    net = nn.Sequential(
        gl.nn.Thermometer.even(3),  # three bits for each pixel
        gl.nn.LogicDense(192, 1000, seed=0),
        gl.nn.LogicDense(1000, 1000, seed=1),
        gl.nn.GroupSum(10, temperature=5.0),
    )
    fast = gl.nn.fuse(net)  # the same layers, computed as one op
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
    for step in range(100):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(fast(x), y)
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step:3d}: loss {loss.item():.3f}")
    circuit = gl.discretize(net).simplify()  # rounded, and compared with the model
    labels = circuit.predict(digits.test.x.reshape(-1, 64))
    print(f"{circuit}: {(labels == digits.test.y).mean():.1%} of the test digits right")


if __name__ == "__main__":
    main()
