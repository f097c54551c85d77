"""Compare the message along an edge with the sum written out."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from cgmm.network.messages import edge_message

LOG_VALUES = st.one_of(st.floats(-20, 5), st.sampled_from([-np.inf, -1e4, -800.0, -700.0, 0.0]))
LOG_WEIGHTS = st.one_of(st.floats(-20, 20), st.sampled_from([-np.inf, -750.0, 700.0, 800.0, 1e4]))


# Beyond the range of exp, one term and the sum of the others may be equal or all there is.
@example(h=[-800.0, 0.0], w=800.0)
@example(h=[-800.0, 0.0], w=-np.inf)
@given(
    h=st.lists(LOG_VALUES, min_size=2, max_size=5).filter(lambda h: max(h) > -np.inf),
    w=LOG_WEIGHTS,
)
def test_a_message_is_the_sum_of_its_terms(h, w):
    own = np.eye(len(h), dtype=bool)
    terms = np.where(own, np.add(h, w), h)
    for largest, total in ((False, np.logaddexp), (True, np.maximum)):
        (found,) = edge_message(np.array([h]), np.array([w]), largest=largest)
        np.testing.assert_allclose(found, total.reduce(terms, axis=1), rtol=1e-12, atol=1e-12)
