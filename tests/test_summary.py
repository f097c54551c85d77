"""The summary of a fit agrees with the model's attributes, as text and as HTML."""

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


def test_sizes_weights_and_evidence_are_those_of_the_fit(model):
    found = summarise(model, must_link=MUST, cannot_link=CANNOT)
    assert found.title == "ConstrainedGaussianMixture of 3 components, 30 points of 5 columns"
    assert found.facts["log-evidence"] == f"{model.log_evidence_:.1f}, exact"
    assert found.facts["EM"] == f"converged in {model.n_iter_} iterations"
    for part in model.inference_:
        assert f"{part.engine} ({part.n_nodes} node" in found.facts["engine"]
    means = ["mean ab", "mean b", "mean c", "mean d"]
    assert found.components.head == ["component", "points", "weight", *means]
    for k, row in enumerate(found.components.rows):
        assert row[:3] == [str(k), str((model.labels_ == k).sum()), f"{model.weights_[k]:.2f}"]
        assert row[3:] == [f"{mean:.2f}" for mean in model.means_[k, :4]]


def test_the_summary_counts_kept_relations(model):
    wrong = [[0, 1, 2.0], [0, 3, 2.0], [0, 6, -1.0], [1, 2, -1.0]]
    found = summarise(model, must_link=[*MUST, [0, 1]], cannot_link=CANNOT, preferences=wrong)
    kept = {name: value for name, value in found.facts.items() if name.endswith("kept")}
    assert kept == {
        "must-links kept": "3 of 4", "cannot-links kept": "2 of 2", "preferences kept": "2 of 4",
    }  # fmt: skip
    assert not [name for name in summarise(model).facts if name.endswith("kept")]
    with pytest.raises(ValueError, match=r"must_link\[0\] is \[0, 30\]"):
        summarise(model, must_link=[[0, 30]])


def test_text_and_html_have_every_fact(model):
    found = summarise(model, must_link=MUST)
    page = BeautifulSoup(found._repr_html_(), "html.parser").get_text(" ")
    for name, value in found.facts.items():
        for shown in (repr(found), page):
            assert name in shown
            assert value in shown
    assert len(repr(found).splitlines()) == 1 + 4 + 4


def test_approximation_and_an_early_end_are_reported():
    rng = np.random.default_rng(0)
    many = np.column_stack([rng.integers(30, size=(120, 2)), rng.normal(size=120)])
    many = many[many[:, 0] != many[:, 1]]
    with warnings.catch_warnings(action="ignore"):
        model = ConstrainedGaussianMixture(
            3, inference="belief_propagation", max_iter=1, tol=0, random_state=0
        ).fit(X, preferences=many)
    facts = summarise(model).facts
    assert facts["log-evidence"].endswith("approximate")
    assert facts["EM"] == "not converged after 1 iteration"


def test_a_mixture_of_categories_has_no_means():
    table = (X[:, :2] > 6).astype(int)
    model = ConstrainedCategoricalMixture(2, random_state=0).fit(table)
    assert summarise(model).components.head == ["component", "points", "weight"]


def test_a_model_must_be_fitted():
    with pytest.raises(NotFittedError):
        summarise(ConstrainedGaussianMixture(2))
