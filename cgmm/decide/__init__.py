"""Decide by answers: choose settings, learn annotators' error rates, pick the next question.

Answers that a fit has not used score it, so settings can be compared (chapter 14). Annotators err,
each at an own rate, which can be estimated from the points and the other answers (chapter 16). The
uncertainty of a model determines which answer is the most informative (chapter 15).
"""

from cgmm.decide.annotators import AnnotatorMixture, AnnotatorRates, error_rates
from cgmm.decide.answer_file import Answer
from cgmm.decide.asking import (
    Asked, answer_information, choose_pairs, farthest_first, fit_answers, joint
)  # fmt: skip
from cgmm.decide.choosing import (
    AnswerSearch, LogScore, held_out_scores, log_score
)  # fmt: skip
from cgmm.decide.implied import Contradiction
from cgmm.decide.interview import Interview, Progress, Question

__all__ = [
    "AnnotatorMixture", "AnnotatorRates", "Answer", "AnswerSearch", "Asked", "Contradiction",
    "Interview", "LogScore", "Progress", "Question", "answer_information", "choose_pairs",
    "error_rates", "farthest_first", "fit_answers", "held_out_scores", "joint", "log_score",
]  # fmt: skip
