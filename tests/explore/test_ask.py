"""Test ``python -m cgmm ask``: the page in a real browser, and the messages of the command."""

import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from axe_playwright_python.sync_playwright import Axe
from matplotlib.image import imsave
from playwright.sync_api import Page
from sklearn.metrics import adjusted_rand_score

from cgmm import MixedMixture, datasets
from cgmm.__main__ import main
from cgmm.decide import Answer, Interview
from cgmm.explore.ask import _select_features

IRIS = datasets.iris()
EVIL = '<img src=x onerror="document.title=1"> & "quoted" 🙂 \' </script>'


@pytest.fixture
def table(tmp_path) -> Path:
    frame = pd.DataFrame(IRIS.X, columns=["sepal length", "sepal width", "petal length", "width"])
    frame["<b>note</b>"] = EVIL
    frame.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


@pytest.fixture
def start_server() -> Iterator[Callable[..., tuple[subprocess.Popen, str]]]:
    """Return a function that starts the command; it returns the process and the printed address."""
    running = []

    def start(table: Path, *options: str) -> tuple[subprocess.Popen, str]:
        command = [sys.executable, "-m", "cgmm", "ask", str(table), "--classes", "3"]
        answers = ["--answers", str(table.parent / "answers.jsonl")]
        command += [*answers, "--no-browser", *options]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        return running[-1], re.search(r"http\S+", running[-1].stdout.readline())[0]

    yield start
    for process in running:
        process.kill()
        process.wait()


@pytest.fixture
def visit(open_url: Callable[..., Page]) -> Callable[..., Page]:
    """Return a function that opens the interview's page and waits for its first question."""

    def open_interview_page(url: str, **options) -> Page:
        page = open_url(url, **options)
        page.wait_for_selector(".cgmm-interview table")
        return page

    return open_interview_page


def read_shown_rows(page: Page) -> list[int]:
    heads = page.locator("thead th").all_inner_texts()
    return [int(head.split()[-1]) for head in heads]


def wait_for_answers(page: Page, n_given: int) -> None:
    page.wait_for_function(
        """n => document.querySelector('.progress').textContent.match(/\\d+/g).slice(0, 2)
               .reduce((sum, one) => sum + +one, 0) === n
               && !document.querySelector('[aria-busy]')""",
        arg=n_given,
    )


def read_answer_lines(table: Path) -> list[str]:
    return (table.parent / "answers.jsonl").read_text(encoding="utf8").splitlines()[1:]


def is_same_class(page: Page) -> bool:
    i, j = read_shown_rows(page)
    return bool(IRIS.y[i] == IRIS.y[j])


def test_answers_survive_undo_reload_and_a_killed_server(table, start_server, visit):
    process, url = start_server(table, "--annotator", "Ann")
    page = visit(url)
    for n in range(10):
        page.keyboard.press("s" if is_same_class(page) else "D")
        wait_for_answers(page, n + 1)
    before = read_shown_rows(page)
    page.keyboard.press("u")
    wait_for_answers(page, 11)
    page.keyboard.press("z")
    wait_for_answers(page, 10)
    assert read_shown_rows(page) == before
    page.keyboard.press("Control+d")
    page.reload()
    page.wait_for_selector(".cgmm-interview table")
    assert read_shown_rows(page) == before
    assert "10 answered, 0 unsure" in page.inner_text(".progress")
    page.keyboard.press("d")
    wait_for_answers(page, 11)
    process.send_signal(signal.SIGKILL)
    page.wait_for_selector("#lost:not([hidden])")
    assert len(read_answer_lines(table)) == 13  # 12 answers and one withdrawal
    page = visit(start_server(table, "--annotator", "Bob")[1])
    assert "11 answered, 0 unsure" in page.inner_text(".progress")
    page.keyboard.press("s")
    wait_for_answers(page, 12)
    assert '"annotator": "Bob"' in read_answer_lines(table)[-1]
    assert '"annotator": "Ann"' in read_answer_lines(table)[0]


def test_interview_is_answered_by_touch_on_a_phone(table, start_server, visit):
    _, url = start_server(table)
    page = visit(url, viewport={"width": 340, "height": 640}, has_touch=True, is_mobile=True)
    for n in range(12):
        page.get_by_role("button", name="Same" if is_same_class(page) else "Different").tap()
        wait_for_answers(page, n + 1)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for button in page.get_by_role("button").all():
        box = button.bounding_box()
        assert min(box["width"], box["height"]) >= 44
    # The buttons for replies are visible without scrolling.
    page.evaluate("scrollTo(0, 0)")
    for name in ("Same", "Different", "Unsure"):
        box = page.get_by_role("button", name=name).bounding_box()
        assert box["y"] + box["height"] <= 640
    sizes = [int(text.split(": ")[1]) for text in page.locator(".groups li").all_inner_texts()]
    assert sum(sizes) == 150
    page.get_by_role("button", name="Undo").tap()
    wait_for_answers(page, 11)


