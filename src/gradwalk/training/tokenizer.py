"""Characters as tokens, and one token more: the boundary (BOS) before the first character and after the last."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class UnknownCharacterError(ValueError):
    """A text with a character that the tokenizer was not made for."""


class Tokenizer:
    """One token per character, numbered in the order of `characters`; the boundary comes last.

    >>> tokenizer = Tokenizer("abc")
    >>> tokenizer.encode("cab")
    [3, 2, 0, 1, 3]
    >>> tokenizer.decode([2, 0, 1])
    'cab'
    """

    def __init__(self, characters: str) -> None:
        if not characters or len(set(characters)) != len(characters):
            raise ValueError(f"tokenizer: expected distinct characters, at least one, got {characters!r}")
        self.characters = characters
        self._token_of = {character: token for token, character in enumerate(characters)}

    @classmethod
    def for_documents(cls, documents: Iterable[str]) -> Tokenizer:
        """A tokenizer for every character that occurs, in code point order.

        >>> Tokenizer.for_documents(["emma", "ada"]).characters
        'adem'
        """
        return cls("".join(sorted(set().union(*documents))))

    @property
    def boundary(self) -> int:
        return len(self.characters)

    @property
    def vocabulary_size(self) -> int:
        return len(self.characters) + 1

    def encode(self, document: str) -> list[int]:
        """The document's tokens, with a boundary on either side."""
        return [self.boundary, *self.tokens_of(document), self.boundary]

    def tokens_of(self, text: str) -> list[int]:
        """The tokens of a text, without boundaries: the beginning of a document, for instance."""
        try:
            return [self._token_of[character] for character in text]
        except KeyError as error:
            raise UnknownCharacterError(
                f"{error.args[0]!r} is not among the characters that the model knows: {self.shown()}"
            ) from None

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(self.characters[token] for token in tokens)

    def shown(self) -> str:
        """The characters, shortened where there are many."""
        return self.characters if len(self.characters) <= 60 else f"{self.characters[:57]}..."
