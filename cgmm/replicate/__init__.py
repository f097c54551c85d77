"""The papers, rerun: experiments, result files, and what follows from them.

On the command line::

    python -m cgmm.replicate                              every experiment, as often as its paper
    python -m cgmm.replicate shental2003-fig5 --jobs 2 --realisations 20
    python -m cgmm.replicate --quick                      a small part of each, in a minute
    python -m cgmm.replicate --verdicts                   what the result files say of the papers

It can be interrupted, and goes on where it was. The same seed gives the same files, byte for byte,
whatever the number of jobs. ``--backend dask --scheduler ADDRESS`` has it run on a Dask cluster
(``pip install "dask[distributed]"``).
"""

from cgmm.replicate import barhillel2005, choosing, lu2007, retrieval, segmentation, shental2003
from cgmm.replicate.design import (
    Experiment, Result, Setting, Task, attempt, seed_of, tasks_of,
)  # fmt: skip
from cgmm.replicate.runner import load_data, realise, replicate
from cgmm.replicate.store import read_rows

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
