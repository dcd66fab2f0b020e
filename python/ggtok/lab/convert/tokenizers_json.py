"""A tokenizer as the `tokenizer.json` of huggingface/tokenizers.

| kind | model there | what else |
| --- | --- | --- |
| bpe | `BPE` over bytes | the family's patterns, each a `Split`; Gemma 4: `BPE` with byte fallback |
| spm | `BPE` with byte fallback | merges by score, for every two tokens that are a third one together |
| wpm | `WordPiece` | `BertNormalizer`; continuations get `##`, unless `▁` is a token |
| ugm | `Unigram` | the character map, spaces merged or kept |

O(n k) for n tokens of k characters.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, TypeAlias

from ...tokenizer.base import BaseTokenizer
from .vocabulary import BYTE, BYTE_TOKENS, CONTROL, SPACE, UNKNOWN, Vocabulary

Json: TypeAlias = dict[str, Any]

FORMAT = "tokenizer.json"

NUM_SYLLABLES = 588
"""Hangul syllables that begin with the same letter."""

MAX_WORD = 2**31 - 1
"""llama.cpp knows no longest word."""

STRIP_SPACES: Json = {"type": "Replace", "pattern": {"Regex": r"\A +| +\z"}, "content": ""}
"""As llama.cpp's Unigram does; `Strip` takes other white space too."""


def exported(tokenizer: BaseTokenizer) -> bytes:
    vocabulary = Vocabulary(tokenizer, FORMAT)
    vocabulary.need_kind("bpe", "spm", "wordpiece", "unigram")
    kinds = {"bpe": _bpe, "spm": _spm, "wordpiece": _wpm, "unigram": _ugm}
    file = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": token.id,
                "content": token.text,
                "single_word": False,
                "lstrip": token.lstrip,
                "rstrip": token.rstrip,
                "normalized": False,
                "special": token.is_control,
            }
            for token in vocabulary.special
        ],
        **kinds[vocabulary.vocab.kind](vocabulary),
        "post_processor": _template(vocabulary),
    }
    return json.dumps(file, ensure_ascii=False).encode()


def _of(type: str, **settings: object) -> Json:
    """A component by its type."""
    return {"type": type, **settings}


def _sequence(what: str, *steps: Json) -> Json | None:
    """Components applied in sequence: `what` is the name of the list."""
    if len(steps) < 2:
        return steps[0] if steps else None
    return _of("Sequence", **{what: list(steps)})


