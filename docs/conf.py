"""The documentation site: Sphinx with Markdown pages, and a reference made of docstrings and the stub's signatures.

    sphinx-build -W --keep-going -j auto docs target/site

Four things are special. Long tables are made by scripts while the site is built. Annotations stand in the stub of the
compiled module, so the stub is imported in its place. Docstrings are written for `help()`: a name in single backticks
becomes a link if the reference has that name, and code otherwise. And pages that were merged into others redirect
there.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.ext.napoleon import Config, GoogleDocstring
from sphinx.pycode import ModuleAnalyzer
from sphinx.util import logging

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
ELSEWHERE = {"changes": "CHANGELOG.md", "contributing": "CONTRIBUTING.md"}
"""Pages whose text is a file of the root."""
NAPOLEON = Config(napoleon_use_rtype=False)
REPOSITORY = "https://github.com/ggtok/ggtok"
RAW = "https://raw.githubusercontent.com/ggtok/ggtok"
SITE = "https://ggtok.readthedocs.io/en/latest/"


def import_annotated() -> Any:
    """ggtok, with the stub's annotated classes and functions instead of the compiled ones."""
    import ggtok
    import ggtok._ggtok as compiled

    path = Path(ggtok.__file__).with_name("_ggtok.pyi")
    source = re.sub(r"\b_(?=Text\b)", "", path.read_text(encoding="utf-8"))
    ModuleAnalyzer.cache["module", compiled.__name__] = ModuleAnalyzer.for_string(source, compiled.__name__, path)
    tree = ast.parse(source)
    # Only type checkers can import these.
    given = dict.fromkeys(("disjoint_base", "overload", "type_check_only"), lambda item: item)
    stub: dict[str, Any] = {"__name__": compiled.__name__, "ReadableBuffer": bytes, **given}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            node.names = [name for name in node.names if name.name not in stub]
    tree.body = [node for node in tree.body if not isinstance(node, ast.ImportFrom) or node.names]
    exec(compile(tree, path, "exec", annotations.compiler_flag), stub)
    del stub["StreamDecoder"].__class_getitem__  # which the stub only declares; `Generic` has one
    # Signatures keep these names, as in the Python files.
    del stub["Text"], stub["np"]

    # Calls during the import of ggtok need the compiled names.
    module = types.ModuleType(compiled.__name__)
    vars(module).update(vars(compiled))
    vars(module).update({name: stub[name] for name in {*ggtok.__all__, "Tokenizer"} & stub.keys() - {"__version__"}})
    module.__file__ = str(path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "ggtok"]:
        del sys.modules[name]
    sys.modules[compiled.__name__] = module
    return importlib.import_module("ggtok")


sys.path.insert(0, str(ROOT / "scripts"))
GENERATORS = [
    importlib.import_module(f"generate_{name}") for name in ("cli", "lists", "releases", "supported", "trace")
]
GENERATED = {page: text for generator in GENERATORS for page, text in generator.pages().items()}
"""What replaces the paragraph marked `<!-- generated -->`. Made before the stub is imported."""
DRAWN = {f"how/{path.stem}" for path in (DOCS / "how").glob("*.md")} - {"how/index"} | {"explain"}
"""Pages whose generated part has drawings."""
TRACE_PAGES: dict[str, str] = GENERATORS[-1].places()
"""The page of each class of `ggtok.trace`."""
MOVED: dict[str, str] = json.loads((DOCS / "moved.json").read_text(encoding="utf-8"))
"""Where the text of a page is now: a page and a heading. Old addresses keep working."""

ggtok = import_annotated()

# The site

project = "ggtok"
author = "The ggtok developers"
copyright = author
version = release = ggtok.__version__
language = "en"
nitpicky = True
nitpick_ignore_regex = [
    (r"py:class", r"(collections\.abc|typing|enum|os|pathlib|re|np|numpy|pa|pyarrow)\..*"),
    (r"py:class", r"(Any|AnyPath|AnyStr|Callable|Iterable|Mapping|NamedTuple|NDArray|Progress|Self|Sequence)"),
    (r"py:class", r"(SupportsIndex|SupportsWrite|Arrow\w+)"),
]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]
smartquotes_action = "qe"  # not dashes: `--json` in a help text is an option
html_theme = "furo"
html_title = "ggtok"
html_logo = "_static/icon.svg"
html_static_path = ["_static"]
html_extra_path = ["_extra"]
html_search_scorer = str(DOCS / "search_order.js")
html_css_files = ["ggtok.css"]
html_js_files = ["live.js"]
templates_path = ["_templates"]
html_copy_source = False
html_additional_pages = dict.fromkeys(MOVED, "moved.html")
html_baseurl = SITE
html_context = {"moved": MOVED, "html_baseurl": SITE}
html_theme_options = {"source_repository": REPOSITORY, "source_branch": "main", "source_directory": "docs/"}
# Prompts and output are not copied.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

