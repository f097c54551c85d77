"""Check errata in two lecture notes about EM with labels, [schmidt2016] and Green's slides."""

import numpy as np
import pytest

from cgmm import SemiSupervisedGaussianClassifier
from cgmm.datasets import three_classes
from cgmm.mixture import log_joint

X, y, *_ = three_classes(100)
# Two points of each class are labelled.
LABELS = np.where(np.arange(300) % 100 < 2, y, -1)
FIT = SemiSupervisedGaussianClassifier(reg_covar=0.01).fit(X, LABELS)
THETA, R = FIT.mixture_.parameters_, FIT.mixture_.responsibilities_


def test_responsibilities_need_a_numerator_that_depends_on_the_class():
    """The printed responsibilities of two classes are equal, so they do not add up to one.

    [schmidt2016, sect. 2.1], the formula for r_0
    """
    u = log_joint(X, THETA)[:, :2]
    printed = np.exp(u[:, 0] - np.logaddexp(*u.T))
    corrected = np.exp(u - np.logaddexp(*u.T)[:, None])
    assert not np.allclose(printed + printed, 1)
    np.testing.assert_allclose(corrected.sum(axis=1), 1, rtol=1e-12)


def test_the_printed_product_depends_on_labels_that_it_should_sum_out():
    """A sum over labels must not depend on them, but the printed one does.

    [schmidt2016, sect. 2.3], last display: no factor contains the index t of the sum.
    """
    u = log_joint(X, THETA)[:, :2]
    with_y_0, with_y_1 = np.sum(np.log(2) + u, axis=0)
    assert not np.isclose(with_y_0, with_y_1)


@pytest.mark.parametrize(("start", "is_right"), [(0, False), (5, False), (6, True), (7, False)])
def test_counts_add_up_only_if_the_second_sum_starts_after_the_labelled_points(start, is_right):
    """Green's slides start the second sum at l + 1; l must be the number of labelled points, 6."""
    labelled_first = R[np.argsort(LABELS < 0, kind="stable")]
    total = labelled_first[:6].sum() + labelled_first[start:].sum()
    assert np.isclose(total, len(X)) == is_right


def test_covariances_from_as_many_points_as_dimensions_are_singular():
    """Green's slides start from labelled points, but D of them in a class are not enough."""
    is_known = LABELS >= 0
    with pytest.raises(ValueError, match="not positive definite"):
        SemiSupervisedGaussianClassifier(reg_covar=0).fit(X[is_known], LABELS[is_known])
