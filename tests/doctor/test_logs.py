"""Known errors are found in logs by line, in any encoding, in bounded memory."""

import re
import tracemalloc
from pathlib import Path

import pytest

from octavolt.doctor.logs import KNOWN
from octavolt.doctor.logs.known import Known
from octavolt.doctor.logs.read import (
    CHUNK_BYTES,
    MOST_LINE_CHARACTERS,
    SHOWN_LINES,
    LogRead,
    read_log,
    read_log_file,
)
from octavolt.errors import OctavoltError

EACH = pytest.mark.parametrize("known", KNOWN, ids=[one.name for one in KNOWN])
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."


def read(text: str | bytes) -> LogRead:
    content = text.encode() if isinstance(text, str) else text
    return read_log(content[at : at + CHUNK_BYTES] for at in range(0, len(content), CHUNK_BYTES))


def names(text: str | bytes) -> list[str]:
    return [one.known.name for one in read(text).seen]


@EACH
def test_each_entry_finds_its_example(known: Known) -> None:
    found = {one.known.name: one for one in read(f"epoch 1\n{known.example}\nbye\n").seen}
    assert found[known.name].lines == [2]


@EACH
def test_each_entry_is_complete_and_its_hints_are_in_lower_case(known: Known) -> None:
    assert known.hints == tuple(hint.lower() for hint in known.hints)
    assert all(len(hint) >= 3 for hint in known.hints)
    for text in (known.means, known.remedy, known.source):
        assert text.strip() == text != ""
    assert re.search(known.pattern, "epoch 3/30  loss 0.41  val top-1 92.6 %  7,950 img/s") is None


def test_names_are_different() -> None:
    assert len({one.name for one in KNOWN}) == len(KNOWN)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        # The table of error strings, and other wordings of one error.
        ("cudaErrorNoKernelImageForDevice: no kernel image", "no-kernel-image"),
        (
            "The minimum cuda capability supported by this library is 7.5.",
            "gpu-too-old",
        ),
        ("ValueError: Current CUDA Device does not support bfloat16.", "bf16-unsupported"),
        (
            "Bfloat16 is only supported on GPUs with compute capability of at least 8.0.",
            "bf16-unsupported",
        ),
        ("Your GPU does not support Int8 Matmul!", "int8-matmul"),
        ("NVRM:  information.  The 595.45 NVIDIA driver will ignore", "driver-ignores-card"),
        ("NVRM: GPU at PCI:0000:3b:00.0 is not supported by open", "open-kernel-module"),
        ("NVRM: nvidia.ko because it does not include the required GPU", "open-kernel-module"),
        ("nvidia-smi: No devices were found", "no-devices"),
        ("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling", "cublas-alloc"),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED", "cudnn-failed"),
        ("step 412  loss: nan  lr 0.1", "loss-nan"),
        ("Epoch 3, loss=inf", "loss-nan"),
        ("NVRM: Xid (PCI:0000:1a:00): 79, GPU has fallen off the bus.", "gpu-fallen-off"),
        ("NVRM: Xid (PCI:0000:1a:00): 79, GPU has fallen off the bus.", "xid-79"),
        ("kernel: NVRM: Xid (0000:04:00): 48, An uncorrectable double bit error", "xid-48"),
        ("NVRM: Xid (PCI:0000:1a:00): 137, NVLink fault", "xid-other"),
        ("Clocks Throttle HW Power Brake Slowdown : Active", "thermal-slowdown"),
        ("OSError: [Errno 24] Too many open files", "too-many-files"),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=12.0", "host-out-of-memory"),
        ("unsatisfied condition: cuda>=13.0, please update your driver", "driver-too-old"),
        ("RuntimeError: No available kernel.  Aborting execution.", "sdpa-no-kernel"),
    ],
)
def test_other_wordings(line: str, name: str) -> None:
    assert name in names(line)


@pytest.mark.parametrize(
    "line",
    [
        "CUDA error: no kernel image is available for execution on the device",
        "with CUDA capability sm_70 is not compatible with the current PyTorch installation. The "
        "current PyTorch install supports sm_75 sm_80",
        "Found GPU0 Tesla V100 which is of cuda capability 7.0. PyTorch no longer supports this "
        "GPU because it is too old. The minimum cuda capability supported by this library is 7.5.",
        "Minimum and Maximum cuda capability supported by this version of PyTorch is (7.5) - "
        "(12.0)",
        "Please install PyTorch with a following CUDA configurations: 12.6 following",
        "Your installed torch==2.13.0 does not include kernels for this GPU. Reinstall the same "
        "version against a CUDA build that does",
        "No published PyTorch CUDA builds for release 2.15 support this GPU",
        "CUDNN_STATUS_EXECUTION_FAILED_CUDART",
        "NVRM: supported through the NVIDIA 580.xx Legacy drivers ... driver will ignore this GPU",
        "NVRM: x not supported by open nvidia.ko because it does not include the required GPU "
        "System Processor (GSP)",
        "nvidia-smi: No devices were found",
        "Current CUDA Device does not support bfloat16. Please switch dtype to float16.",
        "Your setup doesn't support bf16/gpu",
        "Bfloat16 is only supported on GPUs with compute capability of at least 8.0",
        "Tesla V100-SXM2-16GB does not support bfloat16 compilation natively, skipping",
        "FlashAttention only supports Ampere GPUs or newer",
        "Compute capability < 7.5 detected! Only slow 8-bit matmul is supported",
        "Your GPU does not support Int8 Matmul!",
        "Current loss scale already at minimum - cannot decrease scale anymore",
        "device kernel image is invalid",
        "HW Power Brake Slowdown: Active",
        "PassManager::run failed",
        "No NVIDIA GPU found",
        "minimum cuda capability supported by this library is 7.5",
        "CUDA error: device-side assert triggered",
        "Worker died.",
        "Service Busy",
        "DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that "
        "dataloader's workers are out of shared memory.",
    ],
)
def test_published_strings(line: str) -> None:
    assert names(line)


