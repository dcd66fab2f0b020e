"""Tokenizers as sentencepiece's `.model` files, and back.

Source: sentencepiece `sentencepiece_model.proto` for the fields; llama.cpp `conversion/base.py`
(`_create_vocab_sentencepiece`) and `conversion/t5.py` for what its converter makes of a model. O(n) for n bytes.

Deviation from the converter: special ids and whether a space comes first are those of the model, where the converter
looks for them in other files beside it.
"""

from __future__ import annotations

from typing import Any

from ..._ggtok import apply_charsmap
from ...errors import ConversionError
from ...tokenizer.base import BaseTokenizer
from ...tokenizer.findings import Finding, warn_of
from ...tokenizer.keys import FLAGS, GGML, SPECIAL
from .gguf import Packed, gguf_bytes
from .padding import padded
from .protobuf import FieldValue, MessageError, field, fields
from .vocabulary import BYTE, BYTE_TOKENS, CONTROL, SPACE, UNKNOWN, UNUSED, USER_DEFINED, Vocabulary

FORMAT = "sentencepiece"

PIECES, TRAINER, NORMALIZER, DENORMALIZER = 1, 2, 3, 5
"""Fields of a model."""
PIECE, SCORE, TYPE = 1, 2, 3
"""Fields of a piece."""
MODEL_TYPE, VOCAB_SIZE, AS_SUFFIX, BYTE_FALLBACK = 3, 4, 24, 35
SPECIAL_IDS = {"unk": 40, "bos": 41, "eos": 42, "pad": 43}
SPECIAL_PIECES = {"unk": 45, "bos": 46, "eos": 47, "pad": 48}
"""Fields of the trainer's settings."""
NAME, CHARSMAP, ADD_PREFIX, REMOVE_SPACES, ESCAPE_SPACES = 1, 2, 3, 4, 5
"""Fields of the settings of both normalizers."""

LONGEST = 256
"""Of a control piece that a text might spell."""

UNIGRAM, BPE = 1, 2
DEFAULT_PIECES = {"unk": b"<unk>", "bos": b"<s>", "eos": b"</s>", "pad": b"<pad>"}
NORMAL_PIECE, UNKNOWN_PIECE, CONTROL_PIECE, USER_DEFINED_PIECE, UNUSED_PIECE, BYTE_PIECE = range(1, 7)
PIECE_TYPES = dict(zip((UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE), range(UNKNOWN_PIECE, 7), strict=True))
"""Types of pieces have the numbers of GGUF's token types."""


def exported(tokenizer: BaseTokenizer) -> bytes:
    vocabulary = Vocabulary(tokenizer, FORMAT)
    vocabulary.need_kind("spm", "unigram")
    vocab, is_spm = tokenizer.vocab, tokenizer.vocab.kind == "spm"
    settings = vocab.settings
    if (vocab.add_bos, vocab.add_eos) != (is_spm, not is_spm):
        message = f"the format does not say that BOS is {_added(vocab.add_bos)} and EOS is {_added(vocab.add_eos)}"
        warn_of(Finding("conversion-differs", "warning", message, "add them in the code that uses the model"))
    types = [_type(bits) for bits in vocabulary.attributes]
    if types.count(UNKNOWN_PIECE) != 1:
        vocabulary.refuse(f"there must be one unknown token, and there are {types.count(UNKNOWN_PIECE)}")
    if is_spm:
        vocabulary.need_bytes(BYTE_TOKENS)
        for text in BYTE_TOKENS:
            if (id := vocab.id(text)) is None:
                vocabulary.refuse(f"there must be a token for all 256 bytes, and {text} is missing")
            types[id] = BYTE_PIECE
    for token in vocabulary.special:
        if types[token.id] == USER_DEFINED_PIECE:
            if SPACE in token.text or " " in token.text:
                vocabulary.refuse(f"it would find the user-defined token {token.text!r} where a text has spaces")
            if token.lstrip or token.rstrip:
                vocabulary.refuse(f"its user-defined tokens take no spaces, and {token.text!r} does")
    if not is_spm:  # byte tokens are for models with byte fallback only, which llama.cpp's Unigram has not
        types = [UNUSED_PIECE if kind == BYTE_PIECE else kind for kind in types]

    rows = zip(vocabulary.texts, vocabulary.scores, types, strict=True)
    pieces = [field(PIECES, field(PIECE, text) + field(SCORE, score) + field(TYPE, kind)) for text, score, kind in rows]
    trainer = [field(MODEL_TYPE, BPE if is_spm else UNIGRAM), field(VOCAB_SIZE, len(vocab))]
    trainer.append(field(BYTE_FALLBACK, is_spm))
    for name, number in SPECIAL_IDS.items():
        id = getattr(vocab, f"{name}_id")
        trainer.append(field(number, -1 if id is None else id))
        if id is not None:
            trainer.append(field(SPECIAL_PIECES[name], vocabulary.texts[id]))
    merges_spaces = settings["remove_extra_whitespaces"] and not is_spm
    normalizer = [
        field(NAME, "identity" if is_spm else "user_defined"),
        field(CHARSMAP, b"" if is_spm else vocabulary.charsmap),
        field(ADD_PREFIX, settings["add_space_prefix"] or merges_spaces),
        field(REMOVE_SPACES, merges_spaces),
    ]
    return b"".join([*pieces, field(TRAINER, b"".join(trainer)), field(NORMALIZER, b"".join(normalizer))])


