"""The figures and claims of the paper.

``framework`` has what every experiment needs, ``paper`` has one file for each figure or table.
An experiment is a list of cells, claims about their results and a figure. A cell is a frozen dataclass whose
``run`` is a pure function of its fields; its result is kept under a hash of them, so nothing is computed twice.
"""
