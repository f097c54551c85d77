"""Sliders and choices: what a reader can set, and the names of its values. All chapters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Of a list, the control's format makes the names.
Values = Sequence[Any] | Mapping[str, Any]
# The theme's script sets the search field of this name on every page, and would empty a control.
SEARCH_FIELD = "q"


@dataclass(frozen=True)
class Control:
    """What ``Slider`` and ``Choice`` have in common.

    Parameters
    ----------
    label : str
        What the values are, in the reader's words.
    values : sequence, or mapping from name to value
        A finite list: the page without a kernel holds one frame for each.
    format : callable, default=str
        Writes a value as its name, where the names are not given.
    start : int, default=0
        Position of the value that is shown first.

    Raises
    ------
    ValueError
        If there are no values, two share a name, or ``start`` is not a position.
    """

    label: str
    values: Values
    format: Callable[[Any], str] = str
    start: int = 0

    def __post_init__(self) -> None:
        names = self.names
        if not names:
            raise ValueError(f"the control {self.label!r} has no values: give it at least one")
        twins = [name for name in names if names.count(name) > 1]
        if twins:
            raise ValueError(
                f"two values of the control {self.label!r} are called {twins[0]!r}: a format with "
                "more digits, or a mapping from names to values, tells them apart"
            )
        if not 0 <= self.start < len(names):
            raise ValueError(
                f"start={self.start} is no position among the {len(names)} values of the control "
                f"{self.label!r}: the first is 0"
            )

    @property
    def names(self) -> list[str]:
        """How the page writes each value."""
        return [name for name, _ in self._named(self.values)]

    @property
    def options(self) -> dict[str, Any]:
        """Name and value of what each frame can show."""
        return dict(self._named(self.values))

    @property
    def live_options(self) -> dict[str, Any]:
        """Name and value of what a reader with a kernel can choose."""
        return self.options

    def _named(self, values: Values) -> list[tuple[str, Any]]:
        """Each value with the name that is given, or that the format makes."""
        if isinstance(values, Mapping):
            return list(values.items())
        return [(self.format(value), value) for value in values]


@dataclass(frozen=True)
class Slider(Control):
    """A control whose values have an order.

    Parameters
    ----------
    label, values, format, start
        As for every ``Control``.
    live : sequence or mapping, optional
        A finer list, for readers with a kernel; it must contain the value that is shown first.
    button : str, optional
        Text of a button that goes to the next value, and from the last one to the first.

    Raises
    ------
    ValueError
        As for every ``Control``, or if ``live`` lacks the first value shown.

    Examples
    --------
    >>> Slider("noise", [0.0, 0.15, 0.3], format="{:.2f}".format).names
    ['0.00', '0.15', '0.30']
    """

    live: Values | None = None
    button: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.names[self.start] not in self.live_options:
            raise ValueError(
                f"the live values of the slider {self.label!r} lack {self.names[self.start]!r}, "
                "which is shown first: add it to them, or change start"
            )

    @property
    def live_options(self) -> dict[str, Any]:
        """Name and value of what a reader with a kernel can choose."""
        return self.options if self.live is None else dict(self._named(self.live))


@dataclass(frozen=True)
class Choice(Control):
    """A control whose values have no order: one radio button each.

    Parameters
    ----------
    label, values, format, start
        As for every ``Control``.

    Examples
    --------
    >>> Choice("start", {"far left": -9.0, "in the middle": 0.0}).names
    ['far left', 'in the middle']
    """


def check_controls(controls: Mapping[str, Control], *functions: Callable[..., Any]) -> None:
    """Require controls by names that may be used, and functions that take exactly these."""
    for name, control in controls.items():
        if not isinstance(control, Control):
            raise ValueError(f"the control {name!r} is {control!r}: give a Slider or a Choice")
        if name == SEARCH_FIELD:
            raise ValueError(
                f"a control cannot be called {name!r}: the page's search field has that name, and "
                "would empty it. Give it a longer one."
            )
    if not controls:
        raise ValueError("an explorer without controls is a figure: give at least one control")
    for function in functions:
        try:
            inspect.signature(function).bind(**controls)
        except TypeError as error:
            raise ValueError(
                f"{getattr(function, '__name__', function)} does not take the controls "
                f"{list(controls)} ({error}): name the controls like its arguments"
            ) from error