def _added(flag: bool) -> str:
    return "added" if flag else "not added"


def _type(bits: int) -> int:
    return next((kind for attribute, kind in PIECE_TYPES.items() if bits & attribute), NORMAL_PIECE)


def imported(data: bytes, vocab_size: int | None) -> bytes:
    """The GGUF file that llama.cpp's converter would make of a model, without tensors."""
    try:
        pieces, settings = _parsed(data)
    except MessageError as error:
        raise ConversionError(FORMAT, str(error)) from None
    if not pieces:
        raise ConversionError(FORMAT, "the model has no pieces")
    trainer, normalizer = settings[TRAINER], settings[NORMALIZER]
    model_type = trainer.get(MODEL_TYPE, UNIGRAM)
    if model_type not in (UNIGRAM, BPE):
        raise ConversionError(FORMAT, f"llama.cpp has models of type 1 (Unigram) and 2 (BPE), not {model_type}")
    is_spm = model_type == BPE
    _warn(pieces, settings, is_spm)
    # The converter does not ask for user-defined pieces.
    pieces = [(text, score, NORMAL_PIECE if kind == USER_DEFINED_PIECE else kind) for text, score, kind in pieces]
    texts, scores, types = padded(FORMAT, pieces, vocab_size)
    entries: dict[str, Any] = {
        "general.architecture": "llama" if is_spm else "t5",
        f"{GGML}model": "llama" if is_spm else "t5",
        f"{GGML}pre": "default",
        f"{GGML}tokens": Packed.strings(texts),
        f"{GGML}scores": scores,
        f"{GGML}token_type": types,
        f"{GGML}add_space_prefix": bool(normalizer.get(ADD_PREFIX, 1)),
    }
    if not is_spm:
        entries[f"{GGML}remove_extra_whitespaces"] = bool(normalizer.get(REMOVE_SPACES, 1))
        if normalizer.get(CHARSMAP):
            entries[f"{GGML}precompiled_charsmap"] = normalizer[CHARSMAP]
    # Of equal ones, the first counts.
    ids = {text: id for id, (text, _, kind) in reversed([*enumerate(pieces)]) if kind == CONTROL_PIECE}
    for name, number in SPECIAL_PIECES.items():
        if (id := ids.get(trainer.get(number) or DEFAULT_PIECES[name])) is not None:
            entries[GGML + SPECIAL[name]] = id
        elif name in ("bos", "eos"):  # llama.cpp would take another token for it
            entries[GGML + FLAGS[f"add_{name}"]] = False
    unknown = next((id for id, (*_, kind) in enumerate(pieces) if kind == UNKNOWN_PIECE), None)
    if unknown is not None:
        entries[GGML + SPECIAL["unk"]] = unknown
    return gguf_bytes(entries)


