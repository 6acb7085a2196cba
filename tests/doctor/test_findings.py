import json
from dataclasses import replace
from pathlib import Path

import pytest

from octavolt.doctor import chosen_precision, fast_check, findings, left, read_snapshot, to_json
from octavolt.doctor.finding import Finding
from octavolt.doctor.snapshot import Snapshot
from octavolt.errors import OctavoltError

from .machines import CASES, DGX, LAPTOP, software, third

each_case = pytest.mark.parametrize(("snapshot", "expected"), CASES.values(), ids=[*CASES])


@each_case
def test_each_machine_has_the_findings_that_it_must_have_and_no_others(
    snapshot: Snapshot, expected: dict[str, str]
) -> None:
    assert {one.rule: one.severity for one in findings(snapshot)} == expected


@each_case
def test_a_finding_says_what_why_and_what_to_do_with_its_source(
    snapshot: Snapshot, expected: dict[str, str]
) -> None:
    for one in findings(snapshot):
        assert all((one.what, one.why, one.source, one.mend))
        assert all(lane in {"A", "B", "CPU", "all"} and what for lane, what in one.mend)


@each_case
def test_a_snapshot_is_the_same_after_a_way_through_its_file(
    snapshot: Snapshot, expected: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps(to_json(snapshot)))
    assert read_snapshot(path) == snapshot


def found(snapshot: Snapshot, rule: str) -> Finding:
    return next(one for one in findings(snapshot) if one.rule == rule)


def test_what_stops_a_run_comes_first() -> None:
    both = replace(third(retired_pages=3), shared_memory_bytes=0)
    assert [one.severity for one in findings(both)] == ["error", "warning"]


def test_the_right_wheel_is_named_for_each_lane() -> None:
    mend = dict(found(CASES["torch 2.11"][0], "wrong-wheel").mend)
    assert mend["A"] == "pip install 'torch==2.10.0' 'torchvision==0.25.0'"
    assert "whl/cu126" in mend["B"]
    assert "2.15" in found(CASES["torch 2.15"][0], "wrong-wheel").why


def test_a_card_is_named_by_its_number() -> None:
    assert found(third(memory_celsius=88), "hot-memory").what == "GPU 3: memory at 88 C"
    link = found(CASES["a link that is down"][0], "nvlink-down")
    assert link.what == "GPU 3: 1 of 6 NVLinks down (link 5)"


def test_the_cores_that_decoding_needs_are_counted() -> None:
    """8 cards x 1,200 pictures/s over 640 a core are 15."""
    one = found(CASES["eight cards and eight cores"][0], "few-cores")
    assert dict(one.mend)["all"].endswith("or 15 cores")


def test_precision_follows_from_the_card_or_the_processor() -> None:
    assert chosen_precision(DGX).precision == "fp16"
    assert chosen_precision(LAPTOP).precision == "fp32"
    assert chosen_precision(replace(LAPTOP, processor_flags=("amx_bf16",))).precision == "bf16"


def test_only_the_cards_that_a_process_may_use_are_looked_at() -> None:
    broken = third(retirement_pending=True)
    assert findings(left(broken, {"CUDA_VISIBLE_DEVICES": "0,1"})) == []
    assert [one.rule for one in findings(left(broken, {"CUDA_VISIBLE_DEVICES": "3"}))] == [
        "retirement-pending"
    ]
    assert left(broken, {"CUDA_VISIBLE_DEVICES": ""}).cards == ()
    assert left(broken, {"CUDA_VISIBLE_DEVICES": "-1"}).pci_ids == ()
    assert left(broken, {"CUDA_VISIBLE_DEVICES": "GPU-1f2e"}) == broken
    assert left(broken, {}) == broken


def test_no_wheel_is_wrong_where_the_cards_are_hidden() -> None:
    old = software(torch="2.11.0", architectures=("sm_75",))
    assert findings(left(old, {"CUDA_VISIBLE_DEVICES": ""})) == []


def test_the_fast_check_refuses_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = CASES["a build for CPUs"][0]
    monkeypatch.setattr("octavolt.doctor.read_machine", lambda *_, **__: broken)
    with pytest.raises(OctavoltError) as raised:
        fast_check(tmp_path, environment={})
    assert str(raised.value).startswith(
        "torch 2.10.0+cpu is a build for CPUs, and there is a V100: the card would stand idle. "
        "plain torch 2.10: pip install 'torch==2.10.0' 'torchvision==0.25.0' Or torch 2.14 "
    )
    fast_check(tmp_path, environment={"CUDA_VISIBLE_DEVICES": ""})


def test_the_fast_check_lets_warnings_pass(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("octavolt.doctor.read_machine", lambda *_, **__: third(ecc=False))
    fast_check(tmp_path, environment={})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no snapshot: Expecting value: line 1 column 1 (char 0)."),
        ("[" * 100_000, "is no snapshot: "),
        ("[]", "is no snapshot of schema 1, but of None. Write it anew with: octavolt doctor"),
        ('{"schema": 2}', "is no snapshot of schema 1, but of 2. Write it anew with: "),
        ('{"schema": 1, "system": 3}', "is no snapshot: system must be str, not 3."),
        ('{"schema": 1, "sistem": "x"}', "is no snapshot: sistem is no field of a snapshot."),
        ('{"schema": 1, "cards": {}}', "is no snapshot: cards must be a list."),
        ('{"schema": 1, "cards": [3]}', "is no snapshot: cards[0]. must be an object."),
        ('{"schema": 1, "physical_cores": true}', "physical_cores must be int, not True."),
        (json.dumps({"schema": 1, "cards": [{"name": "x"}]}), "is no snapshot: "),
    ],
)
def test_a_file_that_is_no_snapshot_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(OctavoltError) as raised:
        read_snapshot(path)
    assert message in str(raised.value)


def test_a_file_that_is_too_large_or_not_there_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with pytest.raises(OctavoltError, match="can't be read: No such file"):
        read_snapshot(path)
    path.write_bytes(b" " * (4 * 2**20 + 1))
    with pytest.raises(OctavoltError, match="it has over 4,194,304 bytes"):
        read_snapshot(path)
