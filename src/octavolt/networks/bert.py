"""BERT: Devlin et al. 2019, and the small ones of Turc et al. 2019, with transformers' modules."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from octavolt.contract import Entry, HubWeights, Recipe, Shape, Target, TextLimits
from octavolt.errors import UnknownNameError
from octavolt.networks.classifier import soft_cross_entropy
from octavolt.networks.language import PROBLEM_TYPES, LanguageNetwork, through, token_loss
from octavolt.networks.padded import Vocabulary, hide_padding, padded_rows
from octavolt.networks.sizes import chosen_sizes, dropouts, positions, vocabulary_rows
from octavolt.tasks import masked_language_modeling, question_answering, text_classification
from octavolt.tasks.masked_language_modeling import MaskedBatch
from octavolt.tasks.question_answering import QuestionBatch, span_nats
from octavolt.tasks.text import NOT_ASKED
from octavolt.tasks.text_classification import LabelledTextBatch

TASKS = (
    text_classification.TASK,
    text_classification.MULTI_LABEL_TASK,
    question_answering.TASK,
    masked_language_modeling.TASK,
)
MULTI_LABEL_PROBLEM = PROBLEM_TYPES[text_classification.MULTI_LABEL_TASK.name]
PUBLISHED_ROWS = 30_522
TOKENS = 512
WORDS = "bert.embeddings.word_embeddings.weight"
DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout")
SIZES: Mapping[str, Any] = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "classifier_dropout": None,
    "max_position_embeddings": TOKENS,
    "type_vocab_size": 2,
    "initializer_range": 0.02,
    "layer_norm_eps": 1e-12,
}
"""BERT-base's: Devlin et al. 2019, section 3."""


class Bert(LanguageNetwork):
    """What BERT's four tasks share: the way to the last layer."""

    def hidden(
        self,
        ids: Int[Tensor, "batch length"],
        mask: Bool[Tensor, "batch length"],
        kinds: Int[Tensor, "batch length"],
    ) -> Float[Tensor, "batch length width"]:
        """Return what the last layer says of each token."""
        bert: Any = self.body.bert
        return through(
            bert.encoder.layer,
            bert.embeddings(input_ids=ids, token_type_ids=kinds),
            attended(mask),
            checkpoint_activations=self.checkpoint_activations and self.training,
        )


def attended(mask: Bool[Tensor, "batch length"]) -> Bool[Tensor, "batch 1 1 length"] | None:
    """Return where attention looks: None, for which it is quicker, where nothing is padded.

    What traces the network gets the general case, and so does a GPU, for which to ask would be to
    wait; of shapes alone, nothing is padded.
    """
    traced = torch.compiler.is_compiling() or torch.jit.is_tracing()  # type: ignore[attr-defined]
    if traced or mask.is_cuda or not (mask.is_meta or bool(mask.all())):
        return mask[:, None, None, :]
    return None


class BertClassifier(Bert):
    """BERT with a layer over the first token, for one label a text or several."""

    def forward(
        self,
        ids: Int[Tensor, "batch length"],
        mask: Bool[Tensor, "batch length"],
        kinds: Int[Tensor, "batch length"],
    ) -> Float[Tensor, "batch classes"]:
        """Return logits."""
        body: Any = self.body
        pooled = body.bert.pooler(self.hidden(ids, mask, kinds))
        logits: Tensor = body.classifier(body.dropout(pooled))
        return logits

    def losses(self, batch: LabelledTextBatch, /) -> dict[str, Float[Tensor, ""]]:
        """Return the cross-entropy, with several labels its mean over them."""
        body: Any = self.body
        logits = self.forward(*batch.inputs)
        if body.config.problem_type != MULTI_LABEL_PROBLEM:
            return {"classification": soft_cross_entropy(logits, batch.targets)}
        with torch.autocast(logits.device.type, enabled=False):
            loss = binary_cross_entropy_with_logits(logits.float(), batch.targets)
        return {"classification": loss}

    def decode(self, outputs: Float[Tensor, "batch classes"], /) -> Float[Tensor, "batch classes"]:
        """Return the logits in fp32."""
        return outputs.float()

    def head(self) -> Sequence[str]:
        """Return the prefix of the last layer."""
        return ("classifier.",)


