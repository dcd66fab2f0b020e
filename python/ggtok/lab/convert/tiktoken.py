"""A tokenizer as a `.tiktoken` file: byte-level BPE whose merges are the ranks of tokens.

tiktoken merges the two neighbours whose bytes together are the token of the lowest rank, llama.cpp those of the lowest
merge rule. Both give the same ids for every text if

1. the bytes of UTF-8 are tokens, and every rule makes a token,
2. the rules are in the order of the tokens that they make,
3. the bytes of each token merge to that token, by a rule at the end, when all lower tokens merge first. Then they do so
   in every text, because merges between two positions that stay boundaries do not depend on what is around them. Or:
   every two tokens that make it have a rule.

A token that no rule makes never comes out of llama.cpp, so it is left out, unless `ignore_merges` looks up whole
pieces, as tiktoken always does. tiktoken drops what its pattern does not match, and llama.cpp does not, so the pattern
gets an alternative for the rest. O(n k²) for n tokens of k bytes.
"""

from __future__ import annotations

import base64
import json
from itertools import pairwise
from operator import itemgetter
from typing import Any

from ...tokenizer.base import BaseTokenizer
from .vocabulary import STAND_INS, Vocabulary

FORMAT = "tiktoken"


def exported(tokenizer: BaseTokenizer) -> tuple[bytes, dict[str, Any]]:
    """The file, and the other arguments of `tiktoken.Encoding`."""
    vocabulary = Vocabulary(tokenizer, FORMAT)
    vocabulary.need_kind("bpe")
    if not vocabulary.is_byte_level:
        vocabulary.refuse(f"it has byte-level BPE only, and the model is {tokenizer.vocab.model!r}")
    patterns = vocabulary.patterns
    if len(patterns) != 1:
        vocabulary.refuse(f"it has one pattern, and the pre-tokenizer {tokenizer.vocab.pre!r} applies {len(patterns)}")
    _check_special(vocabulary)
    ranks = _ranks(vocabulary)
    lines = [base64.b64encode(piece) + b" %d\n" % rank for piece, rank in ranks.items()]
    name = tokenizer.metadata.get("general.name")
    return b"".join(lines), {
        "name": str(name or tokenizer.vocab.pre),
        "pat_str": _total(patterns[0]),
        "special_tokens": {token.text: token.id for token in vocabulary.special},
    }


def settings_json(settings: dict[str, Any]) -> bytes:
    return json.dumps(settings, ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace")


def _ranks(vocabulary: Vocabulary) -> dict[bytes, int]:
    """The rank of each token's bytes, lowest first. Texts stand for their bytes here: each character for one."""
    spelled = {text: vocabulary.spelled(text) for text in vocabulary.texts}
    ranks = {text: id for id, text in enumerate(vocabulary.texts) if spelled[text] is not None}
    vocabulary.need_bytes(STAND_INS)

    rules: dict[str, int] = {}
    """Where a text may be split into the two sides of a rule: one bit for each length of the left side."""
    last = -1
    for left, right in vocabulary.vocab.merges:
        id = ranks.get(joined := left + right)
        if id is None or left not in ranks or right not in ranks:
            vocabulary.refuse(f"the merge of {left!r} and {right!r} is not made of tokens, or makes none")
        if id < last:
            vocabulary.refuse(f"the merges are not in the order of their tokens: {joined!r} comes too late")
        last = id
        rules[joined] = rules.get(joined, 0) | 1 << len(left)
    special = {token.id for token in vocabulary.special}
    whole = vocabulary.vocab.settings["ignore_merges"]
    ranks = {text: id for text, id in ranks.items() if len(text) == 1 or text in rules or (whole and id not in special)}
    for text, id in ranks.items():
        splits = rules.get(text, 0)
        for at in range(1, len(text)):
            if text[:at] in ranks and text[at:] in ranks and not splits >> at & 1:
                first, *others = _parts(text, id, ranks)
                if len(others) != 1 or not splits >> len(first) & 1:
                    vocabulary.refuse(f"tiktoken would make token {id} {text!r} of parts that no rule merges")
                break
    return {piece: id for text, id in sorted(ranks.items(), key=itemgetter(1)) if (piece := spelled[text]) is not None}


def _check_special(vocabulary: Vocabulary) -> None:
    """tiktoken reads any one of the special tokens that start at a place, so none may be the start of another."""
    for token in vocabulary.special:
        if token.lstrip or token.rstrip:
            vocabulary.refuse(f"its special tokens take no spaces, and {token.text!r} does")
    texts = sorted(token.text for token in vocabulary.special)
    for text, after in pairwise(texts):
        if after.startswith(text):
            vocabulary.refuse(f"it may read either of the special tokens {text!r} and {after!r} where both stand")


def _total(pattern: str) -> str:
    """A pattern that leaves nothing unmatched."""
    if pattern.endswith((r"|\s+", r"|\s{1}")):
        return pattern
    if pattern.endswith(r"|\s+(?!\S)"):
        return rf"{pattern}|\s+"
    return rf"{pattern}|(?:(?!{pattern})[\s\S])+"


def _parts(piece: str, rank: int, ranks: dict[str, int]) -> list[str]:
    """What a piece becomes if only tokens of a lower rank are made, lowest first."""
    parts = list(piece)
    joined = [ranks.get(left + right, rank) for left, right in pairwise(parts)]
    while len(parts) > 2 and (lowest := min(joined)) < rank:
        at = joined.index(lowest)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
        del joined[at]
        for pair in range(max(at - 1, 0), min(at + 1, len(joined))):
            joined[pair] = ranks.get(parts[pair] + parts[pair + 1], rank)
    return parts
