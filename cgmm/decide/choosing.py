"""Choose settings by held-out answers: folds, log scores with their error, and a search.

The number of components, the type of covariances and the error rate of answers are chosen such that
held-out answers get the largest probability. Answers about connected points depend on each other
(two of three may imply the third), so they are held out together, and count together in the error
of the mean. A search fits every setting once without each fold of answers, which it then predicts,
and once to all of them, for the criteria that hold nothing out. Chapter 14 explains the search.

=======  ======================================================================
P        number of answers; e one of them, about points i and j
q        error rate of answers; the log-weight of an answer is ±logit(1 - q)
ℓ_e      log p(answer e | X, the answers of the other folds)
g        group: points connected by relations; G groups have answers
z        assignments of all nodes; u_jk unary log-potentials, w_e log-weights
r_jk     p(z_j = k), p_e = p(z_a = z_b) of edge e, given everything
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
    """(Σ_e ℓ_e) / P in nats, higher is better; a coin has -log 2."""
    standard_error: float
    """Standard error of the mean, for dependent answers within groups and independent groups."""
    n_groups: int
    """G, the number of groups with answers."""


def answer_folds(
    pairs: ArrayLike,
    groups: ArrayLike,
    n_folds: int,
    *,
    random_state: Seed = None,
) -> IntArray:
    """Assign answers to folds such that no relation connects two folds.

    Parameters
    ----------
    pairs : (P, 2) int array_like
        The points that were asked about.
    groups : (N,) int array_like
        The group of each point by *all* relations, including these answers, from
        :func:`cgmm.network.related_groups`.
    n_folds : int
        Number of folds, at least two, at most the number of groups with answers.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the order of groups of equal size.

    Returns
    -------
    (P,) int array
        Fold of each answer, from 0 to ``n_folds - 1``. Groups are assigned by decreasing number of
        answers, each to the smallest fold, so folds differ by at most the answers of one group.

    Raises
    ------
    ValueError
        If both points of a pair are not in one group, or there are fewer groups than folds.

    Examples
    --------
    The first three answers are connected, so they get the same fold:

    >>> from cgmm.network import related_groups
    >>> pairs = [[0, 1], [1, 2], [0, 2], [3, 4], [5, 6]]
    >>> answer_folds(pairs, related_groups(7, cannot_link=pairs), 2, random_state=0)
    array([0, 0, 0, 1, 1])
    """
    which, counts = _number_groups(pairs, groups)
    if len(counts) < 2:
        raise ValueError(
            "all answers hang together, by chains of relations: none can be held out without those "
            "that imply it. Choose by the evidence of fits to all of them, model.bic(), or ask "
            "about pairs of other points."
        )
    if not 2 <= n_folds <= len(counts):
        raise ValueError(
            f"n_folds is {n_folds}; it must be from 2 to {len(counts)}, the number of groups with "
            f"answers, since what hangs together is held out together: n_folds={len(counts)}."
        )
    rng = generator(random_state)
    shuffled = rng.permutation(len(counts))
    fold_of, sizes = np.empty(len(counts), dtype=np.intp), np.zeros(n_folds)
    for g in shuffled[np.argsort(-counts[shuffled], kind="stable")]:
        fold_of[g] = sizes.argmin()
        sizes[fold_of[g]] += counts[g]
    return np.asarray(fold_of[which])


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
    """Compute the log-probability of each answer by a fit that has not used it.

    Parameters
    ----------
    X : (N, D) array
        The points; each fit uses all of them.
    fit : callable
        Takes preferences (P', 3) and returns θ of a fit to them and to other side information:
        ``lambda rows: model.fit(X, preferences=rows).parameters_``.
    answers : (P, 3) array_like
        Rows ``i, j, said``: 1 if "together" was said, 0 if "apart".
    folds : (P,) int array_like
        The fold of each answer, from ``answer_folds``.
    engine : callable
        An exact engine of :data:`cgmm.inference.ENGINES`.
    error_rate : float
        q, above 0 and below 1; it determines the log-weights of answers and their scores.
    **known
        Other side information, as :meth:`cgmm.network.SideInformation.build` takes it.

    Returns
    -------
    (P,) array
        ℓ_e in nats: ``log((1 - q) p(the answer is true) + q p(it is not true))``.

    Raises
    ------
    ValueError
        If answers or folds do not fit, or q is out of range.

    Examples
    --------
    Four points lie in two clusters of known θ, and the second answer is unlikely:

    >>> from cgmm.inference import ENGINES
    >>> X = np.array([[-2.0], [-2.0], [2.0], [2.0]])
    >>> theta = Parameters(np.array([0.5, 0.5]), np.array([[-2.0], [2.0]]), np.ones((2, 1, 1)))
    >>> answers, folds = [[0, 1, 1], [2, 3, 0]], [0, 1]
    >>> held_out_scores(
    ...     X, lambda rows: theta, answers, folds, ENGINES["auto"], error_rate=0.1
    ... ).round(2)
    array([-0.11, -2.3 ])
    """
    _require_rate(error_rate)
    rows = check_answers(answers, len(X))
    fold = check_labels("folds", folds, len(rows), least=0)
    pairs, says_together = rows[:, :2], rows[:, 2] == 1
    preferences = preferences_from_answers(rows, 1 - error_rate)
    scores = np.empty(len(rows))
    for out in (fold == f for f in np.unique(fold)):
        theta = fit(preferences[~out])
        side = contracted(len(X), preferences=preferences[~out], **known)
        together = pair_probabilities(X, theta, side, pairs[out], engine(side.graph))
        true = np.where(says_together[out], together, 1 - together)
        # Near p = 0 the error rate dominates the sum, so p itself needs no accurate tail.
        scores[out] = np.log((1 - error_rate) * true + error_rate * (1 - true))
    return scores


def log_score(scores: ArrayLike, pairs: ArrayLike, groups: ArrayLike) -> LogScore:
    """Return the mean of held-out log scores, and its standard error over groups.

    Parameters
    ----------
    scores : (P,) array_like
        ℓ_e of :func:`held_out_scores`, or the differences of the scores of two settings, to compare
        these by the error of the mean difference.
    pairs : (P, 2) int array_like
        The points that were asked about.
    groups : (N,) int array_like
        The group of each point, as in ``answer_folds``.

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
    >>> found = log_score([-0.1, -0.5, -0.3], [[0, 1], [2, 3], [4, 5]], [0, 0, 1, 1, 2, 2])
    >>> round(found.mean, 4), round(found.standard_error, 4), found.n_groups
    (-0.3, 0.1155, 3)
    """
    values, (which, counts) = np.asarray(scores, dtype=float), _number_groups(pairs, groups)
    n_groups = len(counts)
    if values.shape != which.shape or n_groups < 2:
        raise ValueError(
            f"scores have the shape {values.shape} for {len(which)} pairs in {n_groups} groups; "
            "there must be a score for each pair, and two groups at least to tell an error."
        )
    mean = values.mean()
    sums = np.bincount(which, values - mean)
    error = np.sqrt(n_groups / (n_groups - 1) * (sums**2).sum()) / len(values)
    return LogScore(float(mean), float(error), n_groups)


def assignment_entropy(
    X: FloatArray, parameters: Parameters, side: SideInformation, infer: Infer
) -> float:
    """Compute the entropy of the joint posterior of all assignments.

    Parameters
    ----------
    X : (N, D) array
        The points.
    parameters : Parameters
        θ, ``parameters_`` of a fit.
    side : SideInformation
        All side information.
    infer : callable
        An exact engine applied to ``side.graph``.

    Returns
    -------
    float
        H(z | X, all side information, θ) in nats. ``bic() + 2 H`` is the criterion ICL, which
        penalises fits with overlapping classes.

    Raises
    ------
    ValueError
        If the engine reports no log-evidence.

    Notes
    -----
    ``H = log Z - Σ_jk r_jk u_jk - Σ_e w_e p_e``, which takes one call of the engine, and the
    probabilities of the pairs with edges. Without relations it is the sum of the points' entropies;
    relations lower it.

    Biernacki, Celeux and Govaert (2000), Assessing a mixture model for clustering with the
    integrated completed likelihood.

    Examples
    --------
    Three points lie between two components, and two are must-linked: four assignments are left.

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
            "the engine reports no log-evidence, without which there is no entropy; ask an exact "
            "one: ENGINES['auto'](side.graph)."
        )
    p_equal = expit(log_odds_together(infer, unary, side.graph, edges))
    # Impossible states have -inf as log-potential and contribute nothing to the mean.
    of_nodes = (r * np.where(r > 0, unary, 0.0)).sum()
    of_edges = (p_equal * np.where(p_equal > 0, w, 0.0)).sum()
    return float(max(log_z - of_nodes - of_edges, 0.0))


