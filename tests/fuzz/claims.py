"""Check what every fit must satisfy, and raise an error with a readable message if it does not.

``contract.examine`` calls the function for the estimator's kind.

=====  ==================================================================
N, D   numbers of points x_i and of dimensions; K components
r, S   responsibilities r_ik, and covariances
=====  ==================================================================
"""

from typing import Any

import numpy as np
import pandas as pd

from cgmm import COPKMeans, SideInformation
from cgmm.inference import ENGINES
from cgmm.metric_learning import objective
from cgmm.mixture import e_step, node_unaries
from cgmm.network import log_weight
from cgmm.numerics import AGREE

from .problems import Problem

# Largest number of assignments that are enumerated, which takes less than a second.
N_ENUMERABLE = 4096


class BrokenContractError(AssertionError):
    """Error for a problem that has neither a correct result nor a clear refusal."""


def require(holds, message: str) -> None:
    """Raise an error with the message unless a claim holds, even under ``python -O``."""
    if not np.all(holds):
        raise BrokenContractError(message)


def require_finite(model, *names: str) -> None:
    """Check that attributes of a model contain finite numbers only."""
    for name in names:
        value = np.asarray(getattr(model, name), dtype=float)
        require(np.isfinite(value), f"{name} is not finite: {value.ravel()[:8]}")


def require_probabilities(p: np.ndarray, name: str) -> None:
    """Check that the rows of p are finite and not negative, and that each sums to one."""
    require(np.isfinite(p) & (p >= 0), f"{name} is no probability")
    require(abs(p.sum(axis=1) - 1) < 1e-9, f"{name} does not sum to one")


def read_pairs(arguments: dict[str, Any], name: str) -> np.ndarray:
    """Return an argument of ``fit`` as (P, 2) integers, with zero rows if it is missing."""
    pairs = np.asarray(() if arguments.get(name) is None else arguments[name], dtype=float)
    return pairs.reshape(-1, 2).astype(int) if pairs.size else np.empty((0, 2), dtype=int)


