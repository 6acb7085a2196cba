"""`octavolt train`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from octavolt.errors import OctavoltError


def train(
    network: Annotated[str | None, typer.Argument(help="mobilenet-v2, bert, gpt2, ...")] = None,
    data: Annotated[
        str | None, typer.Option(help="A folder, a file, hub:NAME or demo.", show_default=False)
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(help="none, published ones, a file, a folder or a run to start from."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="The run folder; otherwise runs/NETWORK-DATA-TIME.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Times through the training data.")] = None,
    batch: Annotated[
        str, typer.Option(help="Samples an update over all ranks, or auto: the recipe's.")
    ] = "auto",
    micro_batch: Annotated[
        int | None,
        typer.Option(min=1, help="Samples a pass on one rank; halves if memory is short."),
    ] = None,
    accumulate: Annotated[
        int | None, typer.Option(min=1, help="Passes an update, in place of --micro-batch.")
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="What to train a network for that can do several things.")
    ] = None,
    image_size: Annotated[int | None, typer.Option(help="Height and width in pixels.")] = None,
    fit_anchors: Annotated[
        bool, typer.Option("--fit-anchors", help="Fit YOLOv3's anchors to the boxes of the data.")
    ] = False,
    text_column: Annotated[
        str | None, typer.Option(help="Column of texts; two with a comma between are a pair.")
    ] = None,
    label_column: Annotated[str | None, typer.Option(help="Column of labels.")] = None,
    label_separator: Annotated[
        str | None, typer.Option(help="What stands between several labels of one text.")
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(help="train, characters, or a file or folder; otherwise the weights' own."),
    ] = None,
    vocabulary_size: Annotated[
        int | None, typer.Option(help="Tokens of a tokenizer that is trained.")
    ] = None,
    length: Annotated[int | None, typer.Option(help="Tokens of a sample at most.")] = None,
    stride: Annotated[
        int | None, typer.Option(help="Tokens between windows over a long text.")
    ] = None,
    whole_words: Annotated[
        bool, typer.Option("--whole-words", help="Mask whole words, not pieces of them.")
    ] = False,
    learning_rate: Annotated[float | None, typer.Option(help="At its highest.")] = None,
    optimizer: Annotated[str | None, typer.Option(help="sgd, adam, adamw, lamb, rmsprop.")] = None,
    schedule: Annotated[
        str | None, typer.Option(help="constant, step, cosine, one-cycle, linear or inverse-sqrt.")
    ] = None,
    warmup_epochs: Annotated[float | None, typer.Option(help="Epochs of warm-up.")] = None,
    weight_decay: Annotated[float | None, typer.Option(help="Not on norms and biases.")] = None,
    label_smoothing: Annotated[float | None, typer.Option(help="From 0 to below 1.")] = None,
    mixup: Annotated[float | None, typer.Option(help="Alpha of mixup; 0 mixes nothing.")] = None,
    ema: Annotated[float | None, typer.Option(help="Decay of averaged weights; 0: none.")] = None,
    class_weights: Annotated[
        bool | None, typer.Option(help="Weigh classes by their rarity.", show_default=False)
    ] = None,
    freeze_epochs: Annotated[
        int | None, typer.Option(help="Epochs in which only the head is trained.")
    ] = None,
    early_stop: Annotated[
        int | None, typer.Option(help="Stop after so many epochs without a better one.")
    ] = None,
    dropout: Annotated[
        float | None, typer.Option(help="Of a language network; 0 drops nothing.")
    ] = None,
    checkpoint_activations: Annotated[
        bool,
        typer.Option("--checkpoint-activations", help="Save memory: compute activations twice."),
    ] = False,
    clip: Annotated[float | None, typer.Option(help="Largest norm of the gradients.")] = None,
    crop_scale: Annotated[
        float | None, typer.Option(help="Least share of a picture in a random crop; 1: no crops.")
    ] = None,
    mirror: Annotated[
        bool | None, typer.Option(help="Mirror half of the pictures.", show_default=False)
    ] = None,
    mosaic: Annotated[
        float | None, typer.Option(help="Share of pictures with boxes laid out of four.")
    ] = None,
    multi_scale: Annotated[
        float | None, typer.Option(help="Resize a detector's input by up to this share.")
    ] = None,
    box_loss: Annotated[str | None, typer.Option(help="Of YOLOv3: squared, giou or ciou.")] = None,
    recipe: Annotated[str | None, typer.Option(help="published, small-data or fine-tune.")] = None,
    precision: Annotated[str | None, typer.Option(help="auto, fp16, bf16 or fp32.")] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Of order, augmentation and weights.")
    ] = None,
    gpus: Annotated[
        int | None, typer.Option(min=1, help="Use so many GPUs, a process each.")
    ] = None,
    processes: Annotated[int | None, typer.Option(min=1, help="Processes, on a CPU.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads a process.")] = None,
    skip_damaged: Annotated[
        bool, typer.Option("--skip-damaged", help="Leave damaged samples out and go on.")
    ] = False,
    cache: Annotated[
        bool, typer.Option("--cache", help="Re-encode pictures once to a bounded size.")
    ] = False,
    cache_folder: Annotated[
        Path | None, typer.Option(help="Where; otherwise the user's cache folder.")
    ] = None,
    save_minutes: Annotated[float | None, typer.Option(help="Between checkpoints.")] = None,
    save_steps: Annotated[
        int | None, typer.Option(min=1, help="Steps between checkpoints.")
    ] = None,
    settings: Annotated[
        Path | None, typer.Option(help="JSON with any of a run's settings; flags go before it.")
    ] = None,
    resume: Annotated[
        str | None, typer.Option(help="Go on with a run: a folder, its name or latest.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Train a network on your data, or go on with a run that was stopped."""
    flags = {name: value for name, value in locals().items() if value is not None}
    from octavolt.cli import training

    if resume is not None:
        refused = training.refused_with_resume(flags)
        if refused:
            raise OctavoltError(
                f"--resume goes on with the settings of the run; {', '.join(refused)} can't be "
                "changed. Leave the flags away, or begin a new run with --weights RUN."
            )
        training.go_on(resume, flags)
        return
    training.start(flags)


Flags = dict[str, Any]
