/* Puts the page together: the data, the slider and the keys, and the tables. */

const data = JSON.parse(byId("data").textContent);

/** What all views of a trace need to know, worked out once. */
function prepare(trace, why) {
  trace.bytes = bytesOf(trace.text);
  trace.reached = [];
  let end = 0;
  for (const token of trace.tokens) {
    trace.reached.push(end);
    end = Math.max(end, token.end);
  }
  trace.why = new Map(why.map(([left, reasons]) => [left, reasons]));
  return trace;
}

/** The slider: one number for the step of all stages. */
function timeline(stages, onStage) {
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
    const caption = stage.caption(inside);
    slider.setAttribute("aria-valuetext", `Step ${step + 1} of ${total}: ${stage.title}`);
    byId("count").textContent = `${(step + 1).toLocaleString("en")} / ${total.toLocaleString("en")}`;
    byId("unit").textContent = stage.length > 1 ? `${stage.title} (step ${inside + 1} of ${stage.length})` : stage.title;
    byId("caption").textContent = caption;
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
  const keys = { ArrowLeft: "back", ArrowRight: "next", Home: "first", End: "last", PageUp: "back-unit", PageDown: "next-unit", " ": "play" };
  document.onkeydown = (event) => {
    const action = keys[event.key];
    const target = event.target;
    if (!action || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (target.closest(".scroll, select, input:not([type=range])") || (event.key === " " && target.closest("button, summary"))) return;
    event.preventDefault();
    if (action !== "play") stop();
    go[action]();
  };
  return {
    show,
    stop,
    /** Goes to the last stage that makes a token, at the step that makes it. */
    showToken(token) {
      for (let i = 0; i < stages.length; i++) {
        const [from, to] = stages[i].tokens;
        if (from <= token && token < to) return show(first[i] + (stages[i].stepOf ? stages[i].stepOf(token) : stages[i].length - 1));
      }
    },
  };
}

const MANY_TABLES = 60;

/** All sections as tables that open. Of many, those of one kind are shown together until asked for. */
function tablesPanel(sections, trace) {
  const box = byId("tables");
  const cell = (value, kind) => {
    if (value == null) return "";
    if (kind === "text") return mono(value);
    if (kind === "texts") return el("span", {}, value.flatMap((text, i) => (i ? [" ", mono(text)] : [mono(text)])));
    return typeof value === "number" ? number(value) : typeof value === "string" ? value : label(value);
  };
  const starts = trace ? trace.tokens.map((token, at) => [token.start, token.end, at]).filter(([start, end]) => end > start) : [];
  const tokenOf = (start, end) => {
    // Tokens are in the order of the text: the first that ends after `start`.
    if (start == null || !starts.length) return null;
    const at = starts[lastIndex(starts.length, (i) => starts[i][0] <= start)];
    return at[0] < end && start < at[1] ? at[2] : null;
  };
  const one = (section) => folded(section.title, section.about, section.rows.length, () => table(
    section.title, section.columns.map(([name]) => name), section.rows.length,
    (i) => section.rows[i][0].map((value, j) => cell(value, section.columns[j][1])),
    {
      mark: (i) => ({ class: { won: "new", lost: "lost" }[section.rows[i][3]] ?? null, "data-token": tokenOf(section.rows[i][1], section.rows[i][2]) }),
      numeric: section.columns.map(([, kind]) => kind === "number"),
    },
  ));
  let shown = 0;
  const rest = el("button", { type: "button", onclick: () => more() });
  box.replaceChildren(rest);
  const more = () => {
    rest.before(...sections.slice(shown, shown + MANY_TABLES).map(one));
    shown = Math.min(sections.length, shown + MANY_TABLES);
    rest.hidden = shown === sections.length;
    rest.textContent = `Show more: ${shown} of ${plural(sections.length, "table")} are listed`;
  };
  more();
}

function themeButton() {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const button = byId("theme");
  let theme = dark.matches ? "dark" : "light";
  const name = () => {
    button.textContent = theme === "dark" ? "Light theme" : "Dark theme";
  };
  button.onclick = () => {
    theme = theme === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    name();
  };
  dark.onchange = () => {
    if (document.documentElement.dataset.theme) return;
    theme = dark.matches ? "dark" : "light";
    name();
  };
  name();
}

/** What a panel says about a trace besides its tokens. */
function factsOf(trace) {
  const facts = [plural(trace.code_points.length, "character"), plural(trace.bytes.length, "byte")];
  for (const [field, name] of [["parse_special", "special tokens read"], ["continues", "continues an earlier text"]]) if (trace[field]) facts.push(name);
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
      const [from, to] = stage.tokensAt?.(step) ?? stage.tokens;
      panel.activate(from, to);
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
    sides[at].start();
    tablesPanel(data.sides[at].sections, sides[at].trace);
  };
  const sides = data.sides.map((side, at) => traceSide(side, () => choose(at)));
  const choices = sides.map(() => el("input", { type: "radio", name: "side" }));
  choices.forEach((choice, at) => choice.addEventListener("change", () => choose(at)));
  byId("facts").textContent = factsOf(sides[0].trace);
  byId("tokens").append(el("p", {}, data.parting), ...sides.flatMap(({ trace, panel }, at) =>
    [el("h3", {}, `${data.names[at]}: ${plural(trace.tokens.length, "token")}`), ...panel.parts]));
  byId("unit").before(el("fieldset", {}, el("legend", {}, "Steps and tables of"), choices.map((choice, at) => el("label", {}, choice, ` ${data.names[at]}`))));
  choose(0);
}

themeButton();
linkTokens();
({ trace: traceView, trie: trieView, compare: compareView })[data.view]();
