/* The view of one trace: the tokens, the slider with its buttons and keys, and the tables. */

const BUTTONS = [
  ["first", "|‹", "First step", "Home"],
  ["back-unit", "«", "Back to the stage before", "Page Up"],
  ["back", "‹", "Back one step", "←"],
  ["play", "Play", "Play or pause", "Space"],
  ["next", "›", "Next step", "→"],
  ["next-unit", "»", "On to the next stage", "Page Down"],
  ["last", "›|", "Last step", "End"],
];

/** What a page shows a trace in: its three sections. */
function frame() {
  const button = ([id, face, name, key]) =>
    el("button", { type: "button", id, "aria-label": id === "play" ? null : name, title: `${name} (${key})` }, face);
  const controls = el(
    "div",
    { class: "controls", role: "group", "aria-label": "Steps" },
    el("div", { class: "buttons" }, BUTTONS.map(button)),
    el("input", { type: "range", id: "slider", min: 0, value: 0, step: 1, "aria-label": "Step" }),
    el("span", { id: "count" }),
  );
  const section = (id, title, attributes, ...children) =>
    el("section", { ...attributes, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), children);
  return [
    section("tokens", "Tokens", {}, el("div", { id: "tokens" })),
    section(
      "steps",
      "Steps",
      { id: "steps", tabindex: -1 },
      controls,
      el("h3", { id: "unit" }),
      el("p", { id: "caption", role: "status" }),
      el("div", { id: "stage" }),
    ),
    section("tables", "All tables", {}, el("div", { id: "tables" })),
  ];
}

/** What all views of a trace need to know, worked out once. */
function prepare(trace, why) {
  trace.bytes = bytesOf(trace.text);
  trace.reached = [];
  trace.end = 0;
  for (const token of trace.tokens) {
    trace.reached.push(trace.end);
    trace.end = Math.max(trace.end, token.end);
  }
  const known = typeof why === "function" ? null : new Map(why);
  trace.why = async (left) => (known ? known.get(left) : why(left));
  return trace;
}

/** The slider in `root`: one number for the step of all stages. A stage without a length or a drawing is a step of words.
 * Keys count in `keys`. */
