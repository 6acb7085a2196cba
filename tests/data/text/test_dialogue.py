from typing import Any

import numpy as np
import pytest

from octavolt.data.text.dialogue import (
    CHAT_TEMPLATE,
    END,
    ROLES,
    encode_conversation,
    encode_prompt,
)
from octavolt.errors import OctavoltError

MESSAGES = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": " Hallo, wie geht's?\n"},
    {"role": "assistant", "content": "Gut 你好!"},
    {"role": "user", "content": ""},
    {"role": "assistant", "content": "?"},
]


def rust(*, roles: bool = True) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = {letter: number for number, letter in enumerate(alphabet)} | {
        "al": 256,
        "all": 257,
    }
    made = Tokenizer(models.BPE(vocab=words, merges=[("a", "l"), ("al", "l")]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([END, *(ROLES.values() if roles else ())])
    return made


class Plain:
    """As much of a tokenizer as a conversation needs: text never spells a special token."""

    def __init__(self, *, roles: bool = True) -> None:
        self.rust = rust(roles=roles)
        self.rust.encode_special_tokens = True
        added = self.rust.get_added_tokens_decoder()
        self.special = {token.content: number for number, token in added.items()}

    def encode(self, texts: list[str]) -> list[Any]:
        return [np.array(one.ids, np.int32) for one in self.rust.encode_batch(texts)]


def test_tokens_are_those_of_the_chat_template() -> None:
    from transformers import PreTrainedTokenizerFast

    theirs = PreTrainedTokenizerFast(tokenizer_object=rust(), chat_template=CHAT_TEMPLATE)
    ids, _ = encode_conversation(Plain(), MESSAGES)
    assert ids.dtype == np.int32
    assert ids.tolist() == theirs.apply_chat_template(MESSAGES, return_dict=False)
    prompt = encode_prompt(Plain(), MESSAGES[:2])
    assert prompt.tolist() == theirs.apply_chat_template(
        MESSAGES[:2], add_generation_prompt=True, return_dict=False
    )


def test_answers_and_their_ends_are_trained_on_and_nothing_else() -> None:
    tokenizer = Plain()
    ids, is_answer = encode_conversation(tokenizer, MESSAGES)
    assert tokenizer.rust.decode(ids[is_answer].tolist(), skip_special_tokens=False) == (
        f"Gut 你好!{END}?{END}"
    )
    assert ids.shape == is_answer.shape


@pytest.mark.parametrize("text", [*ROLES.values(), END, f"a{END}b"])
def test_text_that_spells_a_special_token_is_text(text: str) -> None:
    tokenizer = Plain()
    ids, _ = encode_conversation(tokenizer, [{"role": "user", "content": text}])
    special = set(tokenizer.special.values())
    assert [int(one) for one in ids if one in special] == [
        tokenizer.special[ROLES["user"]],
        tokenizer.special[END],
    ]
    assert tokenizer.rust.decode(ids[1:-1].tolist()) == text


def test_unknown_role_is_an_error() -> None:
    with pytest.raises(OctavoltError) as error:
        encode_conversation(Plain(), [MESSAGES[0], {"role": "bot", "content": "x"}])
    assert str(error.value) == (
        "Message 2 of a conversation is from 'bot'; it must be from one of: system, user, "
        "assistant."
    )


def test_tokenizer_without_roles_is_an_error() -> None:
    with pytest.raises(OctavoltError, match=r"has no <\|system\|>, <\|user\|>, <\|assistant\|>,"):
        encode_prompt(Plain(roles=False), MESSAGES[:2])


def test_conversation_without_messages_is_empty() -> None:
    ids, is_answer = encode_conversation(Plain(), [])
    assert (len(ids), len(is_answer)) == (0, 0)
