"""Test a chapter on a telephone: formulas break, figures enlarge, and a finger on a live figure
moves points there and scrolls the page elsewhere. Other pages are tested in test_pages.
"""

import math

import pytest
from built_book import visiting

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.fixture(scope="module")
def phone(browser, site):
    with visiting(browser, site, "book/02_em", **PHONE) as one:
        yield one


def test_what_was_broken_for_a_telephone_is_whole_on_a_screen(phone):
    broken = "document.querySelectorAll('mjx-piece').length"
    phone.unfold()
    assert phone.page.evaluate(broken) > 10
    phone.show(width=1600)
    phone.page.wait_for_function(f"{broken} < 10")
    phone.show(width=390)


def test_a_figure_enlarges_and_the_focus_comes_back(phone):
    page = phone.page
    button = page.locator(".cgmm-enlarge").first
    small = page.locator(".cgmm-figure img").first
    button.focus()
    page.keyboard.press("Enter")
    large = page.locator("dialog.cgmm-large img")
    assert large.bounding_box()["width"] > 1.5 * small.bounding_box()["width"]
    assert large.get_attribute("alt") == small.get_attribute("alt")
    page.keyboard.press("Escape")
    page.locator("dialog.cgmm-large").wait_for(state="detached")
    assert button.evaluate("button => button === document.activeElement")
    small.tap()
    page.locator("dialog.cgmm-large button").tap()
    page.locator("dialog.cgmm-large").wait_for(state="detached")
    assert not phone.complaints, "\n".join(phone.complaints)


# ---------------------------------------------------------------------------- live figures


PLACES = """points => [...points.children].map(one => {
  const at = new DOMPoint(0, 0).matrixTransform(one.getScreenCTM());
  return [at.x, at.y];
})"""


class Finger:
    """A page on a telephone with its first live figure."""

    def __init__(self, page):
        self.page, self.main = page, page.locator(".cgmm-live-main").first
        self.main.evaluate("main => main.scrollIntoView({block: 'center'})")
        self.touch = page.context.new_cdp_session(page)

    def places(self):
        """Return the positions of the points on the screen."""
        return self.main.locator(".points").evaluate(PLACES)

    def free_place(self):
        """Return a position on the figure that is far from all points."""
        box = self.main.bounding_box()
        spots = [(box["x"] + 20 * i, box["y"] + 20 * j) for i in range(1, 15) for j in range(1, 12)]
        return max(spots, key=lambda at: min(math.dist(at, one) for one in self.places()))

    def swipe(self, start, by, steps=8):
        """Press at a position, move, and release."""
        self._send("touchStart", start)
        for n in range(1, steps + 1):
            self._send("touchMove", [a + n * b / steps for a, b in zip(start, by, strict=True)])
        self._send("touchEnd")
        self.page.wait_for_timeout(200)

    def _send(self, kind, place=()):
        points = [dict(zip("xy", place, strict=True))] if place else []
        self.touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


def require_following(one):
    """Check that the fourth point follows the finger and that nothing else moves."""
    before, scrolled = one.places(), one.page.evaluate("scrollY")
    one.swipe(before[3], (36, 48))
    after = one.places()
    assert math.dist(after[3], (before[3][0] + 36, before[3][1] + 48)) < 5
    assert one.page.evaluate("scrollY") == scrolled
    assert [n for n, place in enumerate(after) if math.dist(place, before[n]) > 1] == [3]


def test_a_point_follows_the_finger_and_beside_the_points_a_swipe_scrolls(visit):
    one = Finger(visit("book/02_em", **PHONE).page)
    require_following(one)
    before, scrolled = one.places(), one.page.evaluate("scrollY")
    one.swipe(one.free_place(), (0, -150))
    assert one.page.evaluate("scrollY") > scrolled + 60
    moved = [b[1] - a[1] for a, b in zip(one.places(), before, strict=True)]
    assert max(moved) - min(moved) < 1


def test_a_tap_picks_the_nearest_point_within_24_pixels_or_with_another_tool_moves_it(visit):
    one = Finger(visit("book/index", **PHONE).page)
    places = one.places()
    lonely = max(
        range(len(places)), key=lambda i: sorted(math.dist(places[i], p) for p in places)[1]
    )
    x, y = places[lonely]
    one.swipe((x + 10, y - 6), (0, 0), steps=0)
    assert f"Point {lonely + 1} picked" in one.page.locator(".cgmm-live-status").first.inner_text()
    one.page.locator(".cgmm-live input[value=move]").first.check()
    one.main.evaluate("main => main.scrollIntoView({block: 'center'})")
    require_following(one)


def test_the_cut_of_chapter_1_turns_by_its_handle(visit):
    one = Finger(visit("book/01_mixtures", **PHONE).page)
    box = one.main.locator(".handle").first.bounding_box()
    scrolled = one.page.evaluate("scrollY")
    one.swipe((box["x"] + box["width"] / 2, box["y"] + box["height"] / 2), (60, 30))
    assert "Cut at" in one.page.locator(".cgmm-live-status").first.inner_text()
    assert one.page.evaluate("scrollY") == scrolled
