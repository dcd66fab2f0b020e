/* A trace in the frame: the strip of tokens that fills while it runs, what is known about a token, and the tables. */

/** What all views of a trace need to know, worked out once: `given` is `Page` of rust/explain/src/story.rs. */
function prepare(given) {
  const trace = { ...given, bytes: bytesOf(given.text), reached: [], end: 0 };
  for (const token of trace.tokens) {
    trace.reached.push(trace.end);
    trace.end = Math.max(trace.end, token.end);
  }
  return trace;
}

/**
 * Builds the view of a trace inside a container. `page` is all that it shows, as `RawTrace.page` has it. `why` says why a
 * token is not one with the next: an array of `[place, {reasons}]`, or a function (place) → `{reasons}`, null, or a
 * promise. `sections` are tables. Options: `onToken(at)` is called when a token is chosen and `onStep(step)` after each
 * step, keys work in the element `keys`, and with `links` the page's address says the step and the keys work in the
 * whole page. Returns `{showToken(at), showStepOf(at), show(step), destroy()}`; a step is as in links, such as `merge.2`.
 * `showStepOf(at)` goes to the step that makes a token, without choosing the token.
 */
function mountTrace(container, { page, why, sections = null }, { onToken = () => {}, onStep = () => {}, ...options } = {}) {
  const trace = prepare(page);
  const answers = typeof why === "function" ? null : new Map(why);
  const strip = tokenStrip(trace, answers ? (place) => answers.get(place) : why, (at) => {
    onToken(at);
    showToken(at, true);
  });
  const showToken = (at, isByHand = false) => {
    frame.showToken(at);
    strip.choose(at, isByHand);
  };
  const onclick = () => frame.end();
  const answer = el("button", { type: "button", class: "answer-button", onclick }, "Show the answer");
  const head = el("div", { class: "strip-head" }, el("h3", {}, "Tokens so far"), strip.count, answer, strip.options);
  const title = el("summary", {}, "All tables");
  const tables = () => el("details", { class: "all-tables" }, title, tablesOf(sections));
  const foot = sections?.length ? [tables()] : [];
  const frame = mountFrame(
    container,
    {
      ...{ idea: trace.story.idea, names: trace.story.stages },
      units: unitsOf(trace),
      head: [head, ...strip.parts],
      foot,
      onStep(stages, at) {
        const unit = stages[at.stage].units[at.unit];
        strip.show(rangesKnown(stages, at));
        const [from, to] = unit.tokens;
        strip.activate(...(at.isOpen && unit.byStep ? [from + at.inner, from + at.inner + 1] : [from, to]));
        onStep(at.address);
      },
    },
    options,
  );
  linkTokens(frame.root);
  return {
    showToken: (at) => showToken(at),
    showStepOf: (at) => frame.showToken(at),
    show: frame.show,
    destroy: frame.destroy,
  };
}

const MANY_TABLES = 60;

/** All sections as tables that open, some at a time. */
function tablesOf(sections) {
  const { button, more } = inParts(sections.length, MANY_TABLES, "table", "listed", (from, to) =>
    button.before(...sections.slice(from, to).map(folded)),
  );
  const box = el("div", { class: "tables" }, button);
  more();
  return box;
}