def _number_groups(pairs: ArrayLike, groups: ArrayLike) -> tuple[IntArray, IntArray]:
    """Return the group number of each pair, and the number of pairs in each group."""
    group = check_labels("groups", groups, least=0)
    of_pair = group[check_pairs("pairs", pairs, len(group))]
    across = np.flatnonzero(of_pair[:, 0] != of_pair[:, 1])
    if len(across):
        raise ValueError(
            f"pairs[{across[0]}] joins the groups {of_pair[across[0]].tolist()}; groups must be "
            "those of all relations: related_groups(N, must_link=..., cannot_link=pairs)."
        )
    return np.unique(of_pair[:, 0], return_inverse=True, return_counts=True)[1:]


def _require_rate(error_rate: float) -> None:
    """Raise an error if one answer that is impossible under a fit could have infinite weight."""
    if not 0 < error_rate < 1:
        raise ValueError(
            f"error_rate is {error_rate:g}; it must lie between 0 and 1, since one answer that a "
            "fit holds impossible would decide over all: error_rate=0.05."
        )


# ---------------------------------------------------------------------------- the search


class Trial(NamedTuple):
    """The scores of one setting; NaN if its fit failed."""

    params: dict[str, Any]
    """Parameters of the estimator, and ``error_rate`` if the grid has it."""
    mean_test_score: float
    """Mean log-probability of held-out answers in nats, higher is better."""
    standard_error: float
    """Standard error of the mean, over groups of connected answers."""
    evidence: float
    """log p(X, answers | θ) in nats of a fit to all answers, given the hard relations. Error rates
    can be compared by it, since answers count as data."""
    bic: float
    """-2 evidence + ν log N, lower is better."""
    icl: float
    """BIC + 2 H, where H is the entropy of all assignments; lower is better."""
    n_free: int
    """ν, the number of free parameters."""
    error: str
    """Message of the error that ended the fit, or an empty string."""


