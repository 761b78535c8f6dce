"""Tables on a page that sort when a heading is pressed, by finger, mouse or keyboard; a few lines of script."""

from __future__ import annotations

import html
from collections.abc import Sequence

STYLE = """
th button { font: inherit; font-weight: 600; color: inherit; background: none; border: 0; padding: .5rem 0;
            cursor: pointer; text-align: left; white-space: nowrap; }
th button::after { content: " ↕"; color: var(--muted); } th[aria-sort=ascending] button::after { content: " ↑"; }
th[aria-sort=descending] button::after { content: " ↓"; }
td, th { white-space: nowrap; } td.long { white-space: normal; min-width: 16rem; }
@media (max-width: 40rem) {
  table { font-size: .8rem; } th, td { padding-right: .5rem; }
  th button::after { content: ""; } td:nth-child(2) { white-space: normal; } }
"""
SCRIPT = """
for (const heading of document.querySelectorAll("table.sortable th")) {
  heading.querySelector("button").addEventListener("click", () => {
    const body = heading.closest("table").tBodies[0];
    const up = heading.getAttribute("aria-sort") !== "ascending";
    for (const other of heading.parentNode.children) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => row.cells[heading.cellIndex].dataset.key;
    const rows = Array.from(body.rows).sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x === "" || y === "") return (x === "") - (y === "");
      const order = isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y;
      return up ? order : -order;
    });
    body.append(...rows);
  });
}
"""

Value = str | tuple[str, float | None]
"""What a cell shows, and, where that differs, the number it is sorted by; None comes last."""


def sortable(headings: Sequence[str], rows: Sequence[Sequence[Value]], long: Sequence[str] = ()) -> str:
    """Write a table as HTML; columns in `long` may break into lines."""
    head = "".join(f'<th scope="col"><button type="button">{html.escape(name)}</button></th>' for name in headings)
    body = "".join(
        "<tr>" + "".join(_cell(value, name in long) for value, name in zip(row, headings, strict=True)) + "</tr>"
        for row in rows
    )
    table = f'<table class="sortable"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="scroll">{table}</div>'


def _cell(value: Value, is_long: bool) -> str:
    text, key = (value, value) if isinstance(value, str) else (value[0], "" if value[1] is None else repr(value[1]))
    kind = ' class="long"' if is_long else ""
    return f'<td{kind} data-key="{html.escape(key)}">{html.escape(text)}</td>'