class BertQuestionAnswerer(Bert):
    """BERT with a layer over each token: whether an answer starts there, and whether it ends."""

    def forward(
        self,
        ids: Int[Tensor, "batch length"],
        mask: Bool[Tensor, "batch length"],
        kinds: Int[Tensor, "batch length"],
    ) -> Float[Tensor, "batch length 2"]:
        """Return the logits of starts and ends."""
        body: Any = self.body
        logits: Tensor = body.qa_outputs(self.hidden(ids, mask, kinds))
        return logits

    def losses(self, batch: QuestionBatch, /) -> dict[str, Float[Tensor, ""]]:
        """Return the mean of the starts' and the ends' cross-entropy."""
        logits = self.forward(*batch.inputs)
        with torch.autocast(logits.device.type, enabled=False):
            return {"span": span_nats(logits.float(), batch).mean()}

    def decode(
        self, outputs: Float[Tensor, "batch length 2"], /
    ) -> Float[Tensor, "batch length 2"]:
        """Return the logits in fp32."""
        return outputs.float()

    def head(self) -> Sequence[str]:
        """Return the prefix of the last layer."""
        return ("qa_outputs.",)


class BertMaskedLanguageModel(Bert):
    """BERT with its vocabulary over each token."""

    def forward(
        self,
        ids: Int[Tensor, "batch length"],
        mask: Bool[Tensor, "batch length"],
        kinds: Int[Tensor, "batch length"],
    ) -> Float[Tensor, "batch length vocabulary"]:
        """Return the logits of the vocabulary's real rows."""
        body: Any = self.body
        logits: Tensor = body.cls(self.hidden(ids, mask, kinds))
        return logits[..., : self.vocabulary.rows]

    def losses(self, batch: MaskedBatch, /) -> dict[str, Float[Tensor, ""]]:
        """Return the cross-entropy of the hidden tokens; the vocabulary is over those alone."""
        body: Any = self.body
        asked = batch.targets != NOT_ASKED
        hidden = self.hidden(*batch.inputs)[asked]
        loss = token_loss(hidden, batch.targets[asked], body.cls, self.vocabulary.rows)
        return {"masked": loss}

    def decode(
        self, outputs: Float[Tensor, "batch length vocabulary"], /
    ) -> Float[Tensor, "batch length vocabulary"]:
        """Return the logits as they are: what reads them takes a slice at a time to fp64."""
        return outputs

    def head(self) -> Sequence[str]:
        """Return that no part is made for the data's classes."""
        return ()


KINDS: Mapping[str, tuple[type[Bert], str]] = {
    text_classification.TASK.name: (BertClassifier, "BertForSequenceClassification"),
    text_classification.MULTI_LABEL_TASK.name: (BertClassifier, "BertForSequenceClassification"),
    question_answering.TASK.name: (BertQuestionAnswerer, "BertForQuestionAnswering"),
    masked_language_modeling.TASK.name: (BertMaskedLanguageModel, "BertForMaskedLM"),
}
"""By task: the network, and transformers' class of its body."""


def build(own: Mapping[str, Any], shape: Shape) -> Bert:
    """Return a network of these sizes, or of the shape's, with fresh weights for its task."""
    import transformers

    if shape.task not in KINDS:
        raise UnknownNameError("task of BERT", shape.task, KINDS)
    kind, name = KINDS[shape.task]
    rows = vocabulary_rows(shape, PUBLISHED_ROWS)
    sizes = chosen_sizes(shape, {**SIZES, **own}, kind="bert", other_names={})
    sizes["max_position_embeddings"] = positions(shape, sizes["max_position_embeddings"])
    settings: dict[str, Any] = {
        **sizes,
        **dropouts(shape, DROPOUTS),
        "vocab_size": padded_rows(rows),
        "pad_token_id": shape.padding_id,
        "num_labels": shape.classes if shape.task in PROBLEM_TYPES else 2,
        "problem_type": PROBLEM_TYPES.get(shape.task),
        "attn_implementation": "sdpa",
    }
    body = getattr(transformers, name)(transformers.BertConfig(**settings))
    vocabulary = masked_vocabulary(rows) if kind is BertMaskedLanguageModel else words_alone(rows)
    hide_padding(body, vocabulary)
    return kind(body, vocabulary, checkpoint_activations=shape.checkpoint_activations)


