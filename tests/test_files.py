from __future__ import annotations

from pathlib import Path

import pytest

from gatelight.files import read_limited


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "some.txt"
    path.write_bytes(b"12345")
    assert read_limited(path, 5, "") == b"12345"
    with pytest.raises(ValueError, match=r"some\.txt: more than 4 bytes; split it"):
        read_limited(path, 4, "; split it")
    with pytest.raises(ValueError, match=r"cannot read .*: Is a directory"):
        read_limited(tmp_path, 4, "")