function timeline(root, given, onStage = () => {}, keys = document) {
  const part = (id) => root.querySelector(`#${id}`);
  const stages = given.map((stage) => ({ draw: () => [], ...stage, length: Math.max(1, stage.length ?? 1) }));
  const first = [0];
  for (const stage of stages) first.push(first.at(-1) + stage.length);
  const total = first.at(-1);
  const slider = part("slider");
  slider.max = total - 1;
  let step = -1;
  let playing = null;
  const stageAt = (at) => lastIndex(stages.length, (i) => first[i] <= at);
  const show = (to) => {
    const at = Math.max(0, Math.min(total - 1, to));
    if (at === step) return;
    step = at;
    const index = stageAt(step);
    const stage = stages[index];
    const inside = step - first[index];
    slider.value = step;
    slider.setAttribute("aria-valuetext", `Step ${step + 1} of ${total}: ${stage.title}`);
    part("count").textContent = `${(step + 1).toLocaleString("en")} / ${total.toLocaleString("en")}`;
    part("unit").textContent =
      stage.length > 1 ? `${stage.title} (step ${inside + 1} of ${stage.length})` : stage.title;
    part("caption").textContent = stage.caption(inside);
    part("stage").replaceChildren(...stage.draw(inside).filter((node) => node != null));
    onStage(stage, inside);
  };
  const stop = () => {
    clearInterval(playing);
    playing = null;
    part("play").textContent = "Play";
  };
  const play = () => {
    if (playing !== null) return stop();
    if (step === total - 1) show(0);
    part("play").textContent = "Pause";
    playing = setInterval(() => (step < total - 1 ? show(step + 1) : stop()), 700);
  };
  const go = {
    first: () => show(0),
    last: () => show(total - 1),
    next: () => show(step + 1),
    back: () => show(step - 1),
    "next-unit": () => show(first[Math.min(stageAt(step) + 1, stages.length - 1)]),
    "back-unit": () => show(first[Math.max(0, stageAt(step) - (step === first[stageAt(step)] ? 1 : 0))]),
    play,
  };
  for (const [id, action] of Object.entries(go)) {
    part(id).onclick = () => {
      if (id !== "play") stop();
      action();
    };
  }
  slider.oninput = () => {
    stop();
    show(Number(slider.value));
  };
  const actions = {
    ArrowLeft: "back",
    ArrowRight: "next",
    Home: "first",
    End: "last",
    PageUp: "back-unit",
    PageDown: "next-unit",
    " ": "play",
  };
  keys.onkeydown = (event) => {
    const action = actions[event.key];
    if (!action || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const itsOwn = `.scroll, select, input:not([type=range])${action === "play" ? ", button, summary" : ""}`;
    if (event.target.closest(itsOwn)) return;
    event.preventDefault();
    if (action !== "play") stop();
    go[action]();
  };
  return {
    show,
    stop,
    /** Goes to the first stage that makes a token, at the step that makes it. */
    showToken(token) {
      const i = stages.findIndex(({ tokens: [from, to] }) => from <= token && token < to);
      if (i >= 0) show(first[i] + (stages[i].stepOf?.(token) ?? stages[i].length - 1));
    },
  };
}

const MANY_TABLES = 60;

/** All sections as tables that open, some at a time. */
function tablesPanel(root, sections, trace) {
  const cell = (value, kind) => {
    if (value == null) return null;
    if (kind === "text") return mono(value);
    return kind === "texts" ? el("span", {}, value.flatMap((text, i) => (i ? [" ", mono(text)] : mono(text)))) : value;
  };
  // Tokens are in the order of the text: the last one that starts at or before `start`.
  const starts = (trace?.tokens ?? [])
    .map(({ start, end }, at) => ({ start, end, at }))
    .filter(({ start, end }) => end > start);
  const tokenOf = (start, end) => {
    if (start == null || !starts.length) return null;
    const one = starts[lastIndex(starts.length, (i) => starts[i].start <= start)];
    return one.start < end && start < one.end ? one.at : null;
  };
  const one = ({ title, about, columns, rows }) =>
    folded(title, about, rows.length, () =>
      table(
        title,
        columns.map(([name, kind]) => name + (kind === "number" ? "#" : "")),
        rows,
        ([cells]) => cells.map((value, j) => cell(value, columns[j][1])),
        {
          mark: ([, start, end, mark]) => ({
            class: { won: "new", lost: "lost" }[mark] ?? null,
            "data-token": tokenOf(start, end),
          }),
        },
      ),
    );
  const { button, more } = inParts(sections.length, MANY_TABLES, "table", "listed", (from, to) =>
    button.before(...sections.slice(from, to).map(one)),
  );
  root.querySelector("#tables").replaceChildren(button);
  more();
}

/** The panel of a trace, and what shows its steps in `root`; `onSelect(at)` is called before a token of it is shown. */
function traceSide(root, { trace: given, why }, { onSelect = () => {}, keys = document } = {}) {
  const trace = prepare(given, why);
  let line = null;
  const showToken = (at) => {
    onSelect(at);
    panel.choose(at);
    line.showToken(at);
  };
  const panel = tokensPanel(trace, showToken);
  const start = () => {
    const onStage = (stage, step) => panel.activate(...(stage.tokensAt?.(step) ?? stage.tokens));
    line = timeline(root, stagesOf(trace), onStage, keys);
    line.show(0);
  };
  return { trace, panel, start, showToken, show: (step) => line.show(step), stop: () => line?.stop() };
}

/** The view of a trace in any page: the tokens, the steps and, if there are `sections`, the tables. `why` is a list of
 * pairs `[left, answer]`, or a function of `left` that returns an answer or a promise of one: why token `left` and the
 * next are not one. `keys` is where keys count, and `onToken(at)` is called when a token is chosen in the view. Returns
 * `{trace, showToken(at), show(step), destroy()}`. */
function mountTrace(container, { trace, why, sections }, { keys = container, onToken = () => {} } = {}) {
  container.replaceChildren(...frame());
  const side = traceSide(container, { trace, why }, { keys, onSelect: onToken });
  container.querySelector("#tokens").append(...side.panel.parts);
  side.start();
  if (sections) tablesPanel(container, sections, side.trace);
  else container.querySelector("#tables").closest("section").remove();
  const destroy = () => {
    side.stop();
    keys.onkeydown = null;
    container.replaceChildren();
  };
  return { trace: side.trace, showToken: side.showToken, show: side.show, destroy };
}
