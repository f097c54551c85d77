"""Explorers in draft say all and show each value once."""

from drafts import draw_in_draft
from matplotlib.figure import Figure

from cgmm.explore import Explorer, Slider, explorer


def test_every_sentence_and_a_picture_for_each_value(monkeypatch):
    monkeypatch.setattr(explorer, "draw_frame", explorer.draw_frame)
    drawn = []

    def draw(a, b):
        drawn.append((a, b))
        figure = Figure(figsize=(2, 2))
        figure.subplots().plot([0, a], [0, b])
        return figure

    def make():
        controls = {"a": Slider("a", range(4)), "b": Slider("b", range(5))}
        return Explorer(draw, controls, title="Two numbers", describe=lambda a, b: f"{a}, {b}")

    whole = make()
    assert len(drawn) == 20
    drawn.clear()
    draw_in_draft()
    draft = make()
    assert drawn == [(0, b) for b in range(5)] + [(a, 0) for a in range(1, 4)]
    said, said_in_draft = (
        {names: frame.text for names, frame in made._frames.items()} for made in (whole, draft)
    )
    assert said_in_draft == said
    assert draft._frames["2", "0"] == whole._frames["2", "0"]
