"""`octavolt doctor`."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from octavolt.errors import OctavoltError

STANDARD_INPUT = 0


def doctor(
    save: Annotated[
        Path | None, typer.Option(help="Write what was read, without names and serial numbers.")
    ] = None,
    snapshot: Annotated[
        Path | None, typer.Option(help="Diagnose another machine, of which --save wrote this.")
    ] = None,
    log: Annotated[
        str | None, typer.Option(help="Find known errors in a log; - is standard input.")
    ] = None,
    output: Annotated[Path, typer.Option(help="Where runs would be written.")] = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Tell whether this machine can train, what is wrong, and what mends it.

    Exit status 1 if something would stop a run.
    """
    if log is not None:
        if save or snapshot:
            raise OctavoltError(
                "--log reads a log, not a machine: leave --save and --snapshot away."
            )
        sys.exit(read_log(log, as_json=as_json))
    from octavolt.doctor import chosen_precision, read_snapshot, to_json
    from octavolt.doctor import doctor as examined

    if not as_json and snapshot is None:
        print("Looking: some ten seconds.", file=sys.stderr)
    seen, found = examined(output, snapshot=read_snapshot(snapshot) if snapshot else None)
    if save is not None:
        try:
            save.write_text(json.dumps(to_json(seen), indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise OctavoltError(f"{save} can't be written: {error.strerror}.") from error
    if as_json:
        document = {
            "snapshot": to_json(seen),
            "findings": [
                {name: getattr(one, name) for name in one.__slots__} | {"mend": dict(one.mend)}
                for one in found
            ],
        }
        print(json.dumps(document, ensure_ascii=False))
    else:
        for line in summary(seen):
            print(line)
        for one in found:
            show(one)
        if not any(one.severity == "error" for one in found):
            print(f"ok       {chosen_precision(seen).reason}")
    sys.exit(1 if any(one.severity == "error" for one in found) else 0)


def summary(seen: Any) -> list[str]:
    """Return what the machine is, in a line on the cards, one on the software, one on the rest."""
    from octavolt.units import format_bytes

    software = seen.software
    names: dict[str, int] = {}
    for card in seen.cards:
        names[card.name] = names.get(card.name, 0) + 1
    cards = ", ".join(f"{count} x {name}" for name, count in names.items()) or "no NVIDIA GPU"
    parts = [cards]
    if seen.driver:
        parts.append(f"driver {seen.driver}")
    links = [link.up for card in seen.cards for link in card.links]
    if links:
        parts.append(f"{sum(links)} of {len(links)} NVLink ends up")
    torch = f"torch {software.torch or 'missing'}"
    if software.torch_cuda:
        has = "has" if "sm_70" in software.architectures else "lacks"
        torch += f" (CUDA {software.torch_cuda}, {has} sm_70)"
    versions = {"cuDNN": software.cudnn, "NCCL": software.nccl, "Triton": software.triton}
    told = [f"{name} {version}" for name, version in versions.items() if version]
    wide = ", ".join(seen.processor_flags[:2]) or "no vector units told"
    rest = [
        f"{seen.physical_cores} cores ({seen.processor}; {wide})",
        f"{format_bytes(seen.memory_bytes)} of memory",
    ]
    if seen.jpegs_per_second:
        rest.append(f"{seen.jpegs_per_second:,.0f} pictures/s a core")
    if seen.free_disk_bytes is not None:
        rest.append(f"{format_bytes(seen.free_disk_bytes)} of disk free")
    if seen.disk_bytes_per_second:
        rest.append(f"written at {seen.disk_bytes_per_second / 1e6:,.0f} MB/s")
    return [
        ", ".join(parts),
        ", ".join([f"Python {software.python}", torch, *told]),
        ", ".join(rest),
    ]


def show(one: Any) -> None:
    """Print a finding: what, why, and what to do by lane."""
    from octavolt.doctor import LANES

    print(f"{one.severity:<9}{one.what}")
    print(f"         {one.why}")
    for lane, what in one.mend:
        label = "do" if lane == "all" else LANES[lane]
        print(f"         {label}: {what}")


def read_log(name: str, *, as_json: bool) -> int:
    """Print the known errors of a log, and return the exit status: 1 if a run died of any."""
    from octavolt.doctor.logs.read import CHUNK_BYTES, read_log_file
    from octavolt.doctor.logs.read import read_log as errors_in

    chunks = iter(lambda: os.read(STANDARD_INPUT, CHUNK_BYTES), b"")
    read = errors_in(chunks) if name == "-" else read_log_file(Path(name))
    if as_json:
        rows = [
            {
                "error": one.known.name,
                "severity": one.known.severity,
                "lines": one.lines,
                "count": one.line_count,
                "text": one.excerpt,
                "means": one.known.means,
                "remedy": one.known.remedy,
                "source": one.known.source,
            }
            for one in read.seen
        ]
        document = {"log": name, "lines": read.line_count, "errors": rows}
        print(json.dumps(document, ensure_ascii=False))
        return int(read.has_errors)
    for one in read.seen:
        more = f", {one.line_count:,} lines" if one.line_count > 1 else ""
        print(f"{one.known.severity:<9}line {one.lines[0]:,}{more}: {one.excerpt}")
        print(f"         {one.known.means}")
        print(f"         do: {one.known.remedy}")
    if not read.seen:
        print(f"No known error in {read.line_count:,} lines.")
    return int(read.has_errors)
