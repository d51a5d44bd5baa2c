"""The replies of models that are coming in right now: what has been heard of each, and what its client waits for."""

from __future__ import annotations

from collections.abc import Iterable

from search.audience import Question


class GrowingReply:
    """A reply to ``question``, asked at ``since``: its pieces in order, each a thought or not, and the latest wait.

    ``attempt`` counts from 1; each begins without pieces.
    """

    def __init__(self, question: Question, since: float) -> None:
        self.question, self.since = question, since
        self.pieces: list[tuple[str, bool]] = []
        self.attempt, self.waiting = 1, ""
        self._characters = 0

    def take(self, piece: str, thought: bool) -> None:
        """Take in a piece; nothing is waited for any more."""
        self.pieces.append((piece, thought))
        self._characters += len(piece)
        self.waiting = ""

    def wait(self, text: str) -> None:
        """Say what is waited for; what came of an attempt that broke off is not part of the reply."""
        self.waiting = text
        if self.pieces:
            self.pieces = []
            self.attempt += 1

    @property
    def tokens(self) -> int:
        """Tokens that have come, of attempts that broke off too, estimated at as many characters each as the prompt."""
        asked = self.question
        return round(self._characters * asked.prompt_tokens / max(1, len(asked.prompt)))

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the prompt, as often as it was sent and something came, estimated."""
        return self.question.prompt_tokens * self.attempt

    @property
    def usd(self) -> float:
        """What prompt and reply so far cost, 0 where no price is known."""
        return self.question.usd(self.prompt_tokens, self.tokens) or 0.0


class RepliesUnderWay:
    """Follows a run's questions; ``version`` changes with everything that is heard."""

    def __init__(self) -> None:
        self.version = 0
        self._replies: list[GrowingReply] = []

    @property
    def replies(self) -> tuple[GrowingReply, ...]:
        """The replies that are coming in, the oldest question first."""
        return tuple(self._replies)

    @property
    def latest(self) -> GrowingReply | None:
        """The reply to the question that was asked last."""
        return self._replies[-1] if self._replies else None

    @property
    def tokens(self) -> int:
        """Tokens of all prompts and of the replies so far, estimated."""
        return sum(reply.prompt_tokens + reply.tokens for reply in self._replies)

    @property
    def usd(self) -> float:
        """What all of them cost so far, estimated."""
        return sum(reply.usd for reply in self._replies)

    def follow(self, questions: Iterable[Question], now: float) -> None:
        """Keep to ``questions``, those that wait for a reply: new ones begin at ``now``, answered ones go."""
        asked = list(questions)
        kept = [reply for reply in self._replies if any(reply.question is question for question in asked)]
        known = [reply.question for reply in kept]
        new = [question for question in asked if not any(question is other for other in known)]
        if new or len(kept) < len(self._replies):
            self._replies = [*kept, *(GrowingReply(question, now) for question in new)]
            self.version += 1

    def hear(self, question: Question, piece: str, thought: bool, now: float) -> None:
        """Take in a piece of the reply to ``question``."""
        reply = next((reply for reply in self._replies if reply.question is question), None)
        if reply is None:
            reply = GrowingReply(question, now)
            self._replies.append(reply)
        reply.take(piece, thought)
        self.version += 1

    def wait(self, option: str, text: str) -> bool:
        """Take note of what a question about ``option`` waits for; returns whether there is one."""
        reply = next((reply for reply in reversed(self._replies) if reply.question.option == option), None)
        if reply is None:
            return False
        reply.wait(text)
        self.version += 1
        return True
