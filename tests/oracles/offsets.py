"""Whether offsets explain the tokens of a text: each token must be what its span of the text becomes.

1. The text is rewritten as its algorithm reads it, one character at a time, and every byte keeps the span of the text
   that it stands for.
2. Tokens are laid along the rewritten text in every way in which their texts match it, or their bytes, or nothing for a
   token that is unknown, and in which each has the span of the bytes that it lies on.
3. One way must reach the end. O(number of tokens x length).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from . import bpe, classes, pretokenize, rwkv, special, unigram, utf8, wordpiece
from .gguf_vocab import BYTE, Vocab

Span = tuple[int, int]
Surface = list[tuple[int, Span]]
"""Each byte of a rewritten text with the span that it stands for."""
SPACE = special.ESCAPED_SPACE


def explain(
    vocab: Vocab,
    text: bytes,
    tokens: list[tuple[int, Span]],
    flags: Sequence[bool],
    *,
    add_special: bool,
    continues: bool,
) -> bool:
    """Whether the tokens, as ids with spans in bytes, can be the text's. `flags` are those of `special.partition`."""
    if add_special and special.adds(vocab, "bos") and not continues:
        if tokens[:1] != [(vocab.bos, (0, 0))]:
            return False
        tokens = tokens[1:]
    if add_special and (vocab.kind == "wordpiece" or special.adds(vocab, "eos")):
        added = vocab.sep if vocab.kind == "wordpiece" else vocab.eos
        if tokens[-1:] != [(added, (len(text), len(text)))]:
            return False
        tokens = tokens[:-1]
    # How many tokens can be explained by the items so far.
    reached, after_special = {0}, not continues
    for id, start, end in special.partition(vocab, text, flags):
        if id is not None:
            reached = {number + 1 for number in reached if tokens[number : number + 1] == [(id, (start, end))]}
            after_special, continues = True, False
        else:
            for surface in surfaces(vocab, text, start, end, after_special, continues):
                reached = laid(vocab, surface, tokens, reached)
            after_special = continues = False
    return len(tokens) in reached


def laid(vocab: Vocab, surface: Surface, tokens: list[tuple[int, Span]], reached: set[int]) -> set[int]:
    """How many tokens there can be after a rewritten text."""
    text = bytes(byte for byte, _ in surface)
    done = set()
    waiting = [(number, 0) for number in reached]
    while waiting:
        state = waiting.pop()
        number, at = state
        if state in done or at > len(text):
            continue
        done.add(state)
        if at < len(text) and is_dropped(vocab, text[at]):
            waiting.append((number, at + 1))
        if number < len(tokens):
            id, span = tokens[number]
            for length in lengths(vocab, text, at, id):
                covered = surface[at : at + length]
                if covered and (covered[0][1][0], covered[-1][1][1]) == span:
                    waiting.append((number + 1, at + length))
    return {number for number, at in done if at == len(text)}


def lengths(vocab: Vocab, text: bytes, at: int, id: int) -> Iterator[int]:
    """How many bytes of a rewritten text a token can stand for at this place."""
    token = vocab.texts[id] if id >= 0 else b""
    if vocab.kind == "rwkv":
        token = rwkv.unescape(token)
    if token and text.startswith(token, at):
        yield len(token)
    if token == b"<0x%02X>" % text[at : at + 1][0] if at < len(text) else False:
        yield 1
    if vocab.kind == "plamo2" and vocab.attributes[id] & BYTE:
        yield 1
    if id == (-1 if vocab.unk is None else vocab.unk):
        yield from {"wordpiece": [len(text) - at] if at == 0 else [], "unigram": range(1, len(text) - at + 1)}.get(
            vocab.kind, [1]
        )


def is_dropped(vocab: Vocab, byte: int) -> bool:
    """Whether a byte has no token of its own."""
    own = {b"<0x%02X>" % byte, bytes([byte])}
    return vocab.kind in ("bpe", "spm") and not own & vocab.ids.keys() and (vocab.kind == "bpe" or vocab.unk is None)


def surfaces(
    vocab: Vocab, text: bytes, start: int, end: int, after_special: bool, continues: bool
) -> Iterator[Surface]:
    """What the algorithm reads of `text[start:end]`: for WordPiece each word by itself."""
    if vocab.kind == "wordpiece":
        yield from words(vocab, text, start, end, continues)
        return
    surface: Surface = []
    if vocab.kind == "spm":
        prefixed = vocab.add_space_prefix and after_special
        surface += [(byte, (start, start)) for byte in (SPACE if prefixed else b"")]
        surface += escaped(text, start, end)
    elif vocab.kind == "unigram":
        surface += normalized(vocab, text, start, end, continues)
    elif vocab.kind == "bpe":
        surface += byte_pair(vocab, text, start, end)
    elif vocab.kind == "plamo2":
        surface += characters(text, start, end, beyond=True)
        if not continues and bytes(byte for byte, _ in surface[:3]) == "\ufeff".encode():
            surface = surface[3:]
    else:
        surface += [(text[at], (at, at + 1)) for at in range(start, end)]
    yield surface


