"""Select cases of a test with several parameters that cover each value at least once."""

from collections.abc import Hashable, Iterator, Sequence


def showing_each_value(cases: Sequence[set[Hashable]]) -> Iterator[int]:
    """Numbers of cases that together have all values; each time the one that adds most."""
    left = set().union(*cases)
    while left:
        i = max(range(len(cases)), key=lambda i: len(cases[i] & left))
        left -= cases[i]
        yield i
