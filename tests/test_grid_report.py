"""The page about a grid: what is on it, and whether a real browser shows it, on a desk and on a phone."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from grid_results import write_curve, write_result
from rhirl.cli import main
from rhirl.experiments.grid import Spec, read_spec
from rhirl.report.grid_page import write_grid_report

SIZES = {"desk": {"width": 1200, "height": 900}, "phone": {"width": 390, "height": 844}}


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    """Table 1 with made-up results: three seeds of ours and of BC on two tasks, one failure, the rest not run."""
    root = tmp_path_factory.mktemp("grid")
    for task, base in (("pendulum", 60.0), ("hopper", 80.0)):
        for seed in range(3):
            for label, gain in (("rhirl", 10.0), ("bc", -20.0)):
                run = write_result(root, task, label, seed, {0.0: base + gain + 2 * seed})
                write_curve(run, [0.2, 0.5 + seed / 10], executed=100 if label == "rhirl" else 0)
                run.write_json("timing.json", {"training_s": 90.0 + seed, "evaluation_s": 1.0})
    failed = root / "ant/rhirl/noise0/seed1"
    failed.mkdir(parents=True)
    (failed / "failure.json").write_text('{"error": "ValueError: <b>no & never</b>", "traceback": ""}')
    return replace(read_spec("table1"), out=root)


@pytest.fixture(scope="module")
def page_file(spec: Spec, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page, with a film that was kept from before."""
    target = tmp_path_factory.mktemp("page") / "report.html"
    for task in ("pendulum", "hopper"):
        film = target.parent / f"videos/{task}-rhirl-noise0-seed2.webp"
        film.parent.mkdir(exist_ok=True)
        frames = [Image.new("RGB", (480, 260), color) for color in ("#1f6f8b", "#c2571a")]
        frames[0].save(film, save_all=True, append_images=frames[1:], duration=60)
        (spec.out / f"{task}/rhirl/noise0/seed2/cost.safetensors").touch()
        os.utime(film, (2**32, 2**32))
    return write_grid_report(spec, target)


def test_the_page_needs_nothing_else(page_file: Path) -> None:
    page = page_file.read_text()
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", page)
    assert page.count("data:image/png") == 2 * 3  # two tasks, three axes
    assert page.count("data:image/webp") == 2
    assert "6 of 234 cells done" not in page
    assert re.search(r"12 of \d+ cells done", page)


def test_what_people_wrote_cannot_become_markup(page_file: Path) -> None:
    assert "<b>no" not in page_file.read_text()
    assert "&lt;b&gt;no &amp; never" in page_file.read_text()


def test_a_film_that_cannot_be_made_is_said_to_be_missing(spec: Spec, tmp_path: Path) -> None:
    page = write_grid_report(spec, tmp_path / "report.html").read_text()
    assert page.count("cannot be drawn on this machine") == 2


def test_the_command_writes_the_page(spec: Spec, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "page.html"
    main(["report", "table2", "--results", str(spec.out), "--out", str(target), "--no-videos"])
    assert str(target) in capsys.readouterr().err.replace("\n", "")
    assert "noise-free expert" in target.read_text()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium: the system's, or the one that Playwright brings."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
    with playwright.sync_playwright() as start:
        path = shutil.which("chromium") or shutil.which("google-chrome")
        try:
            opened = start.chromium.launch(executable_path=path, args=["--no-sandbox"], timeout=0)
        except playwright.Error as error:
            pytest.skip(f"no browser: install chromium, or run `playwright install chromium` ({str(error)[:80]})")
        yield opened
        opened.close()


@pytest.fixture(params=SIZES)
def shown(request: pytest.FixtureRequest, browser: Any, page_file: Path) -> Iterator[tuple[str, Any, list[str]]]:
    """The page as a browser shows it, with what it complains about."""
    page = browser.new_page(viewport=SIZES[request.param], offline=True)
    page.set_default_timeout(0)  # a busy machine is slow, which is not what is tested
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda asked: complaints.append(asked.url[:80]))
    page.goto(page_file.as_uri())
    yield request.param, page, complaints
    page.close()


def column(page: Any, table: int, index: int) -> list[str]:
    """The texts of a column, top to bottom."""
    return page.evaluate(
        "([table, index]) => Array.from(document.querySelectorAll('table')[table].tBodies[0].rows)"
        ".map((row) => row.cells[index].textContent)",
        [table, index],
    )


def test_a_browser_shows_it_without_complaint(shown: tuple[str, Any, list[str]]) -> None:
    size, page, complaints = shown
    page.wait_for_function("Array.from(document.images).every((image) => image.complete)")
    assert page.evaluate("Array.from(document.images).map((image) => image.naturalWidth > 0)") == [True] * 8
    assert complaints == []
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size]["width"]
    assert (
        page.evaluate("Math.max(...Array.from(document.images).map((image) => image.width))") < SIZES[size]["width"]
    )
    sizes = (
        "Array.from(document.querySelectorAll('p, td, th')).map((e) => parseFloat(getComputedStyle(e).fontSize))"
    )
    assert page.evaluate(f"Math.min(...{sizes})") >= 12


def test_tables_sort_by_number_and_by_word_with_empty_cells_last(shown: tuple[str, Any, list[str]]) -> None:
    _, page, _ = shown
    heading = page.locator("table").first.locator("th").nth(3)
    for direction, in_order in (("ascending", sorted), ("descending", lambda x: sorted(x, reverse=True))):
        heading.locator("button").click()
        assert heading.get_attribute("aria-sort") == direction
        ratios = column(page, 0, 3)
        filled = [float(text.split()[0]) for text in ratios if text]
        assert len(filled) == 4
        assert filled == in_order(filled)
        assert set(ratios[len(filled) :]) == {""}
    page.locator("table").first.locator("th").nth(0).locator("button").press("Enter")
    tasks = column(page, 0, 0)
    assert tasks == sorted(tasks)
    assert page.locator("table").first.locator("th[aria-sort]").count() == 1


def test_on_a_phone_a_wide_table_scrolls_by_itself(shown: tuple[str, Any, list[str]]) -> None:
    size, page, _ = shown
    wide = page.evaluate(
        "(() => { const box = document.querySelector('.scroll'); return box.scrollWidth > box.clientWidth })()"
    )
    assert wide == (size == "phone")
