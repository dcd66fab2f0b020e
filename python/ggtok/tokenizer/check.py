"""Problems with a tokenizer's file: each finding has a code, a severity, and what to do about it.

The checks of `AT_LOAD` look up a few tokens by text, so they are made for every file that is opened. The others look at
all tokens. Two go through all merges, which takes seconds in Python for a large vocabulary: `_ggtok.unused_merges` and
`_ggtok.unreachable_tokens` do that. `docs/check.md` lists the codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Literal, NamedTuple, TypeAlias

from .._ggtok import Array, ChatTemplate, Metadata, merges, pretokenizers, texts, unreachable_tokens, unused_merges
from .findings import Finding, warn_of
from .keys import CHAT_TEMPLATE, GGML, PRE, SPECIAL, read_types
from .metadata import BOM, scalars
from .vocab import TokenAttribute, Vocab, attributes, ids_with, scores

Check: TypeAlias = Callable[[Vocab, Metadata], Iterator[Finding]]

NOT_IN_UTF8 = frozenset((0xC0, 0xC1, *range(0xF5, 0x100)))
"""The bytes that no UTF-8 text has."""

NUM_SHOWN = 3

CONVERT = "converting the model again would help"

PUNCTUATION = b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
"""ASCII's."""


def check(vocab: Vocab, metadata: Metadata, of_llama_cpp: Iterable[Finding] = ()) -> list[Finding]:
    """All findings, the most severe first, with those about llama.cpp."""
    found = [*of_llama_cpp]
    found += [finding for check in (*AT_LOAD, *THOROUGH) for finding in check(vocab, metadata)]
    # An override is not mended in the file.
    found = [each._replace(repair=None) if each.key in metadata.overrides else each for each in found]
    return sorted(found, key=lambda finding: ("error", "warning", "note").index(finding.severity))


def warn(vocab: Vocab, metadata: Metadata) -> None:
    """Warns of errors that are cheap to find."""
    for check in AT_LOAD:
        for finding in check(vocab, metadata):
            if finding.code == "override-type":
                # As llama.cpp does.
                import logging

                logging.getLogger("ggtok").warning("%s", finding.message)
            elif finding.severity == "error":
                warn_of(finding)


class Origin(NamedTuple):
    """A well-known vocabulary: its pre-tokenizer, and tokens with ids that identify it."""

    pre: str
    name: str
    tokens: tuple[tuple[str, int], ...]
    is_certain: bool = True
    """Whether no other pre-tokenizer is used with these tokens."""


ORIGINS = (
    Origin("llama-bpe", "Llama 3", (("What", 3923), ("Hello", 9906), ("\u0120return", 471))),
    Origin("qwen2", "Qwen 2", (("What", 3838), ("Hello", 9707), ("\u0120return", 470))),
    Origin("deepseek-llm", "DeepSeek LLM", (("What", 2640), ("Hello", 17464), ("\u0120return", 972))),
    Origin("mpt", "MPT", (("What", 1276), ("Hello", 12092), ("\u0120return", 1091)), is_certain=False),
    Origin("gpt-2", "GPT-2", (("What", 2061), ("Hello", 15496), ("\u0120return", 1441)), is_certain=False),
    Origin("gpt-4o", "GPT-4o", (("<|endoftext|>", 199999), ("<|endofprompt|>", 200018))),
    Origin("llama4", "Llama 4", (("<|begin_of_text|>", 200000), ("<|header_start|>", 200005))),
    Origin("tekken", "Mistral's Tekken", (("<s>", 1), ("</s>", 2), ("[INST]", 3), ("[/INST]", 4))),
)


def origin_of(id_of: Callable[[str], int | None]) -> Origin | None:
    """The well-known vocabulary that one with these ids is, or extends."""
    return next((origin for origin in ORIGINS if all(id_of(text) == id for text, id in origin.tokens)), None)


