/* The text with its tokens over it, and what is known about the selected one. */

const MANY = 4000; // tokens that are shown at once

/** What a token shows: the bytes of the text that it is the first to stand for, or its piece if there are none. */
function tokenFace(trace, at) {
  const token = trace.tokens[at];
  const from = Math.max(token.start, trace.reached[at]);
  const inText = token.fragment != null && token.end > from;
  const bytes = inText ? trace.bytes.subarray(from, token.end) : bytesOf(token.piece);
  const partial = decoded(bytes) === null;
  const special = trace.special.includes(at);
  const kind = token.fragment == null ? "added" : special ? "special" : partial ? "byte" : "";
  const line = label(inText || bytes.length ? bytes : token.text);
  return { token, line, kind, inText, hasBreak: inText && bytes.at(-1) === 10 };
}

const KINDS = {
  added: "added, not in the text",
  special: "special token",
  byte: "bytes that are not a whole character",
};

/** The text that a token stands in front of before it is known: the characters that begin in its bytes. */
function uncutText(trace, at) {
  const { start, end, fragment } = trace.tokens[at];
  const isStart = (byte) => (trace.bytes[byte] & 0xc0) !== 0x80;
  let from = Math.max(start, trace.reached[at]);
  let to = Math.max(from, end);
  if (fragment == null || to === from) return "";
  while (from < to && !isStart(from)) from++;
  while (from < to && to < trace.bytes.length && !isStart(to)) to++;
  return label(trace.bytes.subarray(from, to));
}

const seen = (line) => line.replaceAll("␣", " ");

/** The strip: the text, grey and uncut, in which tokens appear when they are known. `select(at)` is called for a
 * token that is chosen. */
function tokenStrip(trace, why, select) {
  const total = trace.tokens.length;
  const list = el("div", { class: "tokens no-ids", role: "listbox", "aria-label": "Tokens so far", dir: "auto" });
  const items = [];
  let known = new Uint8Array(total);
  const dress = (at) => {
    const { token, line, kind, inText } = tokenFace(trace, at);
    const item = items[at];
    const isKnown = known[at] === 1;
    const isActive = item.classList.contains("active");
    item.className = isKnown ? `token token-${at % 4} ${kind}${inText ? "" : " absent"}` : "waiting";
    if (isActive) item.classList.add("active");
    const name = `${line}, token ${token.id}${kind ? `, ${KINDS[kind]}` : ""}`;
    item.setAttribute("aria-label", isKnown ? name : "not cut yet");
    item.firstChild.textContent = seen(isKnown ? line : uncutText(trace, at));
  };
  const focus = (at) => {
    if (at < 0 || at >= total) return;
    while (at >= items.length) more();
    items[at].focus();
  };
  const gap = (from, to) => {
    if (to > from) list.append(el("span", { class: "gap-text" }, seen(label(trace.bytes.subarray(from, to)))));
  };
  const add = (from, to) => {
    for (let at = from; at < to; at++) {
      const { token, hasBreak } = tokenFace(trace, at);
      if (token.fragment != null) gap(trace.reached[at], token.start);
      const attributes = { role: "option", tabindex: at ? -1 : 0, "data-token": at, "aria-selected": "false" };
      const faces = [el("span", { class: "face" }), el("span", { class: "id" }, String(token.id))];
      items.push(el("span", attributes, faces));
      dress(at);
      list.append(items.at(-1), ...(hasBreak ? [el("br")] : []));
    }
    if (to === total) gap(trace.end, trace.bytes.length);
  };
  const { button: rest, more } = inParts(total, MANY, "token", "shown", add);
  more();
  const placeOf = ({ target }) => {
    const item = target.closest("[data-token]");
    return item ? Number(item.dataset.token) : undefined;
  };
  list.addEventListener("click", (event) => placeOf(event) !== undefined && select(placeOf(event)));
  listKeys(list, placeOf, () => total, focus, select);

  const onchange = (event) => list.classList.toggle("no-ids", !event.target.checked);
  const options = el("label", {}, el("input", { type: "checkbox", onchange }), " ids");
  const hint = muted("Choose a token to see what it is and why it ends where it does.");
  const card = el("div", { class: "card", "aria-live": "polite" }, hint);
  const count = el("span", { class: "muted count" });

  let chosen = null;
  let active = [];
  return {
    parts: total ? [list, rest, trace.signs ? el("p", { class: "muted signs" }, trace.signs) : null, card] : [muted("The text has no tokens.")],
    options,
    count,
    /** Shows the tokens in `ranges`, and the rest of the text uncut. */
    show(ranges) {
      const before = known;
      known = new Uint8Array(total);
      for (const [from, to] of ranges) known.fill(1, from, to);
      items.forEach((_, at) => known[at] !== before[at] && dress(at));
      const n = known.reduce((sum, one) => sum + one, 0);
      count.textContent = n === total ? `${total.toLocaleString("en")}, all of them` : n.toLocaleString("en");
    },
    /** Marks a token as selected and shows what it is. It gets the focus with `isByHand`: it was chosen here. */
    choose(at, isByHand) {
      chosen?.setAttribute("aria-selected", "false");
      while (at >= items.length) more();
      chosen = items[at];
      chosen.setAttribute("aria-selected", "true");
      if (isByHand) chosen.focus({ preventScroll: true });
      card.replaceChildren(...tokenCard(trace, at, why, select));
    },
    /** Marks the tokens that a step is about. */
    activate(from, to) {
      for (const item of active) item.classList.remove("active");
      active = to - from < total ? items.slice(from, Math.min(to, from + 500)) : [];
      for (const item of active) item.classList.add("active");
      if (!active.length) return;
      const { offsetTop: top, offsetHeight: height } = active[0];
      const isInSight = top >= list.scrollTop && top + height <= list.scrollTop + list.clientHeight;
      if (!isInSight) list.scrollTop = top - list.clientHeight / 3;
    },
  };
}

