"""What ggtok raises. Every error is a `GgtokError`, and so a `ValueError`."""

from .tokenizer.findings import TokenizerWarning as TokenizerWarning


class GgtokError(ValueError):
    """The base of all errors that ggtok raises.

    `path` is the file that was being opened, as a `str`; `None` for bytes, for files without a name, and after loading.

    >>> import ggtok
    >>> try:
    ...     ggtok.Tokenizer.from_gguf(b"not GGUF")
    ... except ggtok.GgtokError as error:
    ...     print(error, error.path)
    this is not a GGUF file (byte 0): expected b'GGUF', found b'not ' None
    """

    path: str | None = None

    def __str__(self) -> str:
        message = super().__str__()
        return message if self.path is None else f"{self.path}: {message}"


class ArgumentTypeError(GgtokError, TypeError):
    """An argument, or an item of it, has the wrong type.

    >>> import ggtok
    >>> ggtok.Tokenizer.builtin("bpe").encode_batch({"text": "What is LoRA?"})
    Traceback (most recent call last):
    ggtok.errors.ArgumentTypeError: texts must be an iterable of texts, not dict
    """


class GGUFError(GgtokError):
    """A file is not GGUF or is damaged, or a metadata key has the wrong type.

    `key`, `offset` (in bytes from the start of the file), `expected` and `found` say where and what. Each is `None` if
    it does not apply.

    >>> import ggtok
    >>> try:
    ...     ggtok.Tokenizer.from_gguf(b"GGUF")
    ... except ggtok.GGUFError as error:
    ...     print(error.offset, error.expected, error.found, sep=", ")
    4, 4 bytes, 0 bytes
    """

    def __init__(
        self,
        problem: str,
        *,
        key: str | None = None,
        offset: int | None = None,
        expected: str | None = None,
        found: str | None = None,
    ) -> None:
        self.key, self.offset, self.expected, self.found = key, offset, expected, found
        place = [f"key {key!r}"] if key is not None else []
        place += [f"byte {offset}"] if offset is not None else []
        message = f"{problem} ({', '.join(place)})" if place else problem
        if expected is not None:
            message += f": expected {expected}"
            message += f", found {found}" if found is not None else ""
        super().__init__(message)


class VocabularyError(GgtokError):
    """A file is valid GGUF but its vocabulary is not, or a text needs a special token that the vocabulary lacks."""


class UnsupportedError(GgtokError):
    r"""A file names a tokenizer or pre-tokenizer that ggtok does not know.

    `name` is that name, with bytes that are not UTF-8 written `\xff`. `nearest` are the most similar names that ggtok
    knows.
    """

    def __init__(self, message: str, name: str | None = None, nearest: tuple[str, ...] = ()) -> None:
        self.name, self.nearest = name, nearest
        super().__init__(message)


class ModelNotFoundError(GgtokError, FileNotFoundError):
    """No model on this machine has this name, or it has no GGUF file.

    `name` is the name, `nearest` are the most similar names of models that are there, and `places` the folders that
    were searched.

    >>> import ggtok
    >>> try:
    ...     ggtok.find("jan:no-such-model")
    ... except ggtok.ModelNotFoundError as error:
    ...     print(error.name, len(error.places))
    jan:no-such-model 1
    """

    def __init__(
        self, problem: str, *, name: str | None = None, nearest: tuple[str, ...] = (), places: tuple[str, ...] = ()
    ) -> None:
        self.name, self.nearest, self.places = name, nearest, places
        super().__init__(problem)


class DownloadError(GgtokError, OSError):
    """The head of a file cannot be read from the network.

    `url` is its address, without a password, and `status` the status that the server answered with; `None` if it did
    not answer, or not properly.

    >>> import ggtok
    >>> try:
    ...     ggtok.Tokenizer.from_model("https://huggingface.co/owner/repo", offline=True)
    ... except ggtok.DownloadError as error:
    ...     print(error)
    https://huggingface.co/owner/repo: offline=True forbids the network
    """

    def __init__(self, problem: str, *, url: str | None = None, status: int | None = None) -> None:
        self.url, self.status = url, status
        super().__init__(f"{url}: {problem}" if url else problem)


class TokenIndexError(GgtokError, IndexError):
    """A token id is not in the vocabulary.

    >>> import ggtok
    >>> ggtok.Tokenizer.builtin("bpe").piece(1_000_000)
    Traceback (most recent call last):
    ggtok.errors.TokenIndexError: token id 1000000 is outside the vocabulary of 13000 tokens
    """


