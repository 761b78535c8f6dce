"""What raw results say: the paper's tables, its own numbers beside ours (`table`, `paper`), and how to write them.

Few seeds take `statistics`; `error_growth` is the one for how an error grows with the length of a task.
"""

from rhirl.experiments.tables.formats import FORMATS, SUMMARY, entry_texts, summary_row
from rhirl.experiments.tables.statistics import interval, pooled_iqm
from rhirl.experiments.tables.table import NAMES, Table, make_table, tabulate

__all__ = [
    "FORMATS",
    "NAMES",
    "SUMMARY",
    "Table",
    "entry_texts",
    "interval",
    "make_table",
    "pooled_iqm",
    "summary_row",
    "tabulate",
]
