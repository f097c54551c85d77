"""Choose the settings of a mixture that best predict held-out answers.

Settings are, for example, the number of components, the type of covariances and the error rate of
answers. Answers about connected points depend on each other (two of three may imply the third), so
they are held out together, and the standard error of the mean is computed over groups of connected
points. For each setting, :class:`AnswerSearch` fits the mixture without each fold of answers, and
scores the prediction of this fold; one more fit uses all answers, for criteria that hold nothing
out. Chapter 14 explains the search.

=======  ======================================================================
P        number of answers; e is one of them, about points i and j
q        error rate of answers, e.g. 0.1; the log-weight of an answer is ±logit(1 - q)
ℓ_e      log p(answer e | X, the answers of the other folds)
g        group of points that relations connect; G is the number of groups with answers
z        assignments of all nodes; u_jk unary log-potentials, w_e log-weights of edges
r_jk     posterior probability of z_j = k
p_e      posterior probability of z_a = z_b for the nodes a and b of edge e
ν        number of free parameters
=======  ======================================================================
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from scipy.special import expit
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from cgmm.decide.asking import fit_answers, joint
from cgmm.diagnose import log_odds_together, pair_probabilities
from cgmm.inference import ENGINES
from cgmm.mixture import Parameters, Prior, node_unaries
from cgmm.network import Engine, Infer, SideInformation, related_groups
from cgmm.network.side_information import contracted
from cgmm.numerics import FloatArray, IntArray, Seed, check_labels, check_pairs, generator
from cgmm.scenarios.answers import check_answers, preferences_from_answers


class LogScore(NamedTuple):
    """Mean log score of held-out answers, with its standard error."""

    mean: float
    """(Σ_e ℓ_e) / P in nats; higher is better, and guessing with probability ½ gives -log 2."""
    standard_error: float
    """Standard error of the mean; answers within a group may depend on each other."""
    n_groups: int
    """G, the number of groups of connected points with answers."""


def assign_folds(
    pairs: ArrayLike,
    groups: ArrayLike,
    n_folds: int,
    *,
    random_state: Seed = None,
) -> IntArray:
    """Assign answers to folds so that no relation connects points of different folds.

    Parameters
    ----------
    pairs : (P, 2) int array_like
        The two points of each answer.
    groups : (N,) int array_like
        The group of each point, from :func:`cgmm.network.related_groups` with *all* relations,
        including these answers.
    n_folds : int
        Number of folds: at least two, at most the number of groups with answers.
    random_state : int, RandomState, Generator or None, default=None
        Seed for the order of groups with equal numbers of answers.

    Returns
    -------
    (P,) int array
        Fold of each answer, from 0 to ``n_folds - 1``. Groups are assigned by decreasing number of
        answers, each to the smallest fold, so the sizes of folds differ by at most the number of
        answers in one group.

    Raises
    ------
    ValueError
        If both points of a pair are not in one group, or there are fewer groups than folds.

    Examples
    --------
    The first three answers are connected, so they get the same fold:

    >>> from cgmm.network import related_groups
    >>> pairs = [[0, 1], [1, 2], [0, 2], [3, 4], [5, 6]]
    >>> assign_folds(pairs, related_groups(7, cannot_link=pairs), 2, random_state=0)
    array([0, 0, 0, 1, 1])
    """
    group_of_pair, counts = _number_groups(pairs, groups)
    if len(counts) < 2:
        raise ValueError(
            "all answers are connected by chains of relations, so none can be held out without "
            "those that imply it. Choose by the evidence of fits to all of them, model.bic(), or "
            "ask about pairs of other points."
        )
    if not 2 <= n_folds <= len(counts):
        raise ValueError(
            f"n_folds is {n_folds}; it must be from 2 to {len(counts)}, the number of groups with "
            f"answers, since connected answers are held out together: n_folds={len(counts)}."
        )
    rng = generator(random_state)
    shuffled = rng.permutation(len(counts))
    fold_of, sizes = np.empty(len(counts), dtype=np.intp), np.zeros(n_folds)
    for g in shuffled[np.argsort(-counts[shuffled], kind="stable")]:
        fold_of[g] = sizes.argmin()
        sizes[fold_of[g]] += counts[g]
    return np.asarray(fold_of[group_of_pair])


def held_out_scores(
    X: FloatArray,
    fit: Callable[[FloatArray], Parameters],
    answers: ArrayLike,
    folds: ArrayLike,
    engine: Engine,
    *,
    error_rate: float,
    **known: Any,
) -> FloatArray:
    """Compute the log-probability of each answer under a fit that has not used it.

    Parameters
    ----------
    X : (N, D) array
        The points; each fit uses all of them.
    fit : callable
        Function that takes (P', 3) preferences and returns the parameters θ of a fit to the points,
        these preferences and other side information, for example
        ``lambda rows: model.fit(X, preferences=rows).parameters_``.
    answers : (P, 3) array_like
        Rows ``i, j, said``: ``said`` is 1 for "together" and 0 for "apart".
    folds : (P,) int array_like
        The fold of each answer; answers about connected points should share a fold.
    engine : callable
        An exact engine of :data:`cgmm.inference.ENGINES`.
    error_rate : float
        q, above 0 and below 1; it determines the log-weights of answers and their scores.
    **known
        Other side information, as in :meth:`cgmm.network.SideInformation.build`.

    Returns
    -------
    (P,) array
        ℓ_e in nats: ``log((1 - q) p(the answer is right) + q p(it is wrong))``, with probabilities
        by the fit.

    Raises
    ------
    ValueError
        If answers or folds have wrong shapes or values, or q is out of range.

    Examples
    --------
    Four points lie in two clusters with known θ, and the second answer is unlikely:

    >>> from cgmm.inference import ENGINES
    >>> X = np.array([[-2.0], [-2.0], [2.0], [2.0]])
    >>> theta = Parameters(np.array([0.5, 0.5]), np.array([[-2.0], [2.0]]), np.ones((2, 1, 1)))
    >>> answers, folds = [[0, 1, 1], [2, 3, 0]], [0, 1]
    >>> held_out_scores(
    ...     X, lambda rows: theta, answers, folds, ENGINES["auto"], error_rate=0.1
    ... ).round(2)
    array([-0.11, -2.3 ])
    """
    _check_error_rate(error_rate)
    rows = check_answers(answers, len(X))
    fold = check_labels("folds", folds, len(rows), least=0)
    pairs, says_together = rows[:, :2], rows[:, 2] == 1
    preferences = preferences_from_answers(rows, 1 - error_rate)
    scores = np.empty(len(rows))
    for is_held_out in (fold == f for f in np.unique(fold)):
        training = preferences[~is_held_out]
        theta, side = fit(training), contracted(len(X), preferences=training, **known)
        together = pair_probabilities(X, theta, side, pairs[is_held_out], engine(side.graph))
        p_right = np.where(says_together[is_held_out], together, 1 - together)
        # Near p_right = 0 the error rate dominates the sum, so p_right needs no accurate tail.
        scores[is_held_out] = np.log((1 - error_rate) * p_right + error_rate * (1 - p_right))
    return scores


def log_score(scores: ArrayLike, pairs: ArrayLike, groups: ArrayLike) -> LogScore:
    """Return the mean of held-out log scores, and its standard error over groups.

    Parameters
    ----------
    scores : (P,) array_like
        ℓ_e from :func:`held_out_scores`. To compare two settings, give the differences of their
        scores; the result is then the mean difference and its standard error.
    pairs : (P, 2) int array_like
        The two points of each answer.
    groups : (N,) int array_like
        The group of each point, from :func:`cgmm.network.related_groups` with *all* relations,
        including the answers.

    Returns
    -------
    LogScore
        Mean, its standard error ``√(G / (G - 1) Σ_g (Σ_{e ∈ g} (ℓ_e - mean))²) / P``, and G.

    Raises
    ------
    ValueError
        If shapes do not fit, or there are fewer than two groups.

    Examples
    --------
    >>> score = log_score([-0.1, -0.5, -0.3], [[0, 1], [2, 3], [4, 5]], [0, 0, 1, 1, 2, 2])
    >>> round(score.mean, 4), round(score.standard_error, 4), score.n_groups
    (-0.3, 0.1155, 3)
    """
    values, (group_of_pair, counts) = np.asarray(scores, dtype=float), _number_groups(pairs, groups)
    n_groups = len(counts)
    if values.shape != group_of_pair.shape or n_groups < 2:
        raise ValueError(
            f"scores have the shape {values.shape} for {len(group_of_pair)} pairs in {n_groups} "
            "groups; there must be a score for each pair, and at least two groups for an error."
        )
    mean = values.mean()
    sums = np.bincount(group_of_pair, values - mean)
    error = np.sqrt(n_groups / (n_groups - 1) * (sums**2).sum()) / len(values)
    return LogScore(float(mean), float(error), n_groups)


def assignment_entropy(
    X: FloatArray, parameters: Parameters, side: SideInformation, infer: Infer
) -> float:
    """Compute the entropy of the joint posterior distribution of all assignments.

    Parameters
    ----------
    X : (N, D) array
        The points.
    parameters : Parameters
        θ, the attribute ``parameters_`` of a fit.
    side : SideInformation
        All side information about these points.
    infer : callable
        An exact engine applied to ``side.graph``.

    Returns
    -------
    float
        H(z | X, side information, θ) in nats. ``bic() + 2 H`` is the criterion ICL, which penalises
        fits with overlapping components.

    Raises
    ------
    ValueError
        If the engine reports no log-evidence.

    Notes
    -----
    ``H = log Z - Σ_jk r_jk u_jk - Σ_e w_e p_e``, which takes one call of the engine, and the
    probability p_e of each edge. Without relations H is the sum of the entropies of all points;
    relations reduce it.

    Biernacki, Celeux and Govaert (2000), Assessing a mixture model for clustering with the
    integrated completed likelihood.

    Examples
    --------
    Three points lie between two components, and two are must-linked, so four assignments of equal
    probability are possible:

    >>> from cgmm.inference import ENGINES
    >>> theta = Parameters(np.array([0.5, 0.5]), np.array([[-1.0], [1.0]]), np.ones((2, 1, 1)))
    >>> side = SideInformation.build(3, must_link=[[0, 1]])
    >>> H = assignment_entropy(np.zeros((3, 1)), theta, side, ENGINES["auto"](side.graph))
    >>> round(float(np.exp(H)), 6)
    4.0
    """
    unary = node_unaries(X, parameters, side)
    (r, log_z, *_), (edges, w) = infer(unary), side.graph[1:3]
    if np.isnan(log_z):
        raise ValueError(
            "the engine reports no log-evidence, which the entropy requires; use an exact engine: "
            "ENGINES['auto'](side.graph)."
        )
    p_equal = expit(log_odds_together(infer, unary, side.graph, edges))
    # Impossible states have the log-potential -inf, but they contribute nothing to the mean.
    mean_unary = (r * np.where(r > 0, unary, 0.0)).sum()
    mean_pairwise = (p_equal * np.where(p_equal > 0, w, 0.0)).sum()
    return float(max(log_z - mean_unary - mean_pairwise, 0.0))


def _number_groups(pairs: ArrayLike, groups: ArrayLike) -> tuple[IntArray, IntArray]:
    """Return the (P,) index of each pair's group, and the (G,) number of pairs in each group."""
    group = check_labels("groups", groups, least=0)
    groups_of_pair = group[check_pairs("pairs", pairs, len(group))]
    wrong = np.flatnonzero(groups_of_pair[:, 0] != groups_of_pair[:, 1])
    if len(wrong):
        raise ValueError(
            f"pairs[{wrong[0]}] joins the groups {groups_of_pair[wrong[0]].tolist()}; groups must "
            "follow from all relations: related_groups(N, must_link=..., cannot_link=pairs)."
        )
    return np.unique(groups_of_pair[:, 0], return_inverse=True, return_counts=True)[1:]


def _check_error_rate(error_rate: float) -> None:
    """Raise an error if the error rate is not between 0 and 1."""
    if not 0 < error_rate < 1:
        raise ValueError(
            f"error_rate is {error_rate:g}; it must be between 0 and 1, since otherwise a single "
            "answer that contradicts a fit would have the score -inf: error_rate=0.05."
        )


# ---------------------------------------------------------------------------- the search


class Trial(NamedTuple):
    """Scores of one setting, which are NaN if the fit failed."""

    params: dict[str, Any]
    """Parameters of the estimator, and ``error_rate`` if the grid contains it."""
    mean_test_score: float
    """Mean log-probability of held-out answers in nats, higher is better."""
    standard_error: float
    """Standard error of the mean, computed over groups of connected answers."""
    evidence: float
    """log p(X, answers | θ, hard relations) in nats of a fit to all answers. Settings with
    different error rates can be compared by it, because answers are part of the data."""
    bic: float
    """-2 evidence + ν log N; lower is better."""
    icl: float
    """BIC + 2 H, where H is the entropy of all assignments; lower is better."""
    n_free: int
    """ν, the number of free parameters."""
    error: str
    """Message of the error that made the fit fail, or an empty string."""


class AnswerSearch(BaseEstimator):
    """Search for the settings of a mixture that best predict held-out answers.

    Parameters
    ----------
    estimator : ConstrainedGaussianMixture or another mixture
        The mixture whose parameters are searched. Parameters that are not in the grid keep their
        values. Answers enter by the joint likelihood: ``weights`` "auto" means "ignore" here.
    param_grid : dict or list of dict
        Lists of values by parameter name, as in scikit-learn's ``ParameterGrid``. The name
        ``"error_rate"`` is q, the error rate of answers.
    error_rate : float, default=0.1
        q, if the grid does not contain it.
    n_folds : int, default=5
        Number of folds; a group of connected answers is never divided.
    n_jobs : int, default=1
        Number of processes, each of which fits one setting at a time; -1 means all processors.
    random_state : int, RandomState, Generator or None, default=0
        Seed for the folds. Fits use the estimator's own ``random_state``.
    verbose : int, default=0
        Verbosity of ``joblib.Parallel``.

    Attributes
    ----------
    cv_results_ : dict of arrays
        Columns of a table with a row for each setting, in the order of the grid, which can be
        converted by ``pandas.DataFrame``: ``params``, ``param_NAME`` for each parameter,
        ``mean_test_score`` with its ``standard_error`` and ``rank_test_score``, ``evidence``,
        ``bic``, ``icl``, ``n_free`` and ``error``.
    best_index_ : int
        Index of the setting with the fewest free parameters among those whose mean is within one
        standard error of the best mean.
    best_params_ : dict
        The chosen setting.
    best_score_ : float
        ``mean_test_score`` of the chosen setting.
    best_estimator_ : estimator
        The mixture fitted with the chosen setting to all answers.
    choices_ : dict
        Index of the setting that each criterion chooses: "held out", "highest mean", "evidence",
        "bic", "icl".
    folds_ : (P,) array
        The fold of each answer.
    labels_ : (N,) int array
        The component of each point according to ``best_estimator_``.

    Notes
    -----
    Breiman, Friedman, Olshen and Stone (1984), Classification and regression trees, sect. 3.4.3,
    give the rule of one standard error.

    The criteria disagree if the data do not come from the model. The evidence of the fitted data
    increases with the number of components. BIC and ICL penalise this, but they measure how well
    the points are described, not whether components correspond to classes. Held-out answers measure
    this correspondence, with a known standard error. All criteria are valid both for random pairs
    and for pairs that were chosen by looking at the points; see :func:`cgmm.decide.fit_answers`.

    Examples
    --------
    >>> from cgmm import ConstrainedGaussianMixture
    >>> X = np.random.default_rng(0).normal(size=(60, 1)) + np.repeat([[-3.0], [3.0]], 30, axis=0)
    >>> answers = [[i, i + 1, 1] for i in range(0, 58, 2)]
    >>> answers += [[i, 60 - i, 0] for i in range(1, 28, 2)]
    >>> model = ConstrainedGaussianMixture(weights="ignore", random_state=0)
    >>> search = AnswerSearch(model, {"n_components": [1, 2]}, error_rate=0.05).fit(X, answers)
    >>> search.best_params_, search.cv_results_["mean_test_score"].round(1)
    ({'n_components': 2}, array([-1. , -0.1]))
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
        *,
        error_rate: float = 0.1,
        n_folds: int = 5,
        n_jobs: int = 1,
        random_state: Seed = 0,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.error_rate = error_rate
        self.n_folds = n_folds
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: ArrayLike, answers: ArrayLike, **known: Any) -> AnswerSearch:
        """Fit every setting, choose one, and fit it to all answers.

        Parameters
        ----------
        X : (N, D) array_like
            The points.
        answers : (P, 3) array_like
            Rows ``i, j, said``: ``said`` is 1 for "together" and 0 for "apart".
        **known
            Certain side information: ``labels``, ``must_link``, ``cannot_link``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If answers cannot be divided into folds, or no setting can be fitted.
        KeyboardInterrupt
            If the search is interrupted. ``cv_results_`` then contains the completed settings.
        """
        X = np.asarray(X, dtype=float)
        _check_error_rate(self.error_rate)
        rows = check_answers(answers, len(X))
        pairs = rows[:, :2]
        relations = {name: value for name, value in known.items() if name != "labels"}
        groups = related_groups(len(X), preferences=np.insert(pairs, 2, 1, axis=1), **relations)
        self.folds_ = assign_folds(pairs, groups, self.n_folds, random_state=self.random_state)
        grid = list(ParameterGrid(self.param_grid))
        parallel = Parallel(self.n_jobs, verbose=self.verbose, return_as="generator")
        score = partial(
            _score_setting, self.estimator, self.error_rate, X, rows, self.folds_, groups, known
        )
        trials = list[Trial]()
        try:
            for trial in parallel(delayed(score)(params) for params in grid):
                trials.append(trial)
        finally:
            self.cv_results_ = _convert_to_columns(trials)
        return self._choose_setting(trials, X, rows, known)

    def _choose_setting(
        self, trials: list[Trial], X: FloatArray, rows: IntArray, known: Any
    ) -> AnswerSearch:
        """Choose a setting by each criterion, and fit the one chosen by held-out answers again."""
        if all(trial.error for trial in trials):
            raise ValueError(f"no setting could be fitted: {trials[0].error}")
        columns = self.cv_results_
        self.choices_ = {
            "held out": _choose_simplest(trials),
            "highest mean": int(np.nanargmax(columns["mean_test_score"])),
            "evidence": int(np.nanargmax(columns["evidence"])),
            "bic": int(np.nanargmin(columns["bic"])),
            "icl": int(np.nanargmin(columns["icl"])),
        }
        self.best_index_ = self.choices_["held out"]
        self.best_params_ = trials[self.best_index_].params
        self.best_score_ = trials[self.best_index_].mean_test_score
        model, q = _apply_setting(self.estimator, self.best_params_, self.error_rate)
        self.best_estimator_ = fit_answers(model, X, rows, error_rate=q, **known)
        self.labels_ = self.best_estimator_.labels_
        return self

    def predict(self, X: ArrayLike, **known: Any) -> IntArray:
        """Return the most probable component of each point, according to the best estimator.

        Parameters
        ----------
        X : (N, D) array_like
            Points.
        **known
            Relations between these points, as in ``predict`` of the estimator.

        Returns
        -------
        (N,) int array
            Index of the component.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X, **known)


