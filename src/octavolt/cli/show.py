"""Progress on standard error: one moving line on a terminal, plain lines elsewhere."""

import sys
import time
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from octavolt.units import format_count, format_seconds

PLAIN_SECONDS = 5.0
"""At least so long between two plain lines of steps."""
BAR_CELLS = 10


def percent(fraction: float, digits: int = 1) -> str:
    """Return a share as people read it: '92.6 %'."""
    return f"{100 * fraction:.{digits}f} %"


def short_name(metric: str) -> str:
    """Return a metric's name as it stands in a line."""
    plain = metric.removesuffix("_fraction").replace("_", " ")
    for written, read in (("top", "top-"), ("f1", "F1"), ("matthews", "Matthews")):
        plain = plain.replace(written, read)
    return plain


def metric_value(metric: str, value: float) -> str:
    """Return a metric's value: a share in per cent, other numbers as they are."""
    numbers = ("perplexity", "bits_per_byte", "matthews_correlation")
    plain = metric in numbers or "nats" in metric
    return f"{value:,.3f}" if plain else percent(value)


@dataclass
class Shower:
    """What `train` tells, shown; may be sent to another process before its first use."""

    live: Any = field(default=None, repr=False)
    last_plain: float = 0.0
    last_metric: str = ""

    def __getstate__(self) -> dict[str, Any]:
        """Leave the terminal behind."""
        return {"live": None, "last_plain": 0.0, "last_metric": ""}

    def __call__(self, event: Any) -> None:
        """Show one event."""
        kind = type(event).__name__
        if kind == "Note":
            self.line(("warning  " if event.kind == "warning" else "") + event.text)
        elif kind == "StepLogged":
            self.moving(self.step_line(event))
        elif kind == "EpochDone":
            self.line(self.epoch_line(event))

    def step_line(self, event: Any) -> str:
        """Return the line on a step."""
        full = round(BAR_CELLS * event.epoch_fraction)
        bar = "━" * full + "╌" * (BAR_CELLS - full)
        return (
            f"epoch {event.epoch}/{event.epochs}  {bar}  {percent(event.epoch_fraction, 0)}  "
            f"loss {event.loss:.3f}{self.last_metric}  "
            f"{event.samples_per_second:,.0f} {event.unit}s/s  "
            f"wait {percent(event.waiting_fraction, 0)}  {format_seconds(event.seconds_left)} left"
        )

    def epoch_line(self, event: Any) -> str:
        """Return the line on an epoch."""
        name = event.primary_metric
        value = metric_value(name, event.metrics[name])
        self.last_metric = f"  val {short_name(name)} {value}"
        return (
            f"epoch {event.epoch}/{event.epochs}  step loss {event.train_loss:.3f}"
            f"{self.last_metric}{'  best' if event.best else ''}"
        )

    def line(self, text: str) -> None:
        """Write a line that stays."""
        if self.live is not None:
            self.live.console.print(Text(text))
        else:
            print(text, file=sys.stderr, flush=True)

    def moving(self, text: str) -> None:
        """Write a line that the next one replaces; off a terminal only one every few seconds."""
        if sys.stderr.isatty():
            if self.live is None:
                self.live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
                self.live.start()
            self.live.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)
        elif time.monotonic() - self.last_plain >= PLAIN_SECONDS:
            self.last_plain = time.monotonic()
            print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Give the terminal back."""
        if self.live is not None:
            self.live.stop()
            self.live = None


@dataclass
class Counting:
    """A count with its rate and the time left, shown if the work takes over two seconds."""

    what: str
    began: float | None = None
    shown: float = 0.0

    def __call__(self, done: int, total: int) -> None:
        """Show how far it is."""
        now = time.monotonic()
        if self.began is None or done <= 1:
            self.began, self.shown = now, now
        pause = 0.2 if sys.stderr.isatty() else PLAIN_SECONDS
        finished = done >= total
        if now - self.began < 2 or (now - self.shown < pause and not finished):
            return
        self.shown = now
        rate = done / (now - self.began)
        left = format_seconds((total - done) / rate)
        text = (
            f"{self.what} {format_count(done)} of {format_count(total)}, {rate:,.0f}/s, {left} left"
        )
        if sys.stderr.isatty():
            print(f"\r\x1b[2K{text}", end="\n" if finished else "", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)
