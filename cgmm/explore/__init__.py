"""Explorers: a figure with sliders that lives twice, with a kernel and in a page that has none.

An explorer draws the figure for every combination of its controls' values. With a kernel, Jupyter
shows sliders that call the drawing function. Without one (the rendered book, a saved notebook) the
same figures are frames inside the page, moved by native sliders and a few lines of script; without
script the page still shows the first frame and the sentence that describes it.

:class:`InterviewWidget` asks a person the questions of :class:`cgmm.decide.Interview` in a
notebook; ``python -m cgmm ask`` (``ask.py``) does so without one.

===========  ===================================================================
control      a slider or a choice, each of whose values has a name
combination  one name a control: which of its values is shown
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
