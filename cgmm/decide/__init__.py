"""From answers to decisions: whom to believe, and what to ask next.

Answers of people are neither certain nor equally good. What the points say of the pairs, and what
witnesses say of each other's, tells how often each of them errs; and what the model is in doubt
about, which answer would tell most.
"""

from cgmm.decide.asking import answer_information, choose_pairs
from cgmm.decide.neighbourhoods import Asked, farthest_first
from cgmm.decide.witnesses import Witnesses, error_rates

__all__ = [
    "Asked", "Witnesses", "answer_information", "choose_pairs", "error_rates", "farthest_first",
]  # fmt: skip
