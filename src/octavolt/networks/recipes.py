"""Recipes for what the papers don't train on: few pictures, and weights that are given."""

from octavolt.contract import Recipe

SMALL_DATA = Recipe(
    source="our own choice, measured in docs/benchmarks.md; AdamW: Loshchilov and Hutter 2019; "
    "one cycle: Smith and Topin 2019",
    epochs=30,
    batch_size=32,
    optimizer="adamw",
    learning_rate=2e-3,
    weight_decay=0.02,
    schedule="one-cycle",
    warmup_epochs=3.0,
    label_smoothing=0.1,
    max_gradient_norm=5.0,
    crop_scale_min=0.5,
)

FINE_TUNE = Recipe(
    source="our own choice, measured in docs/benchmarks.md; AdamW: Loshchilov and Hutter 2019",
    epochs=10,
    batch_size=32,
    optimizer="adamw",
    learning_rate=5e-4,
    weight_decay=0.02,
    schedule="cosine",
    warmup_epochs=1.0,
    label_smoothing=0.1,
    ema_decay=0.98,
    max_gradient_norm=5.0,
    crop_scale_min=0.35,
)
