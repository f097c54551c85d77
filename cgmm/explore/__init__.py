"""Explorers: figures with sliders, for notebooks with a kernel and for pages without one.

An explorer draws the figure for every combination of its controls' values. With a kernel, Jupyter
shows sliders that call the drawing function. Without a kernel (in the rendered book or a saved
notebook) the figures are frames inside the page, selected by native sliders and a short script.
Without scripts the page still shows the first frame and the sentence that describes it.

:class:`InterviewWidget` asks a person the questions of :class:`cgmm.decide.Interview` in a
notebook; ``python -m cgmm ask`` (``ask.py``) does so without one.

===========  ===================================================================
control      a slider or a choice, each of whose values has a name
combination  one value per control, given by its name, e.g. ("0.15", "far left")
frame        the picture of one combination, and the sentence that says what it shows
===========  ===================================================================
"""

from cgmm.explore.controls import Choice, Control, Slider
from cgmm.explore.explorer import Explorer
from cgmm.explore.interview_widget import InterviewWidget
from cgmm.explore.live import LiveFigure
from cgmm.explore.listing import Source, source

__all__ = [
    "Choice", "Control", "Explorer", "InterviewWidget", "LiveFigure", "Slider", "Source", "source",
]  # fmt: skip
