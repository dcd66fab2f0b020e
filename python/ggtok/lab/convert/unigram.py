"""What exports of a Unigram vocabulary have in common."""

from __future__ import annotations

from ..._ggtok import apply_charsmap, charsmap
from .vocabulary import NORMAL, SPACE, UNUSED, USER_DEFINED, Vocabulary


def unigram_scores(vocabulary: Vocabulary) -> list[float]:
    """The scores, and the lowest one for tokens that llama.cpp does not look for in words.

    They would be found where their text occurs, and the score of unknown characters follows from the lowest of all.
    """
    pairs = list(zip(vocabulary.scores, vocabulary.attributes, strict=True))
    lowest = min((score for score, bits in pairs if bits & NORMAL), default=0.0)
    return [max(score, lowest) if bits & (NORMAL | UNUSED) else lowest for score, bits in pairs]


def charsmap_of(vocabulary: Vocabulary) -> bytes:
    """The character map. Ends the export if other libraries would apply it where llama.cpp does not.

    llama.cpp leaves a text that starts like a user-defined token as it is, even if the token is not complete.
    """
    found = charsmap(vocabulary.tokenizer)
    for token in vocabulary.special:
        start = token.text[:-1]
        if vocabulary.attributes[token.id] & USER_DEFINED and (
            " " in start or SPACE in start or apply_charsmap(found, start) != start
        ):
            vocabulary.refuse(
                f"llama.cpp does not normalize what begins like the user-defined token {token.text!r}, which it would"
            )
    return found
