"""Special tokens first, then one algorithm for each stretch of text between them.

Source: llama.cpp, llama-vocab.cpp, `tokenizer_st_partition` and `llama_vocab::impl::tokenize`. Each special text is
looked for in the whole text, the longest first; a match cuts the text for all shorter ones.
"""

from __future__ import annotations

from . import bpe, plamo2, rwkv, spm, unigram, wordpiece
from .gguf_vocab import CONTROL, LSTRIP, RSTRIP, UNKNOWN, Vocab

SPACES = b" \t\n\v\f\r"
ESCAPED_SPACE = "\u2581".encode()


def partition(vocab: Vocab, text: bytes, parse_special: bool) -> list[bytes | int]:
    """The text as special tokens' ids and the stretches between them."""
    fragments: list[bytes | int] = [text] if text else []
    for id in vocab.special:
        attribute = vocab.attributes[id]
        if not parse_special and attribute & (CONTROL | UNKNOWN):
            continue
        parts: list[bytes | int] = []
        for fragment in fragments:
            if isinstance(fragment, int):
                parts.append(fragment)
                continue
            left, match, rest = fragment.partition(vocab.texts[id])
            while match:
                if attribute & LSTRIP:
                    left = left.rstrip(SPACES)
                parts += [left, id] if left else [id]
                if attribute & RSTRIP:
                    rest = rest.lstrip(SPACES)
                left, match, rest = rest.partition(vocab.texts[id])
            parts += [left] if left else []
        fragments = parts
    return fragments


def encode(vocab: Vocab, text: bytes, add_special: bool, parse_special: bool) -> list[int]:
    """`llama_tokenize`. Raises LookupError where a token to add is missing and llama.cpp ends the process."""
    after_special = True
    ids: list[int] = []
    if add_special and adds(vocab, "bos"):
        ids.append(required(vocab.bos))
    for fragment in partition(vocab, text, parse_special):
        if isinstance(fragment, int):
            ids.append(fragment)
            after_special = True
            continue
        if vocab.kind == "spm":
            prefix = b" " if vocab.add_space_prefix and after_special else b""
            ids += spm.encode(vocab, (prefix + fragment).replace(b" ", ESCAPED_SPACE))
        elif vocab.kind == "bpe":
            ids += bpe.encode(vocab, fragment.replace(b" ", ESCAPED_SPACE) if vocab.escape_whitespaces else fragment)
        else:
            algorithms = {"wpm": wordpiece, "ugm": unigram, "rwkv": rwkv, "plamo2": plamo2}
            ids += algorithms[vocab.kind].encode(vocab, fragment)
        after_special = False
    if add_special and vocab.kind == "wpm":
        ids.append(required(vocab.sep))
    elif add_special and adds(vocab, "eos"):
        ids.append(required(vocab.eos))
    return ids


def adds(vocab: Vocab, what: str) -> bool:
    """WordPiece always adds its two tokens, RWKV and PLaMo-2 never add any."""
    if vocab.kind == "wpm":
        return True
    return vocab.kind in ("spm", "bpe", "ugm") and (vocab.add_bos if what == "bos" else vocab.add_eos)


def required(id: int | None) -> int:
    if id is None:
        raise LookupError("a special token to add")
    return id
