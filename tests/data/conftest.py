from __future__ import annotations

import functools
import gzip
import struct
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

ADULT_ROWS = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, "
    "United-States, <=50K",
    "50, Private, 83311, HS-grad, 9, Divorced, Sales, Husband, Black, Female, 0, 5000, 13, Cuba, >50K",
    "20, ?, 83311, HS-grad, 9, Divorced, ?, Husband, Black, Female, 0, 0, 60, Cuba, >50K",
)
CANCER_ROWS = (
    "no-recurrence-events,30-39,premeno,30-34,0-2,no,3,left,left_low,no",
    "recurrence-events,40-49,ge40,20-24,0-2,yes,2,right,right_up,no",
    "no-recurrence-events,40-49,lt40,20-24,0-2,?,2,left,left_low,no",
    "recurrence-events,90-99,ge40,55-59,36-39,yes,1,right,central,yes",
    "no-recurrence-events,10-19,ge40,0-4,3-5,yes,1,left,left_up,yes",
)
MONK_ROWS = (" 1 1 1 1 1 3 1 data_5", " 0 3 2 2 3 4 2 data_6", " 1 2 2 1 2 1 1 data_7")


def idx_bytes(values: NDArray[np.uint8]) -> bytes:
    """The idx file of an array of bytes."""
    return struct.pack(f">BBBB{values.ndim}I", 0, 0, 8, values.ndim, *values.shape) + values.tobytes()


def write_mnist(folder: Path, counts: tuple[int, int] = (6, 3), packed: bool = True) -> None:
    """Four files of an MNIST of random images in a folder."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    for part, count in zip(("train", "t10k"), counts, strict=True):
        arrays = {
            "images-idx3-ubyte": rng.integers(0, 256, (count, 28, 28), np.uint8),
            "labels-idx1-ubyte": (np.arange(count) % 10).astype(np.uint8),
        }
        for name, values in arrays.items():
            data = idx_bytes(values)
            path = folder / f"{part}-{name}{'.gz' if packed else ''}"
            path.write_bytes(gzip.compress(data, mtime=0) if packed else data)


def write_monk(folder: Path, number: int = 1) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for part in ("train", "test"):
        (folder / f"monks-{number}.{part}").write_text("\n".join(MONK_ROWS) + "\n")


def write_adult(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adult.data").write_text("\n".join(ADULT_ROWS) + "\n\n")
    (folder / "adult.test").write_text("|1x3 Cross validator\n" + "\n".join(f"{row}." for row in ADULT_ROWS) + "\n")


def write_cancer(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "breast-cancer.data").write_text("\n".join(CANCER_ROWS) + "\n")


def cifar_records(labels: NDArray[np.uint8], seed: int = 0) -> bytes:
    """CIFAR records with these label bytes [n, 1 or 2] and random images."""
    images = np.random.default_rng(seed).integers(0, 256, (len(labels), 3072), np.uint8)
    return np.concatenate([labels, images], 1).tobytes()


class Makers:
    """The functions above, for tests that cannot import this file by name."""

    adult_rows = ADULT_ROWS
    cancer_rows = CANCER_ROWS
    monk_rows = MONK_ROWS
    idx_bytes = staticmethod(idx_bytes)
    mnist = staticmethod(write_mnist)
    monk = staticmethod(write_monk)
    adult = staticmethod(write_adult)
    cancer = staticmethod(write_cancer)
    cifar_records = staticmethod(cifar_records)


@pytest.fixture(scope="session")
def make() -> Makers:
    return Makers()


@pytest.fixture
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the UCI files have as few rows as those made here."""
    from gatelight.data.sets import uci

    rows = {"adult": len(ADULT_ROWS), "breast": len(CANCER_ROWS), "monks": len(MONK_ROWS)}
    monkeypatch.setattr(uci, "ROWS", {name: rows[name.split("-")[0].split(".")[0]] for name in uci.ROWS})


class Server:
    """A web server for files in memory, whose folders misbehave in the way their name says."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.requests: list[tuple[str, str | None]] = []
        self.base = ""

    def url(self, behaviour: str, name: str) -> str:
        return f"{self.base}/{behaviour}/{name}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    def __init__(self, state: Server, *args: object) -> None:
        self.state = state
        super().__init__(*args)  # type: ignore[arg-type]

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""

    def do_GET(self) -> None:
        _, behaviour, name = self.path.split("/", 2)
        wanted = self.headers.get("Range")
        self.state.requests.append((self.path, wanted))
        if behaviour == "gone" or name not in self.state.files:
            self.send_error(404)
            return
        data = self.state.files[name]
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and behaviour != "no-range" else 0
        if behaviour == "wrong":
            data = bytes(len(data))
        elif behaviour == "more":
            data += b"more"
        elif behaviour == "unsatisfiable" and start:
            self.send_error(416)
            return
        body = data[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if behaviour == "cut":
            body = body[: max(1, len(data) // 3)]
        elif behaviour == "cut-at-once":
            body = b""
        self.wfile.write(body)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    state = Server()
    handler: Callable[..., _Handler] = functools.partial(_Handler, state)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        state.base = f"http://127.0.0.1:{http.server_address[1]}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield state
        http.shutdown()
        thread.join()
