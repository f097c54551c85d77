"""Test that the scripts of live figures agree with the primer, to 1e-9, from the same start."""

from importlib.resources import files

import numpy as np
import pytest

from cgmm import metric_learning, primer

pytestmark = pytest.mark.filterwarnings("error")

# Scripts and primer sum in different orders, and EM slightly amplifies the rounding errors.
CLOSE = {"rtol": 1e-9, "atol": 1e-9}
# The scripts that compute, without those that draw.
SOURCE = "".join(
    files("cgmm.explore").joinpath(f"live_{name}.js").read_text(encoding="utf8")
    for name in ("network", "mixture", "em", "lloyd", "rca", "cut", "duel", "rivals", "companion")
)
POOLS = {kind: getattr(primer, kind) for kind in ("full", "tied", "diag", "spherical")}
STEPS = 20


@pytest.fixture(scope="module")
def run_js(browser):
    """Return ``run_js(code, **names)``, which evaluates code with the functions of the scripts."""
    page = browser.new_page()
    page.add_script_tag(content=SOURCE)

    def run_js(code, **names):
        plain = {name: _to_json_types(value) for name, value in names.items()}
        return page.evaluate(f"({{{', '.join(plain)}}}) => {code}", plain)

    yield run_js
    page.close()


def _to_json_types(value):
    if isinstance(value, primer.Theta):
        return {name: array.tolist() for name, array in value._asdict().items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


def assert_theta_close(found, theta):
    for name, array in theta._asdict().items():
        np.testing.assert_allclose(found[name], array, **CLOSE)


def assert_em_equals(run_js, problem, theta, log_evidence, options, pool="full", **names):
    """Check θ and log-evidence after STEPS iterations of EM by the scripts, with these options."""
    code = f"em(X, theta, network(X.length, links, K, {options}), pool, steps)"
    found = run_js(code, **problem.names | names, pool=pool, steps=STEPS)
    assert_theta_close(found["theta"], theta)
    np.testing.assert_allclose(found["E"]["logEvidence"], log_evidence, **CLOSE)


class Problem:
    """Points, a start of EM, and feasible relations between points: none, hard, soft, or both."""

    def __init__(self, seed: int, kind: str = "hard"):
        rng = np.random.default_rng(seed)
        self.K, N = 2 + seed % 2, 20
        centres = 2 * rng.standard_normal((self.K, 2))
        y = np.arange(N) % self.K
        self.X = centres[y] + rng.standard_normal((N, 2)) * rng.uniform(0.5, 1.5, 2)
        weights = rng.dirichlet(np.full(self.K, 5.0))
        self.start = primer.Theta(weights, self.X[: self.K], np.array([4 * np.eye(2)] * self.K))
        pairs = rng.permutation(N)[:14].reshape(-1, 2)
        # Two more pairs share points with others, so some chunklets have three points.
        pairs = np.vstack([pairs, np.column_stack([pairs[:2, 0], pairs[2:4, 1]])])
        pairs = pairs[: len(pairs) * (kind in ("hard", "both"))]
        same = y[pairs[:, 0]] == y[pairs[:, 1]]
        self.must, self.cannot = pairs[same], pairs[~same]
        linked = rng.permutation(N)[: 6 * (kind in ("soft", "both"))].reshape(-1, 2)
        sign = np.where(rng.random(len(linked)) < 0.5, 1, -1)
        self.preferences = [(*p, s * 1.3) for p, s in zip(linked.tolist(), sign, strict=True)]
        self.chunklet = primer.closure(N, self.must)
        self.n = primer.if_points_are_sampled(self.chunklet)

    def compute_unaries(self, theta) -> np.ndarray:
        """Return the (J, K) unaries of the chunklets at the parameters θ."""
        log_p = primer.log_densities(self.X, theta)
        return primer.node_unaries(log_p, theta.weights, self.chunklet, self.n)

    @property
    def names(self) -> dict:
        """Return points, start and relations under the names that the scripts use."""
        links = [(*pair, np.inf) for pair in self.must.tolist()]
        links += [(*pair, -np.inf) for pair in self.cannot.tolist()] + self.preferences
        mu = self.X[: self.K]
        return {"X": self.X, "theta": self.start, "mu": mu, "K": self.K, "links": links}

    @property
    def edges(self) -> tuple:
        """Return the edges between chunklets; preferences within a chunklet are dropped."""
        hard = [(*e, -np.inf) for e in primer.cannot_edges(self.chunklet, self.cannot).tolist()]
        soft = [(*self.chunklet[[i, j]], w) for i, j, w in self.preferences]
        edges = [e for e in hard + soft if e[0] != e[1]]
        ends = np.array([e[:2] for e in edges], dtype=int).reshape(-1, 2)
        return ends, np.array([e[2] for e in edges])


@pytest.mark.parametrize(
    ("kind", "pool"), [("hard", "full"), ("both", "full"), *(("none", pool) for pool in POOLS)]
)
@pytest.mark.parametrize("sampled", ["points", "chunklets"])
@pytest.mark.parametrize("seed", range(2))
def test_em_with_relations_equals_the_primer(run_js, seed, sampled, kind, pool):
    problem = Problem(seed, kind)
    n = getattr(primer, f"if_{sampled}_are_sampled")(problem.chunklet)
    *_, (theta, log_evidence) = primer.constrained_em(
        problem.X, problem.start, problem.chunklet, n, *problem.edges, POOLS[pool], STEPS + 1
    )
    assert_em_equals(run_js, problem, theta, log_evidence, "{sampled}", pool, sampled=sampled)


@pytest.mark.parametrize("seed", range(2))
def test_em_with_answers_equals_the_primer(run_js, seed):
    """Answers are data: their probability depends on the assignment."""
    problem = Problem(seed, "both")
    ends = np.array([pair[:2] for pair in problem.preferences])
    w, theta = np.array([pair[2] for pair in problem.preferences]), problem.start
    for _ in range(STEPS):
        theta = primer.m_step(
            problem.X, primer.marginals(primer.log_joint(problem.X, theta), ends, w), primer.full
        )
    expected = primer.log_p_of_answers(primer.log_joint(problem.X, theta), ends, w)
    links = problem.preferences
    assert_em_equals(run_js, problem, theta, expected, "{answers: true}", links=links)


@pytest.mark.parametrize("seed", range(2))
def test_e_step_with_labels_and_relations_equals_the_primer(run_js, seed):
    """Labels restrict the states of nodes; the prior depends on relations only."""
    problem = Problem(seed, "both")
    y = np.full(20, -1)
    # Label a pair of must-linked points, so that no label contradicts a relation.
    y[problem.must[0]] = 0
    node = np.full(len(problem.n), -1)
    node[problem.chunklet[problem.must[0, 0]]] = 0
    u = primer.masked(problem.compute_unaries(problem.start), primer.allowed(node, problem.K))
    code = "eStep(X, theta, network(X.length, links, K, {labels}))"
    found = run_js(code, **problem.names, labels=y)
    q = primer.marginals(u, *problem.edges)
    np.testing.assert_allclose(found["q"], q, **CLOSE)
    log_prior = primer.prior_log_z(np.log(problem.start.weights), problem.n, *problem.edges)
    expected = primer.log_z(u, *problem.edges) - log_prior
    np.testing.assert_allclose(found["logEvidence"], expected, **CLOSE)


@pytest.mark.parametrize("seed", range(2))
def test_em_without_the_normaliser_equals_the_primer(run_js, seed):
    """Without the normaliser, weights are mean responsibilities, and no log-prior is subtracted."""
    problem = Problem(seed, "hard")
    theta = problem.start
    for _ in range(STEPS):
        q = primer.marginals(problem.compute_unaries(theta), *problem.edges)
        theta = primer.m_step(problem.X, q[problem.chunklet], primer.full)
    expected = primer.log_z(problem.compute_unaries(theta), *problem.edges)
    assert_em_equals(run_js, problem, theta, expected, "{normalised: false}")


@pytest.mark.parametrize("seed", range(2))
def test_lower_bound_equals_the_primer(run_js, seed):
    """Without relations, compare F(q, θ') with the primer; with them, check that it is a bound."""
    problem = Problem(seed)
    r, _ = primer.responsibilities(primer.log_joint(problem.X, problem.start))
    theta = primer.m_step(problem.X, r, primer.full)
    code = """{
        const net = network(X.length, links, K), E = eStep(X, theta, net);
        const now = eStep(X, mStep(X, E, net, "full"), net);
        return [E.logEvidence, bound(E, now), now.logEvidence];
    }"""
    _, F, _ = run_js(code, **problem.names | {"links": []})
    np.testing.assert_allclose(F, primer.lower_bound(problem.X, theta, r), **CLOSE)
    before, F, after = run_js(code, **problem.names)
    assert before - 1e-9 < F <= after + 1e-9


@pytest.mark.parametrize("kind", ["none", "hard", "soft"])
@pytest.mark.parametrize("seed", range(2))
def test_lloyd_centres_equal_the_primer(run_js, seed, kind):
    """Compare the centres after five iterations, also with hard relations and with penalties."""
    problem = Problem(seed, kind)
    ends, w = problem.edges

    def assign_cheapest(costs):
        ones = np.ones(problem.K), problem.chunklet, np.ones(len(problem.n))
        return primer.cheapest(-primer.node_unaries(-costs, *ones), ends, w)[problem.chunklet]

    path = [
        centres
        for centres, _ in primer.lloyd(problem.X, problem.X[: problem.K], assign_cheapest, 6)
    ]
    code = """{
        const net = network(X.length, links, K);
        return range(5).reduce((mu) => lloydStep(X, mu, net), mu);
    }"""
    found = run_js(code, **problem.names)
    np.testing.assert_allclose(found, path[-1], **CLOSE)


@pytest.mark.parametrize(("seed", "beta"), [(0, 1.0), (1, 0.3), (2, 0.05)])
def test_soft_assignments_equal_a_mixture_of_narrow_balls(run_js, seed, beta):
    """K-means is the mixture of balls in the limit of variance zero."""
    problem = Problem(seed, "both")
    costs, ones = primer.costs(problem.X, problem.X[: problem.K]), np.ones(len(problem.n))
    u = primer.node_unaries(-costs / beta**2, ones[: problem.K], problem.chunklet, ones)
    expected = primer.marginals(u, *problem.edges)[problem.chunklet]
    code = "softCosts(X, mu, beta, network(X.length, links, K))"
    found = run_js(code, **problem.names, beta=beta)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_rca_equals_the_package(run_js, seed):
    problem = Problem(seed)
    code = "whitening(withinCovariance(X, closure(X.length, must)))"
    W = run_js(code, X=problem.X, must=problem.must)
    package = metric_learning.RCA().fit(problem.X, must_link=problem.must)
    np.testing.assert_allclose(W, package.components_, **CLOSE)


@pytest.mark.parametrize("angle", [0.0, 2.0])
def test_cut_equals_the_m_step_of_its_halves(run_js, angle):
    problem = Problem(0)
    centre = problem.X.mean(axis=0)
    half = ((problem.X - centre) @ [np.cos(angle), np.sin(angle)] > 0).astype(int)
    theta = primer.m_step(problem.X, np.eye(2)[half], primer.full)
    _, log_evidence = primer.responsibilities(primer.log_joint(problem.X, theta))
    found = run_js("cut(X, centre, angle)", X=problem.X, centre=centre, angle=angle)
    assert found["z"] == half.tolist()
    assert_theta_close(found["theta"], theta)
    np.testing.assert_allclose(found["logEvidence"], log_evidence, **CLOSE)


def test_cut_keeps_chunklets_together(run_js):
    problem, angle = Problem(0), 2.0
    along = problem.X @ [np.cos(angle), np.sin(angle)]
    half = (np.bincount(problem.chunklet, along) > 0).astype(int)[problem.chunklet]
    code = "cut(X, [0, 0], angle, chunklet)"
    found = run_js(code, X=problem.X, angle=angle, chunklet=problem.chunklet)
    assert found["z"] == half.tolist()
    assert half.tolist() != (along > 0).astype(int).tolist()


def test_heights_of_the_landscape_equal_evidence_differences(run_js):
    """A height is the upright cut's log-evidence minus that of the turned cut, given the links."""
    problem = Problem(0)

    def log_evidence(turn, n_links):
        chunklet = primer.closure(20, problem.must[:n_links])
        n = primer.if_points_are_sampled(chunklet)
        angle = np.radians(turn)
        middle = np.bincount(chunklet, problem.X @ [np.cos(angle), np.sin(angle)])
        theta = primer.m_step(problem.X, np.eye(2)[(middle > 0).astype(int)[chunklet]], primer.full)
        u = primer.node_unaries(primer.log_densities(problem.X, theta), theta.weights, chunklet, n)
        none = np.empty((0, 2), dtype=int), np.empty(0)
        log_prior = primer.prior_log_z(np.log(theta.weights), n, *none)
        return primer.responsibilities(u)[1] - log_prior

    expected = [
        [log_evidence(0, n) - log_evidence(turn, n) for turn in range(0, 185, 5)] for n in range(3)
    ]
    nets = "range(3).map(n => network(X.length, links.slice(0, n), 2))"
    links = [(*pair, np.inf) for pair in problem.must.tolist()]
    found = run_js(f"landscape(X, {nets})", X=problem.X, links=links)
    np.testing.assert_allclose([row["heights"] for row in found], expected, **CLOSE)
    assert len({tuple(np.round(row, 3)) for row in expected}) == 3


@pytest.mark.parametrize("Sigma", [[[3, 1], [1, 2]], [[1, -0.4], [-0.4, 9]], [[4, 0], [0, 4]]])
def test_an_ellipse_has_the_axes_of_its_covariance(run_js, Sigma):
    found = run_js("axesOf(S)", S=np.array(Sigma))
    (first, second), vectors = np.linalg.eigh(np.linalg.inv(Sigma))
    assert np.hypot(*found["axis"]) == pytest.approx(first**-0.5)
    assert found["width"] == pytest.approx(second**-0.5)
    if first != pytest.approx(second):
        assert abs(np.cross([*found["axis"], 0], [*vectors[:, 0], 0])[2]) < 1e-9
    np.testing.assert_allclose(run_js("covarianceOf(axesOf(S))", S=np.array(Sigma)), Sigma, **CLOSE)


def test_transformed_mixture_has_the_transformed_density(run_js):
    problem, A = Problem(0), np.array([[2.0, 0.5], [0.5, 1.0]])
    found = run_js("transform(theta, A)", theta=problem.start, A=A)
    u = primer.log_densities(problem.X, problem.start)
    moved = primer.Theta(*(np.array(found[name]) for name in primer.Theta._fields))
    v = primer.log_densities(problem.X @ A.T, moved) + np.log(np.linalg.det(A))
    np.testing.assert_allclose(v, u, **CLOSE)
    W = np.array(run_js("ruler(X, closure(X.length, must)).W", X=problem.X, must=problem.must))
    C = primer.within_covariance(problem.X, problem.chunklet)
    np.testing.assert_allclose(W, primer.whitening(C) * np.linalg.det(C) ** 0.25, **CLOSE)


def test_contradictory_relations_give_null_for_a_network(run_js):
    triangle = [(0, 1, -np.inf), (1, 2, -np.inf), (0, 2, -np.inf)]
    assert run_js("network(3, links, 2)", links=triangle) is None
    assert run_js("network(3, links, 3) !== null", links=triangle)
    clash = [(0, 1, np.inf), (1, 2, np.inf), (0, 2, -np.inf)]
    assert run_js("network(3, links, 3)", links=clash) is None


@pytest.mark.parametrize(
    ("links", "reason"),
    [([(0, 1, np.inf), (0, 1, -np.inf)], "contradicts the others"),
     ([(i, i + 1, 1.0) for i in range(17)], "more points than the figure can sum over")],
)  # fmt: skip
def test_reason_for_refusing_a_network_is_reported(run_js, links, reason):
    code = "{ let why; network(20, links, 2, {}, (text) => { why = text; }); return why; }"
    assert reason in run_js(code, links=links)


def test_a_label_that_contradicts_relations_is_refused(run_js):
    code = "network(3, links, 2, {labels: [0, 1, -1]}) === null"
    assert run_js(code, links=[(0, 1, np.inf)])
    assert not run_js(code, links=[(0, 1, -np.inf)])
