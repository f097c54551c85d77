"""Test the plot of a fitted model: positions, and marks of broken relations."""

import numpy as np
import pytest
from drawings import vertices
from matplotlib.collections import LineCollection
from refusals import refused
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError

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
    "two a class": SemiSupervisedGaussianClassifier(components_per_class=2, random_state=0).fit(
        X, y
    ),
    "search": decide.AnswerSearch(
        ConstrainedGaussianMixture(random_state=0), {"n_components": [2]}, n_folds=2
    ).fit(X, ANSWERS),
    "annotators": decide.AnnotatorMixture(ConstrainedGaussianMixture(2, random_state=0)).fit(
        X, ANSWERS
    ),
}
CENTRES = {"COP": COPKMeans(2, random_state=0).fit(X), "PCK": PCKMeans(2, random_state=0).fit(X)}


def lines_of(ax):
    """Return the ends of all lines, sorted, with dash and width of each."""
    found = {}
    for part in ax.collections:
        if isinstance(part, LineCollection):
            (dashes,), (width,) = part.get_linestyle(), part.get_linewidth()
            for path in part.get_paths():
                found[tuple(path.vertices.ravel().round(9))] = (dashes[1] is not None, width > 1)
    return found


def ends(i, j, points=X):
    return tuple(points[[i, j]].ravel().round(9))


def entries(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.parametrize("name", [*MODELS, *CENTRES])
def test_every_kind_of_model_is_drawn_with_its_labels(name):
    model = (MODELS | CENTRES)[name]
    ax = plot.fit(model, X, must_link=[[0, 2]])
    drawn = np.concatenate(
        [part.get_offsets() for part in ax.collections if len(part.get_offsets())]
    )
    assert len(drawn) >= len(X)
    n_ellipses = {"two a class": 8} | dict.fromkeys(CENTRES, 0)
    assert len(ax.patches) == n_ellipses.get(name, 4)
    assert entries(ax) == ["must-link (1)"]


def test_lines_join_their_points_in_the_style_of_their_relation():
    known = {"must_link": [[0, 2]], "cannot_link": [[4, 5]], "preferences": [[6, 8, 2], [6, 7, -2]]}
    found = lines_of(plot.fit(MODEL, X, **known))
    assert found == {
        ends(0, 2): (False, False), ends(4, 5): (True, False), ends(6, 8): (False, False),
        ends(6, 7): (True, False),
    }  # fmt: skip


def test_broken_relations_are_crossed_out():
    ax = plot.fit(MODEL, X, must_link=[[0, 1], [0, 2]], cannot_link=[[2, 4]])
    found = lines_of(ax)
    assert found[ends(0, 1)] == (False, True)
    assert found[ends(2, 4)] == (True, True)
    assert found[ends(0, 2)] == (False, False)
    assert entries(ax) == ["must-link (2)", "cannot-link (1)", "broken (2)"]
    crosses = ax.collections[-2].get_offsets()
    np.testing.assert_allclose(crosses, [X[[0, 1]].mean(axis=0), X[[2, 4]].mean(axis=0)])


def test_doubtful_relations_are_marked_even_if_kept():
    """The two points of a wrong must-link share a component that is far from one of them."""
    relations = {"must_link": [[0, 1], [2, 4]]}
    model = ConstrainedGaussianMixture(2, random_state=0)
    with pytest.warns(UserWarning, match="speak against"):
        model.fit(X, **relations)
    assert model.labels_[0] == model.labels_[1]
    ax = plot.fit(model, X, **relations)
    assert entries(ax) == ["must-link (2)", "doubtful (1)"]
    assert lines_of(ax) == {ends(0, 1): (False, True), ends(2, 4): (False, False)}
    np.testing.assert_allclose(ax.collections[-1].get_offsets(), [X[[0, 1]].mean(axis=0)])


def test_more_columns_are_projected_onto_their_principal_axes():
    wide = np.column_stack([X, rng.normal(size=(40, 3))]) @ rng.normal(size=(5, 5))
    model = ConstrainedGaussianMixture(2, random_state=0).fit(wide)
    ax = plot.fit(model, wide, must_link=[[0, 2]])
    pca = PCA(2).fit(wide)
    centre, axes, shares = principal_plane(wide)
    np.testing.assert_allclose(shares, pca.explained_variance_ratio_)
    np.testing.assert_allclose(abs(axes @ pca.components_.T), np.eye(2), atol=1e-9)
    points = (wide - centre) @ axes.T
    assert lines_of(ax) == {ends(0, 2, points): (False, False)}
    assert ax.get_xlabel() == f"principal axis 1 ({shares[0]:.0%})"
    # The ellipse is that of the covariance in the plane.
    covariance = axes @ model.covariances_[0] @ axes.T
    patch = ax.patches[0]
    outline = patch.get_patch_transform().transform(patch.get_path().vertices)[::3]
    apart = outline - (model.means_[0] - centre) @ axes.T
    distance = np.sqrt((apart @ np.linalg.inv(covariance) * apart).sum(axis=1))
    np.testing.assert_allclose(distance, 1, rtol=1e-3)


def test_without_relations_there_is_no_legend():
    assert plot.fit(MODEL, X).get_legend() is None


@pytest.mark.parametrize("draw", [plot.ellipses, plot.density, plot.boundary])
@pytest.mark.parametrize("name", MODELS)
def test_figures_of_parameters_also_accept_a_model(draw, name):
    model = MODELS[name]
    ax = draw(model, plot.scatter(X))
    if name in ("mixture", "diag"):
        same = draw(model.parameters_, plot.scatter(X))
        ours, theirs = (
            [vertices(p) for p in a.collections[1:] if p.get_paths()] for a in (ax, same)
        )
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)
    assert len(ax.patches) + len(ax.collections) > 1


def test_boundary_of_k_means_and_a_density_on_the_line():
    assert len(plot.boundary(CENTRES["COP"], plot.scatter(X)).collections) > 2
    line = ConstrainedGaussianMixture(2, random_state=0).fit(X[:, :1])
    ours, theirs = (plot.density_1d(m).lines[0].get_ydata() for m in (line, line.parameters_))
    np.testing.assert_array_equal(ours, theirs)


def test_a_boundary_between_classes_is_that_of_predict():
    model = MODELS["two a class"]
    ax = plot.boundary(model, plot.scatter(X))
    assert isinstance(model.mixture_.parameters_, Parameters) is False
    (line,) = [c for c in ax.collections if hasattr(c, "levels") and not c.filled]
    assert np.allclose(model.predict_proba(vertices(line)), 0.5, atol=0.05)


test_what_cannot_be_drawn_is_refused = refused(
    lambda draw, model, *given: draw(model, *given),
    (plot.fit, MODEL, X[:, :1], r"density_1d\(model, X=X\)"),
    (plot.fit, MODEL, X[:, 0], r"shape \(40,\)"),
    (plot.ellipses, CENTRES["COP"], "COPKMeans has no densities"),
    (
        plot.ellipses,
        ConstrainedGaussianMixture(1).fit(rng.normal(size=(9, 3))),
        r"plot.fit\(model, X\)",
    ),
)


def test_a_model_that_is_not_fitted_says_so():
    with pytest.raises(NotFittedError, match="not fitted"):
        plot.ellipses(ConstrainedGaussianMixture(2))


def test_relations_that_name_no_point_are_refused():
    with pytest.raises(ValueError, match=r"must_link\[0\] is \[0, 40\]"):
        plot.fit(MODEL, X, must_link=[[0, 40]])
