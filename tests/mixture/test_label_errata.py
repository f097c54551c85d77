"""Compare two lecture notes' formulas for EM with labels with their corrected forms."""

import numpy as np
import pytest

from cgmm import SemiSupervisedGaussianClassifier
from cgmm.datasets import three_classes
from cgmm.mixture import log_joint

X, y, *_ = three_classes(100)
# Two labelled points of each class, -1 elsewhere.
LABELS = np.where(np.arange(300) % 100 < 2, y, -1)
FIT = SemiSupervisedGaussianClassifier(reg_covar=0.01).fit(X, LABELS)
THETA, R = FIT.mixture_.parameters_, FIT.mixture_.responsibilities_


def test_a_numerator_without_the_class_gives_all_classes_one_responsibility():
    """[schmidt2016, sect. 2.1], the formula for r_0: with two classes the two must add up to 1."""
    u = log_joint(X, THETA)[:, :2]
    printed = np.exp(u[:, 0] - np.logaddexp(*u.T))
    right = np.exp(u - np.logaddexp(*u.T)[:, None])
    assert not np.allclose(printed + printed, 1)
    np.testing.assert_allclose(right.sum(axis=1), 1, rtol=1e-12)


def test_a_product_of_sums_over_another_index_depends_on_what_it_should_sum_out():
    """[schmidt2016, sect. 2.3], last display: read literally, no term contains the index t."""
    u = log_joint(X, THETA)[:, :2]
    with_y_0, with_y_1 = np.sum(np.log(2) + u, axis=0)
    assert not np.isclose(with_y_0, with_y_1)


@pytest.mark.parametrize(("start", "right"), [(0, False), (5, False), (6, True), (7, False)])
def test_counts_add_up_only_if_the_second_sum_starts_after_the_labelled_points(start, right):
    """Green's slides have "l + 1" in one of the sums, with l counting classes or points."""
    labelled_first = R[np.argsort(LABELS < 0, kind="stable")]
    total = labelled_first[:6].sum() + labelled_first[start:].sum()
    assert np.isclose(total, len(X)) == right


def test_as_many_labels_as_dimensions_make_no_covariance():
    """Green's slides start from the labelled points, which need D + 1 in each class."""
    is_known = LABELS >= 0
    with pytest.raises(ValueError, match="not positive definite"):
        SemiSupervisedGaussianClassifier(reg_covar=0).fit(X[is_known], LABELS[is_known])
