"""Formats of pictures, found by looking. A new one is a file and a line here."""

from pathlib import Path

from octavolt.contract import DataSet
from octavolt.data import demo, folder, hub, idx, manifest, npz
from octavolt.data.format import Format
from octavolt.errors import OctavoltError, nearest

FORMATS: dict[str, Format] = {
    one.name: one
    for one in (
        demo.FORMAT,
        hub.FORMAT,
        npz.FORMAT,
        manifest.FORMAT,
        idx.FORMAT,
        folder.FORMAT,
    )
}
"""The first that recognises a source opens it: 'folder' takes any folder and so stands last."""

ARCHIVES = (".zip", ".tar", ".tgz", ".gz", ".xz", ".bz2", ".7z", ".rar", ".zst")


def open_pictures(source: str, *, seed: int = 0) -> DataSet:
    """Return the data set of that name: a path, 'hub:NAME' or 'demo'. Reads no picture."""
    for one in FORMATS.values():
        if one.recognises(source):
            return one.open(source, seed)
    raise OctavoltError(why_not(source))


def lasting(source: str) -> str:
    """Return a name of the data set that means the same from every folder: a path in full."""
    path = Path(source).expanduser()
    return str(path.absolute()) if source != "demo" and path.exists() else source


def unreadable(source: str) -> str | None:
    """Return the message for a source that is nothing, or an archive; None for any other."""
    path = Path(source).expanduser()
    if not path.exists():
        beside = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
        near = nearest(path.name, [*beside, *(["demo"] if path.name == source else [])])
        guess = (
            f" Did you mean '{path.with_name(near) if near != 'demo' else near}'?" if near else ""
        )
        return (
            f"There is no data set '{source}'.{guess} A data set is the path of a folder or a "
            "file, hub:NAME, or demo."
        )
    if path.name.lower().endswith(ARCHIVES):
        return f"'{source}' is an archive. Unpack it and name the folder."
    return None


def why_not(source: str) -> str:
    """Return the message for a source that no format recognises."""
    known = "; ".join(f"{one.name}: {one.description}" for one in FORMATS.values())
    unknown = f"'{source}' is in no format that octavolt reads. It reads {known}."
    return unreadable(source) or unknown
