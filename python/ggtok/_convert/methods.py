"""What a tokenizer does with files of other kinds. Each call imports what it needs."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Self

    from .._files import Target
    from .._metadata import Scalar, Source


class ConvertMethods:
    """The calls of a tokenizer that write files, and those that read other files than GGUF."""

    __slots__ = ()

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
                `fim_pre`, `fim_suf`, `fim_mid`, `fim_pad`, `fim_rep`, `fim_sep`. `None` takes the name out of the file;
                llama.cpp's default then applies.
            flags: `add_bos`, `add_eos`, `add_sep`, `add_space_prefix`, `remove_extra_whitespaces`, `lowercase`,
                `strip_accents`. `None` as above.
            chat_template: The text of `tokenizer.chat_template`.
            name: `general.name`.
            metadata: Further values by key. They keep the type that the key has in the file; otherwise an `int` is
                `uint32`. `None` takes a key out of the file.
            overwrite: Whether `target` may be the file that the tokenizer was opened from, or a GGUF file with tensors,
                which are lost then.

        Returns:
            The tokenizer of the new file.

        Raises:
            VocabularyError: A token exists already, is given twice, or has no text; a special token is not in the
                vocabulary; or the result is no sound vocabulary.
            TokenIndexError: The id of a special token is out of range.
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
        from .._files import check_target, write
        from .edits import entries
        from .gguf import gguf_bytes

        inputs = () if overwrite else (self._source,)  # type: ignore[attr-defined]
        check_target(target, inputs, overwrite=overwrite)
        data = gguf_bytes(
            entries(
                self,  # type: ignore[arg-type]
                add_tokens=add_tokens,
                add_control_tokens=add_control_tokens,
                special=special or {},
                flags=flags or {},
                chat_template=chat_template,
                name=name,
                metadata=metadata or {},
            )
        )
        new = opened(type(self), data)
        write(target, data, inputs, overwrite=overwrite)
        return new  # type: ignore[no-any-return]

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
        `encode(text, add_special=False)`. docs/convert.md says what differs.

        >>> import ggtok, io
        >>> file = io.BytesIO()
        >>> tok = ggtok.Tokenizer.builtin("unigram")
        >>> tok.to_sentencepiece(file)
        >>> ggtok.Tokenizer.from_sentencepiece(file.getvalue()).encode("What is LoRA?") == tok.encode("What is LoRA?")
        True
        """
        from .._files import check_target, write
        from .sentencepiece import exported

        inputs = (self._source,)  # type: ignore[attr-defined]
        check_target(target, inputs)
        write(target, exported(self), inputs)  # type: ignore[arg-type]

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
        from .._files import read
        from .sentencepiece import imported

        return opened(cls, imported(read(source), vocab_size), source)  # type: ignore[no-any-return]

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
        from .._files import check_target, write
        from .tokenizers_json import exported

        inputs = (self._source,)  # type: ignore[attr-defined]
        check_target(target, inputs)
        write(target, exported(self), inputs)  # type: ignore[arg-type]

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
        from .._files import check_target, write
        from .transformers import files

        if not isinstance(folder, (str, os.PathLike)):
            raise TypeError(f"the folder must be a path, not {type(folder).__name__}")
        inputs = (self._source,)  # type: ignore[attr-defined]
        data = {os.path.join(os.fsdecode(folder), name): data for name, data in files(self).items()}  # type: ignore[arg-type]
        for path in data:
            check_target(path, inputs)
        for path in data:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            write(path, data[path], inputs)

    @classmethod
    def from_tokenizers_json(
        cls,
        source: Source,
        *,
        config: Source | Mapping[str, Any] | None = None,
        pre: str | None = None,
        vocab_size: int | None = None,
    ) -> Self:
        """The tokenizer that llama.cpp's converter would make of a `tokenizer.json` of huggingface/tokenizers.

        Args:
            source: A path, the bytes of a file, or a readable binary file.
            config: The model's `tokenizer_config.json`, as a file or as what is in it: the names of special tokens,
                flags and the chat template. Default: the file of this name beside the path, if there is one, with the
                chat template of `chat_template.jinja` beside it. Without it llama.cpp's defaults apply to special
                tokens, such as the id 11 for the BOS of a byte-level BPE.
            pre: The name of the pre-tokenizer (`tokenizer.ggml.pre`) of a byte-level BPE. Default: the one that the
                converter finds by the digest of the ids of its test text, which it has for well-known models only.
            vocab_size: As in `from_sentencepiece`.

        Raises:
            ConversionError: The file is damaged, llama.cpp has no such model, or the digest is unknown; the message
                then lists the names with the most similar patterns.
            UnsupportedError: ggtok does not know `pre`.
            VocabularyError: The vocabulary is damaged.
            OSError: A file cannot be read.
            TypeError: An argument has the wrong type.

        Warns (`TokenizerWarning`) about what the converter gets wrong. `to_gguf` writes the result.

        >>> import ggtok, io
        >>> file = io.BytesIO()
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> tok.to_tokenizers_json(file)
        >>> new = ggtok.Tokenizer.from_tokenizers_json(file.getvalue(), pre="qwen2")
        >>> new.encode("What is LoRA?") == tok.encode("What is LoRA?")
        True
        """
        from .._files import read
        from .from_tokenizers import imported, read_config

        return opened(  # type: ignore[no-any-return]
            cls, imported(read(source), read_config(source, config), pre, vocab_size), source
        )

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
        from .._files import beside, check_target, write
        from . import tiktoken

        inputs = (self._source,)  # type: ignore[attr-defined]
        check_target(target, inputs)
        settings_target = None if hasattr(target, "write") else beside(target, ".json")
        if settings_target is not None:
            check_target(settings_target, inputs)
        data, settings = tiktoken.exported(self)  # type: ignore[arg-type]
        write(target, data, inputs)
        if settings_target is not None:
            write(settings_target, tiktoken.settings_json(settings), inputs)
        return settings


def opened(cls: Any, data: bytes, source: Source | None = None) -> Any:
    """The tokenizer of a file in memory, made from another file, without the warnings of opening it."""
    import warnings

    from .._metadata import name_of, read_metadata

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cls._of(read_metadata(data), name_of(source))
