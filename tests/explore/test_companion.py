"""Test the live figure of 32 points that several chapters share, and the duel with EM."""

import re
import warnings

import numpy as np
import pytest

from cgmm import RCA, ConstrainedGaussianMixture, primer
from cgmm.datasets import vertical_classes
from cgmm.explore import LiveFigure
from cgmm.explore.live import CONTROLS
from cgmm.network import DoubtWarning

pytestmark = pytest.mark.filterwarnings("error")

X, Y = vertical_classes(16)[:2]
LEVEL = (X[:, 1] > 0).astype(int)
X = X - np.outer(2 * LEVEL - 1, [0, 6])
# All points at the left, and the first four of each of the two clumps at the right.
UNEVEN = np.flatnonzero((Y == 0) | (np.arange(32) < 15))
ROUND_START = primer.Theta(
    np.full(2, 0.5), np.array([[-2.0, -2.0], [2.0, 2.0]]), np.array([6 * np.eye(2)] * 2)
)
PAIRS = [(0, 3), (6, 1), (2, 11), (7, 4)]
# The address of two tall ellipses: shares, means and covariances.
UPRIGHT_ELLIPSES = "figure=duel&hand=0.5,-3,0,0,4,1,0.5,3,0,0,4,1"


def make_companion(**changes) -> LiveFigure:
    arguments = {
        "mode": "companion", "title": "Thirty-two points", "starts": [Y, LEVEL], "weight": 4,
        "words": ["upright", "level"], "controls": CONTROLS, "name": "points",
        "presets": {"even": {}, "uneven": {"X": X[UNEVEN], "starts": [Y[UNEVEN], LEVEL[UNEVEN]]}},
        **changes,
    }  # fmt: skip
    return LiveFigure(X, **arguments)


def make_duel(**changes) -> LiveFigure:
    arguments = {
        "mode": "duel", "title": "You against EM", "starts": [Y, LEVEL, ROUND_START],
        "must_link": PAIRS, "name": "duel", **changes,
    }  # fmt: skip
    return LiveFigure(X, **arguments)


@pytest.fixture
def visit(open_page):
    """Return a function that opens a page with a figure and links that set its states."""

    def open_with_links(figure, *states, **options):
        links = "".join(f'<p><a href="#{state}">set {n}</a></p>' for n, state in enumerate(states))
        return open_page(links + figure.html(), **{"reduced_motion": "reduce", **options})

    return open_with_links


def click_link(page, name) -> None:
    """Click a link, and wait until the page has handled the change of its address."""
    page.get_by_text(name).click()
    page.evaluate("new Promise(done => setTimeout(done, 50))")


def read_status(page) -> str:
    return page.locator(".cgmm-live-status").inner_text()


def read_lead(page) -> float:
    """Return by how many nats the upright partition leads the level one, as the figure says."""
    who, nats = re.search(r"(upright|level) by ([\d.]+) nats", read_status(page)).groups()
    return float(nats) * (1 if who == "upright" else -1)


# ------------------------------------------------------------------------------- the numbers


def compute_evidence(z, points=X, covariance_type="full", **relations) -> float:
    """Return the log-evidence of a mixture that the package fits, starting at the classes z."""
    model = ConstrainedGaussianMixture(
        2, covariance_type=covariance_type, init_params=np.eye(2)[z], reg_covar=0, max_iter=999
    )
    with warnings.catch_warnings(action="ignore", category=DoubtWarning):
        return model.set_params(tol=1e-9).fit(points, **relations).log_evidence_


def compute_lead(**options) -> float:
    """Return by how many nats the upright partition leads the level one, by fits of the package."""
    # Labels may agree with either numbering of the two classes.
    upright, level = (
        max(compute_evidence(numbers, **options) for numbers in (z, 1 - z)) for z in (Y, LEVEL)
    )
    return upright - level