def test_keyboard_reaches_all_buttons_and_focus_is_kept(table, start_server, visit):
    page = visit(start_server(table)[1])
    names = []
    for _ in range(4):
        page.keyboard.press("Tab")
        names.append(page.evaluate("document.activeElement.textContent.slice(0, 4)"))
    assert names[1:] == ["Same", "Diff", "Unsu"]
    page.keyboard.press("Enter")
    wait_for_answers(page, 1)
    assert page.evaluate("document.activeElement.textContent.slice(0, 4)") == "Unsu"
    status = page.locator("[role=status]").inner_text()
    i, j = read_shown_rows(page)
    assert status == f"Answered: unsure. Rows {i} and {j}."


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation_and_html_in_cells_is_escaped(table, start_server, visit, scheme):
    page = visit(start_server(table)[1], color_scheme=scheme, bypass_csp=True)
    assert page.locator("tbody img").count() == 0
    cells = page.locator("tbody tr").last.locator("td").all_inner_texts()
    assert cells == [" ".join(EVIL.split())] * 2
    assert page.locator("tbody th").last.inner_text().startswith("<b>note</b>")
    assert page.title() == "Interview"
    page.keyboard.press("u")
    wait_for_answers(page, 1)
    found = Axe().run(page).response["violations"]
    assert not [(one["id"], one["nodes"][0]["html"]) for one in found]


def test_page_shows_images_and_contradictions(tmp_path, start_server, visit):
    data = datasets.digits()
    keep = np.flatnonzero(np.isin(data.y, [0, 1, 2]))[:60]
    for row in keep:
        imsave(tmp_path / f"{row}.png", data.X[row].reshape(8, 8), cmap="gray_r")
    frame = pd.DataFrame(data.X[keep][:, 10:20])
    frame["file"] = [f"{row}.png" for row in keep]
    frame.to_csv(tmp_path / "table.csv", index=False)
    X = _select_features(frame.drop(columns="file"), None)
    interview = Interview(X, 3, path=tmp_path / "answers.jsonl")
    for i, j, reply in [(0, 1, "same"), (1, 2, "same"), (0, 2, "different")]:
        interview._file.add_answer(Answer(i, j, reply, None, "", "check", 0.5))
    page = visit(start_server(tmp_path / "table.csv", "--images", "file")[1], bypass_csp=True)
    shown = page.locator("tbody img")
    assert shown.evaluate_all("images => images.map(one => one.naturalWidth)") == [8, 8]
    assert shown.first.get_attribute("alt") == f"Image of row {read_shown_rows(page)[0]}"
    assert "0 - 1 - 2" in page.locator("[role=alert] p").inner_text()
    assert not Axe().run(page).response["violations"]
    page.get_by_role("button", name='Rows 1 and 2: change to "different"').click()
    page.wait_for_function("!document.querySelector('.contradiction')")


def test_next_question_comes_quickly_with_10000_rows(tmp_path, start_server, visit):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=10_000)
    X = rng.normal(size=(10_000, 8)) + 3 * rng.normal(size=(3, 8))[y]
    pd.DataFrame(X).to_csv(tmp_path / "table.csv", index=False)
    page, took = visit(start_server(tmp_path / "table.csv")[1]), []
    for n in range(6):
        i, j = read_shown_rows(page)
        began = time.monotonic()
        page.keyboard.press("s" if y[i] == y[j] else "d")
        wait_for_answers(page, n + 1)
        took.append(time.monotonic() - began)
    assert np.median(took) < 3


# ---------------------------------------------------------------------------- the server


def test_requests_without_the_token_or_from_another_host_get_403(table, start_server):
    _, url = start_server(table)
    for wrong in (url.partition("?")[0], url[:-1], url.replace("/?", "/socket?")[:-1]):
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(wrong)
    foreign = urllib.request.Request(url, headers={"Host": "evil.example"})
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(foreign)
    with urllib.request.urlopen(url) as reply:
        assert "default-src 'none'" in reply.headers["Content-Security-Policy"]
        assert "http" not in reply.read().decode().replace("http://www.w3.org/2000/svg", "")


# ---------------------------------------------------------------------------- the command


def answer_truly(interview: Interview, n_questions: int) -> None:
    for _ in range(n_questions):
        question = interview.next_question()
        interview.answer("same" if IRIS.y[question.i] == IRIS.y[question.j] else "different")


def run_ask_command(table: Path, *options: str, answers: str = "answers.jsonl") -> None:
    main(["ask", str(table), "--classes", "3", "--answers", str(table.parent / answers), *options])


def test_export_writes_groups_and_overwrites_no_file(table, tmp_path, capsys):
    X = _select_features(pd.read_csv(table), None)
    interview = Interview(X, 3, path=tmp_path / "answers.jsonl", random_state=0)
    answer_truly(interview, 9)
    run_ask_command(table, "--export", str(tmp_path / "groups.csv"))
    assert "150 rows in 3 groups" in capsys.readouterr().out
    found = pd.read_csv(tmp_path / "groups.csv")
    assert found.columns[-3:].tolist() == ["group", "probability", "doubt"]
    assert set(found["group"]) == {1, 2, 3}
    assert found["probability"].between(1 / 3, 1).all()
    doubtful, certain = found.nlargest(5, "doubt"), found.nsmallest(5, "doubt")
    assert doubtful["probability"].max() < certain["probability"].min()
    pd.testing.assert_frame_equal(found.iloc[:, :5], pd.read_csv(table))
    before = (tmp_path / "groups.csv").read_bytes()
    for path in (tmp_path / "groups.csv", table):
        with pytest.raises(SystemExit, match="exists, and is not overwritten"):
            run_ask_command(table, "--export", str(path))
    assert (tmp_path / "groups.csv").read_bytes() == before


