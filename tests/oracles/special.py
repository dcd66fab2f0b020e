"""Special tokens first, then one algorithm for each stretch of text between them.

Source: llama.cpp, llama-vocab.cpp, `tokenizer_st_partition` and `llama_vocab::impl::tokenize`. Each special text is
looked for in the whole text, the longest first; a match cuts the text for all shorter ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import bpe, plamo2, rwkv, spm, unigram, wordpiece
from .gguf_vocab import CONTROL, LSTRIP, RSTRIP, UNKNOWN, Vocab

SPACES = b" \t\n\v\f\r"
ESCAPED_SPACE = "\u2581".encode()


Item = tuple[int | None, int, int]
"""A special token and where it is, or None and where text for the algorithm is."""


def partition(vocab: Vocab, text: bytes, parse_special: Sequence[bool]) -> list[Item]:
    """The text as special tokens and what is between them; each byte says whether a control token may be there."""
    items: list[Item] = [(None, 0, len(text))]
    for id in vocab.special:
        needle, attribute = vocab.texts[id], vocab.attributes[id]

        def found(start: int, end: int, needle: bytes = needle, attribute: int = attribute) -> int:
            """Where the token is, or -1."""
            for at in range(start, end - len(needle) + 1):
                allowed = not attribute & (CONTROL | UNKNOWN) or all(parse_special[at : at + len(needle)])
                if text[at : at + len(needle)] == needle and allowed:
                    return at
            return -1

        parts: list[Item] = []
        for item, start, end in items:
            if item is not None:
                parts.append((item, start, end))
                continue
            while (at := found(start, end)) >= 0:
                left = len(text[start:at].rstrip(SPACES)) if attribute & LSTRIP else at - start
                parts += [(None, start, start + left), (id, at, at + len(needle))]
                start = at + len(needle)
                if attribute & RSTRIP:
                    start = end - len(text[start:end].lstrip(SPACES))
            parts.append((None, start, end))
        items = [(item, start, end) for item, start, end in parts if item is not None or start < end]
    return items


def encode(
    vocab: Vocab, text: bytes, add_special: bool, parse_special: bool | Sequence[bool], *, continues: bool = False
) -> list[int]:
    """`llama_tokenize`. Raises LookupError where a token to add is missing and llama.cpp ends the process.

    Not in llama.cpp: `parse_special` may be one flag per byte, for parts; a text may continue another one.
    """
    flags = [parse_special] * len(text) if isinstance(parse_special, bool) else parse_special
    after_special = not continues
    ids: list[int] = []
    if add_special and adds(vocab, "bos") and not continues:
        ids.append(required(vocab.bos))
    for special, start, end in partition(vocab, text, flags):
        if special is not None:
            ids.append(special)
            after_special, continues = True, False
            continue
        fragment = text[start:end]
        if vocab.kind == "spm":
            prefix = b" " if vocab.add_space_prefix and after_special else b""
            ids += spm.encode(vocab, (prefix + fragment).replace(b" ", ESCAPED_SPACE))
        elif vocab.kind == "bpe":
            ids += bpe.encode(vocab, fragment.replace(b" ", ESCAPED_SPACE) if vocab.escape_whitespaces else fragment)
        else:
            algorithms = {"wordpiece": wordpiece, "unigram": unigram, "plamo2": plamo2}
            if vocab.kind == "rwkv":
                ids += rwkv.encode(vocab, fragment)
            else:
                ids += algorithms[vocab.kind].encode(vocab, fragment, continues=continues)
        after_special = continues = False
    if add_special and vocab.kind == "wordpiece":
        ids.append(required(vocab.sep))
    elif add_special and adds(vocab, "eos"):
        ids.append(required(vocab.eos))
    return ids


def adds(vocab: Vocab, what: str) -> bool:
    """WordPiece always adds its two tokens, RWKV and PLaMo-2 never add any."""
    if vocab.kind == "wordpiece":
        return True
    return vocab.kind in ("spm", "bpe", "unigram") and (vocab.add_bos if what == "bos" else vocab.add_eos)


def required(id: int | None) -> int:
    if id is None:
        raise LookupError("a special token to add")
    return id