def compute_lead_with_learned_metric(must_link) -> float:
    points = RCA().fit_transform(X, must_link=must_link)
    return compute_lead(points=points, covariance_type="spherical")


UNLABELLED = [-1] * 25


@pytest.mark.parametrize(
    ("state", "options"),
    [("labels=1:1,4:1,7:2,2:2", {"labels": [0, 1, -1, 0, -1, -1, 1, *UNLABELLED]}),
     ("labels=1:1,7:2", {"labels": [0, -1, -1, -1, -1, -1, 1, *UNLABELLED]}),
     ("together=1-4,7-2,3-12", {"must_link": PAIRS[:3]}),
     ("apart=1-7,4-2", {"cannot_link": [(0, 6), (3, 1)]}),
     ("together=1-4,7-2,3-12&weight=2", {"preferences": [(*pair, 2.0) for pair in PAIRS[:3]]}),
     ("shape=spherical&together=1-4,7-2",
      {"must_link": PAIRS[:2], "covariance_type": "spherical"})],
)  # fmt: skip
def test_lead_with_labels_or_relations_equals_the_package(visit, state, options):
    page = visit(make_companion(), f"figure=points&{state}")
    click_link(page, "set 0")
    assert read_lead(page) == pytest.approx(compute_lead(**options), abs=0.06)


def test_lead_with_a_learned_metric_equals_the_package(visit):
    page = visit(
        make_companion(), "figure=points&shape=spherical&role=ruler&together=1-4,7-2",
        "figure=points&shape=spherical&role=ruler&together=1-7,4-2",
        "figure=points&role=ruler&together=1-4,7-2", "figure=points",
    )  # fmt: skip
    click_link(page, "set 0")
    assert read_status(page).startswith("2 relations: upright, from every start")
    assert compute_lead_with_learned_metric(PAIRS[:2]) == pytest.approx(0, abs=0.04)
    assert page.locator("circle.ruler").count() == 2
    click_link(page, "set 1")
    assert read_status(page).startswith("2 relations: level, from every start")
    assert compute_lead_with_learned_metric([(0, 6), (3, 1)]) == pytest.approx(0, abs=0.04)
    # Full covariances fit linearly transformed points equally well, so the metric changes nothing.
    leads = []
    for n in (2, 3):
        click_link(page, f"set {n}")
        leads.append(read_lead(page))
    assert leads[0] == leads[1] == pytest.approx(-24.0, abs=0.06)


def test_weights_depend_on_the_normaliser(visit):
    # Each of the 8 points at the right has a cannot-link to one of the 16 points at the left.
    pairs = "1-7,3-8,6-11,10-15,2-4,5-12,9-16,13-17"
    state = f"figure=points&preset=1&apart={pairs}"
    page = visit(make_companion(), state, f"{state}&normaliser=out")
    shares = []
    for n in (0, 1):
        click_link(page, f"set {n}")
        shares.append(re.search(r"Shares ([\d.]+)", read_status(page))[1])
    assert shares == ["1.00", "0.67"]


# ------------------------------------------------------------------------------- the address


@pytest.mark.parametrize(
    "state",
    ["together=1-4,7-2&apart=3-8", "labels=1:1,2:2", "weight=1.5&apart=1-7", "normaliser=out",
     "role=ruler&shape=spherical&together=1-4,7-2", "preset=1&together=1-3"],
)  # fmt: skip
def test_state_is_written_to_the_address_and_restored_on_reload(visit, state):
    state = f"figure=points&{state}"
    page = visit(make_companion(), state)
    click_link(page, "set 0")
    before, sides = read_status(page), page.locator(".cgmm-live-side").inner_html()
    page.wait_for_timeout(400)
    assert {*page.url.split("#")[1].split("&")} == {*state.split("&")}
    page.reload()
    assert read_status(page) == before
    assert page.locator(".cgmm-live-side").inner_html() == sides


