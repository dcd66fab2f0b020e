/* The page of two traces of one text: the verdict, the text with the cuts of both, and the steps of both at one place
 * in the text, which a slider chooses. */

function compareView(view) {
  const traces = data.sides.map(({ page }) => page);
  const bytes = bytesOf(traces[0].text);
  byId("facts").textContent = traces[0].facts;
  const results = traces.map(({ tokens }) => ({
    ids: tokens.map(({ id }) => id),
    spans: tokens.flatMap(({ start, end }) => [start, end]),
  }));
  const cells = cellsOfPair(bytes.length, results);
  const strip = pairStrip(bytes, cells, data.names, (at) => go(at));

  const slider = el("input", { type: "range", class: "slider", min: 0, max: Math.max(0, cells.length - 1), "aria-label": "Position in the text" });
  const place = el("span", { class: "count" });
  const jump = (text, name, to) => el("button", { type: "button", "aria-label": name, title: name, onclick: () => go(to()) }, text);
  const starts = cells.flatMap(({ differs, opens }, at) => (differs && opens ? at : []));
  const here = () => Number(slider.value);
  const jumps = [
    jump("‹ difference", "The previous difference", () => starts.findLast((at) => at < here()) ?? starts.at(-1)),
    jump("difference ›", "The next difference", () => starts.find((at) => at > here()) ?? starts[0]),
  ];
  const controls = el(
    "div",
    { class: "controls places", role: "group", "aria-label": "Position in the text" },
    slider,
    jump("‹", "The previous position", () => Math.max(0, here() - 1)),
    jump("›", "The next place", () => Math.min(cells.length - 1, here() + 1)),
    ...(starts.length ? jumps : []),
    place,
  );
  const [above, below] = data.names.map((name) => el("strong", {}, name));
  const ring = starts.length ? "; a ring is around what they cut differently." : ".";
  const legend = el("p", { class: "muted" }, "Above the cuts of ", above, ", below those of ", below, ring);
  const boxes = data.names.map((own, at) => {
    const name = `${own}: ${plural(traces[at].tokens.length, "token")}`;
    return el("section", { class: "side", "aria-label": name }, el("h2", {}, name));
  });
  view.append(
    el("p", { class: "judgement" }, verdictOf(bytes, ...results)),
    ...(cells.length ? [legend, ...strip.parts, controls] : []),
    el("div", { class: "sides" }, boxes),
  );
  const views = data.sides.map((side, at) => mountTrace(boxes[at], side));

  /** Both sides show the step that decides the token at this place. */
  function go(at) {
    const { start, end, tokens } = cells[at];
    slider.value = at;
    const text = label(bytes.subarray(start, end));
    const character = characterAt(bytes, start).toLocaleString("en");
    place.textContent = `character ${character}: ${short(text, 20)}`;
    slider.setAttribute("aria-valuetext", place.textContent);
    strip.mark(at);
    views.forEach((one, i) => tokens[i] >= 0 && one.showStepOf(tokens[i]));
  }
  slider.addEventListener("input", () => go(here()));
  if (cells.length) go(starts[0] ?? 0);
}