def _shown(vocab: Vocab, ids: list[int]) -> str:
    """How many tokens, and the first of them."""
    texts = ", ".join(repr(vocab[id].text) for id in ids[:NUM_SHOWN])
    return f"{len(ids):,} token{'s' * (len(ids) != 1)} ({texts}{', ...' * (len(ids) > NUM_SHOWN)})"


def _pre(vocab: Vocab, metadata: Metadata) -> Iterator[Finding]:
    if vocab.model not in ("gpt2", "hybriddna", "whitespace"):
        return
    given, origin = metadata.overrides.get(PRE), origin_of(vocab.id)
    if not isinstance(given, str):
        given = str(metadata.get(PRE) or "")
    repair = origin and {"metadata": {PRE: origin.pre}}
    right = origin and f'its tokens are those of {origin.name}: open it with overrides={{"{PRE}": "{origin.pre}"}}'
    if not given.partition("\0")[0]:
        message = "the file names no pre-tokenizer: the default is used, and the ids may differ from the model's"
        yield Finding("pre-missing", "error", message, right or CONVERT, PRE, (), repair)
    elif vocab.pre == "default":
        message = "the file names the pre-tokenizer default, which was not made for any model: the ids may differ"
        advice = right or f'if the model has another, open it with overrides={{"{PRE}": ...}}'
        yield Finding("pre-default", "error" if origin else "warning", message, advice, PRE, (), repair)
    elif right and origin and origin.is_certain and _family(vocab.pre) != _family(origin.pre):
        message = f"the file names the pre-tokenizer {vocab.pre}, which cuts texts differently from {origin.pre}"
        yield Finding("pre-differs", "warning", message, right, PRE, (), repair)


def _family(name: str | None) -> object:
    """What the texts of a pre-tokenizer are cut by, or the name of one that is not known."""
    row = pretokenizers().get(name or "")
    return row["family"] if row else name


def _added(vocab: Vocab, metadata: Metadata) -> Iterator[Finding]:
    wanted: tuple[tuple[str, bool, int | None, str], ...] = ()
    if vocab.kind in ("spm", "bpe", "unigram", "plamo2"):
        wanted = (("BOS", vocab.add_bos, vocab.bos_id, "bos"), ("EOS", vocab.add_eos, vocab.eos_id, "eos"))
    elif vocab.kind == "wordpiece":
        wanted = (("BOS", True, vocab.bos_id, "bos"), ("SEP", True, vocab.sep_id, "seperator"))
    for name, is_added, id, key in wanted:
        if is_added and id is None:
            key = f"{GGML}{key}_token_id"
            message = f"{name} is added to every text and the vocabulary has none, so encoding fails"
            advice = f'name it with overrides={{"{key}": ...}}'
            repair = None
            if vocab.kind != "wordpiece":
                flag = f"{GGML}add_{name.lower()}_token"
                advice += f' or leave it out with overrides={{"{flag}": False}}'
                repair = {"metadata": {flag: False}}
            yield Finding("added-missing", "error", message, advice, key, (), repair)


def _overrides(vocab: Vocab, metadata: Metadata) -> Iterator[Finding]:
    overrides = metadata.overrides
    if not overrides:
        return
    types = read_types(scalars(metadata).get("general.architecture", ""))
    for key, value in overrides.items():
        old, expected = metadata.get(key), types.get(key)
        if isinstance(old, Array):
            message = f"the override of {key} has no effect: the value is an array"
            yield Finding("override-array", "error", message, "leave it out, or convert the model again", key)
        elif expected is not None and type(value).__name__ != expected:
            message = f"the override of {key} has no effect: it is {type(value).__name__}, not {expected}"
            yield Finding("override-type", "error", message, f"give it as {expected}", key)
        elif expected is None and old is None and not key.startswith(CHAT_TEMPLATE):
            from difflib import get_close_matches

            near = get_close_matches(key, [*types, *metadata.entries()], 1)
            advice = f"did you mean {near[0]}?" if near else "leave it out"
            message = f"the override of {key} has no effect: neither the file nor ggtok has such a key"
            yield Finding("override-unknown", "error" if key.startswith("tokenizer.") else "note", message, advice, key)


