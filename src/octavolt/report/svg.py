"""Plots as SVG inside a page: colours and font are the page's own, in light and in dark."""

import io
import re
from collections.abc import Callable
from html import escape
from typing import Any

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

Colour = str
COLOURS: dict[str, Colour] = {
    "ink": "#010101",
    "muted": "#010102",
    "line": "#010103",
    "first": "#010104",
    "second": "#010105",
    "third": "#010106",
    "fourth": "#010107",
    "fifth": "#010108",
    "sixth": "#010109",
}
"""Stand-ins by the page's name of each colour: replaced by the page's variable after drawing."""
RUN_COLOURS = ("first", "second", "third", "fourth", "fifth", "sixth")
SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10,
    "text.color": COLOURS["muted"],
    "axes.labelcolor": COLOURS["muted"],
    "axes.edgecolor": COLOURS["line"],
    "axes.linewidth": 1,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": COLOURS["line"],
    "grid.linewidth": 0.7,
    "xtick.color": COLOURS["line"],
    "ytick.color": COLOURS["line"],
    "xtick.labelcolor": COLOURS["muted"],
    "ytick.labelcolor": COLOURS["muted"],
    "ytick.major.size": 0,
    "lines.linewidth": 1.8,
    "lines.solid_capstyle": "round",
    "lines.solid_joinstyle": "round",
    "axes.xmargin": 0.02,
}
LEFT, LABELLED_LEFT = 42, 60
"""Room for the labels of ticks such as 0.0008, and for the name of the axis, in points."""
WIDTH, HEIGHT = 420, 230
"""Of a plot, in points; the page scales it to the width there is."""


def plot(
    draw: Callable[[Axes], None], *, name: str, title: str, size: tuple[int, int] = (WIDTH, HEIGHT)
) -> Markup:
    """Return a plot as SVG for a page, read aloud by its title; names on one page must differ."""
    # Ids are hashes over this salt, so plots of one page don't take one another's markers.
    with mpl.rc_context({**SETTINGS, "svg.hashsalt": name}):
        figure = Figure(figsize=(size[0] / 72, size[1] / 72))
        FigureCanvasSVG(figure)
        axes = figure.add_axes(inner(size, has_label=False))
        draw(axes)
        axes.set_position(inner(size, has_label=bool(axes.get_ylabel())))
        file = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(file, format="svg", transparent=True, metadata=nothing)
    return Markup(inline(file.getvalue(), title))


def inner(size: tuple[int, int], *, has_label: bool) -> tuple[float, float, float, float]:
    """Return where the axes of a plot lie: the same in all, so that plots one below another align.

    Left and bottom edge, width and height, as shares of the plot.
    """
    width, height = size
    left, right, top, bottom = LABELLED_LEFT if has_label else LEFT, 10, 10, 40
    return (
        left / width,
        bottom / height,
        (width - left - right) / width,
        (height - top - bottom) / height,
    )


def inline(document: str, title: str) -> str:
    """Return an SVG document as an element of a page."""
    body = document[document.index("<svg") :]
    for name, stand_in in COLOURS.items():
        body = body.replace(stand_in, f"var(--{name})")
    body = re.sub(r"'DejaVu Sans'(, sans-serif)?", "var(--font)", body)
    body = re.sub(r' id="[A-Za-z][A-Za-z0-9.]*_\d+"', "", body)  # the same in all plots
    body = re.sub(r"\s*<defs>\s*<style.*?</style>\s*</defs>", "", body, flags=re.DOTALL)
    body = re.sub(r"\n\s*", " ", body).replace("base64, ", "base64,").replace("xlink:href", "href")
    view = re.search(r'viewBox="[^"]*"', body)
    assert view, "matplotlib writes a viewBox"
    head = f'<svg class="plot" role="img" aria-label="{escape(title)}" {view[0]}>'
    return f"{head}<title>{escape(title)}</title>{body[body.index('>') + 1 :]}".strip()
