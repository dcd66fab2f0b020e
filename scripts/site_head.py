"""What others see of a page of the site: icons, a description for search engines, and a card where a link is shared."""

from __future__ import annotations

import re
from html import escape, unescape
from typing import Any

from docutils import nodes  # type: ignore[import-untyped]

ABOUT = "The tokenizer inside your GGUF file, in Python: llama.cpp's ids, without llama.cpp and without the weights."
"""Of the first page, and of pages that begin with no sentence."""
CARD_ABOUT = "ggtok: the tokenizer inside your GGUF file, in Python. A text cut into tokens with their ids"
LENGTH = 155
"""About how much of a description is shown."""


def description(doctree: nodes.document | None) -> str:
    """The beginning of a page's text: whole sentences if they fit, or else cut after a word."""
    paragraphs = [] if doctree is None else doctree.findall(nodes.paragraph)
    own = (paragraph for paragraph in paragraphs if isinstance(paragraph.parent, nodes.section))
    text = " ".join(next((paragraph.astext() for paragraph in own), "").split())
    if len(text) <= LENGTH:
        return text or ABOUT
    sentence, stop, _ = text[:LENGTH].rpartition(". ")
    return sentence + "." if stop else text[:LENGTH].rpartition(" ")[0].rstrip(",;:") + " …"


def add(app: Any, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Adds the elements to a page's head."""
    about, site = ABOUT if page == "index" else description(doctree), app.config.html_baseurl
    address = f"{site}{'' if page == 'index' else f'{page}.html'}"
    name = unescape(re.sub("<[^>]*>", "", context.get("title", "")))
    title = name if page == "index" else f"{name} · ggtok"
    metas = {
        "name": {"description": about, "twitter:card": "summary_large_image"},
        "property": {
            "og:type": "website",
            "og:site_name": "ggtok",
            "og:title": title,
            "og:description": about,
            "og:url": address,
            "og:image": f"{site}_static/card.png",
            "og:image:width": "1200",
            "og:image:height": "630",
            "og:image:alt": CARD_ABOUT,
        },
    }
    path = context["pathto"]
    lines = [
        f'<meta {kind}="{name}" content="{escape(value)}">'
        for kind, values in metas.items()
        for name, value in values.items()
    ]
    lines += [
        f'<link rel="icon" href="{path("_static/favicon.ico", 1)}" sizes="32x32">',
        f'<link rel="icon" href="{path("_static/icon.svg", 1)}" type="image/svg+xml">',
        f'<link rel="apple-touch-icon" href="{path("_static/touch-icon.png", 1)}">',
    ]
    context["metatags"] = (context.get("metatags") or "") + "\n    ".join(["", *lines, ""])