def collect_hard_relations(arguments: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the must-links and cannot-links, including preferences with infinite log-odds."""
    must, cannot = read_pairs(arguments, "must_link"), read_pairs(arguments, "cannot_link")
    preferences = np.asarray(arguments.get("preferences", ()), dtype=float)
    if preferences.size:
        rows, odds = preferences[:, :2].astype(int), preferences[:, 2]
        must = np.concatenate([must, rows[odds == np.inf]])
        cannot = np.concatenate([cannot, rows[odds == -np.inf]])
    return must, cannot


def require_relations(labels: np.ndarray, must: np.ndarray, cannot: np.ndarray) -> None:
    """Check that labels satisfy all must-links and cannot-links."""
    broken = must[labels[must[:, 0]] != labels[must[:, 1]]]
    require(len(broken) == 0, f"labels_ breaks the must-links {broken[:3].tolist()}")
    broken = cannot[labels[cannot[:, 0]] == labels[cannot[:, 1]]]
    require(len(broken) == 0, f"labels_ breaks the cannot-links {broken[:3].tolist()}")


# ---------------------------------------------------------------------------- mixtures


def check_mixture(model, problem: Problem) -> None:
    """Check the attributes and predictions that mixtures of all families have."""
    N, K = len(problem.X), model.n_components
    r = model.responsibilities_
    require(r.shape == (N, K), f"responsibilities_ has shape {r.shape}")
    require_probabilities(r, "responsibilities_")
    require_probabilities(model.weights_[None], "weights_")
    require(model.labels_.shape == (N,), f"labels_ has shape {model.labels_.shape}")
    require((model.labels_ >= 0) & (model.labels_ < K), "labels_ names no component")
    check_log_evidence(model, problem)
    check_side_information(model, problem)
    compare_with_enumeration(model, problem)
    check_predictions(model, problem)


APPROXIMATE = {"mean_field", "gibbs", "belief_propagation", "tree_reweighted"}


def is_exact(model) -> bool:
    """Return True if the fit used no approximate engine."""
    return {part.engine for part in model.inference_}.isdisjoint(APPROXIMATE)


def check_log_evidence(model, problem: Problem) -> None:
    """Check that the log-evidence is finite and, if EM is exact, never decreases."""
    require(len(model.history_) == model.n_iter_, "history_ and n_iter_ disagree")
    if model.inference == "gibbs":
        return
    require_finite(model, "history_", "log_evidence_")
    prior = max(model.get_params().get(name, 0) for name in ("reg_covar", "pseudo_count"))
    exact = is_exact(model) and model.evidence_exact_
    if prior == 0 and exact and model.weights_update_ == "exact":
        history = np.append(model.history_, model.log_evidence_)
        # Weight updates are accurate to 1e-8 per point; rounding is relative to the evidence.
        slack = 1e-7 * (len(problem.X) + abs(history[1:]))
        message = f"the log-evidence decreases: {np.diff(history).min()}"
        require(np.diff(history) >= -slack, message)


def check_side_information(model, problem: Problem) -> None:
    """Check that the fit respects labels, masks, must-links and cannot-links, for any engine."""
    must, cannot = collect_hard_relations(problem.arguments)
    require_relations(model.labels_, must, cannot)
    r = model.responsibilities_
    require(r[must[:, 0]] == r[must[:, 1]], "must-linked points have different responsibilities")
    labels = problem.arguments.get("labels")
    if labels is None:
        return
    allowed = allowed_classes(np.asarray(labels), model.n_components)
    require(allowed[np.arange(len(r)), model.labels_], "labels_ contradicts labels")
    require(r[~allowed] == 0, "an excluded class has a responsibility")


def allowed_classes(labels: np.ndarray, K: int) -> np.ndarray:
    """Return the (N, K) mask of allowed classes, from labels or from such a mask."""
    if labels.ndim == 2:
        return labels.astype(bool)
    return (labels[:, None] == -1) | (labels[:, None] == np.arange(K))


def compare_with_enumeration(model, problem: Problem) -> None:
    """Compare posterior, log-evidence and labels with sums over all assignments.

    If there are too many assignments, the exact engine takes the place of enumeration.
    """
    if not is_exact(model) or model.inference == "spanning_tree":
        return
    names = ("labels", "must_link", "cannot_link", "preferences")
    relations = {name: problem.arguments[name] for name in names if name in problem.arguments}
    side = SideInformation.build(len(problem.X), sampling=model.sampling, **relations)
    is_small = model.n_components**side.n_nodes <= N_ENUMERABLE
    infer = ENGINES["enumerate" if is_small else "exact"](side.graph)
    parameters = model._get_theta()
    X = model._read_new(problem.X)
    expected = e_step(X, parameters, side, infer)
    unaries = node_unaries(X, parameters, side)
    # The rounding of a log-potential is relative to its size; in a sum the largest one dominates.
    finite = [abs(part[np.isfinite(part)]).max(initial=0) for part in (unaries, side.graph.weights)]
    slack = 1e-9 + 1e-13 * len(problem.X) * max(finite)
    error = abs(expected.responsibilities - model.responsibilities_).max()
    require(error < slack, f"responsibilities differ from enumeration by {error:.2e}")
    error = abs(expected.log_evidence - model.log_evidence_)
    # The normaliser of the prior may be approximate, because labels do not simplify its network.
    is_near = error < 10 * slack or not model.evidence_exact_
    require(is_near, f"log_evidence_ differs from enumeration by {error:.2e}")
    best, labels = infer.most_probable(unaries), np.empty(side.n_nodes, dtype=int)
    labels[side.node_of] = model.labels_
    loss = log_weight(side.graph, unaries, best) - log_weight(side.graph, unaries, labels)
    require(loss < 10 * slack, f"labels_ is less probable than the best assignment by {loss:.2e}")


def check_predictions(model, problem: Problem) -> None:
    """Check predictions for the fitted points, and a sample from the model."""
    p = model.predict_proba(problem.X)
    require_probabilities(p, "predict_proba")
    require(np.isfinite(model.score_samples(problem.X)), "score_samples is not finite")
    require(np.isfinite([model.bic(problem.X), model.aic(problem.X)]), "bic or aic is not finite")
    chosen = p[np.arange(len(p)), model.predict(problem.X)]
    require(chosen >= (1 - AGREE) * p.max(axis=1), "predict is not the most probable component")
    X, z = model.sample(5)
    infinite = np.isin(X, [np.inf, -np.inf]).any()
    require(not infinite and not pd.isna(X).any() and len(z) == 5, "sample is not finite")


def check_gaussian(model, problem: Problem) -> None:
    """Check a Gaussian mixture, and imputation if the model offers it."""
    check_gaussian_parameters(model, np.shape(problem.X)[1])
    check_mixture(model, problem)
    if hasattr(model, "impute"):
        require(np.isfinite(model.impute(problem.X)), "impute leaves a gap")


def check_gaussian_parameters(model, D: int) -> None:
    """Check shapes of means and covariances, and that covariances are positive definite."""
    K = model.n_components
    require_finite(model, "means_", "covariances_")
    require(model.means_.shape == (K, D), f"means_ has shape {model.means_.shape}")
    shapes = {"full": (K, D, D), "tied": (D, D), "diag": (K, D), "spherical": (K,)}
    shape = model.covariances_.shape
    require(shape == shapes[model.covariance_type], f"covariances_ has shape {shape}")
    theta = model.parameters_
    S = getattr(theta, "parts", (theta,))[0].full_covariances
    require(S.transpose(0, 2, 1) == S, "a covariance is not symmetric")
    np.linalg.cholesky(S)


def check_categorical(model, problem: Problem) -> None:
    """Check a categorical mixture."""
    check_categorical_parameters(model, model.n_categories_)
    check_mixture(model, problem)


def check_categorical_parameters(model, sizes) -> None:
    """Check that each feature has a distribution over its categories in each component."""
    for d, p in enumerate(model.probabilities_):
        require(p.shape == (model.n_components, sizes[d]), f"p of feature {d}: shape")
        require_probabilities(p, f"p of feature {d}")


def check_mixed(model, problem: Problem) -> None:
    """Check a mixture of both kinds of columns, and that imputation changes only empty cells."""
    if not model.is_categorical_.all():
        check_gaussian_parameters(model, int((~model.is_categorical_).sum()))
    if model.is_categorical_.any():
        check_categorical_parameters(model, list(map(len, model.categories_)))
    check_mixture(model, problem)
    before = np.array(problem.X, dtype=object)
    after = np.array(model.impute(problem.X), dtype=object)
    require(not pd.isna(after).any(), "impute leaves a gap")
    require((before == after) | pd.isna(before), "impute changes a present cell")


def check_classifier(model, problem: Problem) -> None:
    """Check predictions and probabilities of classes, and the mixture behind the classifier."""
    y = np.asarray(problem.arguments["y"])
    known = np.array([value != -1 for value in y])
    require(model.transduction_[known] == y[known], "a known class was changed")
    require(np.isin(model.predict(problem.X), y[known]), "predict names no class")
    p = model.predict_proba(problem.X)
    require_probabilities(p, "predict_proba")
    log_p = model.predict_log_proba(problem.X)
    require(abs(np.exp(log_p) - p) < 1e-9, "predict_log_proba is another distribution")
    labels = np.full(len(y), -1)
    labels[known] = np.searchsorted(model.classes_, y[known])
    arguments = {name: value for name, value in problem.arguments.items() if name != "y"}
    check_gaussian(model.mixture_, problem._replace(arguments=arguments | {"labels": labels}))


# ---------------------------------------------------------------------------- k-means, metrics


def check_k_means(model, problem: Problem) -> None:
    """Check objective, predictions and hard relations of K-means with constraints."""
    X = np.asarray(problem.X, dtype=float)
    require_finite(model, "cluster_centers_", "history_", "objective_", "inertia_")
    require(model.cluster_centers_.shape == (model.n_clusters, X.shape[1]), "shape of the centres")
    require((model.labels_ >= 0) & (model.labels_ < model.n_clusters), "labels_ names no cluster")
    # The spread of all points bounds the objective, so rounding is relative to it.
    slack = 1e-9 * (abs(model.history_).max() + np.square(X - X.mean(axis=0)).sum())
    require(np.diff(model.history_) <= slack, f"the objective rises: {model.history_[:6]}")
    require(np.isfinite(model.transform(X)), "transform is not finite")
    nearest = model.transform(X).argmin(axis=1)
    require(model.predict(X) == nearest, "predict is not the nearest centre")
    inertia = np.square(X - model.cluster_centers_[model.labels_]).sum()
    require(abs(model.inertia_ - inertia) <= slack, f"inertia_ is not {inertia}")
    require(model.objective_ == model.history_[-1], "objective_ does not end history_")
    require(len(model.history_) - model.n_iter_ in (0, 1), "history_ and n_iter_ disagree")
    hard = collect_hard_relations(select_hard_relations(model, problem.arguments))
    require_relations(model.labels_, *hard)


def select_hard_relations(model, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the relations that must be satisfied: for PCKMeans only those of infinite weight."""
    if isinstance(model, COPKMeans) or model.w == np.inf:
        return arguments
    return {"preferences": arguments.get("preferences", ())}


def check_linear_map(model, problem: Problem) -> None:
    """Check that a learnt map and its metric are finite and have the right shape."""
    X = np.asarray(problem.X, dtype=float)
    require_finite(model, "components_")
    require(model.components_.shape[1] == X.shape[1], "shape of components_")
    require(np.isfinite(model.transform(X)), "transform is not finite")
    B = model.get_mahalanobis_matrix()
    require(np.isfinite(B), "the metric is not finite")


def check_rca(model, problem: Problem) -> None:
    """Check RCA: without reduction and shrinkage its map whitens the chunklets."""
    check_linear_map(model, problem)
    W, C = model.components_, model.within_covariance_
    require_finite(model, "within_covariance_", "inverse_components_", "mean_")
    require(len(W) == (model.n_components or len(W)), f"{len(W)} rows of components_")
    if len(W) == len(C) and model.shrinkage == 0 and model.n_components is None:
        # Divide columns by their standard deviation, so that the slack does not depend on units.
        s = np.sqrt(C.diagonal())
        correlation = C / np.outer(s, s)
        error = abs((W * s) @ correlation @ (W * s).T - np.eye(len(W))).max()
        slack = 1e-9 + 1e-12 * np.linalg.cond(correlation)
        require(error < slack, f"the whitened chunklets are off by {error:.1e}")


def check_mmc(model, problem: Problem) -> None:
    """Check MMC: its objective never decreases, and equals that of the learnt metric."""
    check_linear_map(model, problem)
    require_finite(model, "objective_", "gap_", "history_")
    require(np.diff(model.history_) >= 0, "the best objective decreases")
    value = objective(model.components_, problem.X, **problem.arguments)
    if model.max_cannot_links is None:
        require(abs(value / model.objective_ - 1) < 1e-4, f"{value} is not {model.objective_}")
