"""What an error or a warning of a fit names as a remedy is done here, on the case that named it."""

import re
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import cgmm
from cgmm import ConstrainedGaussianMixture

CALL = re.compile(r"(Constrained\w+)\((\d+)((?:, \w+='[\w-]+')*)\)")
SETTING = re.compile(r"(\w+)='([\w-]+)'")


def remedies(message, model):
    """Models that a message tells to make; a call is complete, with the number of components."""
    calls = list(CALL.finditer(message))
    for call in calls:
        options = dict(SETTING.findall(call[3]))
        yield getattr(cgmm, call[1])(int(call[2]), random_state=0, **options)
    assert calls, f"no complete call in: {message}"
    assert SETTING.sub("", CALL.sub("", message)).count("inference=") == 0


def clumps(n_samples, n_components):
    rng = np.random.default_rng(0)
    z = np.arange(n_samples) % n_components
    return 5 * rng.normal(size=(n_components, 2))[z] + rng.normal(size=(n_samples, 2))


STAR = [[0, j] for j in range(1, 30)]
CASES = {
    "exact without a normaliser": (3, {"inference": "gibbs", "weights": "exact"}, 60, STAR[:1]),
    "a grid without a normaliser": (3, {"inference": "gibbs", "weights": "grid"}, 60, STAR[:1]),
    "a grid too fine": (6, {"weights": "grid"}, 60, STAR[:1]),
    "a grid too coarse": (101, {"weights": "grid"}, 120, STAR[:1]),
    "no maximum": (2, {"weights": "pseudo-likelihood"}, 31, STAR),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_named_works(case):
    n_components, options, n_samples, cannot_link = CASES[case]
    X = clumps(n_samples, n_components)
    model = ConstrainedGaussianMixture(
        n_components, random_state=0, max_iter=5, reg_covar=0.1, **options
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        with pytest.raises((ValueError, RuntimeWarning)) as refusal:
            model.fit(X, cannot_link=cannot_link)
        for remedy in remedies(str(refusal.value), model):
            remedy.set_params(max_iter=5, reg_covar=0.1)
            assert remedy.fit(X, cannot_link=cannot_link).labels_.shape == (n_samples,)


def test_log_odds_too_large_to_add_can_be_hard_or_smaller():
    X = clumps(30, 2)
    model = ConstrainedGaussianMixture(2, random_state=0)
    with pytest.raises(ValueError, match=r"Use ±inf, .* or smaller log-odds"):
        model.fit(X, preferences=[[0, 1, -1e10]])
    for w in (-np.inf, -1e9):
        labels = model.fit(X, preferences=[[0, 1, w]]).labels_
        assert labels[0] != labels[1]
