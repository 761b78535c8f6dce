"""What the pages point to is there: files, headings, and the raw results behind their numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path for folder in (".", "docs", "docs/tasks", "results/studies") for path in (ROOT / folder).glob("*.md")
)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)")
FILE = re.compile(r"`((?:results|src|benchmarks|docs|examples|tests)/[\w./*-]+)`")


def headings(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title) for title in titles)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for file, heading in LINK.findall(page.read_text()):
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), file
        assert not heading or target.suffix != ".md" or heading in headings(target), f"{file}#{heading}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_files_exist(page: Path) -> None:
    missing = [name for name in FILE.findall(page.read_text()) if not any(ROOT.glob(name))]
    assert not missing
