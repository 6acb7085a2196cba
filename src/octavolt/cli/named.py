"""Names of files, as they may be printed."""


def shown(file: str) -> str:
    """Return a file name that can be printed, whatever bytes it holds."""
    return file.encode("utf-8", "backslashreplace").decode("utf-8")


def on_one_line(file: str) -> str:
    """Return a file name that keeps to its line, and leaves the terminal as it is."""
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in shown(file)
    )