def _ends(vocab: Vocab, metadata: Metadata) -> Iterator[Finding]:
    if vocab.kind in ("spm", "bpe", "unigram", "rwkv", "plamo2") and not vocab.eog_ids:
        message = "no token ends generation: the file names no EOS, and none was found by its text"
        key = f"{GGML}eos_token_id"
        yield Finding("end-missing", "warning", message, f'name it with overrides={{"{key}": ...}}', key)


def _unknown(vocab: Vocab, metadata: Metadata) -> Iterator[Finding]:
    if vocab.kind in ("wordpiece", "unigram") and vocab.unk_id is None:
        message = "the vocabulary has no unknown token: text that no token covers becomes the id -1"
        key = f"{GGML}unknown_token_id"
        yield Finding("unknown-missing", "warning", message, f'name it with overrides={{"{key}": ...}}', key)


def _out_of_range(vocab: Vocab, metadata: Metadata) -> Iterator[Finding]:
    for slot, key in SPECIAL.items():
        id = scalars(metadata).get(GGML + key)
        if type(id) is int and id & 0xFFFFFFFF >= len(vocab):
            message = f"the {slot} id {id & 0xFFFFFFFF} is out of range: ignored"
            advice = "the file is damaged, or was made from another model's vocabulary: convert the model again"
            repair = {"metadata": {GGML + key: None}}
            yield Finding("special-outside", "warning", message, advice, GGML + key, (), repair)


def _specials(vocab: Vocab, metadata: Metadata) -> Iterator[Finding]:
    """Tokens that a text should not be able to spell, and can."""
    if vocab.kind in ("none", "test", "rwkv"):
        return
    normal = {*ids_with(vocab, TokenAttribute.NORMAL)}
    names = ("bos", "eos", "eot", "eom", "sep", "pad", "mask", "fim_pre", "fim_suf", "fim_mid")
    raw = texts(vocab._core)
    ids = sorted({id for name in names if (id := getattr(vocab, f"{name}_id")) in normal})
    advice = "do not trust such tokens in text from users; converting the model again would help"
    key = f"{GGML}token_type"
    if ids:
        message = f"{_shown(vocab, ids)} with a special role marked as normal: any text can spell them"
        repair = _retyped(ids) if all(_is_tag(raw[id]) for id in ids) else None
        yield Finding("special-normal", "warning", message, advice, key, tuple(ids), repair)


def _is_tag(text: bytes) -> bool:
    """Whether a text looks like markup: `<|x>`, `<x|>`, `[X]`, `]~x]`. It begins and ends with punctuation."""
    return text[0] in PUNCTUATION and text[-1] in PUNCTUATION and len(set(text)) > 1


def _retyped(ids: list[int]) -> dict[str, list[dict[str, object]]]:
    return {"tokens": [{"id": id, "type": "control"} for id in ids]}


def _bytes(vocab: Vocab, metadata: Metadata) -> Iterator[Finding]:
    if vocab.model in ("gpt2", "hybriddna") and not vocab.settings["escape_whitespaces"]:
        missing = [byte for byte in range(256) if vocab.id_of_piece(bytes([byte])) is None]
        in_text = [byte for byte in missing if byte not in NOT_IN_UTF8]
        if in_text:
            message = f"{len(in_text)} of the bytes of UTF-8 have no token: characters with them are lost"
            yield Finding("bytes-missing", "error", message, CONVERT)
        elif missing:
            lost = "in texts that are not UTF-8 they are lost"
            message = f"{len(missing)} bytes that UTF-8 never has have no token: {lost}"
            yield Finding("bytes-missing", "note", message, "some bytes objects differ after encoding and decoding")
    elif vocab.kind == "spm":
        missing = [byte for byte in range(256) if vocab.id(b"<0x%02X>" % byte) is None]
        if missing:
            message = f"{len(missing)} of the 256 bytes have no byte token: a character without a token becomes unknown"
            severity: Literal["warning", "note"] = "warning" if len(missing) < 256 else "note"
            yield Finding("bytes-missing", severity, message, "some texts differ after encoding and decoding")


