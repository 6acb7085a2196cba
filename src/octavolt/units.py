"""Numbers with units, as people read them. Inside octavolt only SI base units and bytes."""

KIB, MIB, GIB = 2**10, 2**20, 2**30


def format_bytes(count: float) -> str:
    """Return a size in the largest binary unit that leaves a number of at least 1."""
    for unit, size in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if abs(count) >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} B"


def format_seconds(seconds: float) -> str:
    """Return a duration with at most two units: '3.2 s', '14:02', '5 h 12 min'."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
    hours, rest = divmod(int(seconds), 3600)
    return f"{hours} h {rest // 60} min"


def format_count(count: int) -> str:
    """Return a whole number with thousands apart: '1,797'."""
    return f"{count:,}"


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun: '1 picture', '1,797 pictures'."""
    word = noun if count == 1 else plural or noun + "s"
    return f"{format_count(count)} {word}"
