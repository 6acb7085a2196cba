"""The command line: a file a verb, and torch only where a verb needs it."""

import os
import sys

import typer

from octavolt import __version__
from octavolt.cli.check import check
from octavolt.cli.doctor import doctor
from octavolt.cli.evaluate import evaluate
from octavolt.cli.generate import generate
from octavolt.cli.listing import list_tables
from octavolt.cli.predict import predict
from octavolt.cli.report import report
from octavolt.cli.train import train
from octavolt.errors import OctavoltError

app = typer.Typer(
    name="octavolt",
    help="Train, evaluate and use deep networks on NVIDIA V100s and on CPUs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(generate)
app.command("list")(list_tables)
for verb in (doctor, check, train, evaluate, predict, report):
    app.command()(verb)


def say_version(wanted: bool) -> bool:
    """Print the version and end, if it was asked for; otherwise return that it wasn't."""
    if wanted:
        print(f"octavolt {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def octavolt(
    version: bool = typer.Option(
        False, "--version", callback=say_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Train, evaluate and use deep networks on NVIDIA V100s and on CPUs."""


def main() -> None:
    """Run the verb; what a user can put right is one message and exit status 2."""
    try:
        app()
    except OctavoltError as error:
        print(f"octavolt: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("octavolt: interrupted.", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # The reader of a pipe has gone: nothing is left to say, to nobody.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