linkcheck_timeout = 20
# `adapt_page` has checked that these files exist.
linkcheck_ignore = [rf"{REPOSITORY}/(blob|tree)/main/.*"]
# These pages show their anchors by script.
linkcheck_anchors_ignore_for_url = [r"https://github\.com/.*"]

# The reference

add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_display_short_literal_types = True
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True


def public_names() -> dict[str, str]:
    """The full name for each way in which docstrings write it, such as `encode` and `Tokenizer.encode`."""
    names = {name: f"ggtok.{name}" for name in ggtok.__all__}
    for name in ggtok.__all__:
        if isinstance(cls := getattr(ggtok, name), type) and cls.__module__.startswith("ggtok"):
            names |= {f"{name}.{member}": f"ggtok.{name}.{member}" for member in vars(cls) if member[0] != "_"}
    calls = {member: f"ggtok.Tokenizer.{member}" for member in dir(ggtok.Tokenizer) if member[0] != "_"}
    return calls | {f"Tokenizer.{member}": name for member, name in calls.items()} | names


NAMES = public_names()


def link(context: str) -> Any:
    """Replaces text in single backticks by code, with a link if it is a public name."""
    cls = ".".join(context.split(".")[:2]).removeprefix("ggtok.")

    def replace(match: re.Match[str]) -> str:
        code = match[1]
        target = NAMES.get(f"{cls}.{code}") or NAMES.get(code)
        return f":py:obj:`{code} <{target}>`" if target and target != context else f"``{code}``"

    return replace


