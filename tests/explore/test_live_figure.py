"""Test live figures: invalid input, pages, control by keys and clicks, and the widget."""

import json
import re
import sys

import numpy as np
import pytest
from moving_dot import parse_html
from refusals import refused

from cgmm import datasets, primer
from cgmm.explore import LiveFigure
from cgmm.explore.live import MODES

pytestmark = pytest.mark.filterwarnings("error")

DATA = datasets.two_clusters(15)
START = primer.Theta(
    np.full(2, 0.5), np.array([[-1.0, 2.0], [1.0, -2.0]]), np.array([4 * np.eye(2)] * 2)
)
OTHER = START._replace(means=np.array([[-2.0, -1.0], [2.0, 1.0]]))


def make_figure(mode="relations", **changes) -> LiveFigure:
    arguments = {
        "mode": mode, "title": f"Live {mode}", "task": "What will move?", "y": DATA.y,
        "starts": [START, OTHER], "must_link": [[0, 1], [2, 3], [4, 5]], "cannot_link": [[6, 7]],
        **changes,
    }  # fmt: skip
    return LiveFigure(DATA.X, **arguments)


# ----------------------------------------------------------------------------- without a browser


def test_html_and_scripts_in_arguments_are_escaped():
    evil = '</script><img src=x onerror="alert(1)"> & {title}'
    html = make_figure(title=evil, task=evil, words=[evil, evil]).html()
    page = parse_html(html)
    assert not page.select("img")
    data, _ = page.select("script")
    assert page.select_one("p.cgmm-live-title").string == evil
    assert json.loads(data.string)["words"] == [evil, evil]


test_invalid_arguments_of_a_figure_are_refused = refused(
    make_figure,
    ({"mode": "film"}, "mode is 'film'; it must be one of"),
    ({"pool": "round"}, "pool is 'round'"),
    ({"classes": 1}, "classes is 1"),
    ({"starts": [START._replace(weights=np.ones(3) / 3)]}, "weights of a start have shape"),
    ({"presets": {"far": {"Z": 1}}}, "the preset 'far' brings"),
    ({"presets": {"far": {"X": DATA.X[:, :1]}}}, "points in the plane"),
    ({"y": [0, 1]}, "one class below 2 for each of 30 points"),
    ({"must_link": [[0, 99]]}, "99"),
    ({"must_link": [[0, 1]], "cannot_link": [[0, 1]]}, "0"),
)


# ----------------------------------------------------------------------------- in a browser


@pytest.fixture
def visit(open_page):
    """Return a function that opens a page with the given figures."""

    def open_figures(*figures, motion="reduce", **options):
        html = "\n".join(figure.html() for figure in figures)
        return open_page(html, reduced_motion=motion, **options)

    return open_figures


def locate_figure(page, at=0):
    return page.locator(".cgmm-live").nth(at)


def read_status(root) -> str:
    return root.locator(".cgmm-live-status").inner_text()


def read_evidence(root) -> float:
    return float(re.search(r"log-evidence (−?[\d.]+)", read_status(root))[1].replace("−", "-"))


def compute_log_evidence_after(steps) -> float:
    """Return the log-evidence after this number of EM steps of the primer, without relations."""
    path = list(primer.em(DATA.X, START, primer.full, steps + 1))
    return path[-1][1]


def test_evidence_after_half_steps_and_a_run_equals_the_primer(visit):
    root = locate_figure(visit(make_figure("em", must_link=(), cannot_link=())))
    assert read_evidence(root) == pytest.approx(compute_log_evidence_after(0), abs=0.06)
    for half in ("M-step", "E-step", "M-step"):
        root.get_by_role("button", name=half, exact=True).press("Enter")
    assert read_status(root).startswith("After M2:")
    assert read_evidence(root) == pytest.approx(compute_log_evidence_after(2), abs=0.06)
    root.get_by_role("button", name="Run or stop").click()
    assert read_evidence(root) == pytest.approx(compute_log_evidence_after(500), abs=0.06)


def test_points_are_added_moved_and_removed_by_keyboard(visit):
    page = visit(make_figure())
    root = locate_figure(page)
    points = root.locator(".cgmm-live-main [role=button]")
    assert points.count() == 30
    points.first.focus()
    before = points.first.get_attribute("transform")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowUp")
    assert points.first.get_attribute("transform") != before
    assert read_status(root).startswith("Point 1 at")
    page.keyboard.press("a")
    assert points.count() == 31
    assert page.evaluate("document.activeElement.ariaLabel").startswith("Point 31:")
    page.keyboard.press("x")
    assert points.count() == 30
    page.keyboard.press("PageDown")
    assert page.evaluate("document.activeElement.ariaLabel").startswith("Point 1:")
    # The Tab key reaches the points as a group, whichever of them has the focus.
    assert root.locator(".cgmm-live-main [tabindex='0']").count() == 1


