"""Test `plot.fit`, which draws a fitted model and its relations, and plots that accept models."""

import numpy as np
import pytest
from drawings import contour_lines, mahalanobis, outline_points, vertices
from matplotlib.collections import LineCollection
from refusals import refused
from sklearn.decomposition import PCA

from cgmm import (
    ConstrainedGaussianMixture,
    COPKMeans,
    Parameters,
    PCKMeans,
    SemiSupervisedGaussianClassifier,
    decide,
    plot,
)
from cgmm.plot.fitted import principal_plane

rng = np.random.default_rng(0)
y = np.arange(40) % 2
X = rng.normal(size=(40, 2)) + np.where(y, 4.0, -4.0)[:, None]
MODEL = ConstrainedGaussianMixture(2, random_state=0).fit(X)
ANSWERS = [[0, 2, 1], [1, 3, 1], [4, 5, 0], [6, 8, 1], [7, 9, 0], [10, 12, 1]]
MODELS = {
    "mixture": MODEL,
    "diag": ConstrainedGaussianMixture(2, covariance_type="diag", random_state=0).fit(X),
    "classifier": SemiSupervisedGaussianClassifier().fit(X, np.where(np.arange(40) < 9, y, -1)),
    "two components per class": SemiSupervisedGaussianClassifier(
        components_per_class=2, random_state=0
    ).fit(X, y),
    "search": decide.AnswerSearch(MODEL, {"n_components": [2]}, n_folds=2).fit(X, ANSWERS),
    "annotators": decide.AnnotatorMixture(MODEL).fit(X, ANSWERS),
}
CENTRES = {"COP": COPKMeans(2, random_state=0).fit(X), "PCK": PCKMeans(2, random_state=0).fit(X)}


def relation_lines(ax):
    """Return {end points: (is dashed, is thick)} for all lines between points."""
    lines = {}
    for part in ax.collections:
        if isinstance(part, LineCollection):
            (dashes,), (width,) = part.get_linestyle(), part.get_linewidth()
            for path in part.get_paths():
                lines[tuple(path.vertices.ravel().round(9))] = (dashes[1] is not None, width > 1)
    return lines


def line_between(i, j, points=X):
    """Return the coordinates of points i and j, as in the keys of `relation_lines`."""
    return tuple(points[[i, j]].ravel().round(9))


def legend_texts(ax):
    """Return the texts of the legend."""
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.parametrize("name", [*MODELS, *CENTRES])
def test_every_kind_of_model_is_drawn_with_its_points_ellipses_and_relations(name):
    model = (MODELS | CENTRES)[name]
    ax = plot.fit(model, X, must_link=[[0, 2]])
    drawn = np.concatenate(
        [part.get_offsets() for part in ax.collections if len(part.get_offsets())]
    )
    assert len(drawn) >= len(X)
    n_ellipses = {"two components per class": 8} | dict.fromkeys(CENTRES, 0)
    assert len(ax.patches) == n_ellipses.get(name, 4)
    assert legend_texts(ax) == ["must-link (1)"]


def test_cannot_links_and_negative_preferences_are_dashed_lines():
    known = {"must_link": [[0, 2]], "cannot_link": [[4, 5]], "preferences": [[6, 8, 2], [6, 7, -2]]}
    lines = relation_lines(plot.fit(MODEL, X, **known))
    assert lines == {
        line_between(0, 2): (False, False), line_between(4, 5): (True, False),
        line_between(6, 8): (False, False), line_between(6, 7): (True, False),
    }  # fmt: skip


def test_broken_relations_are_thick_lines_with_a_cross():
    ax = plot.fit(MODEL, X, must_link=[[0, 1], [0, 2]], cannot_link=[[2, 4]])
    lines = relation_lines(ax)
    assert lines[line_between(0, 1)] == (False, True)
    assert lines[line_between(2, 4)] == (True, True)
    assert lines[line_between(0, 2)] == (False, False)
    assert legend_texts(ax) == ["must-link (2)", "cannot-link (1)", "broken (2)"]
    crosses = ax.collections[-2].get_offsets()
    np.testing.assert_allclose(crosses, [X[[0, 1]].mean(axis=0), X[[2, 4]].mean(axis=0)])


