"""A chapter on a telephone: formulas are fitted, figures enlarge. test_pages looks at all pages."""

from __future__ import annotations

import pytest
from built_book import Visit

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}


@pytest.fixture(scope="module")
def phone(browser, site):
    one = Visit(browser, site, **PHONE)
    one.open("book/02_em")
    yield one
    one.close()


def test_a_formula_in_a_fold_is_fitted_when_the_fold_opens(phone):
    folded = "document.querySelectorAll('main details .cgmm-fitted, .solution .cgmm-fitted').length"
    before = phone.page.evaluate(folded)
    phone.unfold()
    assert phone.page.evaluate(folded) > before


def test_what_was_broken_for_a_telephone_is_whole_on_a_screen(phone):
    broken = "document.querySelectorAll('mjx-piece').length"
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
