"""Select a small number of a test's cases that together contain each value of each parameter."""

from collections.abc import Hashable, Iterator, Sequence


def select_covering_cases(cases: Sequence[set[Hashable]]) -> Iterator[int]:
    """Yield the indices of cases that together contain all values, chosen greedily."""
    missing = set().union(*cases)
    while missing:
        i = max(range(len(cases)), key=lambda i: len(cases[i] & missing))
        missing -= cases[i]
        yield i