def _choose_simplest(trials: list[Trial]) -> int:
    """Return the index of the simplest setting within one standard error of the best mean."""
    means = [trial.mean_test_score for trial in trials]
    best = trials[int(np.nanargmax(means))]
    threshold = best.mean_test_score - best.standard_error
    candidates = [i for i, mean in enumerate(means) if mean >= threshold]
    return min(candidates, key=lambda i: (trials[i].n_free, -means[i]))


def _convert_to_columns(trials: list[Trial]) -> dict[str, Any]:
    """Return the trials as a dict of columns, like ``cv_results_`` of scikit-learn."""
    columns: dict[str, Any] = {
        name: np.array([getattr(trial, name) for trial in trials])
        for name in Trial._fields
        if name != "params"
    }
    columns["params"] = [trial.params for trial in trials]
    for name in dict.fromkeys(name for trial in trials for name in trial.params):
        values = np.empty(len(trials), dtype=object)
        values[:] = [trial.params.get(name) for trial in trials]
        is_absent = [name not in trial.params for trial in trials]
        columns[f"param_{name}"] = np.ma.array(values, mask=is_absent)
    ranks = rankdata(-columns["mean_test_score"], method="min", nan_policy="omit")
    columns["rank_test_score"] = np.where(np.isnan(ranks), len(trials), ranks).astype(int)
    return columns


