"""The live figure with a kernel: points and relations come back, and a fit is drawn."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from test_live_figure import DATA, make

pytestmark = pytest.mark.filterwarnings("error")

# A model as the widget's manager would hand it to the page, and a button of it pressed.
HOST = """async ({esm, html, style}) => {
    const url = URL.createObjectURL(new Blob([esm], {type: "text/javascript"}));
    const module = await import(url);
    window.kept = {html}; window.sent = []; window.heard = {};
    const model = {
        get: (name) => window.kept[name], set: (given) => Object.assign(window.kept, given),
        save_changes: () => {}, send: (said) => window.sent.push(said),
        on: (event, act) => { window.heard[event] = act; },
    };
    document.head.append(Object.assign(document.createElement("style"), {textContent: style}));
    module.default.render({model, el: document.body});
}"""


def test_without_anywidget_there_is_the_page(monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    assert set(make()._repr_mimebundle_()) == {"text/html", "text/plain"}
    with pytest.raises(ImportError, match=r"pip install 'constrained-mixtures\[widgets\]'"):
        make().widget()


def test_what_the_hand_has_moved_comes_back_and_the_page_stays():
    figure = make()
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


def test_the_fit_that_the_button_asks_for_is_that_of_the_package():
    figure = make()
    assert figure.widget().fitted is None
    figure.widget()._handle_custom_msg({"fit": True}, [])
    assert set(figure.widget().fitted) == {"weights", "means", "covariances"}
    model = figure.fit()
    assert model.converged_
    # Seven digits are drawn.
    np.testing.assert_allclose(figure.widget().fitted["means"], model.means_, rtol=1e-6)
    pairs = model.labels_[figure.must_link]
    assert (pairs[:, 0] == pairs[:, 1]).all()


def test_the_page_of_the_widget_tells_its_model(browser, tmp_path):
    figure = make()
    widget = figure.widget()
    page = browser.new_page(reduced_motion="reduce")
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    blank = tmp_path / "blank.html"
    blank.write_text("<!doctype html><title>Widget</title>")
    page.goto(blank.as_uri())
    page.evaluate(HOST, {"esm": widget._esm, "html": widget.html, "style": widget._css})
    page.get_by_role("button", name="Ask cgmm").click()
    assert page.evaluate("window.sent") == [{"fit": True}]
    page.locator(".cgmm-live-main [role=button]").first.press("a")
    assert len(page.evaluate("window.kept.points")) == 31
    assert page.evaluate("window.kept.links") == [[0, 1, 1], [2, 3, 1], [4, 5, 1], [6, 7, -1]]
    fitted = json.loads(json.dumps(figure.fit() and widget.fitted))
    page.evaluate("fitted => { window.kept.fitted = fitted; heard['change:fitted'](); }", fitted)
    assert page.locator(".fitted").count() == 2
    assert not errors
    page.close()
