"""Test that the summary of a fit agrees with the model's attributes, as text and as HTML."""

import warnings

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from sklearn.exceptions import NotFittedError

from cgmm import ConstrainedCategoricalMixture, ConstrainedGaussianMixture
from cgmm.summary import summarise

y = np.arange(30) % 3
X = np.random.default_rng(0).normal(size=(30, 5)) + 6 * y[:, None]
MUST, CANNOT = [[0, 3], [1, 4], [2, 5]], [[0, 1], [1, 2]]


@pytest.fixture(scope="module")
def model():
    table = pd.DataFrame(X, columns=["ab", "b", "c", "d", "e"])
    return ConstrainedGaussianMixture(3, covariance_type="diag", random_state=0).fit(
        table, must_link=MUST, cannot_link=CANNOT
    )


def test_summary_has_the_attributes_of_the_fit(model):
    summary = summarise(model, must_link=MUST, cannot_link=CANNOT)
    assert summary.title == "ConstrainedGaussianMixture of 3 components, 30 points of 5 columns"
    assert summary.facts["log-evidence"] == f"{model.log_evidence_:.1f}, exact"
    assert summary.facts["EM"] == f"converged in {model.n_iter_} iterations"
    for part in model.inference_:
        assert f"{part.engine} ({part.n_nodes} node" in summary.facts["engine"]
    means = ["mean ab", "mean b", "mean c", "mean d"]
    assert summary.components.head == ["component", "points", "weight", *means]
    for k, row in enumerate(summary.components.rows):
        assert row[:3] == [str(k), str((model.labels_ == k).sum()), f"{model.weights_[k]:.2f}"]
        assert row[3:] == [f"{mean:.2f}" for mean in model.means_[k, :4]]


def test_summary_counts_kept_relations(model):
    preferences = [[0, 1, 2.0], [0, 3, 2.0], [0, 6, -1.0], [1, 2, -1.0]]
    relations = {"must_link": [*MUST, [0, 1]], "cannot_link": CANNOT, "preferences": preferences}
    summary = summarise(model, **relations)
    kept = {name: value for name, value in summary.facts.items() if name.endswith("kept")}
    assert kept == {
        "must-links kept": "3 of 4", "cannot-links kept": "2 of 2", "preferences kept": "2 of 4",
    }  # fmt: skip
    assert not [name for name in summarise(model).facts if name.endswith("kept")]
    with pytest.raises(ValueError, match=r"must_link\[0\] is \[0, 30\]"):
        summarise(model, must_link=[[0, 30]])


def test_text_and_html_of_a_summary_have_every_fact(model):
    summary = summarise(model, must_link=MUST)
    page = BeautifulSoup(summary._repr_html_(), "html.parser").get_text(" ")
    for name, value in summary.facts.items():
        for text in (repr(summary), page):
            assert name in text
            assert value in text
    assert len(repr(summary).splitlines()) == 1 + 4 + 4


def test_summary_reports_approximation_and_missing_convergence():
    rng = np.random.default_rng(0)
    preferences = np.column_stack([rng.integers(30, size=(120, 2)), rng.normal(size=120)])
    preferences = preferences[preferences[:, 0] != preferences[:, 1]]
    with warnings.catch_warnings(action="ignore"):
        model = ConstrainedGaussianMixture(
            3, inference="belief_propagation", max_iter=1, tol=0, random_state=0
        ).fit(X, preferences=preferences)
    facts = summarise(model).facts
    assert facts["log-evidence"].endswith("approximate")
    assert facts["EM"] == "not converged after 1 iteration"


def test_summary_of_a_mixture_of_categories_has_no_means():
    table = (X[:, :2] > 6).astype(int)
    model = ConstrainedCategoricalMixture(2, random_state=0).fit(table)
    assert summarise(model).components.head == ["component", "points", "weight"]


def test_summary_needs_a_fitted_model():
    with pytest.raises(NotFittedError):
        summarise(ConstrainedGaussianMixture(2))
