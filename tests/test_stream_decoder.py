"""Streaming decode: however ids are cut, the result is what `decode` returns, and nothing is held back needlessly."""

from __future__ import annotations

import copy
import itertools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import ggtok
import numpy as np
import pytest
from conftest import every_kind, shared_files
from ggtok import StreamDecoder, TokenIndexError, Tokenizer
from hypothesis import given, note
from hypothesis import strategies as st
from oracles import decode, strategies
from oracles.gguf_vocab import Vocab
from oracles.spelling import BYTE_TOKENS

FLAGS: list[dict[str, Any]] = [
    dict(zip(("remove_special", "unparse_special", "clean_spaces"), flags, strict=True))
    for flags in itertools.product((False, True), repeat=3)
]
STOPS = st.lists(st.text("ab?. '<s>\u00e9\ufffd", min_size=1, max_size=4), max_size=3)
BPE = Tokenizer.builtin("bpe")
SPM = Tokenizer.builtin("spm")
EMOJI = BPE.encode("\U0001f600")


def ids_of(vocab: Vocab, tok: Tokenizer, data: st.DataObject) -> list[int]:
    """Ids that encode a text, or any ids; often with BOS or EOS in places where they are removed or not."""
    any_ids = st.lists(st.one_of(st.integers(0, len(vocab.texts) - 1), st.sampled_from([1, 2])), max_size=12)
    encoded = strategies.texts(vocab).map(lambda text: [id for id in tok.encode(text, parse_special=True) if id >= 0])
    return data.draw(st.one_of(any_ids, encoded))


def parts(ids: list[int], data: st.DataObject) -> list[Any]:
    """The ids one by one, or in lists, some of them empty."""
    if data.draw(st.booleans()):
        return list(ids)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(ids)), max_size=4)))
    return [ids[start:end] for start, end in zip([0, *cuts], [*cuts, len(ids)], strict=True)]


def first_stop(text: Any, stop: list[Any]) -> tuple[Any, Any]:
    """The text up to the first stop string, and that string: the shortest of those that begin there."""
    found = [(text.find(string), len(string), string) for string in stop if string in text]
    if not found:
        return text, None
    start, _, string = min(found)
    return text[:start], string


@every_kind
def test_parts_are_decoded_as_the_whole(kind: str, data: st.DataObject) -> None:
    vocab, tok = strategies.drawn(kind, data)
    ids, stop = ids_of(vocab, tok, data), data.draw(STOPS)
    for flags in FLAGS:
        note(f"{ids} {stop} {flags}")
        for text, whole in ((True, tok.decode(ids, **flags)), (False, tok.decode_bytes(ids, **flags))):
            strings: list[Any] = stop if text else [string.encode() for string in stop]
            settings: Any = {"stop": strings, "text": text, **flags}
            decoder: StreamDecoder[Any] = tok.decoder(**settings)
            out = [decoder.push(part) for part in parts(ids, data)]
            out.append(decoder.flush())
            assert (type(out[0])().join(out), decoder.stopped) == first_stop(whole, strings)


@every_kind
def test_a_prompt_is_context_and_does_not_come_out(kind: str, data: st.DataObject) -> None:
    vocab, tok = strategies.drawn(kind, data)
    prompt, ids, stop = ids_of(vocab, tok, data), ids_of(vocab, tok, data), data.draw(STOPS)
    for flags in FLAGS:
        note(f"{prompt} {ids} {stop} {flags}")
        expected = decode.decode(vocab, ids, prompt=prompt, **flags)
        for text, whole in ((True, expected.decode(errors="replace")), (False, expected)):
            strings: list[Any] = stop if text else [string.encode() for string in stop]
            settings: Any = {"stop": strings, "text": text, **flags}
            decoder: StreamDecoder[Any] = tok.decoder(**settings)
            for part in parts(prompt, data):
                decoder.prime(part if isinstance(part, list) else [part])
            out = [decoder.push(part) for part in parts(ids, data)]
            out.append(decoder.flush())
            assert (type(out[0])().join(out), decoder.stopped) == first_stop(whole, strings)


