"""The tokenizer class: all calls, each of which calls one function of a module below."""

from __future__ import annotations

from ._chat_calls import ChatTokenizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping
    from typing import Any, Self

    from .lab.explain.explain import Trace
    from .lab.releases import Releases
    from .tokenizer.base import Text
    from .tokenizer.files import Target
    from .tokenizer.findings import Finding
    from .tokenizer.metadata import Scalar, Source


class Tokenizer(ChatTokenizer):
    """Text to tokens and back, exactly as llama.cpp does.

    Made by `Tokenizer.from_gguf` or `Tokenizer.builtin`. Immutable and safe to share between threads. Two tokenizers
    are equal, and hash alike, if their vocabularies and settings are equal: those of two quantizations of a model are.
    A pickled tokenizer contains the metadata, so no file is needed to unpickle it.

    Calls on more than 512 bytes or ids release the GIL. Ctrl-C stops a batch or a long text, and the tokenizer stays
    usable. Encoding n bytes takes O(n log n) time in the worst case, and O(n) for text made of words.

    >>> import ggtok
    >>> tok = ggtok.Tokenizer.builtin("bpe")
    >>> tok
    <ggtok.Tokenizer 'ggtok bpe' kind='bpe', pre='qwen2', 13000 tokens>
    >>> tok.decode(tok.encode("What is LoRA?"))
    'What is LoRA?'
    """

    __slots__ = ()

    @classmethod
    def from_model(
        cls, name: str | os.PathLike[str], *, overrides: Mapping[str, Scalar] | None = None, offline: bool | None = None
    ) -> Self:
        """Opens the tokenizer of a model where other tools keep it, or at a URL. docs/open.md has all names.

        Args:
            name: A path, which wins if it exists; a name with the prefix of a store, such as `ollama:llama3.2`,
                `hf:owner/repo` or `hf:owner/repo:Q4_K_M`; or a URL, `https://...`, of which only the beginning is read,
                up to the end of the metadata.
            overrides: As in `from_gguf`.
            offline: Whether the network is forbidden. Default: a URL is read, and `hf:` looks in the caches of this
                machine only. With `False`, `hf:` also reads what is in no cache. `GGTOK_OFFLINE=1` forbids it always.

        Raises:
            ModelNotFoundError: The model is not on this machine, or has no GGUF file; `nearest` and `places` say more.
            DownloadError: The network is forbidden, or the server does not answer, or not properly.
            DependencyError: A URL needs `pip install 'ggtok[hf]'`.
            GGUFError: As `from_gguf`; or the file is a projector, an adapter or another companion of a model.
            VocabularyError, UnsupportedError, OSError, TypeError: As `from_gguf`.

        >>> import ggtok, os
        >>> path = os.path.join(os.path.dirname(ggtok.__file__), "vocabularies", "spm.gguf")  # or "ollama:llama3.2"
        >>> ggtok.Tokenizer.from_model(path).vocab.kind
        'spm'
        """
        from .stores.opening import opened

        return opened(cls, name, overrides, offline)

    def check(self, *, llama_cpp: str | int | None = None) -> list[Finding]:
        """Lists problems with the file's tokenizer, such as settings that give ids the model was not trained with.

        Errors that are quick to find are also issued as warnings (`TokenizerWarning`) when the file is opened. A sound
        file can have notes. `docs/check.md` lists all codes.

        Takes up to a second for a large vocabulary.

        Args:
            llama_cpp: A release of llama.cpp, `"b9538"`: also lists what it does differently with this file, as
                `Tokenizer.releases` has it for all releases.

        Raises:
            GgtokError: `llama_cpp` is not a build number.
            TypeError: `llama_cpp` is neither a string nor an integer.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> tok.check(llama_cpp="b9538")
        []
        >>> [finding.code for finding in ggtok.Tokenizer.builtin("wordpiece").check(llama_cpp="b9538")]
        ['llama-cpp-differs']
        """
        from .lab.releases import check

        return check(self, llama_cpp)

    @property
    def releases(self) -> Releases:
        """Which releases of llama.cpp open this file, and since which one they answer as ggtok does.

        Measured beside llama.cpp's releases, not derived from its source; docs/releases.md has them all. If the file
        is one that llama.cpp refuses or reads differently, nothing is claimed, and `unclaimed` says why. The tensors
        of a file that was not opened by its path are not looked at, nor are the other parts of a split file.

        >>> import ggtok
        >>> print(ggtok.Tokenizer.builtin("wordpiece").releases.same_since)
        b9713
        """
        from .lab.releases import of

        return of(self)

    def explain(
        self, text: Text, *, add_special: bool = True, parse_special: bool = False, continues: bool = False
    ) -> Trace:
        """Encodes a text the textbook way and returns every step; `print` shows them in short.

        Takes the arguments of `encode`. See docs/explain.md.

        Returns:
            A `Trace`: `ids` as `encode` returns them, `why(start, end)`, `to_json()`, `to_html(path)`, and the steps as
            typed classes.

        Raises:
            TypeError, VocabularyError: As `encode`.
            GgtokError: The text is longer than 1 MiB, or takes more steps than a trace records.

        Much slower than `encode`, and a trace takes several hundred times the memory of its text.

        >>> import ggtok
        >>> trace = ggtok.Tokenizer.builtin("bpe").explain("What is LoRA?")
        >>> trace.ids
        [9713, 5981, 6266, 78, 9612, 30]
        >>> pieces = trace.fragments[0].steps.pieces
        >>> [(pop.bigram.text, pop.bigram.rank) for pop in pieces[2].merging.pops]
        [('ĠL', 6010), ('RA', 9356)]
        """
        from .lab.explain.explain import explain

        return explain(self, text, add_special, parse_special, continues)

    def to_gguf(
        self,
        target: Target,
        *,
        add_tokens: Iterable[str] = (),
        add_control_tokens: Iterable[str] = (),
        special: Mapping[str, int | str | None] | None = None,
        flags: Mapping[str, bool | None] | None = None,
        chat_template: str | None = None,
        name: str | None = None,
        metadata: Mapping[str, Scalar | None] | None = None,
        tokens: Iterable[Mapping[str, Any]] = (),
        overwrite: bool = False,
    ) -> Self:
        """Writes this tokenizer, with edits if you like, as a GGUF file without tensors, which llama.cpp opens.

        The file has all keys of the source that start with `tokenizer.` or `general.`, with overrides applied. It is
        written completely or not at all: a write that fails or is interrupted leaves an existing file as it was.
        `ggtok.edit` edits a file with weights.

        Args:
            target: A path, or a binary file that is open.
            add_tokens: Texts of tokens to add at the end of the vocabulary, which are found in every text
                (user-defined tokens).
            add_control_tokens: The same for tokens that are only read with `parse_special`. Their ids follow.
            special: Ids or texts of special tokens by name: `bos`, `eos`, `eot`, `eom`, `unk`, `sep`, `pad`, `mask`,
                `fim_pre`, `fim_suf`, `fim_mid`, `fim_pad`, `fim_rep`, `fim_sep`. `None` removes the key from the file;
                llama.cpp's default then applies.
            flags: `add_bos`, `add_eos`, `add_sep`, `add_space_prefix`, `remove_extra_whitespaces`, `lowercase`,
                `strip_accents`. `None` as above.
            chat_template: The text of `tokenizer.chat_template`.
            name: `general.name`.
            metadata: Further values by key. They keep the type that the key has in the file; otherwise an `int` is
                `uint32`. `None` takes a key out of the file.
            tokens: Changes of tokens by their ids, as `ggtok.edit` takes them: other texts, types and scores. So a
                reserved token is put to use: `{"id": 7, "text": "<tool>", "type": "user_defined"}`.
            overwrite: Whether `target` may be the file that the tokenizer was opened from, or a GGUF file with tensors,
                which are lost then.

        Returns:
            The tokenizer of the new file.

        Raises:
            VocabularyError: A token exists already, is given twice, or has no text; a special token is not in the
                vocabulary; or the result is not a valid vocabulary.
            TokenIndexError: The id of a token is out of range.
            GgtokError: A name or key is unknown, is given twice, or its value does not fit; or `target` needs
                `overwrite`.
            OSError: The file cannot be written.
            TypeError: An argument has the wrong type.

        >>> import ggtok, io
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> new = tok.to_gguf(io.BytesIO(), add_control_tokens=["<|tool|>"], special={"eos": "<|im_end|>"})
        >>> new.encode("<|tool|>", parse_special=True), new.vocab.eos_id
        ([13000], 12993)
        """
        from .lab.convert import edits, formats

        changes = edits.Edits(add_tokens, add_control_tokens, special, flags, chat_template, name, metadata, tokens)
        return formats.to_gguf(self, target, changes, overwrite)

    def to_tokenizers_json(self, target: Target) -> None:
        """Writes the `tokenizer.json` of huggingface/tokenizers.

        Args:
            target: A path, or a binary file that is open.

        Raises:
            ConversionError: The kind is not BPE, SPM, WordPiece or Unigram, or the vocabulary has something that the
                format cannot express, such as merges of texts that are not tokens, or bytes without tokens.
            GgtokError: `target` is the file that the tokenizer was opened from, or a GGUF file with tensors.
            OSError: The file cannot be written.
            TypeError: `target` has the wrong type.

        `tokenizers.Tokenizer.from_file(path).encode(text).ids` are then the ids of `encode(text, parse_special=True)`;
        with its `encode_special_tokens` set they are those of `encode(text)`. docs/convert.md says what differs.

        >>> import ggtok, io, json
        >>> file = io.BytesIO()
        >>> ggtok.Tokenizer.builtin("spm").to_tokenizers_json(file)
        >>> json.loads(file.getvalue())["model"]["type"]
        'BPE'
        """
        from .lab.convert import formats, tokenizers_json

        formats.export(self, target, tokenizers_json.exported)

    def to_transformers(self, folder: str | os.PathLike[str]) -> None:
        """Writes a folder that `transformers.AutoTokenizer.from_pretrained` opens.

        Args:
            folder: The path of a folder, which is made if it is not there. It gets `tokenizer.json`,
                `tokenizer_config.json`, `special_tokens_map.json` and, if there is a chat template,
                `chat_template.jinja`; others go to `additional_chat_templates`. Other files in it stay.

        Raises:
            ConversionError: As `to_tokenizers_json`.
            GgtokError: The tokenizer was opened from one of these files.
            OSError: A file cannot be written.
            TypeError: `folder` is not a path.

        The ids are those of `encode(text, parse_special=True)`. `from_tokenizers_json` reads the folder's
        `tokenizer.json` with the files beside it.

        >>> import ggtok, os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ggtok.Tokenizer.builtin("bpe").to_transformers(folder)
        ...     sorted(os.listdir(folder))
        ['chat_template.jinja', 'special_tokens_map.json', 'tokenizer.json', 'tokenizer_config.json']
        """
        from .lab.convert import formats

        formats.to_transformers(self, folder)

    @classmethod
    def from_tokenizers_json(
        cls,
        source: Source,
        *,
        config: Source | Mapping[str, Any] | None = None,
        pre: str | None = None,
        vocab_size: int | None = None,
        architecture: str | None = None,
    ) -> Self:
        """The tokenizer that llama.cpp's converter would make of a `tokenizer.json` of huggingface/tokenizers.

        Args:
            source: A path, the bytes of a file, or a readable binary file.
            config: The model's `tokenizer_config.json`, as a file or as what is in it: the names of special tokens,
                flags and the chat template. Default: the file of this name beside the path, if there is one, with the
                chat templates that have files there. Without it llama.cpp's defaults apply to special tokens, such as
                the id 11 for the BOS of a byte-level BPE.
            pre: The name of the pre-tokenizer (`tokenizer.ggml.pre`) of a BPE. Default: the one that the converter
                finds by the digest of the ids of its test text, which it has for well-known models only.
            vocab_size: As in `from_sentencepiece`. Default: from the `config.json` beside the path.
            architecture: The model's architecture, such as `"Gemma4ForCausalLM"`. Default: from the `config.json`
                beside the path, or what the tokens say.

        Raises:
            ConversionError: The file is damaged, llama.cpp has no such model, or the digest is unknown; the message
                then lists the names with the most similar patterns.
            UnsupportedError: ggtok does not know `pre`.
            VocabularyError: The vocabulary is damaged.
            OSError: A file cannot be read.
            TypeError: An argument has the wrong type.

        Warns (`TokenizerWarning`) if the ids are not those of the file's own library. `to_gguf` writes the result.

        >>> import ggtok, io
        >>> file = io.BytesIO()
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> tok.to_tokenizers_json(file)
        >>> new = ggtok.Tokenizer.from_tokenizers_json(file.getvalue(), pre="qwen2")
        >>> new.encode("What is LoRA?") == tok.encode("What is LoRA?")
        True
        """
        from .lab.convert import formats

        return formats.from_tokenizers_json(cls, source, config, pre, vocab_size, architecture)

    def to_sentencepiece(self, target: Target) -> None:
        """Writes a `.model` file of sentencepiece: of type BPE for SPM, of type Unigram for Unigram.

        Args:
            target: A path, or a binary file that is open.

        Raises:
            ConversionError: The kind is neither, or the vocabulary has something that the format cannot express: SPM
                without byte tokens, no unknown token or several, user-defined tokens with spaces.
            GgtokError: `target` is the file that the tokenizer was opened from, or a GGUF file with tensors.
            OSError: The file cannot be written.
            TypeError: `target` has the wrong type.

        `sentencepiece.SentencePieceProcessor(model_file=path).encode(text)` gives the ids of
        `encode(text, add_special=False)`. docs/convert.md says what differs. Warns (`TokenizerWarning`) if BOS and EOS
        are not added as llama.cpp does by default, which the format cannot say.

        >>> import ggtok, io
        >>> file = io.BytesIO()
        >>> tok = ggtok.Tokenizer.builtin("unigram")
        >>> tok.to_sentencepiece(file)
        >>> new = ggtok.Tokenizer.from_sentencepiece(file.getvalue())
        >>> new.encode("What is LoRA?") == tok.encode("What is LoRA?")
        True
        """
        from .lab.convert import formats, sentencepiece

        formats.export(self, target, sentencepiece.exported)

    @classmethod
    def from_sentencepiece(cls, source: Source, *, vocab_size: int | None = None) -> Self:
        """The tokenizer that llama.cpp's converter would make of a `.model` file of sentencepiece.

        Special ids, and whether a space comes first, are taken from the model. As in the converter, user-defined pieces
        become normal tokens, and an SPM vocabulary has no normalization.

        Args:
            source: A path, the bytes of a file, or a readable binary file.
            vocab_size: The number of tokens that the model's `config.json` declares. The converter fills the vocabulary
                up to it with unused tokens `[PAD<id>]`.

        Raises:
            ConversionError: The file is damaged, or has a model type that llama.cpp does not have; or there are more
                pieces than `vocab_size`.
            VocabularyError: The vocabulary is damaged: a piece occurs twice, for example.
            OSError: The file cannot be read.
            TypeError: An argument has the wrong type.

        Warns (`TokenizerWarning`) about what the converter leaves out. `to_gguf` writes the result.

        >>> import ggtok, io
        >>> file = io.BytesIO()
        >>> ggtok.Tokenizer.builtin("spm").to_sentencepiece(file)
        >>> tok = ggtok.Tokenizer.from_sentencepiece(file.getvalue(), vocab_size=15040)
        >>> tok.encode("What is LoRA?"), tok.vocab[15039].text
        ([1, 2224, 351, 597, 9819, 4304, 9910], '[PAD15039]')
        """
        from .lab.convert import formats

        return formats.from_sentencepiece(cls, source, vocab_size)

    def to_tiktoken(self, target: Target) -> dict[str, Any]:
        """Writes a `.tiktoken` file: the tokens of a byte-level BPE vocabulary with their ranks.

        Args:
            target: A path, or a binary file that is open. Beside a path a second file is written, `target` with `.json`
                at its end: the settings that this call returns.

        Returns:
            The other arguments of `tiktoken.Encoding`: `name`, `pat_str` and `special_tokens`.

        Raises:
            ConversionError: It is not a byte-level BPE; its pre-tokenizer applies several patterns; or its merges are
                not those that follow from the ranks of the tokens.
            GgtokError: `target` is the file that the tokenizer was opened from, or a GGUF file with tensors.
            OSError: A file cannot be written.
            TypeError: `target` has the wrong type.

        With `tiktoken` the encoding is `tiktoken.Encoding(mergeable_ranks=load_tiktoken_bpe(path), **settings)`. Its
        `encode_ordinary` gives the ids of `encode(text, add_special=False)`, except where docs/convert.md says so.
        Takes 5 s for 150,000 tokens.

        >>> import ggtok, io
        >>> tok, file = ggtok.Tokenizer.builtin("bpe"), io.BytesIO()
        >>> settings = tok.to_tiktoken(file)
        >>> settings["special_tokens"]["<|im_end|>"], file.getvalue().splitlines()[0]
        (12993, b'IQ== 0')
        """
        from .lab.convert import formats

        return formats.to_tiktoken(self, target)
