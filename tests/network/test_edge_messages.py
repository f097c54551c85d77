"""Compare the message along an edge with the sum over the states of the sending node."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from cgmm.network.messages import edge_message

LOG_VALUES = st.one_of(st.floats(-20, 5), st.sampled_from([-np.inf, -1e4, -800.0, -700.0, 0.0]))
LOG_WEIGHTS = st.one_of(st.floats(-20, 20), st.sampled_from([-np.inf, -750.0, 700.0, 800.0, 1e4]))


# In these examples exp(h) or exp(w) underflows or overflows.
@example(h=[-800.0, 0.0], w=800.0)
@example(h=[-800.0, 0.0], w=-np.inf)
@given(
    h=st.lists(LOG_VALUES, min_size=2, max_size=5).filter(lambda h: max(h) > -np.inf), w=LOG_WEIGHTS
)
def test_edge_message_equals_the_explicit_sum(h, w):
    is_same_state = np.eye(len(h), dtype=bool)
    terms = np.where(is_same_state, np.add(h, w), h)
    for largest, total in ((False, np.logaddexp), (True, np.maximum)):
        (message,) = edge_message(np.array([h]), np.array([w]), largest=largest)
        np.testing.assert_allclose(message, total.reduce(terms, axis=1), rtol=1e-12, atol=1e-12)
