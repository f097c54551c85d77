"""Explorers in draft say all and show each value once."""

from drafts import draw_in_draft
from matplotlib.figure import Figure
from nbformat import v4, writes

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


def test_cells_of_notebooks_draw_in_draft_and_know_no_settings(pytester, request, monkeypatch):
    """Of a profile they have what the conftest of book/ writes, and nothing of the reader's own."""
    code = """
        from cgmm.explore import explorer
        print(explorer.draw_frame.__module__, "mine" in globals())"""
    shown = v4.new_output("stream", text="drafts False\n")
    cell = v4.new_code_cell(code, outputs=[shown], execution_count=1)
    pytester.path.joinpath("one.ipynb").write_text(writes(v4.new_notebook(cells=[cell])), "utf8")
    pytester.makeconftest((request.config.rootpath / "book/conftest.py").read_text("utf8"))
    profile = pytester.mkdir("reader") / "profile_default"
    profile.mkdir()
    settings = "c.InteractiveShellApp.exec_lines = ['mine = 1']"
    profile.joinpath("ipython_kernel_config.py").write_text(settings, "utf8")
    monkeypatch.setenv("IPYTHONDIR", str(profile.parent))
    monkeypatch.setenv("CGMM_DRAFT", "1")
    tools = f"pythonpath={request.config.rootpath / 'tools'}"
    run = pytester.runpytest_subprocess("--nbval", "--nbval-current-env", "-o", tools, "one.ipynb")
    run.assert_outcomes(passed=1)
