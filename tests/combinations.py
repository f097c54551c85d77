"""Select cases of a test with several parameters that cover each value at least once."""

from collections.abc import Hashable, Iterator, Sequence


def showing_each_value(cases: Sequence[set[Hashable]]) -> Iterator[int]:
    """Return numbers of cases that together cover all values, chosen greedily."""
    left = set().union(*cases)
    while left:
        i = max(range(len(cases)), key=lambda i: len(cases[i] & left))
        left -= cases[i]
        yield i