@given(data=st.data())
def test_exactly_what_may_change_is_held_back(data: st.DataObject) -> None:
    """With byte tokens everything that could follow can be tried: the output is what all continuations share."""
    ids = [3 + byte for byte in data.draw(st.text("ab\u00e9\U0001f600", max_size=4)).encode()]
    ids += data.draw(st.lists(st.sampled_from([3 + byte for byte in b"ab\x80\xc3\xa9\xe2\xf0\x9f"]), max_size=5))
    stop = data.draw(st.lists(st.text("ab\u00e9", min_size=1, max_size=4), max_size=3))
    tok = Tokenizer.from_gguf(BYTE_VOCAB.gguf())
    decoder = tok.decoder(stop=stop)
    out = ""
    for at, id in enumerate(ids):
        out += decoder.push(id)
        text = bytes(id - 3 for id in ids[: at + 1])
        if decoder.stopped is not None:
            break
        continued = [b"", b"x", b"\xff", *(bytes([byte]) + b"\x80" * n for byte in range(0x80, 0xC0) for n in range(3))]
        continued += [string.encode()[start:] for string in stop for start in range(len(string.encode()))]
        continued += [ending + string.encode() for ending in (b"\x80", b"\xa9", b"\xbf") for string in stop]
        ends = [first_stop((text + more).decode(errors="replace"), stop)[0] for more in continued]
        assert all(end.startswith(out) for end in ends)
        longer = {end[len(out) : len(out) + 1] for end in ends}
        assert len(longer) > 1 or longer == {""}, (text, out, longer)


BYTE_VOCAB = Vocab(
    "llama", [b"<unk>", b"<s>", b"</s>", *BYTE_TOKENS], [2, 3, 3, *[6] * 256], [0.0] * 259, bos=1, eos=2, unk=0
)


def test_a_prompt_that_ends_inside_a_character() -> None:
    """Nothing of the prompt leaks; the bytes that complete the character are not a character by themselves."""
    assert len(EMOJI) > 1
    prompt, rest = [*BPE.encode("secret "), *EMOJI[:1]], [*EMOJI[1:], *BPE.encode("!")]
    text, raw = BPE.decoder(), BPE.decoder(text=False)
    for decoder in (text, raw):
        decoder.prime(prompt)
    completing = BPE.decode_bytes(EMOJI[1:])
    assert b"".join([raw.push(rest), raw.flush()]) == completing + b"!"
    assert "".join([text.push(rest), text.flush()]) == completing.decode(errors="replace") + "!"
    assert "secret" not in BPE.decode(rest)


def test_the_first_space_after_a_prompt_stays() -> None:
    prompt, answer = SPM.encode("What is"), SPM.encode("LoRA?", add_special=False)
    alone, primed = SPM.decoder(), SPM.decoder()
    primed.prime(prompt)
    assert (alone.push(answer), primed.push(answer)) == ("LoRA?", " LoRA?")
    prompts: list[Any] = [[], [SPM.vocab.bos_id]]
    for empty in prompts:
        begun = SPM.decoder()
        begun.prime(empty)
        assert begun.push(answer) == "LoRA?"


def test_a_prompt_comes_first() -> None:
    decoder = BPE.decoder()
    decoder.push([])
    with pytest.raises(ValueError, match="a prompt comes before the first id"):
        decoder.prime([5981])
    decoder.flush()
    with pytest.raises(ValueError, match=r"flush\(\) was called"):
        decoder.prime([5981])


def test_what_push_takes() -> None:
    ids = BPE.encode("What is LoRA?")
    whole = BPE.decode(ids)
    takes: list[Any] = [ids, tuple(ids), iter(ids), np.array(ids), np.array(ids, np.int32), (id for id in ids)]
    for taken in takes:
        assert BPE.decoder().push(taken) == whole
    decoder = BPE.decoder()
    assert "".join(decoder.push(id) for id in np.array(ids)) == whole
    wrongs: list[Any] = [None, 1.5, "a", [b"a"], ["a"], object()]
    for wrong in wrongs:
        with pytest.raises(TypeError):
            decoder.push(wrong)


def test_an_unknown_id_changes_nothing() -> None:
    decoder = BPE.decoder()
    out = decoder.push(EMOJI[:1])
    wrongs: list[Any] = [-1, len(BPE.vocab), 2**70, [9713, -1], [9713, 2**40]]
    for wrong in wrongs:
        with pytest.raises(TokenIndexError):
            decoder.push(wrong)
    assert out + decoder.push(EMOJI[1:]) == "\U0001f600"


