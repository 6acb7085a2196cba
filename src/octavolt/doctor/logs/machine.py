"""Errors of drivers, containers and processes that train together."""

from octavolt.doctor.lanes import DRIVER, LANE_A, LANE_B
from octavolt.doctor.logs.known import Known

FIRST_RANK = (
    "Another rank failed or fell behind first: look for the earliest error among all ranks' logs; "
    "octavolt names it by itself."
)
PEERS = (
    "NCCL_P2P_DISABLE=1 as a test; if that helps, switch off ACS and the IOMMU in the BIOS "
    "(intel_iommu=off), which keeps the speed."
)

MACHINE = (
    Known(
        name="driver-ignores-card",
        # The kernel's log breaks these sentences over several lines, at places that vary.
        pattern=r"NVRM: .*(supported through the NVIDIA \d+\.xx Legacy"
        r"|driver will ignore(\s+this GPU|\s*$))",
        hints=("nvrm",),
        means="The driver is newer than R580, the last that knows Volta.",
        remedy=f"Driver: {DRIVER}.",
        source="NixOS/nixos-hardware#1880, CachyOS#865",
        example="NVRM: The NVIDIA Tesla V100-SXM2-16GB GPU installed in this system is supported "
        "through the NVIDIA 580.xx Legacy drivers. The 595.45 NVIDIA driver will ignore this GPU.",
    ),
    Known(
        name="open-kernel-module",
        pattern=r"NVRM: .*not supported by open(\s+nvidia\.ko|\s*$)"
        r"|does not include the required GPU(\s+System Processor|\s*$)",
        hints=("supported by open", "the required gpu"),
        means="The open kernel module is installed; it drives Turing and newer only.",
        remedy="Install the proprietary flavour of R580: apt install nvidia-driver-580-server, not "
        "-open; then reboot.",
        source="NVIDIA/open-gpu-kernel-modules#19, negativo17/nvidia-driver#158",
        example="NVRM: installed in this system is not supported by open nvidia.ko because it "
        "does not include the required GPU System Processor (GSP).",
    ),
    Known(
        name="no-devices",
        pattern=r"No devices were found|No NVIDIA GPU found|no CUDA-capable device is detected"
        r"|cudaErrorNoDevice",
        hints=("no devices were", "no nvidia gpu", "no cuda-capable", "nodevice"),
        means="The driver runs and finds no card: the open kernel module, a driver newer than "
        "R580, a card without power or a container without GPUs.",
        remedy="octavolt doctor tells which; in a container: docker run --gpus all.",
        source="negativo17/nvidia-driver#158, truenas-nvidia-drivers#20",
        example="No devices were found",
    ),
    Known(
        name="driver-not-running",
        pattern=r"NVIDIA-SMI has failed because it couldn't communicate|NVIDIA driver is not "
        r"loaded|Found no NVIDIA driver on your system",
        hints=("nvidia-smi has failed", "nvidia driver"),
        means="No kernel module of NVIDIA is loaded, often after a kernel was updated.",
        remedy="sudo modprobe nvidia; dkms status; otherwise install R580 again and reboot.",
        source="nvidia-smi; torch/cuda/__init__.py",
        example="NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
    ),
    Known(
        name="driver-library-mismatch",
        pattern=r"Driver/library version mismatch|API mismatch: the client has the version",
        hints=("mismatch",),
        means="The kernel module is of another release than the libraries: the driver was updated "
        "and the machine not rebooted.",
        remedy="Reboot. In a container: run it anew, as it holds libraries of the old driver.",
        source="nvidia-smi; NVRM",
        example="Failed to initialize NVML: Driver/library version mismatch",
    ),
    Known(
        name="driver-too-old",
        pattern=r"CUDA driver version is insufficient for CUDA runtime version"
        r"|NVIDIA driver on your system is too old|forward compatibility was attempted"
        r"|unsatisfied condition: cuda>=",
        hints=(
            "driver version is insufficient",
            "too old",
            "forward compatibility",
            "unsatisfied condition",
        ),
        means="The driver is older than this CUDA, or the program is built for CUDA 13, which has "
        "no code for Volta at all.",
        remedy=f"Driver: {DRIVER}. Take images and wheels for CUDA 12.",
        source="CUDA compatibility guide; mudler/LocalAI#9948",
        example="nvidia-container-cli: requirement error: unsatisfied condition: cuda>=13.0, "
        "please update your driver to a newer version",
    ),
    Known(
        name="cuda-initialization",
        pattern=r"CUDA (unknown error|initialization).*(may be due|error|Unexpected)"
        r"|CUDA error: initialization error|cuInit.*(fail|return).*\b(3|100|101|802|803|999)\b"
        r"|system not yet initialized",
        hints=("cuda unknown error", "initialization", "cuinit", "not yet initialized"),
        means="CUDA couldn't begin: a module not loaded, a fabric manager not running (DGX-2), or "
        "CUDA used after a fork.",
        remedy="sudo modprobe nvidia_uvm; on a DGX-2: sudo systemctl start nvidia-fabricmanager; "
        "start processes by 'spawn'.",
        source="CUDA driver API, cuInit; NVIDIA fabric manager's guide",
        example="RuntimeError: CUDA unknown error - this may be due to an incorrectly set up "
        "environment, e.g. changing env variable CUDA_VISIBLE_DEVICES after program start.",
    ),
    Known(
        name="container-no-gpu",
        pattern=r"could not select device driver.*\[\[gpu\]\]"
        r"|The NVIDIA Driver was not detected.*GPU functionality will not be available",
        hints=("could not select device driver", "driver was not detected"),
        means="The container was given no GPU, or the host lacks the container toolkit.",
        remedy="docker run --gpus all; on the host: sudo apt install nvidia-container-toolkit, "
        "sudo nvidia-ctk runtime configure --runtime=docker, sudo systemctl restart docker.",
        source="NVIDIA Container Toolkit's guide",
        example='docker: Error response from daemon: could not select device driver "" with '
        "capabilities: [[gpu]].",
    ),
    Known(
        name="invalid-device",
        pattern=r"invalid device ordinal|cudaErrorInvalidDevice\b",
        hints=("invalid device", "invaliddevice"),
        means="More processes or a higher number than there are GPUs.",
        remedy="--gpus N with N as nvidia-smi -L lists them; look at CUDA_VISIBLE_DEVICES.",
        source="CUDA runtime API",
        example="RuntimeError: CUDA error: invalid device ordinal",
    ),
    Known(
        name="devices-busy",
        pattern=r"all CUDA-capable devices are busy or unavailable|cudaErrorDevicesUnavailable",
        hints=("unavailable",),
        means="Compute mode is exclusive or prohibited, and another process has the card.",
        remedy="nvidia-smi shows who; sudo nvidia-smi -c DEFAULT lets several in.",
        source="CUDA runtime API",
        example="RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable",
    ),
    Known(
        name="dgpu-missing-library",
        pattern=r"lib(cudart|cublas|cudnn\w*|nccl|nvrtc|cusparse\w*)\S*\.so\.\d+.*(cannot open "
        r"shared object|not found)|Unable to load any of \{libcudnn",
        hints=("cannot open shared object", "not found", "unable to load any"),
        means="A CUDA library is missing, or of another major release than the program wants.",
        remedy=f"Install torch with its libraries anew: {LANE_A}",
        source="ld.so(8)",
        example="ImportError: libcudnn.so.9: cannot open shared object file: No such file or "
        "directory",
    ),
    Known(
        name="torch-undefined-symbol",
        pattern=r"undefined symbol: \S*(ncclCommWindow|nccl|nvJitLink|cusparse|c10|torch)",
        hints=("undefined symbol",),
        means="Libraries of two releases meet: LD_LIBRARY_PATH names an older CUDA or NCCL, or an "
        "extension was built for another torch.",
        remedy="unset LD_LIBRARY_PATH, and build or install the extension for this torch.",
        source="pytorch#111469 and the like",
        example="ImportError: libtorch_cuda.so: undefined symbol: ncclCommRegister",
    ),
    Known(
        name="nccl-segfault",
        pattern=r"(Segmentation fault|Signal: Segmentation|SIGSEGV|Fatal Python error).*nccl"
        r"|ncclCommInitRank.*(Segmentation|SIGSEGV)|nccl.*Segmentation fault",
        hints=("nccl",),
        means="NCCL crashed: 2.28.9 does in ncclCommInitRank, and 2.22.3 over the NVLinks of SXM2 "
        "boards.",
        remedy="pip install 'nvidia-nccl-cu12==2.27.5', as torch 2.10 brings it.",
        source="NVIDIA/nccl#2159, ggml-org/llama.cpp#24489",
        example="[node1:2211] *** Process received signal: Segmentation fault at "
        "libnccl.so.2(ncclCommInitRank+0x1f)",
    ),
    Known(
        name="nccl-timeout",
        pattern=r"Watchdog caught collective operation timeout|NCCL (operation )?timed? ?out"
        r"|Collective (operation )?timeout|ran for \d+ milliseconds before timing out",
        hints=("timed out", "timeout", "timing out"),
        means="A rank waited for others that didn't come.",
        remedy=f"{FIRST_RANK} If none failed: {PEERS}",
        source="NVIDIA/nccl#1111, pytorch#97191, VLM-R1#257",
        example="[rank3]:[E1201 08:11:02 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=812, OpType=ALLREDUCE)",
    ),
    Known(
        name="nccl-remote",
        pattern=r"ncclRemoteError|NCCL.*remote process (exited|has)|Connection closed by "
        r"(remote )?peer|Broken pipe.*TCPStore|TCPStore.*Broken pipe",
        hints=("remote", "peer", "tcpstore"),
        means="Another process went away while this one waited for it.",
        remedy=FIRST_RANK,
        source="NCCL's documentation, ncclResult_t",
        example="torch.distributed.DistBackendError: NCCL error: ncclRemoteError: A call failed "
        "possibly due to a network error or a remote process exiting prematurely.",
    ),
    Known(
        name="nccl-system",
        pattern=r"ncclSystemError|NCCL WARN.*(Call to (connect|socket|bind|ibv_)|socketStartConn)"
        r"|NCCL WARN.*No socket interface found",
        hints=("nccl",),
        means="A call to the system failed: network interface, firewall, or shared memory.",
        remedy="NCCL_DEBUG=INFO shows which; NCCL_SOCKET_IFNAME=eth0 names the interface; look at "
        "df -h /dev/shm.",
        source="NCCL's documentation on troubleshooting",
        example="NCCL WARN Call to connect to 10.0.0.2<38211> failed : Connection refused",
    ),
    Known(
        name="nccl-shared-memory",
        pattern=r"NCCL WARN.*(shared memory|/dev/shm|nccl-\w+ )|Error while creating shared memory"
        r" segment",
        hints=("shm", "shared memory"),
        means="NCCL got no room in /dev/shm, over which GPUs without a direct way exchange data.",
        remedy="docker run --shm-size=8g, or --ipc=host.",
        source="NCCL's documentation on troubleshooting",
        example="NCCL WARN Error while creating shared memory segment /dev/shm/nccl-v8yhAb (size "
        "9637888)",
    ),
    Known(
        name="nccl-peer-access",
        pattern=r"NCCL WARN.*(P2P|peer access|cudaIpc|CUMEM)|peer access is not supported between",
        hints=("p2p", "peer access", "cudaipc", "cumem"),
        means="Direct copies between GPUs fail: ACS, an IOMMU, or containers without --ipc=host.",
        remedy=PEERS,
        source="NVIDIA/nccl#667, NVIDIA/nccl#199",
        example="NCCL WARN P2P is disabled between connected GPUs 1 and 0 by an IOMMU or ACS",
    ),
    Known(
        name="nccl-duplicate-gpu",
        pattern=r"Duplicate GPU detected",
        hints=("duplicate gpu detected",),
        means="Two ranks use one GPU.",
        remedy="One process a GPU: --gpus N; torch.cuda.set_device(LOCAL_RANK) in own programs.",
        source="NCCL's init.cc",
        example="NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000",
    ),
    Known(
        name="nccl-unhandled",
        pattern=r"ncclUnhandledCudaError|ncclInternalError|ncclInvalidUsage|ncclInvalidArgument"
        r"|unhandled (cuda|system) error.*NCCL|NCCL error in:",
        hints=("nccl",),
        means="NCCL met an error of CUDA or the system.",
        remedy="NCCL_DEBUG=INFO in the environment makes it say which. Then: octavolt doctor.",
        source="NCCL's documentation, ncclResult_t",
        example="RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled cuda error, "
        "NCCL version 2.27.5",
    ),
    Known(
        name="gloo-connection",
        pattern=r"Gloo connectFullMesh failed|\[.*gloo/transport.*\] (Connection|Timed out|Read)",
        hints=("gloo",),
        means="Processes on CPUs lost each other.",
        remedy=f"{FIRST_RANK} GLOO_SOCKET_IFNAME=eth0 names the network interface.",
        source="gloo's transport",
        example="RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection "
        "closed by peer [10.0.0.3]:41112",
    ),
    Known(
        name="address-in-use",
        pattern=r"EADDRINUSE|Address already in use",
        hints=("address", "eaddrinuse"),
        means="The port that ranks meet at is taken, often by a run that still lives.",
        remedy="torchrun --standalone, or another --master-port; end the old run.",
        source="torch.distributed.TCPStore",
        example="torch.distributed.DistNetworkError: The server socket has failed to listen on any "
        "local network address. port: 29500, EADDRINUSE, message: address already in use",
    ),
    Known(
        name="child-failed",
        pattern=r"ChildFailedError|torch\.distributed\.elastic.*failed \(exitcode: -?\d+\)",
        hints=("childfailederror", "exitcode"),
        severity="warning",
        means="A process failed; this line only counts them.",
        remedy=FIRST_RANK,
        source="torch.distributed.elastic",
        example="torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
    ),
    Known(
        name="thermal-slowdown",
        pattern=r"(HW|SW) (Thermal|Power Brake) Slowdown\s*:\s*Active",
        hints=("slowdown",),
        severity="warning",
        means="The card slows itself: too hot, or told to by the host's power supply (382 MHz).",
        remedy="Clean its air path, or sudo nvidia-smi -pl 175; for a power brake look at the "
        "supply's cables, the BMC and the card's slot.",
        source="l4rz/reverse-engineering-dell-idrac, bradrlaw/ai-server ADR-0009",
        example="            HW Power Brake Slowdown           : Active",
    ),
    Known(
        name="gpu-fallen-off",
        pattern=r"GPU has fallen off the bus|Unable to determine the device handle for GPU",
        hints=("fallen off", "device handle"),
        means="The card doesn't answer any more: power, heat, a loose slot or a dying card.",
        remedy="Power the host off and on; seat the card and its cables anew; lower the cap: sudo "
        "nvidia-smi -pl 200.",
        source="NVIDIA's list of Xid errors, 79",
        example="Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error",
    ),
    Known(
        name="nvlink-error",
        pattern=r"NVLink.*(fatal error|link.*(down|inactive)|recovery error|CRC)"
        r"|Link \d+: <inactive>|nvidia-nvswitch\d*: SXid",
        hints=("link", "sxid"),
        means="A link between GPUs is down or gives errors; with one down, NCCL before 2.11 has "
        "given wrong sums without a word.",
        remedy="nvidia-smi nvlink -s and -e show which; seat the board anew; NCCL 2.11 or newer.",
        source="NVIDIA/nccl#596",
        example="         Link 3: <inactive>",
    ),
    Known(
        name="pcie-error",
        pattern=r"PCIe Bus Error: severity=|AER: .*(error|fatal)",
        hints=("pcie bus error", "aer:"),
        severity="warning",
        means="The PCIe link to a card gives errors: a riser, an adapter or dirty contacts.",
        remedy="Seat the card anew, take another slot or riser, or set the slot to generation 2.",
        source="Linux's Documentation/PCI/pcieaer-howto",
        example="pcieport 0000:3a:00.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer",
    ),
    Known(
        name="code-43",
        pattern=r"Windows has stopped this device.*\(Code 43\)|\bCode 43\b",
        hints=("code 43",),
        means="Windows doesn't drive SXM2 boards on adapters.",
        remedy="Use Linux with R580.",
        source="reports on SXM2 adapters",
        example="Windows has stopped this device because it has reported problems. (Code 43)",
    ),
    Known(
        name="cuda-13-library",
        pattern=r"lib(cudart|cublas|nvrtc)\.so\.13\b|\bcuda-13\.\d+/",
        hints=(".so.13", "cuda-13."),
        severity="warning",
        means="A program for CUDA 13, which has no code for Volta.",
        remedy=f"Builds for CUDA 12. torch: {LANE_A}, or {LANE_B}",
        source="release notes of CUDA 13.0; mudler/LocalAI#9948",
        example="OSError: libcudart.so.13: cannot open shared object file: No such file",
    ),
    Known(
        name="nvml-unknown-error",
        pattern=r"Failed to initialize NVML: (Unknown Error|Insufficient Permissions)",
        hints=("failed to initialize nvml",),
        means="A container lost its GPUs, as when systemd reloads its units, or may not open "
        "/dev/nvidia*.",
        remedy="Start the container anew; for good: nvidia-ctk system create-dev-char-symlinks "
        "--create-all, or docker's cgroup driver cgroupfs.",
        source="NVIDIA Container Toolkit's guide to troubleshooting",
        example="Failed to initialize NVML: Unknown Error",
    ),
    Known(
        name="adapter-initialization",
        pattern=r"RmInitAdapter failed|rm_init_adapter failed",
        hints=("rminitadapter", "rm_init_adapter"),
        means="The driver found the card and couldn't start it: power, cable, adapter or slot.",
        remedy="Power off and on; check power cables and adapter; try the card alone in another "
        "slot.",
        source="NVRM, the driver's kernel module",
        example="NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x24:0x65:1459)",
    ),
    Known(
        name="bar-too-small",
        pattern=r"PCI I/O region assigned to your NVIDIA device is invalid|BAR\d is 0M @ 0x0"
        r"|BAR \d.*(can't assign|failed to assign|no space for)",
        hints=("i/o region assigned", "bar"),
        means="The BIOS gave the card no room for its memory window: a V100's is as large as its "
        "memory.",
        remedy="Switch on Above 4G Decoding (and UEFI boot without CSM) in the BIOS.",
        source="NVRM, the driver's kernel module",
        example="NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:",
    ),
    Known(
        name="collective-mismatch",
        pattern=r"Detected mismatch between collectives on ranks",
        hints=("detected mismatch between collectives",),
        means="Ranks took different ways: unequal numbers of batches, or a branch on one rank.",
        remedy="Give each rank equally many batches; octavolt counts them the same on all.",
        source="torch.distributed, TORCH_DISTRIBUTED_DEBUG=DETAIL; allenai/allennlp#5088",
        example="RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running "
        "collective: CollectiveFingerPrint(SequenceNumber=11, OpType=ALLREDUCE",
    ),
    Known(
        name="ddp-unused-parameters",
        pattern=r"Expected to have finished reduction in the prior iteration",
        hints=("expected to have finished reduction",),
        means="Some parameters took no part in the loss, and other ranks wait for their gradients.",
        remedy="find_unused_parameters=True in DDP, or leave the unused part out.",
        source="torch.nn.parallel.DistributedDataParallel",
        example="RuntimeError: Expected to have finished reduction in the prior iteration before "
        "starting a new one.",
    ),
    Known(
        name="rapl-permission",
        pattern=r"Permission denied.*(intel-rapl|/sys/class/powercap)",
        hints=("rapl", "powercap"),
        severity="warning",
        means="The processor's energy counter may only be read by root since 2020.",
        remedy="sudo chmod -R a+r /sys/class/powercap/intel-rapl; the GPUs' counters need no "
        "right.",
        source="mlco2/codecarbon#244; CVE-2020-8694",
        example="PermissionError: [Errno 13] Permission denied: "
        "'/sys/class/powercap/intel-rapl/intel-rapl:0/energy_uj'",
    ),
    Known(
        name="energy-zero",
        pattern=r"Energy:?\s*0\.0{4,} kWh",
        hints=("kwh",),
        severity="warning",
        means="No energy was counted: no counter could be read, or GPU energy isn't reported.",
        remedy="octavolt doctor shows whether the driver answers; a V100 has an energy counter.",
        source="saintslab/carbontracker#33, mlco2/codecarbon#393",
        example="Actual consumption for 1 epoch(s): Time: 0:02:10 Energy: 0.000000 kWh",
    ),
)
