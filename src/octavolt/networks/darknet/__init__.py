"""Darknet: any network of the YOLOv3 family from its cfg, and weights as Darknet writes them."""

from octavolt.networks.darknet.cfg import Config, anchors_of, read_cfg, write_cfg
from octavolt.networks.darknet.network import DarknetDetector, build_detector
from octavolt.networks.darknet.weights import read_weights, write_weights

__all__ = [
    "Config",
    "DarknetDetector",
    "anchors_of",
    "build_detector",
    "read_cfg",
    "read_weights",
    "write_cfg",
    "write_weights",
]
