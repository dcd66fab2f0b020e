"""The tokens that a grammar allows, by each adapter and by the library's own reader of the exported files.

Random grammars are followed along random paths, in vocabularies that are made here and in those shared ones that the
library reads.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest
from conftest import TOKENIZERS, shared_files
from ggtok import ConversionError, TokenAttribute, Tokenizer, adapters
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

MARKERS = ("<think>", "</think>", "<end_of_turn>", "<unclosed", "unopened>")
"""User-defined tokens that are added to the vocabularies made here. `<end_of_turn>` also ends a text."""

MADE = ("bpe", "spm")
NUM_STEPS = 8
ADDED = TokenAttribute.CONTROL | TokenAttribute.UNKNOWN | TokenAttribute.USER_DEFINED


def made(kind: str) -> Tokenizer:
    return TOKENIZERS[kind].to_gguf(io.BytesIO(), add_tokens=MARKERS, add_control_tokens=["<|mark|>"])


# Grammars

texts = st.sampled_from([*MARKERS, "<|mark|>", "</s>", "<|im_end|>", "a", "<", ">", " the", "naïve", "{", "\n", "😀"])
classes = st.sampled_from([".", r"(.|\n)", "[a-z]", "[^a-z]", "[<>|a-z_/]", "[^<]", "[0-9]"])


def literal(text: str) -> str:
    return re.sub(r"[\\.+*?()|\[\]{}^$]", r"\\\g<0>", text)


def longer(patterns: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    several = st.lists(patterns, min_size=2, max_size=3)
    repeated = st.tuples(patterns, st.sampled_from(["*", "+", "?", "{1,3}"])).map(lambda both: f"({both[0]}){both[1]}")
    return several.map("".join) | several.map(lambda some: f"({'|'.join(some)})") | repeated


def objects(schemas: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    named = st.dictionaries(st.sampled_from(["name", "<think>"]), schemas, min_size=1)
    return schemas.map(lambda items: {"type": "array", "items": items}) | named.map(
        lambda properties: {"type": "object", "properties": properties, "required": [*properties]}
    )


simple = st.sampled_from(["string", "integer", "boolean"]).map(lambda type: {"type": type})
regexes = st.recursive(texts.map(literal) | classes, longer, max_leaves=6)
schemas = st.recursive(simple | st.just({"enum": ["<think>", "</s>", 1]}), objects, max_leaves=3).map(json.dumps)
brackets = st.lists(texts, min_size=2, max_size=2).map(lambda some: [json.dumps(text) for text in some])
grammars = st.one_of(
    st.tuples(st.just("regex"), regexes),
    st.tuples(st.just("schema"), schemas),
    st.tuples(st.just("brackets"), brackets),
)
"""What it is, and a regular expression, a JSON schema, or two quoted texts, for one in any number of brackets."""


# Libraries: what the adapter makes, and what the library makes of the exported files


class Matcher(NamedTuple):
    """Where a path through a grammar has come to: a mask of the ids that may follow, and a step."""

    allowed: Callable[[], Any]
    advance: Callable[[int], Any]


def unpacked(mask: Any, size: int) -> Any:
    return np.unpackbits(np.frombuffer(mask, np.uint8), bitorder="little")[:size].astype(bool)


class Guidance:
    package = "llguidance"

    def __init__(self, tok: Tokenizer) -> None:
        self.library: Any = import_module(self.package)
        self.ours = adapters.llguidance.tokenizer(tok)

    def read(self, folder: Path) -> None:
        self.theirs = self.library.LLTokenizer(str(folder / "tokenizer.json"), eos_token=self.ours.eos_tokens)

    def matcher(self, reader: Any, kind: str, grammar: Any) -> Matcher:
        new = self.library.LLMatcher
        if kind == "regex":
            compiled = new.grammar_from_regex(grammar)
        elif kind == "schema":
            compiled = new.grammar_from_json_schema(grammar)
        else:
            compiled = new.grammar_from_lark('start: "[" start "]" | {} | {} /[a-z<]+/'.format(*grammar))
        found = new(reader, compiled)
        assume(not found.is_error())

        def allowed() -> Any:
            """Its reader has an id for a forced `</s>` that it then refuses: nothing can follow."""
            assume(not any(map(reader.is_special_token, found.compute_ff_tokens())))
            return unpacked(found.compute_bitmask(), reader.vocab_size)

        return Matcher(allowed, found.consume_token)


class XGrammar:
    package = "xgrammar"

    def __init__(self, tok: Tokenizer) -> None:
        self.library: Any = import_module(self.package)
        self.ours = adapters.xgrammar.tokenizer_info(tok)

    def read(self, folder: Path) -> None:
        fast: Any = import_module("transformers").PreTrainedTokenizerFast  # which xgrammar depends on
        self.theirs = self.library.TokenizerInfo.from_huggingface(
            fast(tokenizer_file=str(folder / "tokenizer.json")), stop_token_ids=self.ours.stop_token_ids
        )
        if self.theirs.vocab_type == self.library.VocabType.RAW:
            raise ValueError("the tokens are spelled in a way that it does not know")

    def matcher(self, reader: Any, kind: str, grammar: Any) -> Matcher:
        compiler = self.library.GrammarCompiler(reader, cache_enabled=False)
        try:
            if kind == "regex":
                compiled = compiler.compile_regex(grammar)
            elif kind == "schema":
                compiled = compiler.compile_json_schema(grammar)
            else:
                compiled = compiler.compile_grammar('root ::= "[" root "]" | {} | {} [a-z<]+'.format(*grammar))
        except RuntimeError:
            reject()
        found = self.library.GrammarMatcher(compiled)

        def allowed() -> Any:
            mask = np.full((1, -(-reader.vocab_size // 32)), -1, np.int32)
            found.fill_next_token_bitmask(mask)
            return unpacked(mask, reader.vocab_size)

        return Matcher(allowed, found.accept_token)


class Outlines:
    """Its reader takes the name of a model in the Hub's cache."""

    package = "outlines_core"

    def __init__(self, tok: Tokenizer) -> None:
        self.library: Any = import_module(self.package)
        self.ours, self.size = adapters.outlines.vocabulary(tok), tok.vocab_size
        self.other_ends = [tok.piece(id) for id in tok.vocab.eog_ids - {tok.vocab.eos_id}]

    def read(self, folder: Path) -> None:
        with TemporaryDirectory() as home:
            model = Path(home, ".cache", "huggingface", "hub", "models--ggtok--test")
            for name in ("refs", "snapshots"):
                (model / name).mkdir(parents=True)
            (model / "refs" / "main").write_text("1")
            (model / "snapshots" / "1").symlink_to(folder)
            with mock.patch.dict(os.environ, {"HOME": home, "HF_HOME": str(model.parents[1])}):
                self.theirs = self.library.Vocabulary.from_pretrained("ggtok/test")
        for piece in self.other_ends:  # the reader knows EOS only
            self.theirs.remove(piece)

    def matcher(self, reader: Any, kind: str, grammar: Any) -> Matcher:
        assume(kind != "brackets")
        if kind == "schema":
            grammar = self.library.json_schema.build_regex_from_schema(grammar)
        try:
            found = self.library.Guide(self.library.Index(grammar, reader))
        except ValueError:
            reject()

        def allowed() -> Any:
            mask = np.zeros(self.size, bool)
            mask[found.get_tokens()] = True
            return mask

        return Matcher(allowed, found.advance)


