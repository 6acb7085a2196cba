import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from octavolt.doctor import to_json
from octavolt.doctor.snapshot import Snapshot
from tests.cli.conftest import Octavolt
from tests.doctor.machines import CASES, DGX, LAPTOP, third


def saved(snapshot: Snapshot) -> Path:
    path = Path("snapshot.json")
    path.write_text(json.dumps(to_json(snapshot)))
    return path


def test_a_healthy_machine_is_told_in_four_lines(octavolt: Octavolt) -> None:
    answer = octavolt("doctor", "--snapshot", saved(DGX))
    assert (answer.status, answer.err) == (0, "")
    cards, software, host, last = answer.out.splitlines()
    assert cards == "8 x Tesla V100-SXM2-16GB, driver 580.65.06, 48 of 48 NVLink ends up"
    assert "torch 2.10.0 (CUDA 12.8, has sm_70), cuDNN 9.10.2.21" in software
    assert host.startswith("40 cores (")
    assert last.startswith("ok       ")
    assert "fp16" in last


def test_a_laptop_has_no_gpu_and_is_healthy(octavolt: Octavolt) -> None:
    answer = octavolt("doctor", "--snapshot", saved(LAPTOP))
    assert answer.status == 0
    assert answer.out.startswith("no NVIDIA GPU\n")


def test_what_stops_a_run_is_status_1_and_says_what_to_do(octavolt: Octavolt) -> None:
    answer = octavolt("doctor", "--snapshot", saved(CASES["torch 2.11"][0]))
    assert answer.status == 1
    assert "error    torch 2.11.0 has kernels for sm_75" in answer.out
    assert "plain torch 2.10: pip install 'torch==2.10.0'" in answer.out
    assert "ok" not in answer.out.split()


def test_a_warning_is_status_0(octavolt: Octavolt) -> None:
    answer = octavolt("doctor", "--snapshot", saved(third(memory_celsius=88)))
    assert answer.status == 0
    assert "warning  GPU 3: memory at 88 C" in answer.out


def test_one_document(octavolt: Octavolt) -> None:
    answer = octavolt("doctor", "--snapshot", saved(third(ecc=False)), "--json")
    (one,) = answer.document["findings"]
    assert (one["rule"], one["mend"]) == (
        "ecc-off",
        {"all": "sudo nvidia-smi -i 3 -e 1, then reboot"},
    )
    assert answer.document["snapshot"]["driver"] == "580.65.06"


def test_a_snapshot_is_saved_as_it_was(octavolt: Octavolt) -> None:
    path = saved(replace(DGX, physical_cores=39))
    octavolt("doctor", "--snapshot", path, "--save", "again.json")
    assert json.loads(Path("again.json").read_text()) == json.loads(path.read_text())


def test_a_place_that_can_not_be_written_is_said(octavolt: Octavolt) -> None:
    answer = octavolt("doctor", "--snapshot", saved(DGX), "--save", "no/such/folder.json")
    assert answer.status == 2
    assert (
        answer.err == "octavolt: no/such/folder.json can't be written: No such file or directory.\n"
    )


def test_a_log_goes_with_no_snapshot(octavolt: Octavolt) -> None:
    answer = octavolt("doctor", "--log", "x.log", "--snapshot", "y.json")
    assert answer.status == 2
    assert answer.err == (
        "octavolt: --log reads a log, not a machine: leave --save and --snapshot away.\n"
    )


LOG = """epoch 1/3
RuntimeError: CUDA error: no kernel image is available for execution on the device
done
"""


def test_known_errors_of_a_log_are_told_with_their_line(octavolt: Octavolt) -> None:
    Path("训练.log").write_text(LOG, encoding="utf-8")
    answer = octavolt("doctor", "--log", "训练.log")
    assert answer.status == 1
    assert answer.out.startswith("error    line 2: RuntimeError: CUDA error: no kernel image")
    assert "torch==2.10.0" in answer.out
    document = octavolt("doctor", "--log", "训练.log", "--json").document
    assert [one["error"] for one in document["errors"]] == ["no-kernel-image"]
    assert document["lines"] == 3


def test_a_log_on_standard_input_without_errors_is_status_0(
    octavolt: Octavolt, standard_input: Callable[[bytes], None]
) -> None:
    standard_input(b"all is well\n")
    answer = octavolt("doctor", "--log", "-")
    assert (answer.status, answer.out) == (0, "No known error in 1 lines.\n")


def test_a_log_that_is_not_there_is_refused(octavolt: Octavolt) -> None:
    answer = octavolt("doctor", "--log", "nowhere.log")
    assert answer.status == 2
    assert "Can't read the log nowhere.log: No such file or directory." in answer.err