# ---------------------------------------------------------------------------- one setting


def _score_setting(
    estimator: Any, error_rate: float, X: FloatArray, rows: IntArray, folds: IntArray,
    groups: IntArray, known: Any, params: dict[str, Any],
) -> Trial:  # fmt: skip
    """Return the held-out score of a setting, and the criteria of a fit to all answers."""
    model, q = _apply_setting(estimator, params, error_rate)
    # One thread is fastest for such small fits. Warnings are ignored here, because the fit with the
    # chosen setting issues them again.
    with threadpool_limits(1), warnings.catch_warnings(action="ignore", category=UserWarning):
        try:
            scores = held_out_scores(
                X, lambda soft: clone(model).fit(X, preferences=soft, **known).parameters_, rows,
                folds, ENGINES["auto"], error_rate=q, sampling=model.sampling, **known,
            )  # fmt: skip
            mean, standard_error, _ = log_score(scores, rows[:, :2], groups)
            criteria = _compute_criteria(clone(model), X, rows, q, known)
            return Trial(params, mean, standard_error, *criteria, "")
        except ValueError as error:
            return Trial(params, np.nan, np.nan, np.nan, np.nan, np.nan, 0, str(error))


def _compute_criteria(
    model: Any, X: FloatArray, rows: IntArray, q: float, known: Any
) -> tuple[float, float, float, int]:
    """Return evidence, BIC, ICL and number of free parameters of a fit to all answers."""
    model = fit_answers(model, X, rows, error_rate=q, **known)
    theta, n_free = model.parameters_, round(model.aic() / 2 + model.log_evidence_)
    side, certain = (
        contracted(len(X), preferences=relations, sampling=model.sampling, **known)
        for relations in (preferences_from_answers(rows, 1 - q), None)
    )
    infer = ENGINES["auto"](side.graph)
    evidence = infer(node_unaries(X, theta, side)).log_z
    evidence -= Prior(certain, ENGINES["auto"]).log_z(theta.weights)
    # Preferences omit a constant factor of each answer's likelihood, so add its logarithm.
    evidence += float(np.sum(np.where(rows[:, 2] == 1, np.log(q), np.log1p(-q))))
    bic = -2 * evidence + n_free * np.log(len(X))
    return evidence, bic, bic + 2 * assignment_entropy(X, theta, side, infer), n_free


def _apply_setting(estimator: Any, params: dict[str, Any], error_rate: float) -> tuple[Any, float]:
    """Return a copy of the estimator with the parameters of a setting, and the error rate."""
    parameters = {"error_rate": error_rate, **params}
    q = float(parameters.pop("error_rate"))
    return joint(clone(estimator).set_params(**parameters)), q
