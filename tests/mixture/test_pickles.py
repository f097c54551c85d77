"""Test that pickled estimators record the version of cgmm, and that clones keep their settings."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone

import cgmm
from cgmm import MMC, RCA, ConstrainedGaussianMixture, COPKMeans, SemiSupervisedGaussianClassifier
from cgmm.mixture.class_mixture import ClassMixture

X = np.random.default_rng(0).normal(size=(30, 2)) + np.repeat([[0, 0], [6, 0]], 15, axis=0)
Z = np.repeat([0, 1], 15)


@pytest.mark.parametrize(
    "model",
    [
        ConstrainedGaussianMixture(2, random_state=0).fit(X),
        COPKMeans(2, random_state=0).fit(X),
        SemiSupervisedGaussianClassifier().fit(X, Z),
        RCA().fit(X, Z),
        MMC().fit(X, Z),
    ],
    ids=lambda model: type(model).__name__,
)
def test_loading_a_pickle_of_another_version_gives_a_warning(model, monkeypatch):
    saved = pickle.dumps(model)
    with warnings.catch_warnings(action="error"):
        assert vars(pickle.loads(saved)).keys() == vars(model).keys()
    monkeypatch.setattr(cgmm, "__version__", "99.0")
    with pytest.warns(UserWarning, match=r"was saved by cgmm 1\..* loaded by 99\.0"):
        pickle.loads(saved)


def test_clone_of_a_class_mixture_keeps_its_settings():
    model = ClassMixture((1, 2), reg_covar=5.0, covariance_type="tied", n_init=3)
    assert clone(model).get_params() == model.get_params()
    assert model.get_params()["reg_covar"] == 5.0