def test_links_are_added_and_removed_by_keyboard(visit):
    page = visit(make_figure(must_link=(), cannot_link=()))
    root = locate_figure(page)
    points, links = root.locator(".cgmm-live-main [role=button]"), root.locator("g.links path")
    points.nth(3).focus()
    page.keyboard.press("t")
    assert read_status(root).startswith("Point 4 picked")
    page.keyboard.press("PageDown")
    page.keyboard.press("t")
    assert links.count() == 1
    assert read_status(root).startswith("Points 4 and 5 belong together.")
    page.keyboard.press("d")
    page.keyboard.press("PageUp")
    page.keyboard.press("d")
    assert links.count() == 0
    page.keyboard.press("d")
    page.keyboard.press("Escape")
    assert read_status(root).startswith("Let go.")


def test_links_are_added_by_clicks_and_contradictory_ones_are_refused(visit):
    preset = {"far": {}, "near": {"X": DATA.X / 2, "must_link": [[0, 1]], "cannot_link": ()}}
    figure = make_figure(must_link=[[0, 1], [1, 2]], cannot_link=(), presets=preset)
    root = locate_figure(visit(figure))
    links = root.locator("g.links path")
    root.get_by_role("radio", name="apart").check()
    for pair, n_links in [((0, 2), 2), ((0, 9), 3)]:
        for i in pair:
            root.locator("[role=button]").nth(i).dispatch_event("pointerdown")
        is_refused = read_status(root).startswith("This relation contradicts the others")
        assert is_refused == (n_links == 2)
        assert links.count() == n_links
    assert root.locator("g.links path.apart").count() == 1
    # A preset brings its own relations.
    root.get_by_role("radio", name="near").check()
    assert links.count() == 1


def test_sliders_of_every_mode_change_the_figure_by_keyboard(visit):
    page = visit(*map(make_figure, MODES))
    # A live region that has text from the start would be read aloud when the page opens.
    assert 'role="status"' not in make_figure().html().split("<script")[0]
    assert page.get_by_role("status").count() > 0
    moved = 0
    for mode, root in zip(MODES, page.locator(".cgmm-live").all(), strict=True):
        for slider in root.locator("input[type=range]").all():
            before = root.locator(".cgmm-live-side").inner_html()
            slider.press("ArrowLeft" if mode == "metric" else "ArrowRight")
            shown = root.locator("output").inner_text()
            assert slider.get_attribute("aria-valuetext") == shown
            assert root.locator(".cgmm-live-side").inner_html() != before
            moved += 1
    assert moved >= 4


def test_figure_panels_and_points_have_accessible_names(visit):
    """The figure, its panels and points have names; a point's name lists its relations."""
    page = visit(make_figure(), make_figure("em"))
    root = page.get_by_role("group", name="Live figure: Live relations")
    panel = root.get_by_role("application", name="Live relations: 30 points, 4 relations")
    assert root.get_by_role("img", name="log-evidence, and the bound (dashed)").count() == 1
    points = panel.get_by_role("button")
    label = points.first.get_attribute("aria-label")
    assert re.fullmatch(r"Point 1: class 1 \d+ %, class 2 \d+ %, together with 2", label)
    assert points.nth(7).get_attribute("aria-label").endswith(", apart from 7")
    points.nth(7).press("x")
    assert root.get_by_role("application", name="29 points, 3 relations").count() == 1


def test_steps_are_animated_unless_motion_is_reduced(visit):
    for motion, gliding in [("no-preference", True), ("reduce", False)]:
        root = locate_figure(visit(make_figure("em"), motion=motion))
        # Look for the animation at once, because it takes only 0.3 seconds.
        moving = """root => {
            [...root.querySelectorAll("button")].find(one => one.textContent === "M-step").click();
            const glides = one => one.effect.target.matches(".over > *");
            return root.getAnimations({subtree: true}).some(glides);
        }"""
        assert root.evaluate(moving) is gliding


def test_points_are_shown_without_script(visit):
    root = locate_figure(visit(make_figure(), java_script_enabled=False))
    assert root.locator("svg circle").count() == 30
    assert root.get_by_text("where scripts run").is_visible()
    assert read_status(root) == "30 points in the plane, 3 must-links and 1 cannot-links."


# ----------------------------------------------------------------- degenerate points

# Press keys as a reader may: remove points, or move all points into a corner or onto a line.
DEGENERATE_POINTS = """(live, how) => {
  const points = live.querySelector(".points");
  const press = (one, key) => one.dispatchEvent(
    new KeyboardEvent("keydown", { key, shiftKey: true, bubbles: true }));
  if (how === "few") {
    for (let n = 0; n < 20; n++) press(points.children[n % points.children.length], "x");
    return;
  }
  for (const one of [...points.children])
    for (let n = 0; n < 14; n++) {
      press(one, "ArrowDown");
      if (how === "one spot") press(one, "ArrowLeft");
    }
}"""


