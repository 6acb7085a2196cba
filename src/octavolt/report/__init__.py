"""What a run was and how good it became, as one page that needs nothing else."""

from pathlib import Path

from octavolt.report.compare import compare_runs, comparison_table, differing
from octavolt.report.files import read_run
from octavolt.report.page import run_page, write_page

__all__ = ["compare_runs", "comparison_table", "differing", "report_run"]


def report_run(folder: Path) -> Path:
    """Return the path of the report that was written into a run folder."""
    return write_page(folder / "report.html", run_page(read_run(folder)))
