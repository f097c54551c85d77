"""Provide interactive figures and interviews, for notebooks with a kernel and for static pages.

An explorer draws a figure for every combination of its controls' values. With a kernel, Jupyter
shows sliders that call the drawing function. Without a kernel (in the rendered book or a saved
notebook) all figures are frames inside the page, selected by native sliders and a short script. If
scripts are disabled, the page shows the first frame and the sentence that describes it. Live
figures compute in the browser while readers move their points.

:class:`InterviewWidget` asks a person the questions of :class:`cgmm.decide.Interview` in a
notebook; ``python -m cgmm ask`` (``ask.py``) asks them on a page of its own.

===========  ===================================================================
control      a slider or a set of radio buttons, each of whose values has a name
combination  one value per control, given by its name, e.g. ("0.15", "far left")
frame        the picture of one combination, and a sentence that describes it
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
