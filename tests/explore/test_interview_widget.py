"""Test the cards that the interview's widget shows, and its reactions to answers."""

import html
import json
import threading
from base64 import b64decode
from io import BytesIO

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread, imsave
from refusals import refused

from cgmm import datasets
from cgmm.decide import Answer, Interview
from cgmm.explore import InterviewWidget
from cgmm.explore.interview_cards import Cards

IRIS = datasets.iris()
EVIL = '<img src=x onerror="alert(1)"> & "quoted" 🙂'


def decode_png(url: str) -> np.ndarray:
    kind, content = url.split(",")
    assert kind == "data:image/png;base64"
    return imread(BytesIO(b64decode(content)), format="png")


def make_interview(**options) -> Interview:
    return Interview(IRIS.X, 3, random_state=0, **options)


# ---------------------------------------------------------------------------- cards


def test_cards_mark_differences_and_place_numbers_in_their_range():
    table = pd.DataFrame({
        "size": [0.0, 10.0, 2.0], "kind": ["a", "b", "a"], "gap": [1.0, np.nan, np.nan],
        "same": [3, 3, 3], "yes": [True, False, True],
    })  # fmt: skip
    lines = {line["name"]: line for line in Cards(table).compare(0, 1)["lines"]}
    assert lines["size"]["shares"] == [0, 1]
    assert {n for n, line in lines.items() if line["differs"]} == {"size", "kind", "gap", "yes"}
    assert lines["gap"]["texts"] == ["1", "–"]
    assert lines["kind"]["shares"] is lines["yes"]["shares"] is lines["same"]["shares"] is None
    lines = {line["name"]: line for line in Cards(table).compare(2, 0)["lines"]}
    assert [name for name, line in lines.items() if line["differs"]] == ["gap"]
    assert lines["size"]["shares"] == [0.2, 0]
    assert not Cards(table).compare(1, 2)["lines"][2]["differs"]


@pytest.mark.parametrize(
    ("rows", "name", "texts"),
    [
        (["one", EVIL], "text", ["one", EVIL]),
        ([{"a": "x", "b": 1}, {"a": EVIL}], "a", ["x", EVIL]),
        (np.array([[1.23456], [2]]), "column 0", ["1.235", "2"]),
    ],
)
def test_cards_accept_texts_dictionaries_and_arrays(rows, name, texts):
    line = Cards(rows).compare(0, 1)["lines"][0]
    assert (line["name"], line["texts"]) == (name, texts)


def test_html_of_a_card_function_is_escaped_unless_trusted():
    rows = pd.DataFrame({"a": ["<b>", "x"]})
    shown = Cards(rows, card=lambda row: f"<i>{row['a']}</i>").compare(0, 1)
    assert [html.unescape(text) for text in shown["html"]] == ["<i><b></i>", "<i>x</i>"]
    assert "<" not in "".join(shown["html"])
    shown = Cards(rows, card=lambda row: f"<i>{row['a']}</i>", trust_html=True).compare(1, 0)
    assert shown["html"] == ["<i>x</i>", "<i><b></i>"]
    assert shown["lines"] == []


def test_cards_accept_images_as_arrays_or_files(tmp_path):
    grey = np.arange(16.0).reshape(4, 4)
    imsave(tmp_path / "face.png", np.eye(5), cmap="gray")
    first, second = Cards(["a", "b"], images=[grey, tmp_path / "face.png"]).compare(0, 1)["images"]
    assert decode_png(first).shape[:2] == (4, 4)
    assert decode_png(first)[..., 0].ravel().argmax() == 15
    np.testing.assert_array_equal(decode_png(second)[..., 0], np.eye(5))


test_cards_refuse_invalid_rows_and_images = refused(
    lambda rows, **options: Cards(rows, **options).compare(0, 1),
    (np.zeros((2, 2, 2)), r"\(2, 2, 2\)"),
    (["a", "b"], {"images": ["x.png"]}, "1 images for 2 rows"),
    (["a", "b"], {"images": ["x.txt", "y.txt"]}, "no image by its name"),
    (["a", "b"], {"images": ["none.png", "none.png"]}, "cannot be read"),
)