class AnswerSearch(BaseEstimator):
    """Search for the settings of a mixture that best predict held-out answers.

    Parameters
    ----------
    estimator : ConstrainedGaussianMixture or another mixture
        The mixture whose parameters are searched; parameters outside the grid keep its values.
        Answers enter by the joint likelihood: ``weights`` "auto" means "ignore" here.
    param_grid : dict or list of dict
        As scikit-learn's ``ParameterGrid``: lists of values by the name of a parameter.
        ``"error_rate"`` is q, the error rate of answers, instead of γ = 1 - q.
    error_rate : float, default=0.1
        q, unless the grid names it.
    n_folds : int, default=5
        Number of folds, each of whole groups of connected answers.
    n_jobs : int, default=1
        Number of settings fitted in parallel, each by a process; -1: all processors.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the folds. Fits use the estimator's own ``random_state``.
    verbose : int, default=0
        As ``joblib.Parallel`` takes it.

    Attributes
    ----------
    cv_results_ : dict of arrays
        An entry for each setting, in the order of the grid: ``params``, ``param_NAME`` for each
        parameter, ``mean_test_score`` with its ``standard_error`` and ``rank_test_score``,
        ``evidence``, ``bic``, ``icl``, ``n_free`` and ``error``. ``pandas.DataFrame`` takes it.
    best_index_ : int
        Index of the setting with the fewest free parameters among those whose mean is within one
        standard error of the best mean.
    best_params_ : dict
        The chosen setting.
    best_score_ : float
        Its ``mean_test_score``.
    best_estimator_ : estimator
        The mixture fitted with that setting to all answers.
    choices_ : dict
        The index that each criterion chooses: "held out", "highest mean", "evidence", "bic", "icl".
    folds_ : (P,) array
        The fold of each answer.
    labels_ : (N,) int array
        Components of the points by ``best_estimator_``.

    Notes
    -----
    Breiman, Friedman, Olshen and Stone (1984), Classification and regression trees, sect. 3.4.3,
    give the rule of one standard error.

    Criteria disagree if the model is not true. The evidence of the fitted data rises with the
    number of components. BIC and ICL penalise this, but measure how well points are described, not
    whether components are classes. Held-out answers measure the latter, with a known error. All
    criteria allow pairs that were chosen at random or by looking at the points; see
    :func:`cgmm.decide.fit_answers`.

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
            Rows ``i, j, said``: 1 if "together" was said, 0 if "apart".
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
            If interrupted. ``cv_results_`` has the settings that were completed.
        """
        X = np.asarray(X, dtype=float)
        _require_rate(self.error_rate)
        rows = check_answers(answers, len(X))
        pairs = rows[:, :2]
        relations = {name: given for name, given in known.items() if name != "labels"}
        groups = related_groups(len(X), preferences=np.insert(pairs, 2, 1, axis=1), **relations)
        self.folds_ = answer_folds(pairs, groups, self.n_folds, random_state=self.random_state)
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
            self.cv_results_ = _as_columns(trials)
        return self._choose(trials, X, rows, known)

    def _choose(
        self, trials: list[Trial], X: FloatArray, rows: IntArray, known: Any
    ) -> AnswerSearch:
        """Apply the one-standard-error rule and all other criteria, and fit the choice again."""
        if all(trial.error for trial in trials):
            raise ValueError(f"no setting could be fitted: {trials[0].error}")
        found = self.cv_results_
        self.choices_ = {
            "held out": _choose_simplest(trials),
            "highest mean": int(np.nanargmax(found["mean_test_score"])),
            "evidence": int(np.nanargmax(found["evidence"])),
            "bic": int(np.nanargmin(found["bic"])),
            "icl": int(np.nanargmin(found["icl"])),
        }
        self.best_index_ = self.choices_["held out"]
        self.best_params_ = trials[self.best_index_].params
        self.best_score_ = trials[self.best_index_].mean_test_score
        model, q = _prepare(self.estimator, self.best_params_, self.error_rate)
        self.best_estimator_ = fit_answers(model, X, rows, error_rate=q, **known)
        self.labels_ = self.best_estimator_.labels_
        return self

    def predict(self, X: ArrayLike, **known: Any) -> IntArray:
        """Return the most probable component of each point, by the best estimator.

        Parameters
        ----------
        X : (N, D) array_like
            Points.
        **known
            Relations among them, as ``predict`` of the estimator takes them.

        Returns
        -------
        (N,) int array
            The component.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X, **known)


def _choose_simplest(trials: list[Trial]) -> int:
    """Return the index with fewest parameters within one standard error of the best mean."""
    means = [trial.mean_test_score for trial in trials]
    best = trials[int(np.nanargmax(means))]
    least = best.mean_test_score - best.standard_error
    candidates = [i for i, mean in enumerate(means) if mean >= least]
    return min(candidates, key=lambda i: (trials[i].n_free, -means[i]))


def _as_columns(trials: list[Trial]) -> dict[str, Any]:
    """Return an array per field and parameter of the trials, as scikit-learn's searches do."""
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
    """Return the held-out score of a setting, and its criteria on all answers."""
    model, q = _prepare(estimator, params, error_rate)
    # One thread is fastest for fits this small. Warnings are ignored here, because the last fit
    # gives them again.
    with threadpool_limits(1), warnings.catch_warnings(action="ignore", category=UserWarning):
        try:
            scores = held_out_scores(
                X, lambda soft: clone(model).fit(X, preferences=soft, **known).parameters_, rows,
                folds, ENGINES["auto"], error_rate=q, sampling=model.sampling, **known,
            )  # fmt: skip
            mean, error, _ = log_score(scores, rows[:, :2], groups)
            return Trial(
                params, mean, error, *_compute_criteria(clone(model), X, rows, q, known), ""
            )
        except ValueError as refusal:
            return Trial(params, np.nan, np.nan, np.nan, np.nan, np.nan, 0, str(refusal))


