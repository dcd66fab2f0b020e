"""What libraries that constrain generation ask about a vocabulary: the ends of a text, and the tokens without one."""

from __future__ import annotations

from .._vocab import TokenAttribute, attributes
from ..errors import GgtokError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._tokenizer import Tokenizer

_NOT_TEXT = TokenAttribute.CONTROL | TokenAttribute.UNKNOWN


def special_ids(tok: Tokenizer) -> list[int]:
    """The tokens that stand for no text: control tokens and the unknown token."""
    not_text = int(_NOT_TEXT)
    return [id for id, bits in enumerate(attributes(tok.vocab)) if bits & not_text]


def end_ids(tok: Tokenizer) -> list[int]:
    """The tokens that end generation, EOS first. Raises `GgtokError` if there is none."""
    vocab = tok.vocab
    ends = sorted(vocab.eog_ids, key=lambda id: (id != vocab.eos_id, id))
    if not ends:
        raise GgtokError("the vocabulary has no token that ends generation: pass its id")
    return ends


def text_pieces(tok: Tokenizer) -> list[bytes]:
    """The bytes of each token; none for those that stand for no text."""
    pieces = tok.vocab.pieces
    for id in special_ids(tok):
        pieces[id] = b""
    return pieces
