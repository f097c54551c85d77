"""What must hold of a fitted k-means, and of a fitted linear map."""

from __future__ import annotations

from typing import Any

import numpy as np

from cgmm import MMC, RCA, COPKMeans
from cgmm.metric_learning import objective

from .claims import hard_relations, require, require_finite, require_relations
from .problems import Problem


def check_k_means(model, problem: Problem) -> None:
    X = np.asarray(problem.X, dtype=float)
    require_finite(model, "cluster_centers_", "history_", "objective_", "inertia_")
    require(model.cluster_centers_.shape == (model.n_clusters, X.shape[1]), "shape of the centres")
    require((model.labels_ >= 0) & (model.labels_ < model.n_clusters), "labels_ names no cluster")
    # In units of all points' spread, which the objective cannot exceed by much more than rounding.
    slack = 1e-9 * (abs(model.history_).max() + np.square(X - X.mean(axis=0)).sum())
    require(np.diff(model.history_) <= slack, f"the objective rises: {model.history_[:6]}")
    require(np.isfinite(model.transform(X)), "transform is not finite")
    nearest = model.transform(X).argmin(axis=1)
    require(model.predict(X) == nearest, "predict is not the nearest centre")
    require_relations(model.labels_, *hard_relations(_hardened(model, problem.arguments)))


def _hardened(model, arguments: dict[str, Any]) -> dict[str, Any]:
    """PCKMeans must honour links of infinite weight alone."""
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


def check_rca(model: RCA, problem: Problem) -> None:
    check_linear_map(model, problem)
    W, C = model.components_, model.within_covariance_
    require_finite(model, "within_covariance_", "inverse_components_", "mean_")
    require(len(W) == (model.n_components or len(W)), f"{len(W)} rows of components_")
    if len(W) == len(C) and model.shrinkage == 0 and model.n_components is None:
        # Columns in units of their deviation, of which the map's conditioning is free.
        s = np.sqrt(C.diagonal())
        loss = np.linalg.cond(C / np.outer(s, s)) * 1e-14
        apart = abs((W * s) @ (C / np.outer(s, s)) @ (W * s).T - np.eye(len(W))).max()
        require(apart < 1e-9 + 100 * loss, f"the whitened chunklets are off by {apart:.1e}")


def check_mmc(model: MMC, problem: Problem) -> None:
    check_linear_map(model, problem)
    require_finite(model, "objective_", "gap_", "history_")
    require(np.diff(model.history_) >= 0, "the best objective falls")
    found = objective(model.components_, problem.X, **problem.arguments)
    if model.max_cannot_links is None:
        require(abs(found / model.objective_ - 1) < 1e-4, f"{found} is not {model.objective_}")