@pytest.mark.parametrize("how", ["few", "one spot", "one line"])
def test_degenerate_points_show_no_nan_or_undefined(visit, how):
    subset = {"y": DATA.y[::3], "must_link": [[0, 1]], "cannot_link": [[6, 7]]}
    options = {"starts": [START, OTHER], **subset}
    page = visit(*(LiveFigure(DATA.X[::3], mode=mode, title=mode, **options) for mode in MODES))
    for root in page.locator(".cgmm-live").all():
        root.evaluate(DEGENERATE_POINTS, how)
        for slider in root.locator("input[type=range]").all():
            for key in ("End", "ArrowLeft", "Home"):
                slider.press(key)
        for button in root.get_by_role("button", name="M-step").all():
            button.press("Enter")
        shown = root.locator(".cgmm-live-stage").inner_html() + read_status(root)
        assert not re.findall("NaN|Infinity|undefined|null", shown)


def test_figure_is_shown_as_html_without_anywidget(monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    assert set(make_figure()._repr_mimebundle_()) == {"text/html", "text/plain"}
    with pytest.raises(ImportError, match=r"pip install 'constrained-mixtures\[widgets\]'"):
        make_figure().widget()


def test_widget_updates_points_and_links_in_python():
    figure = make_figure()
    page, widget = figure.html(), figure.widget()
    moved = DATA.X[:20].copy()
    moved[0] = 5, 5
    widget.points = moved.tolist()
    widget.links = [[0, 1, 1], [2, 3, -1]]
    np.testing.assert_array_equal(figure.points, moved)
    np.testing.assert_array_equal(figure.must_link, [[0, 1]])
    np.testing.assert_array_equal(figure.cannot_link, [[2, 3]])
    assert figure.html() == page
    assert figure.widget() is widget


def test_fit_button_returns_the_fit_of_the_package():
    figure = make_figure()
    assert figure.widget().fitted is None
    figure.widget()._handle_custom_msg({"fit": True}, [])
    assert set(figure.widget().fitted) == {"weights", "means", "covariances"}
    model = figure.fit()
    assert model.converged_
    # The page receives the fit with seven digits.
    np.testing.assert_allclose(figure.widget().fitted["means"], model.means_, rtol=1e-6)
    pairs = model.labels_[figure.must_link]
    assert (pairs[:, 0] == pairs[:, 1]).all()


def test_page_sends_changes_to_the_widget_model(visit, show_widget):
    figure, page = make_figure(), visit()
    widget = figure.widget()
    show_widget(page, widget)
    page.get_by_role("button", name="Ask cgmm").click()
    assert page.evaluate("window.sent") == [{"fit": True}]
    page.locator(".cgmm-live-main [role=button]").first.press("a")
    assert len(page.evaluate("window.kept.points")) == 31
    assert page.evaluate("window.kept.links") == [[0, 1, 1], [2, 3, 1], [4, 5, 1], [6, 7, -1]]
    fitted = json.loads(json.dumps(figure.fit() and widget.fitted))
    page.evaluate("fitted => { window.kept.fitted = fitted; heard['change:fitted'](); }", fitted)
    assert page.locator(".fitted").count() == 2


def read_side_text(root) -> str:
    return root.locator(".cgmm-live-side").text_content()


def test_chart_shows_all_steps_and_the_gap(visit):
    root = locate_figure(visit(make_figure("em", must_link=(), cannot_link=())))
    assert "No step has been taken yet." in read_side_text(root)
    for _ in range(16):
        for half in ("M-step", "E-step"):
            root.get_by_role("button", name=half, exact=True).press("Enter")
    curves = root.locator(".cgmm-live-side path.curve")
    numbers = [path.get_attribute("d").count(",") for path in curves.all()]
    # Evidence and bound have a value for each half-step, the gap one for each M-step.
    assert numbers == [33, 33, 16]
    assert "gap after each M-step" in read_side_text(root)


@pytest.mark.parametrize(
    ("mode", "message"),
    [("rivals", "a component has shrunk"), ("weights", "a component has shrunk"),
     ("kmeans", "All points lie on one spot")],
)  # fmt: skip
def test_degenerate_points_are_explained(visit, mode, message):
    spot = {"X": np.zeros_like(DATA.X)}
    links = {"must_link": (), "cannot_link": ()}
    root = locate_figure(visit(make_figure(mode, presets={"spread": {}, "spot": spot}, **links)))
    assert message not in read_status(root)
    root.get_by_role("radio", name="spot").check()
    assert message in read_status(root)
