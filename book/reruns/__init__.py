"""The experiments of the papers: how they are run, what is stored, and what follows from it.

This folder is part of the book, not of the package ``cgmm``. Chapters 10, 13, 14 and 15 import it
from where they stand. In the folder ``book/``::

    python -m reruns                              every experiment, as often as its paper
    python -m reruns shental2003-fig5 --jobs 2 --realisations 20
    python -m reruns --quick                      a small part of each, in a minute
    python -m reruns --verdicts                   what the result files say of the papers

An interrupted run continues from where it stopped. The same seed gives the same files, byte for
byte, whatever the number of jobs. ``--scheduler ADDRESS`` runs on a Dask cluster
(``pip install "dask[distributed]"``) whose workers were started in ``book/`` too.
"""

from reruns import barhillel2005, choosing, lu2007, retrieval, segmentation, shental2003
from reruns.design import (
    Experiment, Result, Setting, Task, attempt, seed_of, tasks_of,
)  # fmt: skip
from reruns.runner import load_data, realise, replicate
from reruns.reading import read_rows

__all__ = [
    "EXPERIMENTS", "Experiment", "Result", "Setting", "Task", "attempt", "load_data",
    "read_rows", "realise", "replicate", "seed_of", "tasks_of",
]  # fmt: skip

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for file in (shental2003, lu2007, segmentation, barhillel2005, retrieval, choosing)
    for experiment in file.EXPERIMENTS
}
"""Every experiment by its name."""