def test_added_points_labels_and_links_are_stored_in_the_address(visit):
    page = visit(make_companion())
    points = page.locator(".cgmm-live .points > *")
    points.nth(3).press("l")
    assert points.nth(3).get_attribute("aria-label").endswith("label 1")
    points.nth(0).press("t")
    points.nth(3).press("t")
    points.nth(31).press("a")
    page.wait_for_url("**figure=points&points=**")
    assert "labels=4:1&together=1-4" in page.url
    page.reload()
    # The address stores coordinates with two decimals only.
    assert read_status(page).split(":")[0] == "1 label, 1 relation"
    assert "33 points, 1 relations" in page.locator(".cgmm-live-main").get_attribute("aria-label")
    assert points.count() == 33
    page.get_by_role("button", name="Start again").click()
    page.wait_for_url("**#figure=points")


@pytest.mark.parametrize(
    "state",
    ["together=1-99,0-2,x", "labels=1:9,99:1,:", "points=1:2,NaN:3", "weight=heavy&preset=7",
     "together=1-2&apart=1-2", "role=king", "labels=1:1,4:2&together=1-4"],
)  # fmt: skip
def test_invalid_addresses_show_no_nan_or_undefined(visit, state):
    page = visit(make_companion(), f"figure=points&{state}")
    click_link(page, "set 0")
    shown = page.locator(".cgmm-live-stage").inner_html() + read_status(page)
    assert "relation" in read_status(page)
    assert not re.findall("NaN|Infinity|undefined|null", shown)


def test_addresses_of_other_figures_and_sections_are_ignored(visit):
    page = visit(make_companion(), "figure=other&together=1-4", "section")
    for n in (0, 1):
        click_link(page, f"set {n}")
        assert read_status(page).startswith("0 relations")


def test_number_of_em_steps_is_stored_in_the_address(visit):
    figure = LiveFigure(X, title="Steps", starts=[ROUND_START], name="steps")
    page = visit(figure, "figure=steps&steps=4")
    click_link(page, "set 0")
    expected = list(primer.em(X, ROUND_START, primer.full, 3))[-1][1]
    assert read_status(page).startswith(f"After E2: log-evidence −{-expected:.1f}")
    page.get_by_role("button", name="M-step").press("Enter")
    page.wait_for_url("**#figure=steps&steps=5")


def test_links_set_a_figure_in_a_widget_without_changing_the_address(open_page, show_widget):
    page = open_page('<p><a href="#figure=points&amp;together=1-4">set 0</a></p>')
    widget, url = make_companion().widget(), page.url
    show_widget(page, widget)
    assert page.get_by_role("button", name="Ask cgmm").count() == 0
    click_link(page, "set 0")
    assert read_status(page).startswith("1 relation:")
    page.wait_for_timeout(400)
    assert page.url == url


# ------------------------------------------------------------------------------- controls


def test_figure_offers_only_the_requested_controls(visit):
    offered = {}
    for n in range(len(CONTROLS) + 1):
        page = visit(make_companion(controls=CONTROLS[:n], presets=None))
        code = "all => all.map(one => one.name === 'tool' ? one.value : one.name)"
        names = page.locator(".cgmm-live input").evaluate_all(code)
        offered[n] = {*names} - {"move", "add", "remove"}
    assert offered == {
        0: set(), 1: {"label"}, 2: {"label", "together"}, 3: {"label", "together", "apart"},
        4: {"label", "together", "apart", "normaliser"},
        5: {"label", "together", "apart", "normaliser", "weight"},
        6: {"label", "together", "apart", "normaliser", "weight", "role", "shape"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"controls": ["colour"]}, "a control is 'colour'"), ({"name": "my figure"}, "name is"),
     ({"starts": [Y, np.full(32, 2)]}, "one class below 2 for each of 32 points")],
)  # fmt: skip
def test_invalid_arguments_of_a_figure_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        make_companion(presets=None, **changes)