# ---------------------------------------------------------------------------- the widget


def test_widget_records_answers_and_undo_and_ignores_repeated_keys():
    widget = InterviewWidget(make_interview(), pd.DataFrame(IRIS.X))
    first = widget.state()["question"]["rows"]
    assert not widget.state()["can_undo"]
    widget.receive({"answer": "same", "rows": first})
    second = widget.state()["question"]["rows"]
    assert first != second
    # The same key is pressed again before the page shows the next question.
    widget.receive({"answer": "same", "rows": first})
    assert [a[:3] for a in widget.interview.answers] == [(*first, "same")]
    assert widget.state()["question"]["rows"] == second
    assert "1 answered" in widget.state()["progress"]
    widget.receive({"undo": True})
    assert widget.state()["question"]["rows"] == first
    widget.receive({"undo": True})
    assert "no answer of yours" in widget.state()["said"]
    json.dumps(widget.state())


def test_widget_shows_contradictions_and_revises_answers():
    one = make_interview()
    for i, j, reply in [(0, 1, "same"), (1, 2, "same"), (0, 2, "different")]:
        one._file.add_answer(Answer(i, j, reply, None, "", "check", 0.5))
    one._refit()
    widget = InterviewWidget(one)
    (found,) = widget.state()["contradictions"]
    assert "0 - 1 - 2" in found["message"]
    assert [a["number"] for a in found["answers"]] == [2, 0, 1]
    widget.receive({"revise": 2, "answer": "same"})
    assert widget.state()["contradictions"] == []


def test_map_shows_a_sample_of_rows_and_last_the_rows_of_the_question():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    widget = InterviewWidget(Interview(X, 2, random_state=0))
    state = widget.state()
    places = np.array(state["map"]["places"])
    assert 800 <= len(places) <= 802
    assert places.min() >= 0
    assert places.max() <= 1
    np.testing.assert_allclose(places[-2:], widget._positions[state["question"]["rows"]])
    assert sum(state["map"]["sizes"]) == 2000
    assert len(InterviewWidget(make_interview()).state()["map"]["places"]) == 150


def test_map_shows_the_first_two_principal_components():
    """The second and the fourth of four dimensions have the largest variances."""
    X = np.random.default_rng(0).normal(size=(100, 4)) * [1, 9, 0.1, 5]
    places = InterviewWidget(Interview(X, 2, random_state=0))._positions
    for axis, column in zip(places.T, X[:, [1, 3]].T, strict=True):
        assert abs(np.corrcoef(axis, column)[0, 1]) > 0.99


def test_groups_keep_their_colours_when_labels_are_permuted(monkeypatch):
    one = make_interview()
    widget = InterviewWidget(one)
    before = np.array(widget.state()["map"]["groups"])
    order = np.array([2, 0, 1])
    labels = order[one.present_labels]
    monkeypatch.setattr(Interview, "present_labels", labels)
    np.testing.assert_array_equal(widget.state()["map"]["groups"], before)


def test_widget_answers_while_the_background_fit_runs(monkeypatch):
    one, may_finish = make_interview(), threading.Event()
    widget = InterviewWidget(one)
    monkeypatch.setattr(one, "_fit_from_scratch", lambda *given: may_finish.wait(60) and [])
    widget.receive({"answer": "same", "rows": widget.state()["question"]["rows"]})
    assert sum(widget.state()["map"]["sizes"]) == 150
    assert not one._pending.done()
    may_finish.set()


def test_widget_state_follows_answers_in_a_notebook():
    asking = InterviewWidget(make_interview())
    widget = asking.widget()
    bundle = asking._repr_mimebundle_()
    assert bundle["text/plain"] == "InterviewWidget(150 rows, 0 answers)"
    assert "application/vnd.jupyter.widget-view+json" in bundle
    rows = widget.state["question"]["rows"]
    widget._handle_custom_msg({"answer": "unsure", "rows": rows}, [])
    assert widget.state["question"]["rows"] != rows
    assert "1 unsure" in widget.state["progress"]


def test_rows_of_another_table_are_refused():
    with pytest.raises(ValueError, match="there are 149 rows to show"):
        InterviewWidget(make_interview(), IRIS.X[1:])