def test_doubtful_relations_are_marked_even_if_the_fit_satisfies_them():
    """A wrong must-link puts two points into one component, far from one of them."""
    relations = {"must_link": [[0, 1], [2, 4]]}
    model = ConstrainedGaussianMixture(2, random_state=0)
    with pytest.warns(UserWarning, match="speak against"):
        model.fit(X, **relations)
    assert model.labels_[0] == model.labels_[1]
    ax = plot.fit(model, X, **relations)
    assert legend_texts(ax) == ["must-link (2)", "doubtful (1)"]
    assert relation_lines(ax) == {
        line_between(0, 1): (False, True),
        line_between(2, 4): (False, False),
    }
    np.testing.assert_allclose(ax.collections[-1].get_offsets(), [X[[0, 1]].mean(axis=0)])


def test_data_with_more_columns_are_projected_onto_their_principal_axes():
    wide = np.column_stack([X, rng.normal(size=(40, 3))]) @ rng.normal(size=(5, 5))
    model = ConstrainedGaussianMixture(2, random_state=0).fit(wide)
    ax = plot.fit(model, wide, must_link=[[0, 2]])
    pca = PCA(2).fit(wide)
    centre, axes, shares = principal_plane(wide)
    np.testing.assert_allclose(shares, pca.explained_variance_ratio_)
    np.testing.assert_allclose(abs(axes @ pca.components_.T), np.eye(2), atol=1e-9)
    points = (wide - centre) @ axes.T
    assert relation_lines(ax) == {line_between(0, 2, points): (False, False)}
    assert ax.get_xlabel() == f"principal axis 1 ({shares[0]:.0%})"
    # The ellipse is that of the covariance, projected to the plane.
    plane = Parameters(
        model.weights_, (model.means_ - centre) @ axes.T, axes @ model.covariances_ @ axes.T
    )
    np.testing.assert_allclose(mahalanobis(outline_points(ax.patches[0]), plane), 1, rtol=1e-3)


def test_a_fit_without_relations_is_drawn_without_legend():
    assert plot.fit(MODEL, X).get_legend() is None


@pytest.mark.parametrize("draw", [plot.ellipses, plot.density, plot.boundary])
@pytest.mark.parametrize("name", MODELS)
def test_plots_of_parameters_also_accept_fitted_models(draw, name):
    model = MODELS[name]
    ax = draw(model, plot.scatter(X))
    if name in ("mixture", "diag"):
        same = draw(model.parameters_, plot.scatter(X))
        drawn, expected = (
            [vertices(p) for p in a.collections[1:] if p.get_paths()] for a in (ax, same)
        )
        for ours, theirs in zip(drawn, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert len(ax.patches) + len(ax.collections) > 1


def test_boundary_accepts_k_means_and_density_1d_accepts_a_model():
    assert len(plot.boundary(CENTRES["COP"], plot.scatter(X)).collections) > 2
    line = ConstrainedGaussianMixture(2, random_state=0).fit(X[:, :1])
    ours, theirs = (plot.density_1d(m).lines[0].get_ydata() for m in (line, line.parameters_))
    np.testing.assert_array_equal(ours, theirs)


def test_the_boundary_of_a_classifier_separates_its_classes_not_its_components():
    model = MODELS["two components per class"]
    (line,) = contour_lines(plot.boundary(model, plot.scatter(X)))
    assert np.allclose(model.predict_proba(vertices(line)), 0.5, atol=0.05)


test_models_and_points_that_cannot_be_drawn_are_refused = refused(
    lambda draw, model, *args, **relations: draw(model, *args, **relations),
    (plot.fit, MODEL, X[:, :1], r"density_1d\(model, X=X\)"),
    (plot.fit, MODEL, X[:, 0], r"shape \(40,\)"),
    (plot.fit, MODEL, X, {"must_link": [[0, 40]]}, r"must_link\[0\] is \[0, 40\]"),
    (plot.ellipses, CENTRES["COP"], "COPKMeans has no densities"),
    (plot.ellipses, ConstrainedGaussianMixture(2), "not fitted"),
    (plot.ellipses, ConstrainedGaussianMixture(1).fit(np.eye(9)[:, :3]), r"plot.fit\(model, X\)"),
)