def test_tables_of_many_columns_are_reduced_to_five_components(table):
    rng = np.random.default_rng(0)
    assert _select_features(pd.DataFrame(rng.normal(size=(30, 9))), None).shape == (30, 5)
    points = _select_features(pd.read_csv(table), "width, sepal width")
    np.testing.assert_allclose(points.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(points.std(axis=0), 1)
    assert points.shape == (150, 2)


def test_points_are_rounded_so_that_all_machines_agree(table):
    frame = pd.read_csv(table)
    numbers = frame.select_dtypes("number") * (1 + 1e-15)
    np.testing.assert_array_equal(_select_features(frame, None), _select_features(numbers, None))


def test_tables_with_categories_or_gaps_use_mixed_mixture(tmp_path, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"width": IRIS.X[:, 3], "length": IRIS.X[:, 2]})
    noisy = np.where(rng.random(150) < 0.8, IRIS.y, rng.integers(3, size=150))
    frame["place"] = np.array(["fen", "hill", "wood"])[noisy]
    frame = frame.mask(rng.random(frame.shape) < 0.1)
    frame.loc[frame.isna().all(axis=1), "width"] = 1.0
    frame["file"], frame["note"] = "same.png", [f"plant {i}" for i in range(150)]
    frame.to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "same.png").touch()
    X = _select_features(pd.read_csv(tmp_path / "table.csv"), None, "file")
    assert sorted(map(str, X.columns)) == ["0", "1", "place"]
    assert X.isna().to_numpy().any()
    interview = Interview(X, 3, path=tmp_path / "answers.jsonl", random_state=0)
    assert isinstance(interview.model_, MixedMixture)
    answer_truly(interview, 15)
    path = tmp_path / "groups.csv"
    run_ask_command(tmp_path / "table.csv", "--images", "file", "--export", str(path))
    groups = pd.read_csv(path)["group"]
    assert adjusted_rand_score(IRIS.y, groups) > 0.8


def test_text_columns_are_categories_if_values_repeat():
    texts = [f"text {i % 11}" for i in range(30)]
    table = pd.DataFrame({"a": ["x", "y"] * 15, "b": texts, "c": range(30)})
    assert list(_select_features(table, None).columns) == ["a", "0"]
    assert _select_features(table, "c").shape == (30, 1)
    assert list(_select_features(table, "a").columns) == ["a"]
    with pytest.raises(ValueError, match="b have neither"):
        _select_features(table, "a,b")


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", [], "cannot be read as a table"),
        ('a,b\n1,"2\n', [], "cannot be read as a table"),
        ("a,b\n1,2\n", [], "has 1 rows"),
        ("a,b\nx,y\nz,w\n", [], "no column of numbers or categories"),
        ("a,b\n1,2\n,\n3,1\n,\n", [], "row 1 is empty in a, b; so are 2 rows"),
        ("a,b\n1,inf\n2,3\n3,4\n", [], "infinite values in b"),
        ("a,b\n1,1\n1,1\n1,1\n", [], "the same value"),
        ("a,b\n1,x\n2,y\n3,z\n", ["--columns", "a,b"], "b have neither numbers nor categories"),
        ("a,b\n1,2\n2,3\n3,1\n", ["--columns", "c"], "no column c; the table has a, b"),
        ("a,b\n1,2\n2,3\n3,1\n", ["--images", "c"], "no column c"),
        ("a,b\n1,x.png\n2,y.png\n3,z.png\n", ["--images", "b"], "3 images are missing"),
        ("a,b\n1,2\n2,3\n", [], "n_components"),
        ("a,b\n1,2\n2,3\n3,1\n", ["--export", "new.csv"], "does not exist: ask first"),
    ],
)
def test_bad_tables_are_refused(tmp_path, content, options, message):
    (tmp_path / "table.csv").write_text(content)
    with pytest.raises(SystemExit, match=message):
        run_ask_command(tmp_path / "table.csv", *options)


def test_answer_files_of_another_table_are_refused(table, tmp_path):
    Interview(IRIS.X[1:], 3, path=tmp_path / "answers.jsonl")
    with pytest.raises(SystemExit, match="answers about another table, of 149 rows"):
        run_ask_command(table)
    before = table.read_bytes()
    with pytest.raises(SystemExit, match="no file of answers"):
        run_ask_command(table, answers="table.csv")
    assert table.read_bytes() == before
    with pytest.raises(SystemExit, match="No such file"):
        run_ask_command(tmp_path / "none.csv")
