"""Three data sets of the UCI archive as one-hot bits: Adult, breast cancer (Ljubljana) and the MONK's problems.

Each attribute becomes one bit for each of its published values, so the counts are those of the earlier work on
logic gate networks: 116 for Adult, 51 for breast cancer, 17 for MONK.

Adult: its eight categorical attributes give 8 + 16 + 7 + 14 + 6 + 5 + 2 + 41 = 99 bits; age, capital gain,
capital loss and hours per week are cut into 5 + 3 + 3 + 6 ranges, 17 bits; the sampling weight (fnlwgt) and
education-num (another spelling of education) are left out. In the earlier code the bits for hours per week stay
0 by mistake; here they are set. Rows with an unknown value ("?") are left out in both splits, as its authors do:
30,162 rows to train, 15,060 to test.

Breast cancer: 9 + 3 + 12 + 13 + 2 + 3 + 2 + 5 + 2 = 51 bits. The 9 rows with an unknown value are left out. There
is no official split; 70 of the 277 rows are the test split, the same ones as in the earlier work: the first quarter
of a permutation by numpy's RandomState(0).

MONK: 3 + 3 + 2 + 3 + 4 + 2 = 17 bits, official splits; the test split is all 432 combinations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gatelight.data.dataset import Dataset, Split
from gatelight.data.fetch import Remote
from gatelight.data.source import Source
from gatelight.data.task import Task
from gatelight.files import read_limited

#: One host, by two protocols: no other site is known to publish the same bytes. The checksum makes plain HTTP safe.
_HOMES = (
    "https://archive.ics.uci.edu/ml/machine-learning-databases",
    "http://archive.ics.uci.edu/ml/machine-learning-databases",
)


def _remote(name: str, folder: str, size: int, sha256: str) -> Remote:
    urls = tuple(f"{home}/{folder}/{name}" for home in _HOMES)
    return Remote(f"uci/{name}", urls, f"sha256:{sha256}", size)


ADULT_FILES = (
    _remote("adult.data", "adult", 3_974_305, "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"),
    _remote("adult.test", "adult", 2_003_153, "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05"),
)
CANCER_FILES = (
    _remote(
        "breast-cancer.data",
        "breast-cancer",
        18_654,
        "ca7d3fa97b62ff967b6894ffbb3acaaf4a51062e0149e5950b3ad6f685970b65",
    ),
)
MONK_FILES = {
    number: tuple(
        _remote(f"monks-{number}.{part}", "monks-problems", size, sha256)
        for part, size, sha256 in (("train", *train), ("test", 10_260, test))
    )
    for number, train, test in (
        (
            1,
            (2_947, "d9c328b6f0e095ab10f7bc8468f1d2141f3d08be73e665c3bf0a62994c922606"),
            "e501ada3b21d876ab86f3e1614747bd2edc443a685f229a25e480aa1dea629f6",
        ),
        (
            2,
            (4_013, "7ebcc278005737caad0cd52e6aa31256a2c3174da8047faf4ac3a9d35edbdaa8"),
            "945650affde377c27f6218c8b17893e339ea831f4bee9f9d7123020699cfbf40",
        ),
        (
            3,
            (2_886, "726f258f80be06af4bb2d8831789514a663f5813e47429211fe19dcd367966f8"),
            "1d816ae7347afaf895050667adc3f382904c6ed2332d0a2d09353f5e6cb54612",
        ),
    )
}

#: How many rows each file has; nothing else reveals a file that was cut at the end of a line.
ROWS = {
    "adult.data": 32_561, "adult.test": 16_281, "breast-cancer.data": 286,
    "monks-1.train": 124, "monks-2.train": 169, "monks-3.train": 122,
    "monks-1.test": 432, "monks-2.test": 432, "monks-3.test": 432,
}  # fmt: skip

_MAX_BYTES = 1 << 26
_UNKNOWN = "?"


@dataclass(frozen=True)
class Column:
    """How one value of a row becomes bits.

    Attributes:
        name: The attribute.
        options: The names of its bits.
        cuts: () if the value is one of the options; else the whole number v is in range i if
            ``cuts[i - 1] <= v < cuts[i]``, and the options name the ranges.
    """

    name: str
    options: tuple[str, ...]
    cuts: tuple[int, ...] = ()


def _ranges(name: str, *cuts: int) -> Column:
    middle = (f"{low}-{high - 1}" for low, high in pairwise(cuts))
    return Column(name, (f"<{cuts[0]}", *middle, f">={cuts[-1]}"), cuts)


def _one_of(name: str, options: str) -> Column:
    return Column(name, tuple(options.split()))


_IGNORED = Column("", ())

_ADULT = (
    _ranges("age", 21, 30, 45, 60),
    _one_of(
        "workclass",
        "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay Never-worked",
    ),
    _IGNORED,
    _one_of(
        "education",
        "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th 12th Masters 1st-4th "
        "10th Doctorate 5th-6th Preschool",
    ),
    _IGNORED,
    _one_of(
        "marital-status",
        "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent Married-AF-spouse",
    ),
    _one_of(
        "occupation",
        "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty Handlers-cleaners "
        "Machine-op-inspct Adm-clerical Farming-fishing Transport-moving Priv-house-serv Protective-serv "
        "Armed-Forces",
    ),
    _one_of("relationship", "Wife Own-child Husband Not-in-family Other-relative Unmarried"),
    _one_of("race", "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black"),
    _one_of("sex", "Female Male"),
    _ranges("capital-gain", 1, 5_000),
    _ranges("capital-loss", 1, 5_000),
    _ranges("hours-per-week", 1, 13, 26, 41, 60),
    _one_of(
        "native-country",
        "United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) India Japan Greece "
        "South China Cuba Iran Honduras Philippines Italy Poland Jamaica Vietnam Mexico Portugal Ireland France "
        "Dominican-Republic Laos Ecuador Taiwan Haiti Columbia Hungary Guatemala Nicaragua Scotland Thailand "
        "Yugoslavia El-Salvador Trinadad&Tobago Peru Hong Holand-Netherlands",
    ),
)

_CANCER = (
    _one_of("age", "10-19 20-29 30-39 40-49 50-59 60-69 70-79 80-89 90-99"),
    _one_of("menopause", "lt40 ge40 premeno"),
    _one_of("tumor-size", "0-4 5-9 10-14 15-19 20-24 25-29 30-34 35-39 40-44 45-49 50-54 55-59"),
    _one_of("inv-nodes", "0-2 3-5 6-8 9-11 12-14 15-17 18-20 21-23 24-26 27-29 30-32 33-35 36-39"),
    _one_of("node-caps", "yes no"),
    _one_of("deg-malig", "1 2 3"),
    _one_of("breast", "left right"),
    _one_of("breast-quad", "left_up left_low right_up right_low central"),
    _one_of("irradiat", "yes no"),
)

_MONK = tuple(
    _one_of(f"a{i + 1}", " ".join(str(v + 1) for v in range(values))) for i, values in enumerate((3, 3, 2, 3, 4, 2))
)


def load_adult(folder: Path) -> Dataset:
    """Adult: does a person earn more than 50,000 dollars a year? float32 [n, 116] bits."""
    classes = ("<=50K", ">50K")
    train, test = (_encode(folder / remote.path, _ADULT, classes, _comma_separated, label=-1) for remote in ADULT_FILES)
    return Dataset("adult", train, test, classes, _bit_names(_ADULT), binary=True)


def load_cancer(folder: Path) -> Dataset:
    """Breast cancer (Ljubljana): did it come back? float32 [n, 51] bits."""
    classes = ("no-recurrence-events", "recurrence-events")
    rows = _encode(folder / CANCER_FILES[0].path, _CANCER, classes, _comma_separated, label=0)
    order = np.random.RandomState(0).permutation(len(rows))
    held = -(-len(rows) // 4)
    test, train = (Split(rows.x[part], rows.y[part]) for part in (order[:held], order[held:]))
    return Dataset("breast-cancer", train, test, classes, _bit_names(_CANCER), binary=True)


def load_monk(folder: Path, number: int) -> Dataset:
    """The MONK's problem 1, 2 or 3: a rule about six attributes, float32 [n, 17] bits."""
    classes = ("0", "1")
    train, test = (
        _encode(folder / remote.path, _MONK, classes, _space_separated, label=0) for remote in MONK_FILES[number]
    )
    return Dataset(f"monk{number}", train, test, classes, _bit_names(_MONK), binary=True)


