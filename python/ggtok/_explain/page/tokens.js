/* The text with its tokens over it, and what is known about the selected one. */

const MANY = 4000; // tokens that are shown at once

/** What a token shows: the bytes of the text that it is the first to stand for, or its piece where there are none. */
function tokenFace(trace, at) {
  const token = trace.tokens[at];
  const from = Math.max(token.start, trace.reached[at]);
  const inText = token.fragment != null && token.end > from;
  const bytes = inText ? trace.bytes.subarray(from, token.end) : bytesOf(token.piece);
  const partial = decoded(bytes) === null;
  const special = token.fragment != null && trace.fragments[token.fragment].token != null;
  const kind = token.fragment == null ? "added" : special ? "special" : partial ? "byte" : "";
  const line = partial ? Array.from(bytes, hex).join(" ") : label(inText || bytes.length ? bytes : token.text);
  return { token, line, kind, inText, hasBreak: inText && bytes.at(-1) === 10 };
}

const KINDS = { added: "added, not in the text", special: "special token", byte: "bytes that are not a whole character", "": "" };

/** The panel. `select(at)` is called for the token that is chosen. */
function tokensPanel(trace, select) {
  const list = el("div", { class: "tokens", role: "listbox", "aria-label": "Tokens over the text", dir: "auto" });
  const items = [];
  let shown = 0;
  const focus = (at) => {
    if (at < 0 || at >= trace.tokens.length) return;
    if (at >= shown) more();
    items[at].focus();
  };
  const gap = (from, to) => {
    if (to > from) list.append(el("span", { class: "gap-text" }, label(trace.bytes.subarray(from, to))));
  };
  const more = () => {
    const end = Math.min(trace.tokens.length, shown + MANY);
    for (; shown < end; shown++) {
      const { token, line, kind, inText, hasBreak } = tokenFace(trace, shown);
      if (token.fragment != null) gap(trace.reached[shown], token.start);
      const name = `${line}, token ${token.id}${kind ? `, ${KINDS[kind]}` : ""}`;
      const item = el(
        "span", {
          class: `token token-${shown % 4} ${kind}${inText ? "" : " absent"}`, role: "option", tabindex: shown ? -1 : 0, "data-token": shown,
          "aria-label": name, "aria-selected": "false",
        },
        el("span", { class: "face" }, line), el("span", { class: "id" }, String(token.id)),
      );
      items.push(item);
      list.append(item);
      if (hasBreak) list.append(el("br"));
    }
    rest.hidden = shown === trace.tokens.length;
    rest.textContent = `Show more: ${shown.toLocaleString("en")} of ${plural(trace.tokens.length, "token")} are shown`;
    if (rest.hidden) gap(trace.tokens.reduce((end, token) => Math.max(end, token.end), 0), trace.bytes.length);
  };
  const rest = el("button", { type: "button", onclick: () => more() });
  more();
  const placeOf = (event) => event.target.closest("[data-token]")?.dataset.token;
  list.addEventListener("click", (event) => placeOf(event) != null && select(Number(placeOf(event))));
  list.addEventListener("keydown", (event) => {
    const at = Number(placeOf(event) ?? -1);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: trace.tokens.length - 1 }[event.key];
    if (to !== undefined) focus(to);
    else if (event.key === "Enter" || event.key === " ") select(at);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  list.addEventListener("focusin", (event) => {
    list.querySelectorAll('[tabindex="0"]').forEach((item) => item.setAttribute("tabindex", -1));
    event.target.setAttribute("tabindex", 0);
  });

  const ids = el("label", {}, el("input", {
    type: "checkbox", checked: true, onchange: (event) => list.classList.toggle("no-ids", !event.target.checked),
  }), " ids");
  const kinds = ["special", "added", "byte"].filter((kind) => items.some((item) => item.classList.contains(kind)));
  const legend = el("p", { class: "legend" }, ids, kinds.map((kind) => el("span", { class: `token token-0 ${kind}` }, KINDS[kind])));
  const card = el("div", { class: "card", "aria-live": "polite" }, el("p", { class: "muted" }, "Choose a token to see what it is and which steps made it."));

  let chosen = null;
  let active = [];
  return {
    parts: trace.tokens.length ? [legend, list, rest, card] : [el("p", {}, "The text has no tokens.")],
    /** Marks a token as selected and shows what it is. */
    choose(at) {
      chosen?.setAttribute("aria-selected", "false");
      while (at >= shown) more();
      chosen = items[at];
      chosen.setAttribute("aria-selected", "true");
      chosen.focus({ preventScroll: true });
      card.replaceChildren(...tokenCard(trace, at, select));
    },
    /** Marks the tokens that a step is about. */
    activate(from, to) {
      for (const item of active) item.classList.remove("active");
      active = items.slice(from, Math.min(to, from + 500));
      for (const item of active) item.classList.add("active");
      const first = active[0];
      if (!first || (first.offsetTop >= list.scrollTop && first.offsetTop + first.offsetHeight <= list.scrollTop + list.clientHeight)) return;
      list.scrollTop = first.offsetTop - list.clientHeight / 3;
    },
  };
}

function tokenCard(trace, at, select) {
  const { token, kind } = tokenFace(trace, at);
  const facts = [
    ["Token", String(token.id)], ["Text in the vocabulary", mono(token.text)], ["Decodes to", mono(token.piece)],
    ["Bytes", el("code", {}, short(Array.from(bytesOf(token.piece), hex).join(" "), 120))],
    ["Comes from", kind === "added" ? "added, not in the text" : `bytes ${token.start} to ${token.end}`],
  ];
  if (kind === "special") facts.push(["Kind", KINDS[kind]]);
  const reasons = [at - 1, at].filter((left) => trace.why.has(left)).map((left) => {
    const other = left === at ? at + 1 : left;
    const link = el("button", { type: "button", class: "link mono", onclick: () => select(other) }, tokenFace(trace, other).line);
    return el("div", {}, el("h3", {}, `Why is it not one token with the ${left === at ? "next" : "previous"}, `, link, "?"),
      el("ul", {}, trace.why.get(left).reasons.map((reason) => el("li", {}, reason.message))));
  });
  return [el("dl", {}, facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))), ...reasons];
}

/** Marks a token wherever it is drawn while the pointer or the focus is on it. */
function linkTokens() {
  let hot = null;
  const mark = (event) => {
    const token = event.target.closest?.("[data-token]")?.dataset.token ?? null;
    if (token === hot) return;
    for (const node of document.querySelectorAll(".hot")) node.classList.remove("hot");
    hot = token;
    if (hot != null) for (const node of document.querySelectorAll(`[data-token="${hot}"]`)) node.classList.add("hot");
  };
  document.addEventListener("pointerover", mark);
  document.addEventListener("focusin", mark);
}
