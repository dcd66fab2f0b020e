/* Puts the page together: the data, the slider and the keys, and the tables. */

const data = JSON.parse(byId("data").textContent);

/** What all views of a trace need to know, worked out once. */
function prepare(trace, why) {
  trace.bytes = bytesOf(trace.text);
  trace.reached = [];
  trace.end = 0;
  for (const token of trace.tokens) {
    trace.reached.push(trace.end);
    trace.end = Math.max(trace.end, token.end);
  }
  trace.why = new Map(why.map(([left, reasons]) => [left, reasons]));
  return trace;
}

/** The slider: one number for the step of all stages. A stage without a length or a drawing is a step of words. */
function timeline(given, onStage = () => {}) {
  const stages = given.map((stage) => ({ draw: () => [], ...stage, length: Math.max(1, stage.length ?? 1) }));
  const first = [0];
  for (const stage of stages) first.push(first.at(-1) + stage.length);
  const total = first.at(-1);
  const slider = byId("slider");
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
    byId("count").textContent = `${(step + 1).toLocaleString("en")} / ${total.toLocaleString("en")}`;
    byId("unit").textContent =
      stage.length > 1 ? `${stage.title} (step ${inside + 1} of ${stage.length})` : stage.title;
    byId("caption").textContent = stage.caption(inside);
    byId("stage").replaceChildren(...stage.draw(inside).filter((node) => node != null));
    onStage(stage, inside);
  };
  const stop = () => {
    clearInterval(playing);
    playing = null;
    byId("play").textContent = "Play";
  };
  const play = () => {
    if (playing !== null) return stop();
    if (step === total - 1) show(0);
    byId("play").textContent = "Pause";
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
    byId(id).onclick = () => {
      if (id !== "play") stop();
      action();
    };
  }
  slider.oninput = () => {
    stop();
    show(Number(slider.value));
  };
  const keys = {
    ArrowLeft: "back",
    ArrowRight: "next",
    Home: "first",
    End: "last",
    PageUp: "back-unit",
    PageDown: "next-unit",
    " ": "play",
  };
  document.onkeydown = (event) => {
    const action = keys[event.key];
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
function tablesPanel(sections, trace) {
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
  byId("tables").replaceChildren(button);
  more();
}

function themeButton() {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const chosen = document.documentElement.dataset;
  const isDark = () => (chosen.theme ? chosen.theme === "dark" : dark.matches);
  const name = () => {
    byId("theme").textContent = isDark() ? "Light theme" : "Dark theme";
  };
  byId("theme").onclick = () => {
    chosen.theme = isDark() ? "light" : "dark";
    name();
  };
  dark.onchange = name;
  name();
}

/** What a panel says about a trace besides its tokens. */
function factsOf(trace) {
  const facts = [plural(trace.code_points.length, "character"), plural(trace.bytes.length, "byte")];
  if (trace.parse_special) facts.push("special tokens read");
  if (trace.continues) facts.push("continues an earlier text");
  if (!trace.add_special) facts.push("no BOS, EOS or SEP");
  return facts.join(" · ");
}

/** The panel of a trace, and what shows its steps; `onSelect` is called before a token of it is shown. */
function traceSide({ trace: given, why }, onSelect = () => {}) {
  const trace = prepare(given, why);
  let line = null;
  const panel = tokensPanel(trace, (at) => {
    onSelect();
    panel.choose(at);
    line.showToken(at);
  });
  const start = () => {
    line = timeline(stagesOf(trace), (stage, step) => {
      panel.activate(...(stage.tokensAt?.(step) ?? stage.tokens));
    });
    line.show(0);
  };
  return { trace, panel, start, stop: () => line?.stop() };
}

function traceView() {
  const side = traceSide(data);
  byId("facts").textContent = factsOf(side.trace);
  byId("tokens").append(...side.panel.parts);
  side.start();
  tablesPanel(data.sections, side.trace);
}

/** Two traces of one text: both texts with their tokens, and the steps and tables of one of them at a time. */
function compareView() {
  let shown = null;
  const choose = (at) => {
    if (at === shown) return;
    if (shown !== null) sides[shown].stop();
    shown = at;
    choices[at].checked = true;
    panels.forEach((panel, i) => panel.classList.toggle("chosen", i === at));
    sides[at].start();
    tablesPanel(data.sides[at].sections, sides[at].trace);
  };
  const sides = data.sides.map((side, at) => traceSide(side, () => choose(at)));
  const choices = sides.map(() => el("input", { type: "radio", name: "side" }));
  choices.forEach((choice, at) => choice.addEventListener("change", () => choose(at)));
  byId("facts").textContent = factsOf(sides[0].trace);
  const panels = sides.map(({ trace, panel }, at) =>
    el(
      "div",
      { class: "side" },
      el("h3", {}, `${data.names[at]}: ${plural(trace.tokens.length, "token")}`),
      panel.parts,
    ),
  );
  byId("tokens").append(el("p", {}, data.note), ...panels);
  byId("unit").before(
    el(
      "fieldset",
      {},
      el("legend", {}, "Steps and tables of"),
      choices.map((choice, at) => el("label", {}, choice, ` ${data.names[at]}`)),
    ),
  );
  choose(0);
}

themeButton();
linkTokens();
({ trace: traceView, trie: trieView, compare: compareView })[data.view]();
