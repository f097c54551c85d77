"""Explorers: figures with sliders, live with a kernel and as precomputed frames in a static page."""

from cgmm.explore.controls import Choice, Control, Slider
from cgmm.explore.explorer import Explorer
from cgmm.explore.listing import Source, source

__all__ = [
    "Choice",
    "Control",
    "Explorer",
    "Slider",
    "Source",
    "source",
]
