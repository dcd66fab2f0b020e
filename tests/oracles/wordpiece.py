"""WordPiece: words, each cut greedily into the longest tokens; a word that cannot be cut is one unknown token.

Source: llama.cpp, llama-vocab.cpp, `llm_tokenizer_wpm_session`. O(n^2) per word.
"""

from __future__ import annotations

from . import classes, utf8
from .gguf_vocab import Vocab

WORD_START = "\u2581".encode()
# llama.cpp's is_chinese_char; the fifth range starts at 0x2B920, not 0x2B820, on purpose.
CHINESE = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


def encode(vocab: Vocab, text: bytes, *, continues: bool = False) -> list[int]:
    """With `continues`, letters at the start of the text are the rest of a word."""
    ids: list[int] = []
    for number, word in enumerate(words(vocab, text)):
        start = b"" if continues and number == 0 else WORD_START
        ids += cut(vocab, start + word) or [-1 if vocab.unk is None else vocab.unk] if word else []
    return ids


def cut(vocab: Vocab, word: bytes) -> list[int]:
    ids, at = [], 0
    while at < len(word):
        ends = [end for end in range(len(word), at, -1) if word[at:end] in vocab.ids]
        if not ends:
            return []
        ids.append(vocab.ids[word[at : ends[0]]])
        at = ends[0]
    return ids


def words(vocab: Vocab, text: bytes) -> list[bytes]:
    """Lowercased, stripped of accents and control characters, split at spaces and around single-character words.

    Some are empty; the first one is if the text does not start with letters.
    """
    result: list[bytes] = [b""]
    for code_point in utf8.code_points(text):
        if vocab.strip_accents:
            code_point = classes.base_letter(code_point)
        flags = classes.flags(code_point)
        if flags & classes.WHITESPACE:
            result.append(b"")
            continue
        if code_point in (0, utf8.REPLACEMENT) or flags & classes.CONTROL:
            continue
        if vocab.strip_accents and flags & classes.MARK:
            continue
        character = utf8.encode(classes.lowercase(code_point) if vocab.lowercase else code_point)
        if stands_alone(code_point, flags):
            result += [character, b""]
        else:
            result[-1] += character
    return result


def stands_alone(code_point: int, flags: int) -> bool:
    ascii_symbol = code_point < 0x7F and flags & classes.SYMBOL
    chinese = any(first <= code_point <= last for first, last in CHINESE)
    return bool(flags & classes.PUNCTUATION or ascii_symbol or chinese)