def words_alone(rows: int) -> Vocabulary:
    """Return what has a row a token where no token is predicted."""
    return Vocabulary(rows=rows, names=(WORDS,), ties={})


def masked_vocabulary(rows: int) -> Vocabulary:
    """Return what has a row a token in masked language modeling."""
    return Vocabulary(
        rows=rows,
        names=(WORDS, "cls.predictions.bias"),
        ties={
            "cls.predictions.decoder.weight": WORDS,
            "cls.predictions.decoder.bias": "cls.predictions.bias",
        },
    )


def build_tiny(shape: Shape) -> Bert:
    """Return the same code with two layers, 32 wide."""
    tiny = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 64,
    }
    return build(tiny, shape)


def example_inputs(samples: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return texts of the published length, of which nothing is padded."""
    ids = torch.zeros(samples, TOKENS, dtype=torch.int64)
    return ids, torch.ones_like(ids, dtype=torch.bool), torch.zeros_like(ids)


PUBLISHED = Recipe(
    source="appendix A.2 of the paper, pre-training: Adam with decoupled decay, 256 texts of 512 "
    "tokens, 40 epochs, 10,000 of 1,000,000 updates of warmup; gradients clipped at 1 by its code",
    epochs=40,
    batch_size=256,
    optimizer="adamw",
    learning_rate=1e-4,
    weight_decay=0.01,
    schedule="linear",
    warmup_epochs=0.4,
    max_gradient_norm=1.0,
)


def small_data(learning_rate: float) -> Recipe:
    """Return how a network is trained from scratch on few texts."""
    return Recipe(
        source="our own choice; AdamW: Loshchilov and Hutter 2019; warmup and clipping as in the "
        "paper's pre-training",
        epochs=20,
        batch_size=32,
        optimizer="adamw",
        learning_rate=learning_rate,
        weight_decay=0.01,
        schedule="cosine",
        warmup_epochs=2.0,
        max_gradient_norm=1.0,
    )


def fine_tune(source: str, *, epochs: int, learning_rate: float) -> Recipe:
    """Return how a network that is given its weights is trained on."""
    return Recipe(
        source=f"{source}; linear fall after 10 % of warmup, decay of 0.01 and clipping at 1 as "
        "in the paper's code",
        epochs=epochs,
        batch_size=32,
        optimizer="adamw",
        learning_rate=learning_rate,
        weight_decay=0.01,
        schedule="linear",
        warmup_epochs=0.1 * epochs,
        max_gradient_norm=1.0,
    )


FROM_APPENDIX = "appendix A.3 of the paper: 2e-5 to 5e-5, batches of 16 or 32, 2 to 4 epochs"
FROM_SMALL_ONES = "model card of Turc et al. 2019: 3e-5 to 3e-4, batches of 8 to 128, 4 epochs"


def entry(
    name: str,
    *,
    layers: int,
    width: int,
    heads: int,
    parameter_count: int,
    forward_multiply_adds: int,
    recipes: Mapping[str, Recipe],
    targets: tuple[Target, ...],
    weights: Mapping[str, HubWeights],
    paper: str,
) -> Entry:
    """Return the row of one size; the layers' inner width is four times the outer one."""
    own = {
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 4 * width,
    }
    return Entry(
        name=name,
        tasks=TASKS,
        build=partial(build, own),
        build_tiny=build_tiny,
        example_inputs=example_inputs,
        preprocessing=TextLimits(length=TOKENS, tokenizer="wordpiece"),
        recipes=recipes,
        targets=targets,
        published_shape=Shape(
            task=text_classification.TASK.name,
            classes=2,
            vocabulary_size=PUBLISHED_ROWS,
            length=TOKENS,
        ),
        parameter_count=parameter_count,
        forward_multiply_adds=forward_multiply_adds,
        weights=weights,
        explain_layer="body.bert.embeddings.word_embeddings",
        paper=paper,
    )


def on_hub(licence: str, *repositories: str) -> dict[str, HubWeights]:
    """Return repositories by the last part of their names."""
    return {
        one.rpartition("/")[2]: HubWeights(repository=one, licence=licence) for one in repositories
    }


def small_targets(sst2: float, mrpc: float) -> tuple[Target, ...]:
    """Return the accuracies on the tests of two of GLUE's sets."""
    source = "test of GLUE, model card of Turc et al. 2019"
    return (
        Target(metric="top1_fraction", value=sst2, source=f"SST-2, {source}"),
        Target(metric="top1_fraction", value=mrpc, source=f"MRPC, {source}"),
    )


ENTRIES: tuple[Entry, ...] = (
    entry(
        "bert-base",
        layers=12,
        width=768,
        heads=12,
        parameter_count=109_483_778,
        forward_multiply_adds=48_318_973_440,
        recipes={
            "published": PUBLISHED,
            "small-data": small_data(1e-4),
            "fine-tune": fine_tune(FROM_APPENDIX, epochs=3, learning_rate=3e-5),
        },
        targets=(
            Target(metric="top1_fraction", value=0.935, source="SST-2, table 1 of the paper"),
            Target(metric="f1", value=0.885, source="SQuAD 1.1 dev, table 2 of the paper"),
            Target(metric="exact_match", value=0.808, source="SQuAD 1.1 dev, table 2 of the paper"),
        ),
        weights=on_hub(
            "Apache-2.0",
            "google-bert/bert-base-uncased",
            "google-bert/bert-base-cased",
            "google-bert/bert-base-chinese",
            "google-bert/bert-base-multilingual-cased",
            "google-bert/bert-base-multilingual-uncased",
        ),
        paper="arXiv:1810.04805",
    ),
    entry(
        "bert-large",
        layers=24,
        width=1024,
        heads=16,
        parameter_count=335_143_938,
        forward_multiply_adds=167_504_775_168,
        recipes={
            "published": PUBLISHED,
            "small-data": small_data(5e-5),
            "fine-tune": fine_tune(FROM_APPENDIX, epochs=3, learning_rate=2e-5),
        },
        targets=(
            Target(metric="top1_fraction", value=0.949, source="SST-2, table 1 of the paper"),
            Target(metric="f1", value=0.909, source="SQuAD 1.1 dev, table 2 of the paper"),
            Target(metric="exact_match", value=0.841, source="SQuAD 1.1 dev, table 2 of the paper"),
            Target(metric="f1", value=0.819, source="SQuAD 2.0 dev, table 3 of the paper"),
        ),
        weights=on_hub(
            "Apache-2.0",
            "google-bert/bert-large-uncased",
            "google-bert/bert-large-cased",
            "google-bert/bert-large-uncased-whole-word-masking",
            "google-bert/bert-large-cased-whole-word-masking",
        ),
        paper="arXiv:1810.04805",
    ),
    entry(
        "bert-tiny",
        layers=2,
        width=128,
        heads=2,
        parameter_count=4_386_178,
        forward_multiply_adds=335_560_960,
        recipes={
            "published": PUBLISHED,
            "small-data": small_data(1e-3),
            "fine-tune": fine_tune(FROM_SMALL_ONES, epochs=4, learning_rate=3e-4),
        },
        targets=small_targets(0.832, 0.711),
        weights=on_hub("Apache-2.0", "google/bert_uncased_L-2_H-128_A-2"),
        paper="arXiv:1908.08962",
    ),
    entry(
        "bert-mini",
        layers=4,
        width=256,
        heads=4,
        parameter_count=11_171_074,
        forward_multiply_adds=2_147_549_696,
        recipes={
            "published": PUBLISHED,
            "small-data": small_data(5e-4),
            "fine-tune": fine_tune(FROM_SMALL_ONES, epochs=4, learning_rate=1e-4),
        },
        targets=small_targets(0.859, 0.718),
        weights=on_hub("Apache-2.0", "google/bert_uncased_L-4_H-256_A-4"),
        paper="arXiv:1908.08962",
    ),
    entry(
        "bert-small",
        layers=4,
        width=512,
        heads=8,
        parameter_count=28_764_674,
        forward_multiply_adds=7_516_455_936,
        recipes={
            "published": PUBLISHED,
            "small-data": small_data(5e-4),
            "fine-tune": fine_tune(FROM_SMALL_ONES, epochs=4, learning_rate=1e-4),
        },
        targets=small_targets(0.897, 0.762),
        weights=on_hub("Apache-2.0", "google/bert_uncased_L-4_H-512_A-8"),
        paper="arXiv:1908.08962",
    ),
)
