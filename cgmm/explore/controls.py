"""Sliders and choices, the controls of an explorer, with the names of their values.

Chapters create them for :class:`~cgmm.explore.Explorer`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# For a list, names come from ``Control.format``.
Values = Sequence[Any] | Mapping[str, Any]
# The script of the theme sets the fields of this name on every page, and would clear a control.
SEARCH_FIELD = "q"


@dataclass(frozen=True)
class Control:
    """Base of ``Slider`` and ``Choice``.

    Parameters
    ----------
    label : str
        Description of the values for readers.
    values : sequence, or mapping from name to value
        A finite list: the page without a kernel holds one frame for each.
    format : callable, default=str
        Function that writes a value as its name, if ``values`` is a sequence.
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
        """Names of the values, as the page shows them."""
        return [name for name, _ in self._name_values(self.values)]

    @property
    def options(self) -> dict[str, Any]:
        """Values that frames can show, by name."""
        return dict(self._name_values(self.values))

    @property
    def live_options(self) -> dict[str, Any]:
        """Values that readers with a kernel can choose, by name."""
        return self.options

    def _name_values(self, values: Values) -> list[tuple[str, Any]]:
        """Return each value with its name, which is given or written by the format."""
        if isinstance(values, Mapping):
            return list(values.items())
        return [(self.format(value), value) for value in values]


@dataclass(frozen=True)
class Slider(Control):
    """A control whose values have an order.

    Parameters
    ----------
    label, values, format, start
        As in ``Control``.
    live : sequence or mapping, optional
        A finer list for readers with a kernel; it must contain the value that is shown first.
    button : str, optional
        Text of a button that goes to the next value, and from the last one to the first.

    Raises
    ------
    ValueError
        As in ``Control``, or if ``live`` lacks the first value shown.

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
        """Values that readers with a kernel can choose, by name."""
        return self.options if self.live is None else dict(self._name_values(self.live))


@dataclass(frozen=True)
class Choice(Control):
    """A control whose values have no order, shown as radio buttons.

    Parameters
    ----------
    label, values, format, start
        As in ``Control``.

    Examples
    --------
    >>> Choice("start", {"far left": -9.0, "in the middle": 0.0}).names
    ['far left', 'in the middle']
    """


def check_controls(controls: Mapping[str, Control], *functions: Callable[..., Any]) -> None:
    """Raise an error unless the names are allowed and the functions take exactly these controls."""
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