def from_google(app: Any, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Turns a docstring in Google's style, with Markdown's code and page names, into reStructuredText."""
    # "method" for all: the first line of a property's docstring would be read as "type: description".
    text = "\n".join(GoogleDocstring("\n".join(lines), NAPOLEON, app, "method", name, obj).lines())
    text = re.sub(r"^Alias for field number \d+$", "", text)  # of a named tuple
    # What comes before a colon in "Returns" was read as a type.
    text = re.sub(r"^(:returns: )\*?(.+?)\*? -- ", r"\1\2: ", text, flags=re.MULTILINE)
    text = re.sub(r"`?\bdocs/([\w/-]+)\.md`?", r":doc:`/\1`", text)
    text = re.sub(r"(?<![`:\w])`([^`]+)`(?!`)", link(name), text)
    lines[:] = text.split("\n")


def without_constructor(
    app: Any, what: str, name: str, obj: object, options: object, signature: str | None, result: str | None
) -> tuple[str, str] | None:
    """Shows classes by name only, because callers rarely construct them, and tokenizers as what people use."""
    if not signature or what in ("class", "exception"):
        return ("", "") if signature else None
    names = r"[\w.~]*\b(BaseTokenizer|TokenizerT)\b"
    return re.sub(names, "Tokenizer", signature), re.sub(names, "Tokenizer", result or "")


def adapt_links(app: Any, doctree: nodes.document) -> None:
    """Links names such as `Tokenizer` to ggtok's own classes, not to an adapter's, except in the module that has it,
    and bases of the tokenizer to what people use. Types such as `bytes` are not linked: the link would lead to
    `Score.bytes`."""
    for node in [*doctree.findall(addnodes.pending_xref)]:
        if node["reftype"] == "class" and hasattr(builtins, node["reftarget"]):
            node.replace_self(nodes.Text(node["reftarget"]))
            continue
        if node["reftarget"] in ("ggtok.tokenizer.base.BaseTokenizer", "ggtok._ggtok.Tokenizer", "TokenizerT"):
            node["reftarget"] = "ggtok.Tokenizer"
            node[:] = [nodes.Text("Tokenizer")]
        own = getattr(sys.modules.get(node.get("py:module") or ""), "__all__", ())
        if node.get("refdomain") == "py" and node["reftarget"] in {*ggtok.__all__}.difference(own):
            node["reftarget"] = f"ggtok.{node['reftarget']}"


def with_dashes(app: Any, doctree: nodes.document) -> None:
    """Writes the dash between a parameter and its description as one character."""
    for field in doctree.findall(nodes.field_body):
        for text in [node for node in field.findall(nodes.Text) if node == " -- "]:
            text.parent.replace(text, nodes.Text(" \u2013 "))


def without_remote_images(app: Any, doctree: nodes.document) -> None:
    """Warns of images from other sites: a page loads nothing from elsewhere."""
    for image in doctree.findall(nodes.image):
        if "://" in image["uri"]:
            logging.getLogger("ggtok").warning("remote image %s", image["uri"], location=image)


def find_trace_class(app: Any, env: Any, node: Any, content: Any) -> Any:
    """Links the classes of `ggtok.trace` to their pages, which are made from the Rust crate."""
    module, _, name = node.get("reftarget", "").rpartition(".")
    if module != "ggtok.trace":
        return None
    page = app.builder.get_relative_uri(node["refdoc"], TRACE_PAGES.get(name, "trace"))
    return nodes.reference("", "", content, refuri=f"{page}#{name.lower()}", internal=True)


def adapt_page(app: Any, page: str, source: list[str]) -> None:
    """Adapts Markdown that was written for the repository to the site.

    Files of `ELSEWHERE` take the places of their pages, generated parts are inserted, links out of the site lead to the
    repository, and the empty line that ends an example for doctest goes.
    """
    file = ROOT / ELSEWHERE[page] if page in ELSEWHERE else DOCS / f"{page}.md"
    app.env.note_dependency(file)
    text = file.read_text(encoding="utf-8")
    if page in GENERATED:
        text, marks = re.subn(r"(?:.+\n)*.*<!-- generated -->", lambda _: GENERATED[page], text)
        assert marks == 1, page
    pages = {ROOT / name: DOCS / f"{other}.md" for other, name in ELSEWHERE.items()}

    # The README's addresses are absolute, and some tables are in it and on a page.
    root = os.path.relpath(ROOT, file.parent)
    text = re.sub(rf"{SITE}([\w/-]+)\.html", rf"{root}/docs/\1.md", text)
    text = re.sub(rf"(?:{REPOSITORY}/blob|{RAW})/main/", f"{root}/", text)

    def replace(match: re.Match[str]) -> str:
        label, target, anchor = match.groups()
        path = (file.parent / target).resolve()
        path = pages.get(path, path)
        if not path.exists():
            return match[0]  # an address, or not a link
        if label[0] == "!" or path.is_relative_to(DOCS):
            address = os.path.relpath(path, (DOCS / page).parent)
        else:
            address = f"{REPOSITORY}/{'tree' if path.is_dir() else 'blob'}/main/{path.relative_to(ROOT).as_posix()}"
        return f"{label}({address}{anchor or ''})"

    text = re.sub(r"\n\n```$", "\n```", text, flags=re.MULTILINE)
    source[0] = re.sub(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^)#\s]+)(#[^)\s]*)?\)", replace, text)


def add_playground(app: Any, exception: Exception | None) -> None:
    """Adds the playground, which Sphinx does not build, in a process that has ggtok as it is."""
    if exception or app.builder.name != "html":
        return
    command = [sys.executable, ROOT / "scripts/build_playground.py", Path(app.outdir, "playground")]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    logging.getLogger("ggtok").info(done.stdout)


def draw_examples(app: Any, env: Any, pages: list[str]) -> None:
    """Draws the examples of the pages in `how/`, in a process that has ggtok as it is."""
    if app.builder.format == "html" and any(page in DRAWN for page in pages):
        folder = Path(app.outdir, "how", "steps")
        subprocess.run([sys.executable, ROOT / "scripts/generate_how.py", folder], check=True)
        GENERATED.update(json.loads((folder / "parts.json").read_text(encoding="utf-8")))


CODE = re.compile(r'(?<=<span class="pre">)[^<]+')
MARK = re.compile(r"((?<=\w[/:=|,(])|(?<=[^\W_]_))(?=\w)|(?<=\w\.)(?=\w{4})")
"""Where a name may break: after a mark inside it, but not before a file's ending."""


def shorten_sidebar(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Shows the second level of the sidebar only below the section that is open. Furo shows all of it."""
    if whole := context.get("toctree"):
        context["toctree"] = lambda **options: whole(**options | {"collapse": True})


def break_names(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Lets code in tables break after the marks in a name, and `--option` nowhere after its dashes."""

    def keep(match: re.Match[str]) -> str:
        return f'<span class="whole">{match[0]}</span>'

    def mark(table: re.Match[str]) -> str:
        return CODE.sub(lambda code: MARK.sub("<wbr>", code[0]), table[0])

    body = re.sub(r"<table.*?</table>", mark, context.get("body", ""), flags=re.DOTALL)
    context["body"] = re.sub(r"(?<=<span class=\"pre\">)--?\w+", keep, body)


def setup(app: Any) -> None:
    app.connect("env-before-read-docs", draw_examples)
    app.connect("build-finished", add_playground)
    app.connect("html-page-context", shorten_sidebar, priority=400)
    app.connect("html-page-context", break_names)
    app.connect("html-page-context", importlib.import_module("site_head").add)
    app.connect("autodoc-process-docstring", from_google)
    app.connect("autodoc-process-signature", without_constructor)
    app.connect("doctree-read", adapt_links)
    app.connect("doctree-read", with_dashes)
    app.connect("doctree-read", without_remote_images)
    app.connect("missing-reference", find_trace_class)
    app.connect("source-read", adapt_page)
    app.connect("env-get-outdated", lambda *_: [*GENERATED, *DRAWN])