def _bit_names(columns: Sequence[Column]) -> tuple[str, ...]:
    return tuple(
        f"{column.name}{'' if column.cuts and option[0] in '<>' else '='}{option}"
        for column in columns
        for option in column.options
    )


def _comma_separated(line: str) -> list[str]:
    # adult.test ends its lines with a full stop
    return [value.strip() for value in line.removesuffix(".").split(",")]


def _space_separated(line: str) -> list[str]:
    # the last word names the row
    return line.split()[:-1]


def _encode(
    path: Path,
    columns: Sequence[Column],
    classes: tuple[str, ...],
    values_of: Callable[[str], list[str]],
    label: int,
) -> Split:
    """Read a file of rows as one-hot bits; rows with an unknown value are checked for length and left out."""
    width = sum(len(column.options) for column in columns)
    place = []
    start = 0
    for column in columns:
        place.append({option: start + i for i, option in enumerate(column.options)})
        start += len(column.options)
    number_of_class = {name: i for i, name in enumerate(classes)}

    ones: list[list[int]] = []
    labels: list[int] = []
    count = 0
    for number, line in _lines(path):
        count += 1
        values = values_of(line)
        if len(values) != len(columns) + 1:
            raise ValueError(f"{path}, line {number}: {len(values)} values, expected {len(columns) + 1}")
        name = values.pop(label)
        if name not in number_of_class:
            raise ValueError(f"{path}, line {number}: class {name[:40]!r}, expected one of {', '.join(classes)}")
        if _UNKNOWN in values:
            continue
        bits = []
        for column, value, bit in zip(columns, values, place, strict=True):
            if column.cuts:
                if not (value.isascii() and value.isdigit() and len(value) < 10):
                    raise ValueError(f"{path}, line {number}: {column.name} {value[:40]!r} is not a whole number")
                reached = sum(int(value) >= cut for cut in column.cuts)
                bits.append(bit[column.options[reached]])
            elif column.options:
                if value not in bit:
                    raise ValueError(f"{path}, line {number}: {column.name} {value[:40]!r} is not a known value")
                bits.append(bit[value])
        ones.append(bits)
        labels.append(number_of_class[name])
    if count != ROWS[path.name]:
        raise ValueError(f"{path}: damaged: {count} rows, expected {ROWS[path.name]}")
    return Split(_one_hot(ones, width), np.array(labels, np.int64))