ALIKE = {"baichuan", "mpt", "qwen2"}
"""Vocabularies whose tokens are spelled as those of `llama-spm`, `gpt-2` and `llama-bpe`."""


@pytest.fixture(
    scope="module", params=[*MADE, *(file for file in shared_files("vocabs/*.gguf") if file.id not in ALIKE)]
)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Tokenizer, Path, bool]:
    """A tokenizer, the folder for transformers that all libraries read in turn, and whether it is made here."""
    is_made = isinstance(request.param, str)
    tok = made(request.param) if is_made else Tokenizer.from_gguf(request.param)
    folder = tmp_path_factory.mktemp("exported")
    try:
        tok.to_transformers(folder)
    except ConversionError:
        if is_made:
            raise
        pytest.skip("to_transformers refuses the vocabulary")
    return tok, folder, is_made


@pytest.mark.parametrize("library", [Guidance, XGrammar, Outlines])
def test_masks(library: Any, exported: tuple[Tokenizer, Path, bool]) -> None:
    """They are equal, except for user-defined tokens with other characters than ASCII: readers of `tokenizer.json`
    replace some of them, llama.cpp none.
    """
    pytest.importorskip(library.package, reason=f"{library.package} is not installed; .ci/adapters says how")
    tok, folder, is_made = exported
    both = library(tok)
    try:
        both.read(folder)
    except ValueError:
        if is_made:
            raise
        pytest.skip(f"{library.package} refuses the vocabulary")
    added = {token.id: token.attributes for token in tok.vocab if token.attributes & ADDED}
    replaced = [id for id, bits in added.items() if bits & TokenAttribute.USER_DEFINED and not tok.piece(id).isascii()]

    @settings() if is_made else settings(max_examples=5)
    @given(grammar=grammars, seed=st.integers(0, 2**32))
    def follow(grammar: tuple[str, Any], seed: int) -> None:
        random, matchers = Random(seed), [both.matcher(reader, *grammar) for reader in (both.ours, both.theirs)]
        for _ in range(NUM_STEPS):
            masks = [matcher.allowed() for matcher in matchers]
            for mask in masks:
                mask[replaced] = False
            assert np.flatnonzero(masks[0] != masks[1]).tolist() == []
            chosen = [id for id in added if masks[0][id]] if random.random() < 0.5 else []
            ids = chosen or np.flatnonzero(masks[0]).tolist()
            id = random.choice(ids) if ids else tok.vocab.eos_id
            if id in tok.vocab.eog_ids:
                return
            for matcher in matchers:
                matcher.advance(id)

    follow()
