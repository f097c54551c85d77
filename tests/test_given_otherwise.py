"""Points as tables, lists or arrays say the same; what a message prints can be run as printed."""

import re
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import cgmm
from cgmm import (
    ENGINES,
    MMC,
    RCA,
    ConstrainedGaussianMixture,
    COPKMeans,
    Parameters,
    PCKMeans,
    SemiSupervisedGaussianClassifier,
    SideInformation,
    decide,
    diagnose,
    mixture,
)
from cgmm.network import PairsAmong

PREFERENCES = [[0, 1, 1.0], [1, 2, -2.0]]
ANSWERS = [[0, 1, 1], [2, 3, 0], [4, 5, 1], [6, 7, 1]]
LINKS = [[0, 2], [1, 3]]
Y = [0, 1, -1, -1, -1, -1, -1, -1]
SIDE = SideInformation.build(8, preferences=PREFERENCES)
THETA = Parameters(
    np.full(2, 0.5), np.array([[0.0, 0.0], [4.0, 4.0]]), np.tile(np.eye(2), (2, 1, 1))
)
INFER = ENGINES["auto"](SIDE.graph)
FULL = mixture.POOLINGS["full"]
POSTERIOR = mixture.Posterior(np.full((8, 2), 0.5), np.full(2, 4.0), 0.0)


def points():
    return np.random.default_rng(0).normal(size=(8, 2)) + 4 * (np.arange(8) % 2)[:, None]


def fit_of(model, name, **known):
    return lambda X: getattr(model.fit(X, **known), name)


GAUSSIAN = ConstrainedGaussianMixture(2, reg_covar=0.1, random_state=0)
PUBLIC = {
    "judge": lambda X: diagnose.judge(X, THETA, SIDE, PREFERENCES, INFER).support,
    "pair_probabilities": lambda X: diagnose.pair_probabilities(X, THETA, SIDE, LINKS, INFER),
    "error_rates": lambda X: decide.error_rates(X, THETA, SIDE, ANSWERS, ENGINES["auto"]).wrong,
    "assignment_entropy": lambda X: decide.assignment_entropy(X, THETA, SIDE, INFER),
    "held_out_scores": lambda X: decide.held_out_scores(
        X, lambda rows: THETA, ANSWERS, [0, 0, 1, 1], ENGINES["auto"], error_rate=0.1
    ),
    "fit_answers": lambda X: decide.fit_answers(GAUSSIAN, X, ANSWERS, error_rate=0.1).means_,
    "AnswerSearch": lambda X: (
        decide.AnswerSearch(GAUSSIAN, {"n_components": [2]}, n_folds=2).fit(X, ANSWERS).predict(X)
    ),
    "e_step": lambda X: mixture.e_step(X, THETA, SIDE, INFER).responsibilities,
    "m_step": lambda X: mixture.m_step(X, THETA, POSTERIOR, FULL, mixture.closed_form).means,
    "em": lambda X: next(mixture.em(X, THETA, SIDE, INFER, FULL, mixture.closed_form))[1][0],
    "node_unaries": lambda X: mixture.node_unaries(X, THETA, SIDE),
    "log_density": lambda X: mixture.log_density(X, THETA),
    "log_joint": lambda X: mixture.log_joint(X, THETA),
    "ConstrainedGaussianMixture": fit_of(GAUSSIAN, "means_", preferences=PREFERENCES),
    "classifier": fit_of(SemiSupervisedGaussianClassifier(reg_covar=0.1), "transduction_", y=Y),
    "COPKMeans": fit_of(COPKMeans(2, random_state=0), "cluster_centers_", must_link=LINKS),
    "PCKMeans": fit_of(PCKMeans(2, random_state=0), "cluster_centers_", must_link=LINKS),
    "RCA": fit_of(RCA(), "components_", must_link=LINKS),
    "MMC": fit_of(MMC(), "components_", must_link=LINKS, cannot_link=[[0, 1]]),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLIC)
def test_points_may_be_an_array_a_list_or_a_table(name):
    X = points()
    with warnings.catch_warnings(action="ignore"):
        found = PUBLIC[name](X)
        for given in (X.tolist(), pd.DataFrame(X, index=list("abcdefgh"), columns=["u", "v"])):
            np.testing.assert_allclose(PUBLIC[name](given), found, rtol=1e-12, atol=1e-12)


