"""The command line: ``python -m cgmm`` prints the version and runs a tour of half a minute.

It also prints how to open the book. ``python -m cgmm ask table.csv`` asks a person which rows
belong together; :mod:`cgmm.explore.ask` implements this command.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import cgmm

DESCRIPTION = (
    "Print the version and how to open the book, and run a tour of half a minute; or ask (ask -h)."
)
DISTRIBUTION = "constrained-mixtures"
OTHER_PACKAGE = f"""\
Another package named cgmm is installed over this one; it comes from "pip install cgmm".
An environment can contain only one of the two. To use this one:

    pip uninstall --yes cgmm {DISTRIBUTION}
    pip install {DISTRIBUTION}"""
FOLDER = """\
Python imports the folder {folder} in place of the package cgmm, because it has the
same name and lies in the current directory or beside the script. Start Python in another
directory, or rename the folder. After an old "pip install -e", installing again also helps."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the command-line arguments describe.

    Parameters
    ----------
    arguments : sequence of str, default=None
        The arguments after the name of the program; None means those of the process.
    """
    require_this_package()
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["ask"]:
        from cgmm.explore.ask import ask

        ask(given[1:])
        return
    options = argparse.ArgumentParser(prog="python -m cgmm", description=DESCRIPTION)
    options.add_argument("--version", action="version", version=f"cgmm {cgmm.__version__}")
    options.add_argument(
        "--figure", type=Path, default=Path("cgmm-tour.png"), help="path (default: %(default)s)"
    )
    figure = options.parse_args(given).figure
    print(f"cgmm {cgmm.__version__}, Gaussian mixtures with side information")
    print(explain_where_the_book_is(), end="\n\n")
    tour(figure)


def require_this_package() -> None:
    """Exit with a message if ``cgmm`` is another package, or a folder without ``__init__.py``."""
    if getattr(cgmm, "__file__", None) is None:
        raise SystemExit(FOLDER.format(folder=next(iter(cgmm.__path__))))
    if not hasattr(cgmm, "SideInformation"):
        raise SystemExit(OTHER_PACKAGE)


def explain_where_the_book_is() -> str:
    """Return a sentence that explains how to open the book, for a clone or an installed package."""
    project = Path(cgmm.__file__).resolve().parents[1]
    page = project / "_build/html/index.html"
    if page.exists():
        return f"The book: open {page}"
    if (project / "_toc.yml").exists():
        return f"The book: run `make book` in {project}"
    source = f"{DISTRIBUTION}=={cgmm.__version__}"
    return (
        "The book comes with the source. Unpack what this downloads, and run `make book` there:\n"
        f"    pip download --no-deps --no-binary :all: {source}"
    )


def tour(figure_path: Path) -> None:
    """Print three fits of classes that the likelihood does not prefer, and save their picture."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt
    from sklearn.base import clone

    from cgmm import ConstrainedGaussianMixture, plot
    from cgmm.datasets import vertical_classes
    from cgmm.metrics import matched_accuracy
    from cgmm.scenarios import random_pairs

    X, y, *_ = vertical_classes()
    must_link, cannot_link = random_pairs(y, 60, random_state=0)
    print("600 points lie in four clumps. Two classes are meant: the clumps on the left, and those")
    print("on the right. A mixture of two Gaussians, fitted in three ways:", end="\n\n")
    model = ConstrainedGaussianMixture(2, n_init=10, init_params="random_from_data", random_state=0)
    linked = clone(model).fit(X, must_link=must_link, cannot_link=cannot_link)
    intended = ConstrainedGaussianMixture(2, means_init=[[-3, 0], [3, 0]]).fit(X)
    fits = {"points alone": model.fit(X), "as it was meant": intended, "told of 60 pairs": linked}
    for name, fit in fits.items():
        likelihood, right = fit.score_samples(X).sum(), matched_accuracy(y, fit.labels_)
        print(f"    {name:<16} log-likelihood {likelihood:6.0f}, {right:4.0%} of the points right")
    print("\nThe cut that was meant is the less likely one, however many points there are. Sixty")
    print("answers to 'are these two of one class?' say what the points cannot.", end="\n\n")
    mpl.use("Agg")
    plot.use_style()
    figure, axes = plt.subplots(1, 3, figsize=(plot.PAGE_WIDTH, 4.5), sharex=True, sharey=True)
    for ax, (name, fit) in zip(axes, fits.items(), strict=True):
        plot.scatter(X, fit.labels_, ax=ax, size=12).set_title(name.capitalize())
    figure_path.write_bytes(plot.png(figure))
    print(f"The picture: {figure_path.resolve()}")


if __name__ == "__main__":
    main()
