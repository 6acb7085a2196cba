"""Errors of software that has left the V100, or never came to it."""

from octavolt.doctor.lanes import CUDNN, DRIVER, LANE_A, LANE_B
from octavolt.doctor.logs.known import Known

WHEEL = f"Lane A: {LANE_A}. Lane B: {LANE_B}."
NO_CODE = "This build of torch or of an extension holds no kernels for the card."
FP16 = "Train in fp16 with a GradScaler: octavolt does by itself; elsewhere --fp16, not --bf16."

VOLTA = (
    Known(
        name="no-kernel-image",
        pattern=r"no kernel image is available|cudaErrorNoKernelImageForDevice",
        hints=("no kernel image", "nokernelimage"),
        means=NO_CODE,
        remedy=WHEEL,
        source="pytorch#157517, Kaggle/kaggle-cli#1151",
        example="RuntimeError: CUDA error: no kernel image is available for execution on the "
        "device",
    ),
    Known(
        name="capability-not-compatible",
        pattern=r"CUDA capability sm_\d+ is not compatible with the current PyTorch",
        hints=("is not compatible with the current pytorch",),
        means=NO_CODE,
        remedy=WHEEL,
        source="torch/cuda/__init__.py, its check of cubins",
        example="Tesla V100-SXM2-16GB with CUDA capability sm_70 is not compatible with the "
        "current PyTorch installation.",
    ),
    Known(
        name="gpu-too-old",
        pattern=r"PyTorch no longer supports this GPU|minimum cuda capability supported by this",
        hints=("no longer supports this gpu", "minimum cuda capability"),
        means=NO_CODE,
        remedy=WHEEL,
        source="torch 2.7 and 2.8, torch/cuda/__init__.py; vllm#19185",
        example="    Found GPU0 Tesla V100-PCIE-32GB which is of cuda capability 7.0. PyTorch no "
        "longer supports this GPU because it is too old.",
    ),
    Known(
        name="capability-range",
        pattern=r"Minimum and Maximum cuda capability supported by this version of PyTorch",
        hints=("minimum and maximum cuda capability",),
        means=NO_CODE,
        remedy=WHEEL,
        source="torch 2.9 and 2.10, torch/cuda/__init__.py",
        example="    Minimum and Maximum cuda capability supported by this version of PyTorch is "
        "(7.5) - (12.0)",
    ),
    Known(
        name="install-other-configuration",
        pattern=r"Please install PyTorch with a following CUDA\s+configurations",
        hints=("please install pytorch with a following cuda",),
        means=NO_CODE,
        remedy=WHEEL,
        source="torch 2.9 and 2.10, torch/cuda/__init__.py",
        example="    Please install PyTorch with a following CUDA configurations:  12.6 following "
        "instructions at https://pytorch.org/get-started/locally/",
    ),
    Known(
        name="no-kernels-in-build",
        pattern=r"does not include kernels for this GPU",
        hints=("does not include kernels for this gpu",),
        means=NO_CODE,
        remedy=WHEEL,
        source="torch 2.14, torch/cuda/__init__.py",
        example="Your installed torch==2.14.1 does not include kernels for this GPU. Reinstall "
        "the same version against a CUDA build that does.",
    ),
    Known(
        name="no-published-build",
        pattern=r"No published PyTorch CUDA builds for release \S+ support this GPU",
        hints=("no published pytorch cuda builds",),
        means="No wheel of that release has kernels for the card; torch 2.15 and newer have none.",
        remedy=WHEEL,
        source="torch 2.14, torch/cuda/__init__.py; pytorch#190385",
        example="No published PyTorch CUDA builds for release 2.15.0 support this GPU.",
    ),
    Known(
        name="kernel-image-invalid",
        pattern=r"device kernel image is invalid|cudaErrorInvalidKernelImage",
        hints=("kernel image is invalid", "invalidkernelimage"),
        means="The driver can't load the code: it is too old for this CUDA runtime, or the code is "
        "for another architecture.",
        remedy=f"Driver: {DRIVER}. Use builds for CUDA 12, not 13.",
        source="ollama#16449, ollama#16533",
        example="CUDA error: device kernel image is invalid",
    ),
    Known(
        name="ptx-unsupported",
        pattern=r"provided PTX was compiled with an unsupported toolchain",
        hints=("provided ptx was compiled",),
        means="The program was built with a CUDA newer than the driver knows.",
        remedy=f"Driver: {DRIVER}. Or install a build for an older CUDA 12.",
        source="CUDA driver API, CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        example="RuntimeError: CUDA error: the provided PTX was compiled with an unsupported "
        "toolchain.",
    ),
    Known(
        name="unsupported-gpu-architecture",
        pattern=r"nvcc fatal\s*: Unsupported gpu architecture 'compute_7[02]'",
        hints=("unsupported gpu architecture",),
        means="CUDA 13's compiler makes no code for Volta.",
        remedy="Build with CUDA 12.9 or older and TORCH_CUDA_ARCH_LIST=7.0.",
        source="release notes of CUDA 13.0; JuliaGPU/CUDA.jl#3132",
        example="nvcc fatal   : Unsupported gpu architecture 'compute_70'",
    ),
    Known(
        name="cudnn-too-new",
        pattern=r"CUDNN_STATUS_EXECUTION_FAILED_CUDART",
        hints=("cudnn_status_execution_failed_cudart",),
        means="cuDNN is newer than 9.10, whose successors hold no code for Volta.",
        remedy=f"{CUDNN}, the version that torch 2.10 brings.",
        source="SciML/SciMLBenchmarks.jl#1736",
        example="CUDNNError: CUDNN_STATUS_EXECUTION_FAILED_CUDART (code 5003)",
    ),
    Known(
        name="cudnn-architecture",
        pattern=r"CUDNN_STATUS_(ARCH_MISMATCH|NOT_SUPPORTED_ARCH_MISMATCH)",
        hints=("arch_mismatch",),
        means="This cuDNN holds no code for the card: 9.11 and newer have none for Volta.",
        remedy=f"{CUDNN}, the version that torch 2.10 brings.",
        source="cuDNN's API reference, cudnnStatus_t",
        example="RuntimeError: cuDNN error: CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH",
    ),
    Known(
        name="bf16-unsupported",
        pattern=r"Current CUDA Device does not support bfloat16"
        r"|Your setup doesn't support bf16"
        r"|Bfloat16 is only supported on GPUs with compute capability"
        r"|bf16/gpu not supported|no operator found.*bfloat16",
        hints=("bfloat16", "bf16"),
        means="bf16 was asked for; its units come with compute capability 8.0, a V100 has 7.0.",
        remedy=FP16,
        source="karpathy/nanoGPT#8, tatsu-lab/stanford_alpaca#133, vllm, transformers",
        example="ValueError: Your setup doesn't support bf16/gpu. You need torch>=1.10, using "
        "Ampere GPU with cuda>=11.0",
    ),
    Known(
        name="bf16-compile-skipped",
        pattern=r"does not support bfloat16 compilation natively, skipping",
        hints=("does not support bfloat16 compilation",),
        severity="warning",
        means="torch.compile left the whole graph uncompiled, without an error: it runs eagerly, "
        "in emulated bf16, several times slower.",
        remedy=FP16,
        source="facebookresearch/dinov3#74",
        example="W0310 Tesla V100-SXM2-32GB does not support bfloat16 compilation natively, "
        "skipping",
    ),
    Known(
        name="bf16-ptxas",
        pattern=r"Feature '\.?bf16.*' requires \.target sm_(80|90)"
        r"|ptxas.*bf16.*requires \.target|'cvt.*\.bf16.*sm_80",
        hints=("bf16",),
        means="A kernel in bf16 was compiled for a card that has no such instructions.",
        remedy=FP16,
        source="InternLM/lmdeploy#1266",
        example="ptxas /tmp/x.ptx, line 57; error   : Feature '.bf16' requires .target sm_80 or "
        "higher",
    ),
    Known(
        name="flash-attention",
        pattern=r"FlashAttention only supports Ampere GPUs or newer"
        r"|Flash ?Attention.*requires.*(sm_?80|compute capability (>=|of at least) ?8)",
        hints=("flash",),
        means="The flash-attn package has no kernels for Volta and is to get none.",
        remedy="attn_implementation='sdpa' in transformers: torch's memory-efficient kernel has "
        "sm_70 code. pip uninstall flash-attn. octavolt never imports it.",
        source="Dao-AILab/flash-attention#148, #524, #1760",
        example="RuntimeError: FlashAttention only supports Ampere GPUs or newer.",
    ),
    Known(
        name="sdpa-no-kernel",
        pattern=r"No available kernel\.? ?\.?\s*Aborting execution",
        hints=("no available kernel",),
        means="Scaled dot-product attention was restricted to kernels that the card lacks: flash "
        "and cuDNN need 8.0.",
        remedy="Allow SDPBackend.EFFICIENT_ATTENTION, and MATH as the last resort.",
        source="torch's sdp_utils.cpp: flash and cuDNN from sm_80 on",
        example="RuntimeError: No available kernel. Aborting execution.",
    ),
    Known(
        name="xformers-no-operator",
        pattern=r"No operator found for `?memory_efficient_attention",
        hints=("no operator found for",),
        means="xformers has no kernel for this card or type: its wheels of 2026 begin at sm_75, "
        "and bf16 is for 8.0.",
        remedy="pip uninstall xformers, and use torch's scaled dot-product attention in fp16.",
        source="mistralai/mistral-finetune#107; code sections of xformers 0.0.35",
        example="NotImplementedError: No operator found for `memory_efficient_attention_forward` "
        "with inputs:",
    ),
    Known(
        name="int8-matmul",
        pattern=r"Compute capability < 7\.5 detected! Only slow 8-bit matmul"
        r"|Your GPU does not support Int8 Matmul",
        hints=("8-bit matmul", "int8 matmul"),
        severity="warning",
        means="Volta has no int8 tensor cores: 8-bit products are slower than fp16.",
        remedy="Load in fp16, or in 4 bits with bnb_4bit_compute_dtype=torch.float16.",
        source="bitsandbytes#529, artidoro/qlora#24",
        example="UserWarning: Compute capability < 7.5 detected! Only slow 8-bit matmul is "
        "supported for your GPU!",
    ),
    Known(
        name="fp8",
        pattern=r"fp8.*(requires|only supported|not supported).*(capability|sm_?8[09]|sm_?90|8\.9)",
        hints=("fp8",),
        means="fp8 units come with compute capability 8.9.",
        remedy="Use fp16.",
        source="Volta has fp16 tensor cores only: NVIDIA's Volta white paper",
        example="ValueError: fp8 quantization is only supported on GPUs with capability >= 8.9",
    ),
    Known(
        name="triton-pass-manager",
        pattern=r"PassManager::run failed",
        hints=("passmanager::run failed",),
        means="Triton 3.3 can't compile a fp16 product for sm_70; newer ones do, without tensor "
        "cores.",
        remedy="Leave torch.compile off, which is octavolt's default; or torch 2.6 with Triton "
        "3.2, the last with tensor cores on Volta.",
        source="triton#5066, triton#5099; compiled for sm_70 with Triton 3.1 to 3.8",
        example="RuntimeError: PassManager::run failed",
    ),
    Known(
        name="triton-too-old-gpu",
        pattern=r"too old to be supported by the triton GPU compiler|GPUTooOldForTriton",
        hints=("triton",),
        means="torch.compile wants compute capability 7.0 at least.",
        remedy="Leave torch.compile off.",
        source="torch/_inductor/scheduler.py",
        example="torch._inductor.exc.GPUTooOldForTriton: Found Tesla P100 which is too old to be "
        "supported by the triton GPU compiler",
    ),
    Known(
        name="tensorrt-architecture",
        pattern=r"(Target|Current) GPU SM ?\d* is not supported by this TensorRT"
        r"|SM 7\.?0 is not supported",
        hints=("is not supported",),
        means="TensorRT left Volta with release 10.5.",
        remedy="pip install 'tensorrt==10.4.*', or serve with torch.",
        source="release notes of TensorRT 10.5; Project-MONAI/model-zoo#701",
        example="[TRT] [E] IBuilder::buildSerializedNetwork: Error Code 9: Target GPU SM 70 is "
        "not supported by this TensorRT release.",
    ),
    Known(
        name="vllm-capability",
        pattern=r"(requires|minimum|at least).{0,30}compute capability.{0,30}(7\.5|8\.0|8\.9|9\.0)",
        hints=("compute capability",),
        means="This program needs a newer card: vLLM and others begin at 7.5 or 8.0 by now.",
        remedy="Use a release or fork made for sm_70, or octavolt for its eight networks.",
        source="vllm#39878, vllm#42756, text-generation-inference#533",
        example="ValueError: The quantization method awq_marlin requires a minimum compute "
        "capability of 8.0. Current capability: 7.0.",
    ),
)
