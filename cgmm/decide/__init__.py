"""From answers to decisions: how to choose, whom to believe, what to ask next.

Answers that a fit was not told say which of several is the best. Answers of people are neither
certain nor equally good: what the points say of the pairs, and what witnesses say of each other's,
tells how often each of them errs. And what the model is in doubt about tells which answer would
tell most.
"""

from cgmm.decide.answer_file import Answer
from cgmm.decide.asking import (
    Asked, answer_information, choose_pairs, farthest_first, fit_answers, joint
)  # fmt: skip
from cgmm.decide.choosing import (
    AnswerSearch, LogScore, Trial, held_out_scores, log_score
)  # fmt: skip
from cgmm.decide.implied import Contradiction
from cgmm.decide.interview import Interview, Progress, Question
from cgmm.decide.witnesses import Witnesses, WitnessMixture, error_rates

__all__ = [
    "Answer", "AnswerSearch", "Asked", "Contradiction", "Interview", "LogScore", "Progress",
    "Question", "Trial", "WitnessMixture", "Witnesses", "answer_information", "choose_pairs",
    "error_rates", "farthest_first", "fit_answers", "held_out_scores", "joint", "log_score",
]  # fmt: skip