@pytest.mark.parametrize(
    "line",
    [
        "loss: 0.0312 nanoseconds 12",
        "train_loss: 0.05",
        "HW Power Brake Slowdown : Not Active",
        "Link 3: 25.781 GB/s",
        "Xid errors are explained at docs.nvidia.com",
        "bus 3 is on time; no bus errors were seen before",
        "Everything is supported; memory 12 GiB of 16",
        "info: NCCL version 2.27.5+cuda12.8",
        "val loss 0.412 best 0.399 information",
        "NVIDIA driver 580.65 loaded",
    ],
)
def test_harmless_lines(line: str) -> None:
    assert names(line) == []


def test_a_xid_is_not_taken_for_one_that_begins_alike() -> None:
    assert names("NVRM: Xid (PCI:0000:1a:00): 137, x") == ["xid-other"]
    assert names("NVRM: Xid (PCI:0000:1a:00): 31, x") == ["xid-31"]


def test_lines_are_counted_and_the_first_few_are_named() -> None:
    (seen,) = read("fine\n" + f"{OOM}\nfine\n" * 9).seen
    assert seen.line_count == 9
    assert seen.lines == [2, 4, 6, 8, 10][:SHOWN_LINES]


def test_lines_found_by_different_hints_are_counted_once_and_in_order() -> None:
    both = "cudaErrorMemoryAllocation: CUDA out of memory"
    (seen,) = read(f"{OOM}\n{both}\nfine\ncudaErrorMemoryAllocation\n{OOM}\n").seen
    assert (seen.line_count, seen.lines) == (4, [1, 2, 4, 5])


def test_errors_come_in_the_order_of_the_log() -> None:
    log = "NCCL WARN Duplicate GPU detected : rank 1\n" + OOM + "\nEADDRINUSE\n"
    assert names(log) == ["nccl-duplicate-gpu", "gpu-out-of-memory", "address-in-use"]


def test_two_mentions_in_a_line_are_one_line() -> None:
    assert read(f"{OOM} {OOM}").seen[0].line_count == 1


def test_a_log_without_errors() -> None:
    result = read("epoch 1/3  loss 0.9\nepoch 2/3  loss 0.8\n")
    assert (result.line_count, result.seen, result.has_errors) == (2, (), False)


def test_an_empty_log() -> None:
    assert read("").seen == ()


def test_a_warning_alone_is_no_error() -> None:
    result = read("            HW Power Brake Slowdown           : Active\n")
    assert len(result.seen) == 1
    assert not result.has_errors


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "gb18030"]
)
def test_encodings(encoding: str) -> None:
    log = f"开始训练 第一轮 {'x' * 50}\r\n{OOM}\r\n"
    (seen,) = read(log.encode(encoding)).seen
    assert seen.lines == [2]


def test_bytes_that_are_no_text() -> None:
    assert names(b"\xff\xfa\x00\x9c\n" + OOM.encode() + b"\x80\n") == ["gpu-out-of-memory"]


def test_colours_of_a_terminal_do_not_hide_an_error() -> None:
    assert names("\x1b[1;31mCUDA out of\x1b[0m memory") == ["gpu-out-of-memory"]


def test_an_excerpt_holds_nothing_that_moves_a_cursor() -> None:
    excerpt = read(f"50%\r\x07{OOM}").seen[0].excerpt
    assert OOM[:40] in excerpt
    assert excerpt.isprintable()


def test_an_error_across_two_chunks_is_found_once() -> None:
    for shift in (5, 12, 20):
        before = "x" * 99 + "\n"
        filler = before * (CHUNK_BYTES // 100)
        filler += "y" * (CHUNK_BYTES - len(filler) - shift)
        (seen,) = read(filler + OOM).seen
        assert seen.line_count == 1


def test_an_error_across_two_pieces_of_a_long_line_is_found_once() -> None:
    error = "attempting to unscale fp16 gradients"
    for length in range(MOST_LINE_CHARACTERS - len(error), MOST_LINE_CHARACTERS + 5, 4):
        (seen,) = read("z" * length + error + "z" * 2 * MOST_LINE_CHARACTERS).seen
        assert (seen.line_count, seen.lines) == (1, [1])


def test_memory_is_bounded_for_a_line_without_end() -> None:
    tracemalloc.start()
    read_log(b"\r 50%|#####" * 20_000 for _ in range(60))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**22


def test_a_compressed_log_is_refused_with_the_command_that_opens_it(tmp_path: Path) -> None:
    file = tmp_path / "train.log.gz"
    file.write_bytes(b"\x1f\x8b\x08\x00")
    with pytest.raises(OctavoltError) as error:
        read_log_file(file)
    assert str(error.value) == (
        f"The log {file} is compressed. Give it as: zcat FILE | octavolt doctor --log -"
    )


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OctavoltError) as error:
        read_log_file(tmp_path / "no.log")
    assert str(error.value) == (
        f"Can't read the log {tmp_path / 'no.log'}: No such file or directory. Give --log a file, "
        "or - for standard input."
    )
