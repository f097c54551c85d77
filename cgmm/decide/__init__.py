"""From answers to decisions: whom to believe.

Answers of people are neither certain nor equally good. What the points say of the pairs, and what
witnesses say of each other's, tells how often each of them errs.
"""

from cgmm.decide.witnesses import Witnesses, error_rates

__all__ = ["Witnesses", "error_rates"]
