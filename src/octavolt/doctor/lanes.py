"""The three sets of software that octavolt runs on, and the commands that install them."""

LANES = {
    "A": "plain torch 2.10",
    "B": "torch 2.14 for CUDA 12.6",
    "CPU": "on the CPU",
    "all": "in any case",
}
"""A: the last ordinary wheel with sm_70; B: the last of any kind."""

LANE_A = "pip install 'torch==2.10.0' 'torchvision==0.25.0'"
LANE_B = (
    "pip install 'torch==2.14.1' 'torchvision==0.29.*' "
    "--index-url https://download.pytorch.org/whl/cu126"
)
LANE_CPU = "CUDA_VISIBLE_DEVICES= octavolt train ..."
"""Hides the GPUs from torch for one command, so that it runs on the processor."""

CUDNN = "pip install 'nvidia-cudnn-cu12==9.10.2.21'"
DRIVER = (
    "install the R580 branch, proprietary flavour, and hold it: apt-mark hold nvidia-driver-580"
)