def test_after_the_end() -> None:
    decoder = BPE.decoder(stop=" is")
    assert decoder.push(BPE.encode("What is LoRA?")) == "What"
    assert decoder.stopped == " is"
    assert (decoder.push(9713), decoder.push([9713]), decoder.flush()) == ("", "", "")
    assert (decoder.flush(), decoder.stopped) == ("", " is")
    with pytest.raises(ValueError, match=r"flush\(\) was called"):
        decoder.push(9713)


def test_flush_finds_a_stop_string_that_waited() -> None:
    tok = Tokenizer.from_gguf(BYTE_VOCAB.gguf())
    decoder = tok.decoder(stop=["abcd", "bc"])
    assert (decoder.push([3 + byte for byte in b"xabc"]), decoder.stopped) == ("x", None)
    assert (decoder.flush(), decoder.stopped) == ("a", "bc")


@pytest.mark.parametrize("stop", ["", [""], ["a", ""], [b""]])
def test_empty_stop_strings(stop: Any) -> None:
    with pytest.raises(ValueError, match=r"stop string [01] is empty"):
        BPE.decoder(stop=stop, text=False)


@pytest.mark.parametrize("stop", [7, [7], [None], b"a", [b"a"], ["a", b"b"]])
def test_stop_strings_of_another_type(stop: Any) -> None:
    with pytest.raises(TypeError):
        BPE.decoder(stop=stop)


def test_stop_strings_as_given() -> None:
    decoder = BPE.decoder(stop=[b" is", "LoRA"], text=False)
    assert (decoder.push(BPE.encode("LoRA")), decoder.stopped) == (b"", "LoRA")
    assert BPE.decoder(stop=(string for string in ["\ud800", "a"])).push(64) == ""


def test_copies_go_their_own_ways() -> None:
    first = BPE.decoder(stop="RA?")
    start = first.push([*BPE.encode("What is L"), *EMOJI[:1]])
    second, third = first.copy(), copy.copy(first)
    assert start + first.push(EMOJI[1:]) + first.flush() == "What is L\U0001f600"
    assert start + second.push(BPE.encode("oRA?")) == "What is L\ufffdo"
    assert (second.stopped, third.stopped) == ("RA?", None)
    assert third.flush() == "\ufffd"
    assert first.copy().flush() == ""


def test_threads_do_not_share_a_decoder() -> None:
    """Each call is whole or raises; nothing is lost."""
    decoder, ids = BPE.decoder(), [9713] * 50_000

    def work(_: int) -> str:
        try:
            return decoder.push(ids)
        except RuntimeError as error:
            return str(error)

    with ThreadPoolExecutor(4) as pool:
        out = set(pool.map(work, range(80)))
    assert "What" * 50_000 in out
    assert out <= {"What" * 50_000, "Already borrowed", "Already mutably borrowed"}


def test_it_is_generic_and_final() -> None:
    assert str(StreamDecoder[str]) == "ggtok._ggtok.StreamDecoder[str]"
    with pytest.raises(TypeError):
        ggtok.StreamDecoder()
    assert isinstance(BPE.decoder(), ggtok.StreamDecoder)


@pytest.mark.parametrize("path", shared_files("vocabs/*.gguf"))
def test_real_vocabularies(path: Path, shared: Path) -> None:
    """Texts of many languages, with special tokens, cut anywhere, with and without a prompt."""
    tok, rng = Tokenizer.from_gguf(path), Random(path.name)
    for name in ("en", "multi", "cjk", "code"):
        text = (shared / f"corpora/{name}.txt").read_text(encoding="utf-8")[:20_000]
        ids = tok.encode(text, parse_special=True)
        ids = [id for id in ids if id >= 0]
        for at in range(0, len(ids), 97):
            ids[at] = rng.randrange(len(tok.vocab))
        whole, raw = tok.decode(ids), tok.decode_bytes(ids)
        decoder, bytes_decoder = tok.decoder(), tok.decoder(text=False)
        assert "".join(map(decoder.push, ids)) + decoder.flush() == whole
        assert b"".join(map(bytes_decoder.push, ids)) + bytes_decoder.flush() == raw
        cut = rng.randrange(len(ids))
        bytes_decoder = tok.decoder(text=False)
        bytes_decoder.prime(ids[:cut])
        assert raw.endswith(bytes_decoder.push(ids[cut:]) + bytes_decoder.flush())
