"""A dialogue with a network that was trained on conversations."""

from collections.abc import Iterator

from octavolt.contract import Say
from octavolt.data.text.dialogue import ANSWERER, Message, encode_prompt, special_ids
from octavolt.errors import OctavoltError
from octavolt.generate.loop import Piece, continued, language_model
from octavolt.generate.sampling import Sampling
from octavolt.networks.opened import Opened


class Dialogue:
    """Keeps what was said, as far as the network can see it.

    Raises `OctavoltError` if the network knows no roles.
    """

    def __init__(
        self,
        opened: Opened,
        *,
        settings: Sampling,
        system: str | None = None,
        say: Say = lambda _: None,
    ) -> None:
        self.model = language_model(opened)
        try:
            special_ids(self.model.tokenizer)
        except OctavoltError as error:
            named = opened.run or opened.entry.name
            raise OctavoltError(
                f"{named} was not trained on conversations, so it can't hold one. {error}"
            ) from None
        self.settings = settings
        self.say = say
        self.system: list[Message] = [{"role": "system", "content": system}] if system else []
        self.turns: list[Message] = []
        self.answered = 0

    def reset(self) -> None:
        """Forget what was said; what the system was told stays."""
        self.turns = []

    def ask(self, text: str) -> Iterator[Piece]:
        """Yield the answer, a piece at a time.

        Raises `OctavoltError` if the message is too long for the network; it is forgotten then.
        What was said of an answer that is broken off stays said.
        """
        self.turns.append({"role": "user", "content": text})
        try:
            prompt = self.prompt()
        except OctavoltError:
            self.turns.pop()
            raise
        said = ""
        self.answered += 1
        try:
            # Counted by answers, so that each draws other random numbers than the one before.
            for piece in continued(
                self.model,
                [prompt],
                settings=self.settings,
                first=self.answered - 1,
                say=self.say,
            ):
                said += piece.text
                yield piece
        finally:
            self.turns.append({"role": ANSWERER, "content": said})

    def prompt(self) -> list[int]:
        """Return the tokens to answer, without the oldest turns if they would leave no room.

        The answer is left room for all its tokens, or for half of what the network sees.
        """
        length = self.model.length
        room = min(self.settings.max_tokens, length // 2)
        # A question goes with its answer.
        for forgotten in range(0, len(self.turns), 2):
            said = [*self.system, *self.turns[forgotten:]]
            tokens = encode_prompt(self.model.tokenizer, said).tolist()
            if len(tokens) + room <= length:
                break
        if len(tokens) > length:
            with_system = " with what the system was told" if self.system else ""
            raise OctavoltError(
                f"This message has {len(tokens)} tokens{with_system}; the network sees {length} "
                f"at most. Shorten it by {len(tokens) - length} or more."
            )
        if forgotten:
            del self.turns[:forgotten]
            turns = "turn was" if forgotten == 2 else f"{forgotten // 2} turns were"
            self.say(
                f"The oldest {turns} forgotten: the network sees {length} tokens at once, "
                f"{room} of them for its answer."
            )
        return [int(token) for token in tokens]