def _compute_criteria(
    model: Any, X: FloatArray, rows: IntArray, q: float, known: Any
) -> tuple[float, float, float, int]:
    """Return evidence, BIC, ICL and ν of a fit to all answers."""
    model = fit_answers(model, X, rows, error_rate=q, **known)
    theta, n_free = model.parameters_, round(model.aic() / 2 + model.log_evidence_)
    side, certain = (
        contracted(len(X), preferences=relations, sampling=model.sampling, **known)
        for relations in (preferences_from_answers(rows, 1 - q), None)
    )
    infer = ENGINES["auto"](side.graph)
    evidence = infer(node_unaries(X, theta, side)).log_z
    evidence -= Prior(certain, ENGINES["auto"]).log_z(theta.weights)
    # Preferences omit a constant factor of the likelihood of each answer, so add its logarithm.
    evidence += float(np.sum(np.where(rows[:, 2] == 1, np.log(q), np.log1p(-q))))
    bic = -2 * evidence + n_free * np.log(len(X))
    return evidence, bic, bic + 2 * assignment_entropy(X, theta, side, infer), n_free


def _prepare(estimator: Any, params: dict[str, Any], error_rate: float) -> tuple[Any, float]:
    """Return a copy of the estimator with a setting, and the error rate."""
    parameters = {"error_rate": error_rate, **params}
    q = float(parameters.pop("error_rate"))
    return joint(clone(estimator).set_params(**parameters)), q