def _parsed(data: bytes) -> tuple[list[tuple[bytes, float, int]], dict[int, dict[int, Any]]]:
    """The pieces, and the fields of each kind of settings by number."""
    pieces: list[tuple[bytes, float, int]] = []
    settings: dict[int, dict[int, Any]] = {TRAINER: {}, NORMALIZER: {}, DENORMALIZER: {}}
    for number, value, at in fields(data):
        if number != PIECES and number not in settings:
            continue
        if not isinstance(value, bytes):
            raise MessageError(f"byte {at}: field {number} is not a message")
        inner = {key: item for key, item, _ in fields(data, at, at + len(value))}
        if number == PIECES:
            pieces.append(_piece(inner, at, len(pieces)))
        else:
            _check_settings(number, inner, at)
            settings[number] |= inner
    return pieces, settings


def _piece(inner: dict[int, FieldValue], at: int, id: int) -> tuple[bytes, float, int]:
    text, score, kind = inner.get(PIECE, b""), inner.get(SCORE, 0.0), inner.get(TYPE, NORMAL_PIECE)
    if not isinstance(text, bytes) or not isinstance(score, float) or not isinstance(kind, int):
        raise MessageError(f"byte {at}: piece {id} has a field of a wrong type")
    if not text or not NORMAL_PIECE <= kind <= BYTE_PIECE:
        raise MessageError(f"byte {at}: piece {id} has the text {text!r} and the type {kind}")
    return text, score, kind


def _check_settings(number: int, inner: dict[int, FieldValue], at: int) -> None:
    kinds: dict[int, type] = dict.fromkeys((ADD_PREFIX, REMOVE_SPACES, ESCAPE_SPACES), int) | {CHARSMAP: bytes}
    if number == TRAINER:
        kinds = dict.fromkeys((MODEL_TYPE, AS_SUFFIX, BYTE_FALLBACK, *SPECIAL_IDS.values()), int)
    for key, value in inner.items():
        if not isinstance(value, kinds.get(key, object)):
            raise MessageError(f"byte {at}: field {key} of field {number} has a wrong type")


def _warn(pieces: list[tuple[bytes, float, int]], settings: dict[int, dict[int, Any]], is_spm: bool) -> None:
    """Warns of what the converter leaves out silently, mostly because llama.cpp cannot express it."""
    trainer, normalizer, kinds = settings[TRAINER], settings[NORMALIZER], {kind for _, _, kind in pieces}
    texts = {text.decode("utf-8", "surrogateescape"): kind for text, _, kind in pieces}
    hidden = [text for text, kind in texts.items() if kind in (UNKNOWN_PIECE, CONTROL_PIECE) and len(text) <= LONGEST]
    spelled = [text for text in hidden for at in range(1, len(text)) if {text[:at], text[at:]} <= texts.keys()]
    charsmap, is_prefixed = normalizer.get(CHARSMAP, b""), normalizer.get(ADD_PREFIX, 1)
    removes, falls_back = normalizer.get(REMOVE_SPACES, 1), trainer.get(BYTE_FALLBACK)
    cases = {
        "its character map": is_spm and charsmap,
        "that it removes extra spaces": is_spm and removes,
        "that a text never spells a control piece": is_spm and (spelled or any(len(text) == 1 for text in hidden)),
        "that unknown characters side by side become one token": is_spm and not falls_back,
        "that unknown characters become bytes": not is_spm and falls_back,
        "that no space comes before the text": not is_spm and removes and not is_prefixed,
        "that a text of spaces gets one more": not is_spm and is_prefixed and not removes,
        f"that it removes {SPACE} at the end of a text": not is_spm and removes and _keeps_space(charsmap),
        "that spaces follow words": trainer.get(AS_SUFFIX) and is_prefixed,
        f"that spaces are not written as {SPACE}": not normalizer.get(ESCAPE_SPACES, 1),
        "its user-defined pieces, which become normal tokens": USER_DEFINED_PIECE in kinds,
        "that some pieces are unused": UNUSED_PIECE in kinds,
        "how it changes decoded text": settings[DENORMALIZER].get(CHARSMAP),
    }
    lost = [part for part, is_lost in cases.items() if is_lost]
    if lost:
        message = f"llama.cpp and its converter cannot represent a part of the model: {' and '.join(lost)}"
        advice = "compare ids for texts in which it matters"
        warn_of(Finding("conversion-differs", "warning", message, advice))


def _keeps_space(charsmap: bytes) -> bool:
    """Whether a character map leaves the stand-in for a space as it is."""
    return not charsmap or apply_charsmap(charsmap, SPACE) == SPACE
