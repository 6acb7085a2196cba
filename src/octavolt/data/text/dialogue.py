"""Conversations as tokens: the one place where training and answering agree on them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from octavolt.errors import OctavoltError

ROLES = {"system": "<|system|>", "user": "<|user|>", "assistant": "<|assistant|>"}
"""Who speaks in a message, and the token that it begins with."""
ANSWERER = "assistant"
END = "<|endoftext|>"
"""The token that ends each message."""
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|' + message['role'] + '|>' + message['content'] + '" + END + "' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '" + ROLES[ANSWERER] + "' }}{% endif %}"
)
"""The same for transformers' `apply_chat_template`, where no content names a special token."""

Message = Mapping[str, str]
"""Has a 'role', one of `ROLES`, and a 'content'."""


def encode_conversation(
    tokenizer: Any, messages: Sequence[Message]
) -> tuple[Int[np.ndarray, " tokens"], Bool[np.ndarray, " tokens"]]:
    """Return the tokens of a conversation, and which of them are trained on.

    Those are what the assistant says, and the token that ends it. What a content holds is text
    alone, even if it spells a special token. Raises `OctavoltError` for a role that isn't known.
    """
    begins, end = special_ids(tokenizer)
    contents = tokenizer.encode([message["content"] for message in messages])
    ids: list[int] = []
    is_answer: list[bool] = []
    for number, (message, content) in enumerate(zip(messages, contents, strict=True), start=1):
        role = message["role"]
        if role not in begins:
            raise OctavoltError(
                f"Message {number} of a conversation is from '{role}'; "
                f"it must be from one of: {', '.join(ROLES)}."
            )
        ids += [begins[role], *content.tolist(), end]
        is_answer += [False, *[role == ANSWERER] * (len(content) + 1)]
    return np.array(ids, np.int32), np.array(is_answer, np.bool_)


def encode_prompt(tokenizer: Any, messages: Sequence[Message]) -> Int[np.ndarray, " tokens"]:
    """Return the tokens after which the assistant's next answer comes."""
    ids, _ = encode_conversation(tokenizer, messages)
    begins, _ = special_ids(tokenizer)
    return np.append(ids, np.int32(begins[ANSWERER]))


def special_ids(tokenizer: Any) -> tuple[dict[str, int], int]:
    """Return the token of each role and the one that ends a message; raise without them."""
    missing = [name for name in (*ROLES.values(), END) if name not in tokenizer.special]
    if missing:
        raise OctavoltError(
            f"The tokenizer has no {', '.join(missing)}, so it can't tell who speaks in a "
            "conversation. Train on conversations: octavolt train gpt2 --data conversations.jsonl"
        )
    begins = {role: int(tokenizer.special[name]) for role, name in ROLES.items()}
    return begins, int(tokenizer.special[END])
