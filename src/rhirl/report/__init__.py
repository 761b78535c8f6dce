"""Plots, animations and the HTML report."""

from rhirl.report.page import summary, write_report

__all__ = ["summary", "write_report"]