def _bpe_model(vocab: dict[str, int], merges: list[tuple[str, str]], **settings: object) -> Json:
    defaults: Json = {"dropout": None, "unk_token": None, "continuing_subword_prefix": None}
    defaults |= {"end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False}
    return _of("BPE", **defaults | settings, vocab=vocab, merges=[list(merge) for merge in merges])


def _bpe(vocabulary: Vocabulary) -> Json:
    vocab, by_text = vocabulary.vocab, vocabulary.by_text
    is_gemma = vocab.model == "gemma4"
    if not is_gemma and not vocabulary.is_byte_level:
        vocabulary.refuse(f"the model {vocab.model!r} with the pre-tokenizer {vocab.pre!r} is llama.cpp's own")
    for left, right in vocab.merges:
        if not (left in by_text and right in by_text and left + right in by_text):
            vocabulary.refuse(f"the merge of {left!r} and {right!r} is not made of tokens, or makes none")
    splits = [
        _of("Split", pattern={"Regex": pattern}, behavior="Isolated", invert=False) for pattern in vocabulary.patterns
    ]
    if is_gemma:
        vocabulary.need_bytes(BYTE_TOKENS)
        return {
            "normalizer": ESCAPE,
            "pre_tokenizer": _sequence("pretokenizers", *splits),
            "decoder": _sequence("decoders", *UNESCAPE),
            "model": _fallback_model(vocabulary, vocab.merges),
        }
    bytes_only = _of("ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=False)
    return {
        "normalizer": None,
        "pre_tokenizer": _sequence("pretokenizers", *splits, bytes_only),
        "decoder": bytes_only,
        "model": _bpe_model(by_text, vocab.merges, ignore_merges=vocab.settings["ignore_merges"]),
    }


def _fallback_model(vocabulary: Vocabulary, merges: list[tuple[str, str]]) -> Json:
    """BPE whose texts that are not tokens become bytes."""
    id = vocabulary.vocab.unk_id
    unknown = None if id is None else vocabulary.texts[id]
    return _bpe_model(vocabulary.by_text, merges, byte_fallback=True, fuse_unk=True, unk_token=unknown)


ESCAPE = _of("Replace", pattern={"String": " "}, content=SPACE)
UNESCAPE = (_of("Replace", pattern={"String": SPACE}, content=" "), _of("ByteFallback"), _of("Fuse"))


def _spm(vocabulary: Vocabulary) -> Json:
    vocabulary.need_bytes(BYTE_TOKENS)
    prefix, strip = [], []
    if vocabulary.vocab.settings["add_space_prefix"]:
        prefix = [_of("Prepend", prepend=SPACE)]
        strip = [_of("Strip", content=" ", start=1, stop=0)]
    return {
        "normalizer": _sequence("normalizers", *prefix, ESCAPE),
        "pre_tokenizer": None,
        "decoder": _sequence("decoders", *UNESCAPE, *strip),
        "model": _fallback_model(vocabulary, _merges_by_score(vocabulary)),
    }


def _merges_by_score(vocabulary: Vocabulary) -> list[tuple[str, str]]:
    """Every two tokens that are a third one together, the highest score first.

    Of several pairs with the highest score SPM merges the leftmost. Ranks cannot say so. It matters where the pairs
    overlap: pairs that make the same token, in a run of one character, and pairs whose tokens have equal scores.
    """
    by_text, found = vocabulary.by_text, []
    for text, id in by_text.items():
        if not vocabulary.attributes[id] & (CONTROL | UNKNOWN | BYTE):
            splits = [(text[:at], text[at:]) for at in range(len(text) - 1, 0, -1)]
            pairs = [pair for pair in splits if all(side in by_text or len(side) == 1 for side in pair)]
            if missing := next((side for pair in pairs for side in pair if side not in by_text), None):
                vocabulary.refuse(f"it cannot make {text!r} of {missing!r}, which is not a token")
            found += [(-vocabulary.scores[id], -len(text), *pair) for pair in pairs]
    return [(left, right) for _, _, left, right in sorted(found, key=lambda pair: pair[:2])]


def _wpm(vocabulary: Vocabulary) -> Json:
    settings = vocabulary.vocab.settings
    unknown = vocabulary.vocab.unk_id
    if unknown is None:
        vocabulary.refuse("a word that is not a token needs an unknown token, and there is none")
    special = {token.id for token in vocabulary.special}
    texts, steps = vocabulary.texts, [_of("BertPreTokenizer")]
    if SPACE in texts:
        prefix, decoder = "", _of("Metaspace", replacement=SPACE, prepend_scheme="always", split=False)
        steps.append(decoder)
    else:
        prefix, decoder = "##", _of("WordPiece", prefix="##", cleanup=settings["clean_spaces"])
        texts = [
            text if id in special else text[1:] if text.startswith(SPACE) else prefix + text
            for id, text in enumerate(texts)
        ]
    before = list(before_bert(settings["strip_accents"]))
    flags = {name: settings[name] for name in ("strip_accents", "lowercase")}
    bert = _of("BertNormalizer", clean_text=True, handle_chinese_chars=True, **flags)
    by_text: dict[str, int] = {}
    for id, text in enumerate(texts):
        if by_text.setdefault(text, id) != id:
            vocabulary.refuse(f"the tokens {by_text[text]} and {id} would both be {text!r}")
    return {
        "normalizer": _sequence("normalizers", *before, bert),
        "pre_tokenizer": _sequence("pretokenizers", *steps),
        "decoder": decoder,
        "model": _of(
            "WordPiece",
            unk_token=texts[unknown],
            continuing_subword_prefix=prefix,
            max_input_chars_per_word=MAX_WORD,
            vocab=by_text,
        ),
    }


def before_bert(strips_accents: bool) -> Iterator[Json]:
    """Where llama.cpp is not BERT: some controls are spaces, all marks go, Hangul keeps its first letter."""

    def replace(pattern: str, content: str) -> Json:
        return _of("Replace", pattern={"Regex": pattern}, content=content)

    yield replace(r"[\x0B\x0C\x{85}]", " ")
    if strips_accents:
        yield replace(r"\p{M}", "")
        for at, first in enumerate(range(0xAC00, 0xD7A4, NUM_SYLLABLES)):
            yield replace(f"[{chr(first)}-{chr(first + NUM_SYLLABLES - 1)}]", chr(0x1100 + at))


def _ugm(vocabulary: Vocabulary) -> Json:
    settings, charsmap = vocabulary.vocab.settings, vocabulary.charsmap
    if vocabulary.vocab.unk_id is None:
        vocabulary.refuse("a character that is not a token needs an unknown token, and there is none")
    steps = [_of("Precompiled", precompiled_charsmap=base64.b64encode(charsmap).decode())] if charsmap else []
    prefix = "always"
    if settings["remove_extra_whitespaces"]:
        steps.append(STRIP_SPACES)
        steps.append(_of("Replace", pattern={"Regex": " {2,}"}, content=" "))
    else:
        prefix = "never"
        if settings["add_space_prefix"]:  # before the first word, also after a space
            steps.append(_of("Replace", pattern={"Regex": r"\A(?= *[^ ])"}, content=" "))
    spaces = _of("Metaspace", replacement=SPACE, prepend_scheme=prefix, split=False)
    return {
        "normalizer": _sequence("normalizers", *steps),
        "pre_tokenizer": spaces,
        "decoder": spaces,
        "model": _of(
            "Unigram",
            unk_id=vocabulary.vocab.unk_id,
            byte_fallback=False,
            vocab=[list(pair) for pair in zip(vocabulary.texts, vocabulary.unigram_scores, strict=True)],
        ),
    }


def _template(vocabulary: Vocabulary) -> Json | None:
    """BOS, EOS and SEP around a text, as `encode` adds them."""
    vocab = vocabulary.vocab
    before = vocab.bos_id if vocab.add_bos or vocab.kind == "wordpiece" else None
    after = vocab.sep_id if vocab.kind == "wordpiece" else vocab.eos_id if vocab.add_eos else None
    if before is None and after is None:
        return None
    ids = {vocabulary.texts[id]: id for id in (before, after) if id is not None}

    def text(name: str, type_id: int, first: bool = True) -> list[Json]:
        special = {id: {"SpecialToken": {"id": text, "type_id": type_id}} for text, id in ids.items()}
        start = [special[before]] if before is not None and first else []
        end = [special[after]] if after is not None else []
        return [*start, {"Sequence": {"id": name, "type_id": type_id}}, *end]

    return _of(
        "TemplateProcessing",
        single=text("A", 0),
        pair=[*text("A", 0), *text("B", 1, first=vocab.kind != "wordpiece")],
        special_tokens={text: {"id": text, "ids": [id], "tokens": [text]} for text, id in ids.items()},
    )
