"""The search for the weights of given counts: it arrives, soon, and keeps the best it has seen."""

import numpy as np
import pytest

from cgmm.inference import ENGINES
from cgmm.mixture.prior import Prior
from cgmm.mixture.weights import maximise
from cgmm.network import SideInformation

RING = np.array([[0, 1], [1, 2], [2, 3], [0, 3]])
WEIGHTS = [
    (0.5, 0.5),
    (0.25, 0.75),
    (0.02267, 0.97733),
    (1e-6, 1 - 1e-6),
    (0.2, 0.3, 0.5),
    (1e-4, 0.1, 0.4, 0.4999),
]


class Asked:
    """Counts the questions to a prior."""

    def __init__(self, prior):
        self.prior, self.questions = prior, 0

    def __call__(self, log_weights):
        self.questions += 1
        return self.prior.log_z_and_counts(log_weights)


@pytest.mark.parametrize("log_weight", [-8.0, -1.0, 3.0, 8.0, 15.0])
@pytest.mark.parametrize("n_edges", [1, 2, 3, 4])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_weights_of_given_counts_are_found_within_sixty_questions(weights, n_edges, log_weight):
    # Strong relations bend the problem: full steps overshoot, and some of these run away by them.
    preferences = np.column_stack([RING[:n_edges], np.full(n_edges, log_weight)])
    side = SideInformation.build(4, preferences=preferences)
    asked = Asked(Prior(side, ENGINES["enumerate"]))
    _, counts = asked(np.log(weights))
    found = maximise(asked, counts, counts / counts.sum())
    _, matched = asked(np.log(found))
    # The search ends at 1e-8 of all four counts.
    np.testing.assert_allclose(matched, counts, rtol=0, atol=1e-7)
    assert asked.questions <= 60


def test_of_an_engine_that_contradicts_itself_the_nearest_counts_are_kept():
    # The third answer is nearest; what comes after it is farther off, though log Z says better.
    off = iter([0.4, 0.3, 0.1, 0.2, 0.3])
    seen = []

    def contradictory(log_weights):
        seen.append(np.exp(log_weights))
        difference = next(off)
        return -float(len(seen)), np.array([1.0 + difference, 1.0 - difference])

    with pytest.warns(RuntimeWarning, match="no maximum"):
        found = maximise(contradictory, np.array([1.0, 1.0]), np.array([0.5, 0.5]), 5)
    assert len(seen) == 5
    np.testing.assert_array_equal(found, seen[2])