class TrainingError(GgtokError):
    """A vocabulary cannot be trained: the corpus is empty, or the settings contradict it or each other.

    >>> import ggtok
    >>> ggtok.train(["a corpus"], kind="bpe", vocab_size=100)
    Traceback (most recent call last):
    ggtok.errors.TrainingError: vocab_size 100 is too small: 1 special tokens and 256 of the alphabet need 257
    """


class CorpusError(GgtokError):
    """A corpus cannot be built, continued or verified.

    `source` is the name of the input or output at fault, and `row` the row in it, counted from 1. Each is `None` if it
    does not apply.
    """

    def __init__(self, problem: str, *, source: str | None = None, row: int | None = None) -> None:
        self.source, self.row = source, row
        place = source if source is not None else ""
        place += f", row {row}" if row is not None else ""
        super().__init__(f"{place}: {problem}" if place else problem)


class DependencyError(GgtokError, ImportError):
    """A call needs an optional package that is not installed.

    Arrays need numpy (`Tokenizer.encode_array`, `Encoding.ids`, `Batch.ids`, ...), `Batch.to_arrow` needs pyarrow,
    models at a URL need urllib3, and `apply_chat_template(raw=True)` needs jinja2.
    """


class LibraryError(GgtokError):
    """ggtok cannot use a shared library: it does not load, is not llama.cpp, or is of a release that ggtok does not
    know. `path` is its file.

    >>> import ggtok
    >>> ggtok.verify(ggtok.Tokenizer.builtin("bpe"), library="/nowhere/libllama.so")
    Traceback (most recent call last):
    ggtok.errors.LibraryError: /nowhere/libllama.so: no such file
    """

    def __init__(self, problem: str, *, path: str) -> None:
        super().__init__(problem)
        self.path = path


class ChatTemplateError(GgtokError):
    """A chat template is missing, fails, or refuses a conversation.

    `template` is its name, and `line` and `column` (in bytes) say where, counted from 1. Each is `None` if it does not
    apply.

    >>> import ggtok
    >>> try:
    ...     ggtok.Tokenizer.builtin("bpe").apply_chat_template(
    ...         [{"role": "user", "content": "Hi"}], template_text="{{ raise_exception('no system message') }}"
    ...     )
    ... except ggtok.ChatTemplateError as error:
    ...     print(error)
    chat template 'template_text', line 1, column 19: it refuses these messages: no system message
    """

    def __init__(
        self, problem: str, *, template: str | None = None, line: int | None = None, column: int | None = None
    ) -> None:
        self.template, self.line, self.column = template, line, column
        place = [f"chat template {template!r}"] if template is not None else []
        place += [f"line {line}"] if line is not None else []
        place += [f"column {column}"] if column is not None else []
        super().__init__(f"{', '.join(place)}: {problem}" if place else problem)


class ChatRequestError(GgtokError):
    """A conversation, or what is passed with it, is not a request that llama-server takes.

    `field` is what is at fault, such as `messages[2].content[1]`, or `None` if it is the request as a whole.

    >>> import ggtok
    >>> try:
    ...     ggtok.Tokenizer.builtin("bpe").encode_chat([{"role": "user", "content": 5}])
    ... except ggtok.ChatRequestError as error:
    ...     print(error)
    messages[0].content: expected a string or an array, got a number
    """

    def __init__(self, problem: str, *, field: str | None = None) -> None:
        self.field = field
        super().__init__(f"{field}: {problem}" if field else problem)


class ChatTypeError(ChatRequestError, ArgumentTypeError):
    """A value of a conversation is of a type that JSON does not have. `field` says where."""


class MismatchError(GgtokError):
    """The ids of a message are not those of its text, or the template does not write that text.

    `expected` is the text of the message and `found` the text of the ids. Both are `None` if the template is at fault.

    >>> import ggtok
    >>> chat = ggtok.Tokenizer.builtin("bpe").chat()
    >>> try:
    ...     chat.append({"role": "assistant", "content": "Hello"}, ids=[6876])
    ... except ggtok.MismatchError as error:
    ...     print(error)
    messages[0]: its content is 'Hello', but its ids are 'hi'
    """

    def __init__(self, problem: str, *, expected: str | None = None, found: str | None = None) -> None:
        self.expected, self.found = expected, found
        super().__init__(problem)


class ConversionError(GgtokError):
    """A tokenizer cannot be expressed in another format, or a file in another format not in GGUF.

    `format` is the other format, and `reason` says why.

    >>> import ggtok, io
    >>> try:
    ...     ggtok.Tokenizer.builtin("spm").to_tiktoken("spm.tiktoken")
    ... except ggtok.ConversionError as error:
    ...     print(error.reason)
    a vocabulary of kind 'spm' has no counterpart there
    """

    def __init__(self, format: str, reason: str) -> None:
        self.format, self.reason = format, reason
        super().__init__(f"{format}: {reason}")
