"""Check the claims that every fit must satisfy, and report those that are broken.

=====  ==================================================================
N, D   points x_i and dimensions; K components
r, S   responsibilities r_ik, and the covariances
=====  ==================================================================
"""

from typing import Any

import numpy as np
import pandas as pd

from cgmm import COPKMeans, SideInformation
from cgmm.inference import ENGINES
from cgmm.metric_learning import objective
from cgmm.mixture import e_step, node_unaries
from cgmm.numerics import AGREE

from .problems import Problem

# Joint assignments that brute force visits in a moment.
N_ENUMERABLE = 4096


class BrokenContractError(AssertionError):
    """Error for a problem that got neither a sound result nor a clear refusal."""


def require(holds, complaint: str) -> None:
    """Raise an error with a readable message unless a claim holds, even under ``python -O``."""
    if not np.all(holds):
        raise BrokenContractError(complaint)


def require_finite(model, *names: str) -> None:
    for name in names:
        value = np.asarray(getattr(model, name), dtype=float)
        require(np.isfinite(value), f"{name} is not finite: {value.ravel()[:8]}")


def _pairs(arguments: dict[str, Any], name: str) -> np.ndarray:
    pairs = np.asarray(() if arguments.get(name) is None else arguments[name], dtype=float)
    return pairs.reshape(-1, 2).astype(int) if pairs.size else np.empty((0, 2), dtype=int)


