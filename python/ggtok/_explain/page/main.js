/* Starts the page: the data, the view that it is for, and the theme. */

const data = JSON.parse(byId("data").textContent);
const root = document.querySelector("main");

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

function traceView() {
  const { trace } = mountTrace(root, data, { keys: document });
  byId("facts").textContent = factsOf(trace);
}

/** Two traces of one text: both texts with their tokens, and the steps and tables of one of them at a time. */
function compareView() {
  root.append(...frame());
  let shown = null;
  const choose = (at) => {
    if (at === shown) return;
    if (shown !== null) sides[shown].stop();
    shown = at;
    choices[at].checked = true;
    panels.forEach((panel, i) => panel.classList.toggle("chosen", i === at));
    sides[at].start();
    tablesPanel(root, data.sides[at].sections, sides[at].trace);
  };
  const sides = data.sides.map((side, at) => traceSide(root, side, { onSelect: () => choose(at) }));
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
