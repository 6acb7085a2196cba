"""Random hue, saturation and brightness: one product with a matrix a pixel."""

import math

import cv2
import numpy as np
from jaxtyping import Float32, UInt8

HUE_TURN = 0.1
"""Of the circle, to either side: `hue=.1` in Darknet's yolov3.cfg, in which 1 is a whole turn."""
FACTOR_MAX = 1.5
"""Of saturation and brightness, or divided by: `saturation` and `exposure` in the same file."""
MEAN = np.full((3, 3), 1 / 3)
"""Takes a color to the grey of equal sum."""
TURN = np.array([[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]]) / math.sqrt(3)
"""Takes a color's distance from that grey a quarter round the circle of hues."""


def random_color(random: np.random.Generator, *, strength: float) -> Float32[np.ndarray, "rgb=3 3"]:
    """Return the matrix of a random hue, saturation and brightness; 1 is as strong as Darknet's."""
    hue, much, way, light, dark = random.random(5).tolist()
    most = 1 + (FACTOR_MAX - 1) * strength
    saturation, brightness = 1 + (most - 1) * much, 1 + (most - 1) * light
    return color_matrix(
        turn=HUE_TURN * strength * (2 * hue - 1),
        saturation=saturation if way < 0.5 else 1 / saturation,
        brightness=brightness if dark < 0.5 else 1 / brightness,
    )


def color_matrix(
    *, turn: float, saturation: float, brightness: float
) -> Float32[np.ndarray, "rgb=3 3"]:
    """Return what takes RGB to RGB of another hue, `turn` of a circle on, and so forth.

    Hue turns and saturation spreads around the axis of greys. HSV, in which Darknet changes the
    same three, differs in what it calls the grey of a color, and takes seven times as long.
    """
    angle = 2 * math.pi * turn
    spread = math.cos(angle) * (np.eye(3) - MEAN) + math.sin(angle) * TURN
    return np.asarray(brightness * (MEAN + saturation * spread), np.float32)


def recolor(
    pixels: UInt8[np.ndarray, "height width 3"], matrix: Float32[np.ndarray, "rgb=3 3"]
) -> None:
    """Change colors in place; what would be darker than black or brighter than white is that."""
    cv2.transform(pixels, matrix, dst=pixels)