def _merges(vocab: Vocab, metadata: Metadata) -> Iterator[Finding]:
    rules = merges(vocab._core)
    if vocab.kind not in ("bpe", "spm") or vocab.model == "hybriddna":
        return
    advice = "if a merge is missing the ids are wrong: compare the file with the model's own tokenizer"
    unreachable = [] if vocab.settings["ignore_merges"] else unreachable_tokens(vocab._core)
    if unreachable:
        message = f"{_shown(vocab, unreachable)} can never be produced: no merge makes them"
        yield Finding("tokens-unreachable", "note", message, advice, f"{GGML}tokens", tuple(unreachable))
    unused = unused_merges(vocab._core)
    if unused:
        shown = ", ".join(repr(rules[rank].decode("utf-8", "replace")) for rank in unused[:NUM_SHOWN])
        shown += ", ..." * (len(unused) > NUM_SHOWN)
        message = f"{len(unused):,} merges ({shown}) make a text that is not a token"
        yield Finding("merges-unused", "warning", message, advice, f"{GGML}merges")


def _scores(vocab: Vocab, metadata: Metadata) -> Iterator[Finding]:
    if vocab.kind not in ("spm", "unigram", "plamo2"):
        return
    key, advice = f"{GGML}scores", "convert the model again"
    values = scores(vocab)
    bad = [id for id, score in enumerate(values) if score != score or score == float("inf")]
    if bad:
        message = f"{_shown(vocab, bad)} have a score that is NaN or infinite"
        yield Finding("scores-odd", "error", message, advice, key, tuple(bad))
    elif len(values) > 1 and not any(values):
        message = "all scores are 0, so tokens are chosen by their position alone"
        yield Finding("scores-missing", "error", message, advice, key)


def _size(vocab: Vocab, metadata: Metadata) -> Iterator[Finding]:
    key = f"{scalars(metadata).get('general.architecture', '')}.vocab_size"
    size = scalars(metadata).get(key)
    if size is not None and size != len(vocab):
        message = f"{key} is {size} and there are {len(vocab)} tokens"
        repair = {"metadata": {key: len(vocab)}}
        yield Finding("size-differs", "warning", message, "do not use it as the number of tokens", key, (), repair)


def _template(vocab: Vocab, metadata: Metadata) -> Iterator[Finding]:
    import re

    from ..errors import ChatTemplateError

    for key, text in scalars(metadata).items():
        if not f"{key}.".startswith(f"{CHAT_TEMPLATE}.") or not isinstance(text, str):
            continue
        if text.startswith(BOM):
            message = "the chat template begins with a byte order mark, which every prompt then begins with"
            repair = {"metadata": {key: text.removeprefix(BOM)}}
            yield Finding("template-bom", "error", message, "remove it from the file", key, (), repair)
        try:
            template = ChatTemplate(text, key)
        except ChatTemplateError as error:
            yield Finding("template-unsound", "error", str(error), "pass another one with template_text=", key)
            continue
        yield from _unknown_names(template, key)
        if "\n" not in text and any(rb"\n" in literal for literal, is_constant in template.literals if not is_constant):
            message = r"the line ends of the chat template are spelled \n, which prompts then contain"
            repair = {"metadata": {key: text.replace(r"\n", "\n")}}
            yield Finding("template-newlines", "error", message, "write real line ends", key, (), repair)
        yield from _written(vocab, template, key)
    bos = vocab[vocab.bos_id].text if vocab.bos_id is not None else None
    main = scalars(metadata).get(CHAT_TEMPLATE)
    if isinstance(main, str) and vocab.add_bos and bos and (re.search(r"\bbos_token\b", main) or bos in main):
        message = "the chat template writes BOS, which encode adds too: a prompt rendered elsewhere would have it twice"
        yield Finding("template-bos", "note", message, "use encode_chat, which adds it once", CHAT_TEMPLATE)