def escaped(text: bytes, start: int, end: int) -> Surface:
    return [
        (byte, (at, at + 1))
        for at in range(start, end)
        for byte in (SPACE if text[at : at + 1] == b" " else text[at : at + 1])
    ]


def decoded(text: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Code points, each with its place and length."""
    while start < end:
        code_point, length = utf8.decode(text[:end], start) or (utf8.REPLACEMENT, 1)
        yield code_point, start, length
        start += length


def whole(new: bytes, at: int, length: int) -> Surface:
    """A character that may have changed: byte for byte if its length has not."""
    if len(new) == length:
        return [(byte, (at + number, at + number + 1)) for number, byte in enumerate(new)]
    return [(byte, (at, at + length)) for byte in new]


def characters(text: bytes, start: int, end: int, *, beyond: bool = False) -> Surface:
    """Every code point in its shortest form."""
    surface: Surface = []
    for code_point, at, length in decoded(text, start, end):
        if code_point > 0x10FFFF and beyond:
            surface += [(text[at + number], (at + number, at + number + 1)) for number in range(length)]
        else:
            surface += whole(utf8.encode(min(code_point, 0x110000) if code_point < 0x110000 else 0xFFFD), at, length)
    return surface


def byte_pair(vocab: Vocab, text: bytes, start: int, end: int) -> Surface:
    family = pretokenize.family(vocab.pre or "default")
    if vocab.model == "whitespace":
        surface: Surface = []
        for code_point, at, length in decoded(text, start, end):
            if not classes.flags(code_point) & classes.WHITESPACE:
                code_point = code_point if code_point < 0x110000 else utf8.REPLACEMENT
                lower = classes.lowercase(code_point) if vocab.lowercase else code_point
                surface += whole(utf8.encode(lower), at, length)
            elif code_point == 0x20 and vocab.escape_whitespaces:
                surface += [(byte, (at, at + length)) for byte in SPACE]
    else:
        surface = characters(text, start, end)
    spelled: Surface = []
    for byte, span in surface:
        new = bytes([byte])
        if vocab.escape_whitespaces and new == b" ":
            new = SPACE
        spelled += [(other, span) for other in (bpe.byte_encode(new) if family.byte_encode else new)]
    return spelled


def normalized(vocab: Vocab, text: bytes, start: int, end: int, continues: bool) -> Surface:
    """Unigram: a space stands for the whitespace that became it."""
    space = SPACE if vocab.escape_whitespaces else b" "
    surface: Surface = []
    covered, in_word, prefixed = start, continues, continues
    while start < end:
        replacement, consumed = unigram.normalize_prefix(vocab, text[start:end], 0)
        is_same = text[start : start + consumed] == replacement and not is_mapped(vocab, text[start:end])
        parts = replacement.split(b" ")
        place = 0
        for number, part in enumerate(parts):
            if number:
                in_word = False
                if not vocab.remove_extra_whitespaces:
                    at = (start + place - 1, start + place) if is_same else (start, start + consumed)
                    surface += [(byte, at) for byte in space]
                    covered = at[1]
            if part:
                at = (start + place, start + place + len(part)) if is_same else (start, start + consumed)
                if not in_word and (vocab.remove_extra_whitespaces or (vocab.add_space_prefix and not prefixed)):
                    gap = at if covered > at[0] else (covered, at[0])
                    surface += [(byte, gap) for byte in space]
                    prefixed = True
                in_word, covered = True, at[1]
                surface += [
                    (byte, (at[0] + index, at[0] + index + 1) if is_same else at) for index, byte in enumerate(part)
                ]
            place += len(part) + 1
        start += consumed
    return surface


def is_mapped(vocab: Vocab, text: bytes) -> bool:
    """Whether the character map replaces the start of a text, be it with the same."""
    passed = max((unigram.common_prefix(token, text) for token in vocab.ids_of(16)), default=0)
    return not passed and bool(vocab.charsmap) and unigram.replace(vocab.charsmap, text) is not None


def words(vocab: Vocab, text: bytes, start: int, end: int, continues: bool) -> Iterator[Surface]:
    """WordPiece: every word, after a phantom that stands for no byte."""
    found: list[Surface] = [[]]
    for _, at, length in decoded(text, start, end):
        new = wordpiece.words(vocab, text[at : at + length])
        if len(new) == 1:
            found[-1] += [(byte, (at, at + length)) for byte in new[0]]
        elif any(new):
            found += [[(byte, (at, at + length)) for byte in b"".join(new)], []]
        else:
            found.append([])
    for number, word in enumerate(found):
        if word:
            first = word[0][1][0]
            phantom = b"" if continues and number == 0 else SPACE
            yield [(byte, (first, first)) for byte in phantom] + word