def test_relations_among_rows_may_be_given_again():
    once = PairsAmong([[0, 1]], 3)
    assert repr(PairsAmong(once, 3)) == repr(once)
    with pytest.raises(ValueError, match="among 3 samples, but 4 came"):
        PairsAmong(once, 4)


def test_a_model_that_is_handed_over_stays_as_it_is():
    model = ConstrainedGaussianMixture(2, reg_covar=0.1, random_state=0)
    before = str(clone(model).get_params())
    decide.fit_answers(model, points(), ANSWERS, error_rate=0.1)
    decide.joint(model)
    decide.AnswerSearch(model, {"n_components": [2]}, n_folds=2).fit(points(), ANSWERS)
    assert str(model.get_params()) == before
    assert not hasattr(model, "weights_")


# ------------------------------------------------------------------ what a message prints


def refused(call, *arguments, **options):
    """The text of the error or warning."""
    with warnings.catch_warnings(action="error"), pytest.raises((ValueError, UserWarning)) as said:
        call(*arguments, **options)
    return str(said.value)


TABLE = pd.DataFrame(points(), index=range(1, 9))
HANGING = [[i, i + 1, 1] for i in range(7)]
SEARCH = decide.AnswerSearch(GAUSSIAN, {"n_components": [2]})
# What is refused, and what the names in its message stand for.
MESSAGES = {
    "certainties": (lambda: GAUSSIAN.fit(points(), preferences=[[0, 1, 0.91]]),
                    {"must_link": LINKS, "cannot_link": [], "certainties": [0.9]}),
    "an index": (lambda: GAUSSIAN.fit(TABLE, must_link=[[0, 1]]),
                 {"must_link": [[1, 2]], "X": TABLE}),
    "names": (lambda: GAUSSIAN.fit(points(), must_link=[["a", "b"]]),
              {"must_link": [["a", "b"]], "names": list("abcdefgh")}),
    "rows beyond": (lambda: GAUSSIAN.fit(points(), must_link=[[0, 9]]),
                    {"must_link": [[0, 9]], "n_before": 10, "names": range(10)}),
    "two columns": (lambda: GAUSSIAN.fit(points(), preferences=LINKS), {"preferences": LINKS}),
    "no mixture": (lambda: decide.joint(COPKMeans(2)), {}),
    "y of a mixture": (lambda: GAUSSIAN.fit(points(), Y), {"y": Y}),
    "y of K-means": (lambda: COPKMeans(2).fit(points(), Y), {"y": Y}),
}  # fmt: skip
CALL = re.compile(r"cgmm\.[\w.]+\(")


def calls(message):
    """Every call of the package in a message, to the end of its brackets."""
    for start in CALL.finditer(message):
        depth, end = 1, start.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(message[end], 0)
            end += 1
        yield message[start.start() : end]


@pytest.mark.parametrize("case", MESSAGES)
def test_what_a_message_prints_runs_as_printed(case):
    cause, names = MESSAGES[case]
    printed = list(calls(refused(cause)))
    assert printed
    for call in printed:
        assert eval(call, {"cgmm": cgmm, "np": np} | names) is not None


def test_what_is_printed_needs_no_other_import():
    """After ``import cgmm`` alone."""
    text = (
        "import cgmm; cgmm.scenarios.preferences([[0, 1]], certainty=0.9); cgmm.network.positions"
    )
    assert subprocess.run([sys.executable, "-c", text], check=False).returncode == 0


def test_answers_that_cannot_be_held_out_or_read_say_what_to_do():
    assert "model.bic()" in refused(SEARCH.fit, points(), HANGING)
    said = refused(decide.as_preferences, [[0, 1, -1]], 0.1)
    assert re.search(r"answers\[0\] says -1; .*np.column_stack", said)
    i, j, odds = np.array([[0, 1, -1], [2, 3, 1]]).T
    assert len(decide.as_preferences(np.column_stack([i, j, odds > 0]), 0.1)) == 2