def _unknown_names(template: ChatTemplate, key: str) -> Iterator[Finding]:
    """Filters and tests that llama.cpp lacks: an error if a plain conversation needs them."""
    from ..errors import ChatTemplateError

    if not template.unknown:
        return
    failure = ""
    try:
        template.render({"messages": [{"role": "user", "content": "Hi"}]})
    except ChatTemplateError as error:
        failure = str(error)
    for line, column, problem in template.unknown:
        is_needed = problem.removeprefix("llama.cpp has ") in failure
        severity: Literal["error", "warning"] = "error" if is_needed else "warning"
        message = f"chat template {key!r}, line {line}, column {column}: {problem}"
        yield Finding("template-unknown", severity, message, "it fails there, as in llama.cpp", key)


def _written(vocab: Vocab, template: ChatTemplate, key: str) -> Iterator[Finding]:
    """Tokens that the template writes and that are not control tokens, and texts that should be tokens."""
    import re

    if vocab.kind in ("none", "test"):
        return
    text = b"\0".join(literal for literal, _ in template.literals)
    bits = attributes(vocab)
    tokens = {id: token for id, token in enumerate(texts(vocab._core)) if _is_tag(token) and token in text}
    encode = partial(vocab._core.encode, add_special=False, parse_special=True, continues=True)
    never = [id for id in tokens if bits[id] & TokenAttribute.NORMAL and encode(tokens[id]) != [id]]
    if never:
        message = f"the chat template writes {_shown(vocab, never)} marked as normal: no prompt contains them as tokens"
        advice = "mark them as control tokens"
        yield Finding("template-normal", "error", message, advice, key, tuple(never), _retyped(never))
    spelled = TokenAttribute.USER_DEFINED | TokenAttribute.CONTROL
    anyone = [id for id in tokens if bits[id] & spelled == TokenAttribute.USER_DEFINED]
    if anyone:
        message = f"the chat template writes {_shown(vocab, anyone)} marked as user-defined: any text can spell them"
        advice = "encode_chat(..., refuse_user_defined=True) refuses messages that do"
        yield Finding("template-user-defined", "warning", message, advice, key, tuple(anyone))
    written = dict.fromkeys(re.findall(rb"<\|[A-Za-z0-9_]+\|>|<(?:start|end)_of_turn>", text))
    absent = [each.decode() for each in written if each not in vocab]
    if absent:
        message = f"the chat template writes {', '.join(absent)}, and the vocabulary has no such tokens"
        yield Finding("template-tokens", "warning", message, "check that the template belongs to the model", key)


def _controls_in_text(vocab: Vocab, metadata: Metadata) -> Iterator[Finding]:
    """Control tokens that the algorithm makes of their text, although `parse_special` is off."""
    if vocab.kind in ("none", "test"):
        return
    raw, controls = texts(vocab._core), {*ids_with(vocab, TokenAttribute.CONTROL)} - {vocab.unk_id}
    made = (vocab._core.encode(raw[id], add_special=False, continues=True) for id in controls)
    ids = sorted(controls.intersection(chain.from_iterable(made)))
    if ids:
        message = f"any text can spell {_shown(vocab, ids)}: this vocabulary reads control tokens as ordinary ones"
        advice = "llama.cpp does too; encode_parts and encode_chat refuse such texts"
        yield Finding("control-in-text", "note", message, advice, f"{GGML}token_type", tuple(ids))


AT_LOAD: tuple[Check, ...] = (_pre, _added, _overrides)
THOROUGH: tuple[Check, ...] = (
    *(_ends, _unknown, _out_of_range, _specials, _bytes, _merges, _scores, _size, _template, _controls_in_text),
)
