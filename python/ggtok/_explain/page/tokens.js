/* The text with its tokens over it, and what is known about the selected one. */

const MANY = 4000; // tokens that are shown at once

/** What a token shows: the bytes of the text that it is the first to stand for, or its piece if there are none. */
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

const KINDS = {
  added: "added, not in the text",
  special: "special token",
  byte: "bytes that are not a whole character",
  "": "",
};

/** The panel. `select(at)` is called for the token that is chosen. */
function tokensPanel(trace, select) {
  const list = el("div", { class: "tokens", role: "listbox", "aria-label": "Tokens over the text", dir: "auto" });
  const items = [];
  const focus = (at) => {
    if (at < 0 || at >= trace.tokens.length) return;
    if (at >= items.length) more();
    items[at].focus();
  };
  const gap = (from, to) => {
    if (to > from) list.append(el("span", { class: "gap-text" }, label(trace.bytes.subarray(from, to))));
  };
  const add = (from, to) => {
    for (let at = from; at < to; at++) {
      const { token, line, kind, inText, hasBreak } = tokenFace(trace, at);
      if (token.fragment != null) gap(trace.reached[at], token.start);
      const attributes = {
        class: `token token-${at % 4} ${kind}${inText ? "" : " absent"}`,
        role: "option",
        tabindex: at ? -1 : 0,
        "data-token": at,
        "aria-label": `${line}, token ${token.id}${kind ? `, ${KINDS[kind]}` : ""}`,
        "aria-selected": "false",
      };
      const faces = [el("span", { class: "face" }, line), el("span", { class: "id" }, String(token.id))];
      items.push(el("span", attributes, faces));
      list.append(items.at(-1), ...(hasBreak ? [el("br")] : []));
    }
    if (to === trace.tokens.length) gap(trace.end, trace.bytes.length);
  };
  const { button: rest, more } = inParts(trace.tokens.length, MANY, "token", "shown", add);
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

  const onchange = (event) => list.classList.toggle("no-ids", !event.target.checked);
  const ids = el("label", {}, el("input", { type: "checkbox", checked: true, onchange }), " ids");
  const kinds = ["special", "added", "byte"].filter((kind) => items.some((item) => item.classList.contains(kind)));
  const legend = el(
    "p",
    { class: "legend" },
    ids,
    kinds.map((kind) => el("span", { class: `token token-0 ${kind}` }, KINDS[kind])),
  );
  const hint = muted("Choose a token to see what it is and which steps made it.");
  const card = el("div", { class: "card", "aria-live": "polite" }, hint);

  let chosen = null;
  let active = [];
  return {
    parts: trace.tokens.length ? [legend, list, rest, card] : [el("p", {}, "The text has no tokens.")],
    /** Marks a token as selected and shows what it is. */
    choose(at) {
      chosen?.setAttribute("aria-selected", "false");
      while (at >= items.length) more();
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
      if (!active.length) return;
      const { offsetTop: top, offsetHeight: height } = active[0];
      const isInSight = top >= list.scrollTop && top + height <= list.scrollTop + list.clientHeight;
      if (!isInSight) list.scrollTop = top - list.clientHeight / 3;
    },
  };
}

function tokenCard(trace, at, select) {
  const { token, kind } = tokenFace(trace, at);
  const facts = [
    ["Token", String(token.id)],
    ["Text in the vocabulary", mono(token.text)],
    ["Decodes to", mono(token.piece)],
    ["Bytes", el("code", {}, short(Array.from(bytesOf(token.piece), hex).join(" "), 120))],
    ["Comes from", kind === "added" ? "added, not in the text" : `bytes ${token.start} to ${token.end}`],
  ];
  if (kind === "special") facts.push(["Kind", KINDS[kind]]);
  const reasons = el("div");
  const neighbours = [at - 1, at].map(async (left) => {
    const answer = left < 0 ? null : await trace.why(left);
    if (!answer) return [];
    const other = left === at ? at + 1 : left;
    const attributes = { type: "button", class: "link mono", onclick: () => select(other) };
    const link = el("button", attributes, tokenFace(trace, other).line);
    const items = answer.reasons.map((reason) => el("li", {}, reason.message));
    const question = `Why is it not one token with the ${left === at ? "next" : "previous"}, `;
    return [el("h3", {}, question, link, "?"), el("ul", {}, items)];
  });
  Promise.all(neighbours).then((answers) => reasons.append(...answers.flat()));
  const rows = facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)));
  return [el("dl", {}, rows), reasons];
}

/** Marks a token wherever it is drawn while the pointer or the focus is on it. */
function linkTokens() {
  let hot = null;
  const mark = (event) => {
    const node = event.target.closest?.("[data-token]") ?? null;
    if (node === hot) return;
    for (const marked of document.querySelectorAll(".hot")) marked.classList.remove("hot");
    hot = node;
    if (hot === null) return;
    // Of two traces, the steps and the tables are those of the chosen one.
    const sideOf = (one) => one.closest(".side") ?? document.querySelector(".side.chosen");
    for (const same of document.querySelectorAll(`[data-token="${hot.dataset.token}"]`)) {
      if (sideOf(same) === sideOf(hot)) same.classList.add("hot");
    }
  };
  document.addEventListener("pointerover", mark);
  document.addEventListener("focusin", mark);
}
