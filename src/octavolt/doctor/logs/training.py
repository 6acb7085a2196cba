"""Errors of programs that train or serve: memory, labels, precision, loaders."""

from octavolt.doctor.logs.known import Known

SHARED_MEMORY = (
    "docker run --shm-size=8g, or --ipc=host; in Kubernetes an emptyDir of medium Memory at "
    "/dev/shm; or no worker processes. octavolt reads with threads and needs none of it."
)
ASSERT = (
    "Most often a label or token id outside the range: check 0 <= label < classes on the CPU. "
    "octavolt check DATA finds it with file and line; CUDA_LAUNCH_BLOCKING=1 shows the true line."
)

TRAINING = (
    Known(
        name="gpu-out-of-memory",
        pattern=r"CUDA out of memory|torch(\.cuda)?\.OutOfMemoryError|cudaErrorMemoryAllocation"
        r"|CUDA error: out of memory|CUDA_ERROR_OUT_OF_MEMORY",
        hints=("out of memory", "outofmemory", "out_of_memory", "memoryallocation"),
        means="The GPU's memory didn't suffice.",
        remedy="A smaller --micro-batch (the batch, and so the recipe, stays), "
        "--checkpoint-activations, or a smaller --image-size or --length. Look with nvidia-smi "
        "whether another process holds memory.",
        source="torch's caching allocator",
        example="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 "
        "has a total capacity of 15.77 GiB of which 1.12 GiB is free.",
    ),
    Known(
        name="cublas-alloc",
        pattern=r"CUBLAS_STATUS_ALLOC_FAILED",
        hints=("cublas_status_alloc_failed",),
        means="cuBLAS got no memory for its workspace: the GPU is full. After an index error it "
        "may also be what is seen first.",
        remedy="A smaller --micro-batch; if memory is free, look for a label out of range.",
        source="pytorch/pytorch forum threads on cublasCreate",
        example="RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling "
        "`cublasCreate(handle)`",
    ),
    Known(
        name="cublas-execution",
        pattern=r"CUBLAS_STATUS_(EXECUTION_FAILED|NOT_SUPPORTED|INVALID_VALUE|INTERNAL_ERROR)",
        hints=("cublas_status_",),
        means="A matrix product failed: a type the card lacks, such as bf16, an earlier error of a "
        "kernel, or a clash of CUDA libraries.",
        remedy="Use fp16, run with CUDA_LAUNCH_BLOCKING=1, and see that LD_LIBRARY_PATH names no "
        "other CUDA: unset LD_LIBRARY_PATH.",
        source="cuBLAS's documentation, cublasStatus_t",
        example="RuntimeError: CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling "
        "`cublasGemmEx( handle, opa, opb, m, n, k)`",
    ),
    Known(
        name="cublas-not-initialized",
        pattern=r"CUBLAS_STATUS_NOT_INITIALIZED",
        hints=("cublas_status_not_initialized",),
        means="cuBLAS couldn't begin: memory is full, or an earlier kernel has failed.",
        remedy=f"A smaller --micro-batch. {ASSERT}",
        source="pytorch/pytorch forum threads on cublasCreate",
        example="RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling "
        "`cublasCreate(handle)`",
    ),
    Known(
        name="device-assert",
        pattern=r"device-side assert triggered|cudaErrorAssert",
        hints=("device-side assert", "cudaerrorassert"),
        means="A kernel found a value that can't be; the Python line named is often a later one.",
        remedy=ASSERT,
        source="pytorch#1204, pytorch#25537, pytorch#16795",
        example="RuntimeError: CUDA error: device-side assert triggered",
    ),
    Known(
        name="index-assert",
        pattern=r"Assertion `.*(t >= 0 && t < n_classes|index.*out of bounds|srcIndex|ind >= 0"
        r"|idx_dim).*` failed",
        hints=("assertion `",),
        means="A label, token id or index lies outside its range: this is the assert itself.",
        remedy=ASSERT,
        source="pytorch's ClassNLLCriterion.cu, Indexing.cu",
        example="../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: "
        "block: [0,0,0], thread: [4,0,0] Assertion `t >= 0 && t < n_classes` failed.",
    ),
    Known(
        name="target-out-of-bounds",
        pattern=r"IndexError: Target -?\d+ is out of bounds|index out of range in self",
        hints=("out of bounds", "out of range"),
        means="A label or token id lies outside its range.",
        remedy="Check 0 <= label < classes, and that the tokenizer belongs to the network: "
        "octavolt check DATA finds labels with file and line.",
        source="torch.nn.functional, on CPUs",
        example="IndexError: Target 10 is out of bounds.",
    ),
    Known(
        name="illegal-access",
        pattern=r"an illegal memory access was encountered|cudaErrorIllegalAddress",
        hints=("illegal memory", "illegaladdress"),
        means="A kernel read or wrote where nothing is: a fault of an extension, an index out of "
        "range, or failing memory of the card.",
        remedy="CUDA_LAUNCH_BLOCKING=1 and compute-sanitizer show where; see the kernel's log for "
        "Xid 13, 31 or 48: dmesg | grep -i xid.",
        source="CUDA runtime API, cudaErrorIllegalAddress",
        example="RuntimeError: CUDA error: an illegal memory access was encountered",
    ),
    Known(
        name="launch-failure",
        pattern=r"unspecified launch failure|cudaErrorLaunchFailure|misaligned address",
        hints=("launch fail", "launchfailure", "misaligned"),
        means="A kernel failed while it ran: a fault of an extension, or of the card.",
        remedy="CUDA_LAUNCH_BLOCKING=1 shows where; dmesg | grep -i xid tells the card's side.",
        source="CUDA runtime API, cudaErrorLaunchFailure",
        example="RuntimeError: CUDA error: unspecified launch failure",
    ),
    Known(
        name="ecc-uncorrectable",
        pattern=r"uncorrectable (ECC|NVLink) error|cudaErrorECCUncorrectable",
        hints=("uncorrect",),
        means="The card's memory or a link gave data that can't be mended; results are lost.",
        remedy="nvidia-smi -q -d ECC,PAGE_RETIREMENT; reboot so that the page is retired; replace "
        "the card if it comes again.",
        source="docs.nvidia.com/deploy/dynamic-page-retirement",
        example="RuntimeError: CUDA error: uncorrectable ECC error encountered",
    ),
    Known(
        name="cudnn-alloc",
        pattern=r"CUDNN_STATUS_ALLOC_FAILED",
        hints=("cudnn_status_alloc_failed",),
        means="cuDNN got no memory.",
        remedy="A smaller --micro-batch, or another process's memory freed: nvidia-smi.",
        source="cuDNN's API reference, cudnnStatus_t",
        example="RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
    ),
    Known(
        name="cudnn-sublibrary",
        pattern=r"CUDNN_STATUS_SUBLIBRARY_(VERSION_MISMATCH|LOADING_FAILED)"
        r"|CUDNN_STATUS_VERSION_MISMATCH|cuDNN version incompatibility",
        hints=("cudnn",),
        means="Parts of two releases of cuDNN were loaded.",
        remedy="unset LD_LIBRARY_PATH, and leave one: pip install 'nvidia-cudnn-cu12==9.10.2.21'.",
        source="cuDNN's API reference; torch/backends/cudnn/__init__.py",
        example="RuntimeError: cuDNN version incompatibility: PyTorch was compiled against "
        "(9, 10, 2) but found runtime version (9, 1, 0).",
    ),
    Known(
        name="cudnn-not-initialized",
        pattern=r"CUDNN_STATUS_NOT_INITIALIZED",
        hints=("cudnn_status_not_initialized",),
        means="cuDNN couldn't begin: memory is full, or driver and libraries don't fit together.",
        remedy="See nvidia-smi for memory; then: octavolt doctor.",
        source="cuDNN's API reference, cudnnStatus_t",
        example="RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED",
    ),
    Known(
        name="cudnn-failed",
        pattern=r"CUDNN_STATUS_(EXECUTION_FAILED(?!_CUDART)|INTERNAL_ERROR|NOT_SUPPORTED(?!_ARCH)"
        r"|MAPPING_ERROR|BAD_PARAM)|Unable to find a valid cuDNN algorithm"
        r"|GET was unable to find an engine to execute",
        hints=("cudnn", "unable to find an engine"),
        means="cuDNN has no kernel for this, or no memory for its workspace.",
        remedy="A smaller --micro-batch; fp16 in place of bf16; then: octavolt doctor.",
        source="cuDNN's API reference; huggingface/diffusers#14129",
        example="RuntimeError: GET was unable to find an engine to execute this computation",
    ),
    Known(
        name="loss-scale-minimum",
        pattern=r"Current loss scale already at minimum|Minimum loss scale reached",
        hints=("loss scale",),
        means="In fp16 every step overflowed until the scale could fall no further.",
        remedy="A lower --learning-rate or a longer warm-up, gradients clipped, and softmax, norms "
        "and losses in fp32. If the weights were trained in bf16, use fp32.",
        source="DeepSpeedExamples#418, ms-swift#4374, LlamaFactory#315",
        example="Exception: Current loss scale already at minimum - cannot decrease scale anymore. "
        "Exiting run.",
    ),
    Known(
        name="scaler-half-gradients",
        pattern=r"Attempting to unscale FP16 gradients",
        hints=("attempting to unscale fp16 gradients",),
        means="The weights themselves are fp16; a GradScaler wants fp32 weights under autocast.",
        remedy="Load the weights in fp32 and let autocast narrow them.",
        source="torch.amp.GradScaler; unslothai/unsloth#4082",
        example="ValueError: Attempting to unscale FP16 gradients.",
    ),
    Known(
        name="scaler-no-infs",
        pattern=r"No inf checks were recorded for this optimizer",
        hints=("no inf checks were recorded",),
        means="No parameter of the optimizer had a gradient in this step.",
        remedy="Do the loss and the optimizer's parameters belong together? Is all of it frozen?",
        source="torch.amp.GradScaler",
        example="AssertionError: No inf checks were recorded for this optimizer.",
    ),
    Known(
        name="scaler-bf16",
        pattern=r"_amp_foreach_non_finite_check_and_unscale_cuda\S* not implemented for "
        r"'BFloat16'",
        hints=("_amp_foreach_non_finite_check_and_unscale",),
        means="A GradScaler was given gradients in bf16.",
        remedy="fp32 weights and fp16 autocast; load with torch_dtype=torch.float32.",
        source="unslothai/unsloth#4082",
        example='RuntimeError: "_amp_foreach_non_finite_check_and_unscale_cuda" not implemented '
        "for 'BFloat16'",
    ),
    Known(
        name="loss-nan",
        pattern=r"(\bloss\b|\bgrad_?norm\b)['\"]?\s*[:=]\s*['\"]?-?(nan|inf)\b"
        r"|loss is (nan|inf)|Loss became infinite or NaN",
        hints=("nan", ": inf", ":inf", "=inf", "= inf", "is inf", "infinite", "-inf"),
        means="The loss is no number any more: in fp16 usually an overflow past 65,504.",
        remedy="A lower learning rate, warm-up and clipped gradients; softmax, norms and losses in "
        "fp32; torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False.",
        source="ultralytics#280, mmdetection#3605, transformers#14189",
        example="{'loss': nan, 'grad_norm': nan, 'learning_rate': 4.8e-05, 'epoch': 0.31}",
    ),
    Known(
        name="loss-exactly-zero",
        pattern=r"['\"]?(train_)?loss['\"]?\s*[:=]\s*0\.0+\b(?!\d)",
        hints=("loss': 0.0", 'loss": 0.0', "loss: 0.0", "loss=0.0", "loss = 0.0", "loss:0.0"),
        severity="warning",
        means="A loss of exactly zero: nothing is learnt, gradients have underflowed, or all "
        "labels are masked.",
        remedy="Look at the loss scale and at the labels; newer bitsandbytes, computing in fp32.",
        source="bitsandbytes#343",
        example="{'train_runtime': 812.3, 'train_loss': 0.0, 'epoch': 3.0}",
    ),
    Known(
        name="shared-memory",
        pattern=r"insufficient shared memory|It is possible that dataloader's workers are out of"
        r"|unable to (open|allocate|resize|mmap) shared memory|No space left on device.*/dev/shm"
        r"|unable to write to file </torch_",
        hints=("shared memory", "/dev/shm", "dataloader's workers", "</torch_"),
        means="/dev/shm is full: a container gets 64 MB of it unless told otherwise.",
        remedy=SHARED_MEMORY,
        source="PyTorch's README on Docker; pytorch#5040",
        example="ERROR: Unexpected bus error encountered in worker. This might be caused by "
        "insufficient shared memory (shm).",
    ),
    Known(
        name="bus-error",
        pattern=r"\bbus error\b|\bSIGBUS\b",
        hints=("bus",),
        means="A process wrote into mapped memory that has no room: mostly /dev/shm, else a disk "
        "that is full or a file that was cut.",
        remedy=SHARED_MEMORY,
        source="PyTorch's README on Docker",
        example="RuntimeError: DataLoader worker (pid 4173) is killed by signal: Bus error.",
    ),
    Known(
        name="worker-killed",
        pattern=r"DataLoader worker \(pid.*\) (is killed by signal: (Killed|Segm)|exited unexpec)",
        hints=("dataloader worker",),
        means="A process that reads data died: memory ran out, or a library crashed on a file.",
        remedy="Fewer workers; dmesg | grep -i 'out of memory'; octavolt check DATA finds damaged "
        "files.",
        source="pytorch#13246, pytorch#5902",
        example="RuntimeError: DataLoader worker (pid(s) 2211) exited unexpectedly",
    ),
    Known(
        name="too-many-files",
        pattern=r"Too many open files|received 0 items of ancdata",
        hints=("too many open files", "ancdata"),
        means="The limit of open files is reached; worker processes hand tensors over as files.",
        remedy="ulimit -n 65535, or torch.multiprocessing.set_sharing_strategy('file_system').",
        source="torch.multiprocessing's documentation",
        example="RuntimeError: received 0 items of ancdata",
    ),
    Known(
        name="disk-full",
        pattern=r"No space left on device|Disk quota exceeded|\bENOSPC\b",
        hints=("no space left", "disk quota", "enospc"),
        means="A disk, a quota or /dev/shm is full.",
        remedy="df -h and df -i; free some, or --output on another disk. A run of octavolt goes on "
        "from its last whole checkpoint: octavolt train --resume latest",
        source="errno(3)",
        example="OSError: [Errno 28] No space left on device: 'runs/x/checkpoints/aside'",
    ),
    Known(
        name="host-out-of-memory",
        pattern=r"Out of memory: Killed process|oom-kill:|oom_reaper|Cannot allocate memory"
        r"|OOMKilled|Detected \d+ oom[-_]kill",
        hints=("out of memory", "oom", "cannot allocate memory"),
        means="The machine's memory, or the container's share of it, ran out.",
        remedy="Fewer worker processes or a larger limit: docker run --memory, sbatch --mem.",
        source="Linux's mm/oom_kill.c; SLURM",
        example="Out of memory: Killed process 9152 (python) total-vm:58231048kB, "
        "anon-rss:30110232kB",
    ),
    Known(
        name="unpickling",
        pattern=r"Weights only load failed|WeightsUnpickler error",
        hints=("weights",),
        means="A file of weights holds more than tensors, which could run code when it is read.",
        remedy="Ask its maker for safetensors; don't pass weights_only=False to a stranger's file.",
        source="torch.load's documentation",
        example="_pickle.UnpicklingError: Weights only load failed. This file can still be loaded",
    ),
    Known(
        name="onnxruntime-provider",
        pattern=r"Failed to create CUDAExecutionProvider"
        r"|CUDAExecutionProvider' is not in available provider",
        hints=("cudaexecutionprovider",),
        severity="warning",
        means="ONNX Runtime goes on with the CPU: its CUDA libraries weren't found, or don't fit.",
        remedy="Use the CPU provider on purpose: wheels of 2026 hold no sm_70 code.",
        source="code sections of onnxruntime-gpu 1.31.1; microsoft/onnxruntime#28762",
        example="[W:onnxruntime:Default] Failed to create CUDAExecutionProvider. Require cuDNN 9.* "
        "and CUDA 12.*.",
    ),
    Known(
        name="torch-not-cuda",
        pattern=r"Torch not compiled with CUDA enabled",
        hints=("torch not compiled with cuda",),
        means="This torch is the build for CPUs.",
        remedy="pip install --force-reinstall 'torch==2.10.0' 'torchvision==0.25.0'",
        source="torch/cuda/__init__.py",
        example="AssertionError: Torch not compiled with CUDA enabled",
    ),
    Known(
        name="torchvision-mismatch",
        pattern=r"operator torchvision::nms does not exist"
        r"|Couldn't load custom C\+\+ ops.*torchvision"
        r"|PyTorch and torchvision (were|have).*different CUDA",
        hints=("torchvision",),
        means="torch and torchvision are of different releases or builds.",
        remedy="pip install 'torch==2.10.0' 'torchvision==0.25.0'",
        source="torchvision/extension.py; its README pairs the releases",
        example="RuntimeError: operator torchvision::nms does not exist",
    ),
    Known(
        name="processor-out-of-memory",
        pattern=r"DefaultCPUAllocator: (can't allocate|not enough) memory"
        r"|numpy.*_ArrayMemoryError|Unable to allocate .* for an array with shape",
        hints=("defaultcpuallocator", "arraymemoryerror", "unable to allocate"),
        means="The machine's memory didn't suffice, often as all outputs of an evaluation are "
        "kept.",
        remedy="Smaller batches, and scores kept as sums, as octavolt evaluate does.",
        source="transformers#7232, #18947, #25313",
        example="RuntimeError: [enforce fail at alloc_cpu.cpp:117] . DefaultCPUAllocator: can't "
        "allocate memory: you tried to allocate 3044540000000 bytes.",
    ),
    Known(
        name="types-mixed",
        pattern=r"expected (mat1 and mat2|m1 and m2) to have the same dtype"
        r"|expected scalar type (Half|BFloat16|Float) but found (Half|BFloat16|Float)"
        r"|Input type \(.*\) and (weight|bias) type \(.*\) should be the same",
        hints=("same dtype", "expected scalar type", "should be the same"),
        means="Numbers of two types meet, as when weights are bf16 and autocast is fp16.",
        remedy="Load weights in fp32 (torch_dtype=torch.float32) and run under fp16 autocast.",
        source="unslothai/unsloth#4082",
        example="RuntimeError: expected mat1 and mat2 to have the same dtype, but got: "
        "c10::BFloat16 != c10::Half",
    ),
    Known(
        name="loader-not-resumable",
        pattern=r"data ?loader.*(is not|isn't|not) resumable",
        hints=("resumable",),
        severity="warning",
        means="A resumed run will see other samples than the one that was stopped would have.",
        remedy="octavolt train --resume goes on with the very sample, also within an epoch.",
        source="NVIDIA-NeMo/Speech#10797, huggingface/accelerate#2823",
        example="UserWarning: You're resuming from a checkpoint that ended before the epoch ended "
        "and your dataloader is not resumable.",
    ),
    Known(
        name="server-worker-died",
        pattern=r"\bWorker died\b|Backend worker (process died|did not respond)",
        hints=("worker",),
        means="A process of the server ended: mostly out of memory, or an error at loading that "
        "stands before.",
        remedy="Read what stands before it; smaller batches; one worker a GPU.",
        source="pytorch/serve#498, pytorch/serve#281",
        example="org.pytorch.serve.wlm.WorkerLifeCycle - Backend worker process died.",
    ),
    Known(
        name="server-busy",
        pattern=r"\bService Busy\b|503 Service Unavailable",
        hints=("service busy", "service unavailable"),
        severity="warning",
        means="A server had no room for a request.",
        remedy="A longer queue or more workers; clients should wait and try again.",
        source="bentoml/BentoML#3200, #2603",
        example="bentoml.exceptions.ServiceUnavailable: b'\"Service Busy\"'",
    ),
    Known(
        name="unsupported-dataset-pickle",
        pattern=r"Can't pickle (local object|<function|<class)|cannot pickle '.*' object",
        hints=("pickle",),
        means="Worker processes are handed a function or object that can't be sent to them.",
        remedy="Define it at a module's top level; octavolt reads with threads and sends nothing.",
        source="Python's multiprocessing, start method spawn",
        example="AttributeError: Can't pickle local object 'main.<locals>.collate'",
    ),
)