# ------------------------------------------------------------------------------- you against EM


def read_log_likelihood(page) -> float:
    return -float(re.search(r"log-likelihood −([\d.]+)", read_status(page))[1])


def test_log_likelihood_of_dragged_ellipses_equals_the_primer(visit):
    theta = primer.Theta(
        np.full(2, 0.5), np.array([[-3.0, 0.0], [3.0, 0.0]]), np.array([np.diag([1.0, 16.0])] * 2)
    )
    page = visit(make_duel(), UPRIGHT_ELLIPSES, "figure=duel&steps=3")
    assert read_log_likelihood(page) == pytest.approx(compute_log_likelihood(ROUND_START), abs=0.06)
    click_link(page, "set 0")
    assert read_log_likelihood(page) == pytest.approx(compute_log_likelihood(theta), abs=0.06)
    click_link(page, "set 1")
    expected = list(primer.em(X, ROUND_START, primer.full, 4))[-1][1]
    assert read_log_likelihood(page) == pytest.approx(expected, abs=0.06)


def compute_log_likelihood(theta):
    return primer.responsibilities(primer.log_joint(X, theta))[1]


def test_em_continues_from_the_dragged_ellipses(visit):
    """EM keeps to the upright optimum from upright ellipses, to the level one from slanted ones."""
    page = visit(make_duel(), UPRIGHT_ELLIPSES, "figure=duel&count=3")
    rest = {}
    for name in ("slanted", "upright", "three links"):
        if name != "slanted":
            click_link(page, "set 0" if name == "upright" else "set 1")
        page.get_by_role("button", name="EM takes over").click()
        page.wait_for_function("() => /After \\d+ steps? of EM/.test(document.body.innerText)")
        degrees = int(re.search(r"turned by (\d+)°", read_status(page))[1])
        rest[name] = read_log_likelihood(page), degrees
    level, upright = map(compute_evidence, (LEVEL, Y))
    assert rest["slanted"][0] == pytest.approx(level, abs=0.06)
    assert rest["upright"][0] == pytest.approx(upright, abs=0.06)
    assert abs(rest["slanted"][1] - 90) < 5 < 170 < rest["upright"][1]
    # With three must-links EM no longer ends at the level optimum.
    assert rest["three links"][1] > 170
    assert page.locator(".trail").get_attribute("d").count("L") > 2


def test_ellipses_move_by_keyboard_and_mouse(visit):
    page = visit(make_duel())
    centre = page.get_by_role("button", name="Ellipse 1: centre")
    before = read_log_likelihood(page)
    centre.press("ArrowLeft")
    page.keyboard.press("Shift+ArrowUp")
    assert read_log_likelihood(page) != before
    assert page.evaluate("document.activeElement.ariaLabel") == "Ellipse 1: centre"
    tip = page.get_by_role("button", name="Ellipse 2: end of the first axis")
    box, before = tip.locator("circle").last.bounding_box(), read_status(page)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] - 30, box["y"] + 40)
    live = page.locator(".cgmm-live-side text").first.text_content()
    page.mouse.up()
    assert read_status(page) != before
    assert live == f"your log-likelihood: −{-read_log_likelihood(page):.1f}"
    page.wait_for_timeout(400)
    assert "#figure=duel&hand=" in page.url
    now = read_log_likelihood(page)
    page.reload()
    # The address stores numbers with two decimals only.
    assert read_log_likelihood(page) == pytest.approx(now, abs=0.3)


def test_slider_adds_the_links_one_by_one(visit):
    page = visit(make_duel())
    slider, links = page.locator("input[name=count]"), page.locator("g.links path")
    rows = page.locator(".row").get_attribute("y")
    assert links.count() == 0
    slider.press("ArrowRight")
    slider.press("ArrowRight")
    assert links.count() == 2
    assert page.locator(".row").get_attribute("y") != rows
    assert "2 links" in read_status(page)