function tokenCard(trace, at, why, select) {
  const { token, line, kind } = tokenFace(trace, at);
  const facts = [
    ["Token", String(token.id)],
    ["Spelled in the vocabulary", mono(token.text)],
    ["Decodes to", mono(token.piece)],
    ["Bytes", el("code", {}, short(Array.from(bytesOf(token.piece), hex).join(" "), 120))],
    ["Comes from", kind === "added" ? "added, not in the text" : `bytes ${token.start} to ${token.end}`],
  ];
  if (kind === "special") facts.push(["Kind", KINDS[kind]]);
  const reasons = [at - 1, at].map((left) => {
    const box = el("div", {});
    Promise.resolve(left < 0 ? null : why(left)).then((answer) => {
      const found = answer?.reasons ?? answer;
      if (found?.length) box.append(...whyNotOne(trace, at, left, found, select));
    });
    return box;
  });
  const rows = facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)));
  return [el("h3", {}, "Selected token: ", el("strong", {}, line)), el("dl", {}, rows), ...reasons];
}

/** Why the token `at` is not one with its neighbour: `left` is the first of the two. */
function whyNotOne(trace, at, left, reasons, select) {
  const other = left === at ? at + 1 : left;
  const { line } = tokenFace(trace, other);
  const link = el("button", { type: "button", class: "link mono", onclick: () => select(other) }, line);
  const question = `Why is it not one token with the ${left === at ? "next" : "previous"}, `;
  const items = reasons.map((reason) => el("li", {}, reason.message));
  return [el("h3", {}, question, link, "?"), el("ul", {}, items)];
}

/** Marks a token wherever it is drawn in the container while the pointer or the focus is on it. */
function linkTokens(container) {
  let hot = null;
  const mark = (event) => {
    const node = event.target.closest?.("[data-token]") ?? null;
    if (node === hot) return;
    for (const marked of container.querySelectorAll(".hot")) marked.classList.remove("hot");
    hot = node;
    if (hot === null) return;
    for (const same of container.querySelectorAll(`[data-token="${hot.dataset.token}"]`)) same.classList.add("hot");
  };
  for (const event of ["pointerover", "focusin"]) container.addEventListener(event, mark);
}