def hard_relations(arguments: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return must-links and cannot-links, including infinite preferences."""
    must, cannot = _pairs(arguments, "must_link"), _pairs(arguments, "cannot_link")
    preferences = np.asarray(arguments.get("preferences", ()), dtype=float)
    if preferences.size:
        rows, odds = preferences[:, :2].astype(int), preferences[:, 2]
        must = np.concatenate([must, rows[odds == np.inf]])
        cannot = np.concatenate([cannot, rows[odds == -np.inf]])
    return must, cannot


def require_relations(labels: np.ndarray, must: np.ndarray, cannot: np.ndarray) -> None:
    broken = must[labels[must[:, 0]] != labels[must[:, 1]]]
    require(len(broken) == 0, f"labels_ breaks the must-links {broken[:3].tolist()}")
    broken = cannot[labels[cannot[:, 0]] == labels[cannot[:, 1]]]
    require(len(broken) == 0, f"labels_ breaks the cannot-links {broken[:3].tolist()}")


# ---------------------------------------------------------------------------- mixtures


def _check_mixture(model, problem: Problem) -> None:
    N, K = len(problem.X), model.n_components
    r = model.responsibilities_
    require(r.shape == (N, K), f"responsibilities_ has shape {r.shape}")
    require_finite(model, "weights_", "responsibilities_")
    require((r >= 0) & (r <= 1 + 1e-12), "a responsibility lies outside 0 to 1")
    require(abs(r.sum(axis=1) - 1) < 1e-9, "responsibilities do not sum to one")
    require(abs(model.weights_.sum() - 1) < 1e-9, f"weights_ sum to {model.weights_.sum()}")
    require(model.labels_.shape == (N,), f"labels_ has shape {model.labels_.shape}")
    require((model.labels_ >= 0) & (model.labels_ < K), "labels_ names no component")
    _check_evidence(model, problem)
    _check_known(model, problem)
    _check_against_enumeration(model, problem)
    _check_new_points(model, problem)


APPROXIMATE = {"mean_field", "gibbs", "belief_propagation", "tree_reweighted"}


def _is_exact(model) -> bool:
    """Return whether all results are exact, that is, no approximate engine took part."""
    return {answer.engine for answer in model.inference_}.isdisjoint(APPROXIMATE)


def _check_evidence(model, problem: Problem) -> None:
    """Check that the evidence is finite and, where EM is exact, never falls."""
    require(len(model.history_) == model.n_iter_, "history_ and n_iter_ disagree")
    if model.inference == "gibbs":
        return
    require_finite(model, "history_", "log_evidence_")
    added = max(model.get_params().get(name, 0) for name in ("reg_covar", "pseudo_count"))
    are_exact = _is_exact(model) and model.evidence_exact_
    if added == 0 and are_exact and model.weights_update_ == "exact":
        course = np.append(model.history_, model.log_evidence_)
        # Counts are matched to 1e-8 of all points; densities carry rounding of their own size.
        slack = 1e-7 * (len(problem.X) + abs(course[1:]))
        require(np.diff(course) >= -slack, f"the log-evidence falls: {np.diff(course).min()}")


def _check_known(model, problem: Problem) -> None:
    """Check labels, masks, must-links and cannot-links, whatever the engine."""
    must, cannot = hard_relations(problem.arguments)
    require_relations(model.labels_, must, cannot)
    r = model.responsibilities_
    require(r[must[:, 0]] == r[must[:, 1]], "must-linked points have different responsibilities")
    labels = problem.arguments.get("labels")
    if labels is None:
        return
    allowed = _allowed(np.asarray(labels), model.n_components)
    require(allowed[np.arange(len(r)), model.labels_], "labels_ contradicts labels")
    require(r[~allowed] == 0, "an excluded class has a responsibility")


def _allowed(labels: np.ndarray, K: int) -> np.ndarray:
    if labels.ndim == 2:
        return labels.astype(bool)
    return (labels[:, None] == -1) | (labels[:, None] == np.arange(K))


def _check_against_enumeration(model, problem: Problem) -> None:
    """Compare posterior, evidence and labels with sums over all assignments."""
    if not _is_exact(model) or model.inference == "spanning_tree":
        return
    kept = ("labels", "must_link", "cannot_link", "preferences")
    known = {name: problem.arguments[name] for name in kept if name in problem.arguments}
    side = SideInformation.build(len(problem.X), sampling=model.sampling, **known)
    is_small = model.n_components**side.n_nodes <= N_ENUMERABLE
    parameters, infer = (
        model._get_theta(),
        ENGINES["enumerate" if is_small else "exact"](side.graph),
    )
    X = model._read_new(problem.X)
    truth = e_step(X, parameters, side, infer)
    unaries = node_unaries(X, parameters, side)
    # Rounding of a log-potential grows with its size; that of a sum with the largest of them.
    finite = [abs(part[np.isfinite(part)]).max(initial=0) for part in (unaries, side.graph.weights)]
    slack = 1e-9 + 1e-13 * len(problem.X) * max(finite)
    apart = abs(truth.responsibilities - model.responsibilities_).max()
    require(apart < slack, f"responsibilities differ from enumeration by {apart:.2e}")
    apart = abs(truth.log_evidence - model.log_evidence_)
    # Evidence may make the posterior's network cheap; the prior's has none.
    near = apart < 10 * slack or not model.evidence_exact_
    require(near, f"log_evidence_ differs from enumeration by {apart:.2e}")
    best, found = infer.most_probable(unaries), np.empty(side.n_nodes, dtype=int)
    found[side.node_of] = model.labels_
    lost = _log_weight(best, unaries, side) - _log_weight(found, unaries, side)
    require(lost < 10 * slack, f"labels_ is less probable than the best assignment by {lost:.2e}")


def _log_weight(z: np.ndarray, unaries: np.ndarray, side: SideInformation) -> float:
    a, b = side.graph.edges.T
    return unaries[np.arange(len(z)), z].sum() + side.graph.weights[z[a] == z[b]].sum()


def _check_new_points(model, problem: Problem) -> None:
    """Check predictions for the same points as new ones, and for a sample."""
    p = model.predict_proba(problem.X)
    require(np.isfinite(p) & (p >= 0), "predict_proba is no probability")
    require(abs(p.sum(axis=1) - 1) < 1e-9, "predict_proba does not sum to one")
    require(np.isfinite(model.score_samples(problem.X)), "score_samples is not finite")
    require(np.isfinite([model.bic(problem.X), model.aic(problem.X)]), "bic or aic is not finite")
    chosen = p[np.arange(len(p)), model.predict(problem.X)]
    require(chosen >= (1 - AGREE) * p.max(axis=1), "predict is not the most probable component")
    X, z = model.sample(5)
    infinite = np.isin(X, [np.inf, -np.inf]).any()
    require(not infinite and not pd.isna(X).any() and len(z) == 5, "sample is not finite")


def check_gaussian(model, problem: Problem) -> None:
    _check_gaussians(model, np.shape(problem.X)[1])
    _check_mixture(model, problem)
    if hasattr(model, "impute"):
        require(np.isfinite(model.impute(problem.X)), "impute leaves a gap")


def _check_gaussians(model, D: int) -> None:
    K = model.n_components
    require_finite(model, "means_", "covariances_")
    require(model.means_.shape == (K, D), f"means_ has shape {model.means_.shape}")
    shapes = {"full": (K, D, D), "tied": (D, D), "diag": (K, D), "spherical": (K,)}
    found = model.covariances_.shape
    require(found == shapes[model.covariance_type], f"covariances_ has shape {found}")
    theta = model.parameters_
    S = getattr(theta, "parts", (theta,))[0].full_covariances
    require(S.transpose(0, 2, 1) == S, "a covariance is not symmetric")
    np.linalg.cholesky(S)


def check_categorical(model, problem: Problem) -> None:
    _check_probabilities(model, model.n_categories_)
    _check_mixture(model, problem)


def _check_probabilities(model, sizes) -> None:
    for d, p in enumerate(model.probabilities_):
        require(p.shape == (model.n_components, sizes[d]), f"p of feature {d}: shape")
        require(np.isfinite(p) & (p >= 0), f"p of feature {d} is no probability")
        require(abs(p.sum(axis=1) - 1) < 1e-9, f"p of feature {d} does not sum to one")


def check_mixed(model, problem: Problem) -> None:
    """Both kinds of columns, and a table that is filled in: present cells stay."""
    if not model.is_categorical_.all():
        _check_gaussians(model, int((~model.is_categorical_).sum()))
    if model.is_categorical_.any():
        _check_probabilities(model, list(map(len, model.categories_)))
    _check_mixture(model, problem)
    before = np.array(problem.X, dtype=object)
    after = np.array(model.impute(problem.X), dtype=object)
    require(not pd.isna(after).any(), "impute leaves a gap")
    require((before == after) | pd.isna(before), "impute changes a present cell")


def check_classifier(model, problem: Problem) -> None:
    y = np.asarray(problem.arguments["y"])
    known = np.array([value != -1 for value in y])
    require(model.transduction_[known] == y[known], "a known class was changed")
    require(np.isin(model.predict(problem.X), y[known]), "predict names no class")
    p = model.predict_proba(problem.X)
    require(abs(p.sum(axis=1) - 1) < 1e-9, "predict_proba does not sum to one")
    log_p = model.predict_log_proba(problem.X)
    require(abs(np.exp(log_p) - p) < 1e-9, "predict_log_proba is another distribution")
    labels = np.full(len(y), -1)
    labels[known] = np.searchsorted(model.classes_, y[known])
    arguments = {name: value for name, value in problem.arguments.items() if name != "y"}
    check_gaussian(model.mixture_, problem._replace(arguments=arguments | {"labels": labels}))


# ---------------------------------------------------------------------------- k-means, linear maps


def check_k_means(model, problem: Problem) -> None:
    X = np.asarray(problem.X, dtype=float)
    require_finite(model, "cluster_centers_", "history_", "objective_", "inertia_")
    require(model.cluster_centers_.shape == (model.n_clusters, X.shape[1]), "shape of the centres")
    require((model.labels_ >= 0) & (model.labels_ < model.n_clusters), "labels_ names no cluster")
    # Costs are in units of the spread of all points, which bounds the objective up to rounding.
    slack = 1e-9 * (abs(model.history_).max() + np.square(X - X.mean(axis=0)).sum())
    require(np.diff(model.history_) <= slack, f"the objective rises: {model.history_[:6]}")
    require(np.isfinite(model.transform(X)), "transform is not finite")
    nearest = model.transform(X).argmin(axis=1)
    require(model.predict(X) == nearest, "predict is not the nearest centre")
    inertia = np.square(X - model.cluster_centers_[model.labels_]).sum()
    require(abs(model.inertia_ - inertia) <= slack, f"inertia_ is not {inertia}")
    require(model.objective_ == model.history_[-1], "objective_ does not end history_")
    require(len(model.history_) - model.n_iter_ in (0, 1), "history_ and n_iter_ disagree")
    require_relations(model.labels_, *hard_relations(_with_hard_links(model, problem.arguments)))


def _with_hard_links(model, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the relations that must hold; for PCKMeans only preferences of infinite weight can."""
    if isinstance(model, COPKMeans) or model.w == np.inf:
        return arguments
    return {"preferences": arguments.get("preferences", ())}


def check_linear_map(model, problem: Problem) -> None:
    X = np.asarray(problem.X, dtype=float)
    require_finite(model, "components_")
    require(model.components_.shape[1] == X.shape[1], "shape of components_")
    require(np.isfinite(model.transform(X)), "transform is not finite")
    B = model.get_mahalanobis_matrix()
    require(np.isfinite(B), "the metric is not finite")


def check_rca(model, problem: Problem) -> None:
    check_linear_map(model, problem)
    W, C = model.components_, model.within_covariance_
    require_finite(model, "within_covariance_", "inverse_components_", "mean_")
    require(len(W) == (model.n_components or len(W)), f"{len(W)} rows of components_")
    if len(W) == len(C) and model.shrinkage == 0 and model.n_components is None:
        # Columns in units of their deviation do not depend on the map's conditioning.
        s = np.sqrt(C.diagonal())
        loss = np.linalg.cond(C / np.outer(s, s)) * 1e-14
        apart = abs((W * s) @ (C / np.outer(s, s)) @ (W * s).T - np.eye(len(W))).max()
        require(apart < 1e-9 + 100 * loss, f"the whitened chunklets are off by {apart:.1e}")


def check_mmc(model, problem: Problem) -> None:
    check_linear_map(model, problem)
    require_finite(model, "objective_", "gap_", "history_")
    require(np.diff(model.history_) >= 0, "the best objective falls")
    found = objective(model.components_, problem.X, **problem.arguments)
    if model.max_cannot_links is None:
        require(abs(found / model.objective_ - 1) < 1e-4, f"{found} is not {model.objective_}")
