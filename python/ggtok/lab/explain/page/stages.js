/* The units of a story, as the frame walks through them: `Story` in rust/explain/src/story.rs has the data. They say and
 * decide nothing here; each kind of drawing has a function. */

const MOST_TOKENS = 300; // that the last step draws
const BEFORE = 20; // parts of a rewritten text that are drawn before a step's
const AFTER = 60;

const DRAWINGS = {
  tree: drawTree,
  lattice: drawLattice,
  spans: drawSpans,

  tokens(_, __, { tokens }) {
    const chips = tokens.slice(0, MOST_TOKENS).map(({ id, piece, text }, at) => {
      const face = el("span", { class: "face" }, label(bytesOf(piece).length ? piece : text));
      return el("span", { class: `token token-${at % 4}`, "data-token": at }, face, el("span", { class: "id" }, String(id)));
    });
    const more = tokens.length - MOST_TOKENS;
    return [el("div", { class: "answer" }, chips), more > 0 ? muted(`and ${more.toLocaleString("en")} more`) : null];
  },

  marked({ parts }) {
    const mark = ([text, kind]) => (kind ? el("mark", { class: kind }, text) : text);
    return [el("p", { class: "mono text-view" }, parts.map(mark))];
  },

  /** A text over what it was rewritten to. */
  rewritten({ parts }, step) {
    const from = Math.max(0, (step ?? 0) - BEFORE);
    const line = (side) => {
      const shown = parts.slice(from, step == null ? undefined : step + AFTER).map((part, at) => {
        return from + at === step ? el("mark", {}, part[side]) : side && step != null && from + at > step ? "" : part[side];
      });
      return el("p", { class: "mono text-view" }, from ? "… " : "", shown);
    };
    return [el("div", { class: "rewriting" }, line(0), muted("↓"), line(1))];
  },

  cuts({ parts, more, family, pattern }) {
    const pieces = parts.map((part) => el("span", { class: "cut" }, part));
    const list = el("ol", { class: "pattern" }, pattern.map((one) => el("li", {}, el("code", {}, one))));
    return [
      el("p", { class: "pieces mono" }, pieces),
      more ? muted(`and ${plural(more, "more piece")}`) : null,
      pattern.length ? el("details", {}, el("summary", {}, `Splitting pattern: ${family}`), list) : null,
    ];
  },
};

const unitsOf = ({ story, tokens }) =>
  story.units.map((unit) => {
    const { title, stage, whole, steps, drawing, length, by_step: byStep, tokens: [from, to] } = unit;
    const at = (step) => (length ? step : null);
    return {
      ...{ stage, title, tokens: [from, to], byStep, length: Math.max(1, length), opens: length > 1 },
      /** What a step inside says, or the unit as one step. */
      caption: (step) => nodesOf(at(step) == null ? whole : steps[step]),
      draw: (step, view) => DRAWINGS[drawing.kind](drawing, at(step), { ...view, tokens }),
    };
  });
