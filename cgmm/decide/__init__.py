"""Use answers about pairs to choose settings, to estimate error rates, and to choose questions.

A fit can be scored by answers that it has not used, so settings can be compared (chapter 14). Each
annotator's error rate can be estimated from the points and from the other annotators' answers
(chapter 16). The next question is the one whose answer is the most informative under the current
model (chapter 15).
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