def _one_hot(ones: list[list[int]], width: int) -> NDArray[np.float32]:
    x = np.zeros((len(ones), width), np.float32)
    if ones:
        np.put_along_axis(x, np.array(ones, np.int64), 1.0, axis=1)
    return x


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines with data and their numbers; blank ones and remarks (after "|") are skipped."""
    data = read_limited(path, _MAX_BYTES, ", far too large for this data set")
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: damaged: byte {error.start} is not text") from error
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if stripped and not stripped.startswith("|"):
            yield number, stripped


ADULT = Source(
    name="adult",
    task=Task((116,), 2, binary=True),
    description="income of adults, 116 bits",
    load=load_adult,
    files=ADULT_FILES,
    place=40,
)
BREAST_CANCER = Source(
    name="breast-cancer",
    task=Task((51,), 2, binary=True),
    description="breast cancer (Ljubljana), 51 bits",
    load=load_cancer,
    files=CANCER_FILES,
    place=40,
)


def _monk(number: int) -> Source:
    return Source(
        name=f"monk{number}",
        task=Task((17,), 2, binary=True),
        description=f"the MONK's problem {number}, 17 bits",
        load=partial(load_monk, number=number),
        files=MONK_FILES[number],
        place=40,
    )


MONK1, MONK2, MONK3 = map(_monk, (1, 2, 3))
