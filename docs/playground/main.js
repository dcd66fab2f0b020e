/* The playground: the text, the vocabularies and the options, their views, and the address that holds them all. */

import { Engine } from "./engine.js";
import { el, plural } from "./base.js";
import { Explainer } from "./explainer.js";
import { sizeOf, whatIsWrong } from "./files.js";
import { isRemote, WELL_KNOWN } from "./hub.js";
import { fromFragment, MOST_CHARACTERS, toFragment } from "./link.js";
import { Models, nameOf as shortNameOf } from "./models.js";
import { Pair } from "./pair.js";
import { Side } from "./side.js";
import { directionOf } from "./strip.js";

const byId = (id) => document.getElementById(id);

const EMBEDDED = { bpe: "BPE", spm: "SPM", wordpiece: "WordPiece", unigram: "Unigram" };
const EXAMPLES = {
  English: { text: "What is LoRA? It trains two small matrices instead of a large one, unfathomably cheaply." },
  Languages: { text: "Naïve Zürich · Γειά σου · Привет · مرحبا · नमस्ते · 你好 · こんにちは · 👋🏽" },
  Code: { text: "def mean(values):\n    return sum(values) / len(values)  # 3.14\n" },
  Chat: { text: "<|im_start|>user\nWhat is LoRA?<|im_end|>\n<|im_start|>assistant\n", special: true },
};
const FIRST = { text: EXAMPLES.English.text, vocabulary: "bpe", other: null, special: false, bos: true, step: null };
const HALF = "The text has half a character (a lone surrogate). It is read as U+FFFD, “�”.";
const TOO_LONG = `The text is too long for a link, even compressed: it would have over ${MOST_CHARACTERS} characters.`;
const LONG_PASTE = 50_000; // characters for which the browser's own pasting, which can be undone, takes seconds
const MOST_KEPT = 4_000_000; // characters of a text that the browser keeps with the address
const FILE = "file:"; // before the name of a file
const KINDS = { ...EMBEDDED, rwkv: "RWKV", plamo2: "PLaMo-2" };

const state = { ...FIRST };

const crashed = (message, goesOn) => {
  const failed = `The tokenizer could not be started: ${message}.`;
  notify(goesOn ? `The tokenizer stopped (${message}) and has been started again.` : failed);
};
// The page asks for it at the same time as for its scripts.
const load = () => WebAssembly.compileStreaming(fetch("ggtok/core/ggtok_bg.wasm"));
const engine = new Engine("worker.js", crashed, load);
const full = new Engine("full.js"); // starts when steps or a chat are first asked for, which say if it cannot
const models = new Models(engine, byId("named"), {
  opened(choice, place) {
    notify("");
    Object.assign(state, place ? { other: choice } : { vocabulary: choice });
    render();
  },
  refused(message, choice, place) {
    notify(message);
    if (choice && choices()[place] === choice && !models.get(choice)) sides[place].fail(message);
    if (choice && isRemote(choice)) byId("model").value = choice.replace(/^hf:/, "");
    render(false);
  },
});

// What the page says

function notify(message) {
  byId("notice").firstElementChild.textContent = message;
  byId("notice").hidden = !message;
}
byId("dismiss").addEventListener("click", () => notify(""));

let later = null;
/** Reads the counts out when typing pauses. */
function say(side) {
  clearTimeout(later);
  later = setTimeout(() => (byId("said").textContent = side.counts.textContent), 1000);
}

// Vocabularies

const nameOf = (choice) => EMBEDDED[choice] ?? shortNameOf(choice);

/** What the worker knows a vocabulary by, or null for one that is not open. */
const vocabularyOf = (choice) => (choice in EMBEDDED ? { key: choice } : models.get(choice));

function fillSelect(select, chosen, none) {
  const option = (value, text) => el("option", { value }, text);
  const group = (label, options) => (options.length ? [el("optgroup", { label }, options)] : []);
  const embedded = Object.entries(EMBEDDED).map(([name, kind]) => option(name, kind));
  /** Those that are open or known, and the chosen one even if it is not here. */
  const rest = (word, more = []) =>
    [...new Set([...more, ...models.names, chosen])].filter((choice) => choice?.startsWith(word));
  const titles = Object.fromEntries(Object.entries(WELL_KNOWN).map(([title, choice]) => [choice, title]));
  const titled = (choice) => option(choice, titles[choice] ? `${titles[choice]} (${nameOf(choice)})` : nameOf(choice));
  const hub = [...rest("hf:", Object.values(WELL_KNOWN).concat(models.recent)), ...rest("http")].map(titled);
  const given = rest(FILE).map((choice) => option(choice, nameOf(choice) + (models.get(choice) ? "" : " (not here)")));
  const groups = [...group("Embedded in ggtok", embedded), ...group("Models by name", hub), ...group("Files", given)];
  select.replaceChildren(...(none ? [option("", none)] : []), ...groups);
  select.value = chosen ?? "";
}

async function describe(choice, line) {
  const vocabulary = choice && vocabularyOf(choice);
  line.textContent = "";
  line.dataset.choice = choice;
  if (!vocabulary) return;
  try {
    const { kind, pre, size, read } = await engine.call("about", vocabulary);
    const facts = [KINDS[kind] ?? kind, plural(size, "token")];
    if (pre) facts.splice(1, 0, `pre-tokenizer ${pre}`);
    if (line.dataset.choice !== choice) return;
    if (vocabulary.file) facts.push(`${sizeOf(read)} of ${sizeOf(vocabulary.size)} read`, ...vocabulary.notes);
    line.textContent = facts.join(" · ");
  } catch {
    // The view says what went wrong.
  }
}

const hint = byId("reading").textContent;

/** Opens files that were dropped or chosen. One becomes the vocabulary; two are compared. */
async function openFiles(list) {
  const opened = [];
  for (const file of list) {
    notify("");
    byId("drop").classList.add("busy");
    byId("reading").textContent = `Opening ${file.name} …`;
    const vocabulary = { key: `${FILE}${file.name}#${performance.now()}`, file, size: file.size, notes: [] };
    try {
      await engine.call("about", vocabulary);
      models.add(FILE + file.name, vocabulary);
      opened.push(FILE + file.name);
    } catch (error) {
      notify(await whatIsWrong(file, error));
    }
  }
  byId("drop").classList.remove("busy");
  byId("reading").textContent = hint;
  const isAskedFor = opened.some((choice) => choice === state.vocabulary || choice === state.other);
  if (opened.length > 1) [state.vocabulary, state.other] = opened;
  else if (opened.length && !isAskedFor) [state.vocabulary] = opened;
  if (opened.length) render();
}

// Views

const sides = ["first", "second"].map((lane) => new Side(engine, lane, choose, answered));
const pair = new Pair((at, token) => choose(sides[at], token), (at, token) => sides[at].point(token));
const explainer = new Explainer(full, byId("explain"), { step: mark, close: closed });
let options = {};
let selected = null; // the side and the token whose steps are shown; null for a token that is not chosen yet
let isUsed = false; // then steps are shown before a token is chosen

const choices = () => [state.vocabulary, ...(state.other ? [state.other] : [])];

/** Marks the token whose steps are shown, at one of them. */
function mark(at, step) {
  selected = [selected[0], at];
  keepStep(selected[0] === sides[0] ? [at, ...(step ? [step] : [])].join(".") : null);
  for (const side of sides) side.strip.select(side === selected[0] ? at : undefined);
  pair.select(sides.indexOf(selected[0]), at);
}

/** What is explained of a choice. */
const caseOf = (choice, text) => ({ vocabulary: vocabularyOf(choice), name: nameOf(choice), text, options });

/** Lets the open steps be those of what is chosen now. */
function followChoice(text) {
  const choice = choices()[sides.indexOf(selected?.[0])];
  if (choice && vocabularyOf(choice)) explainer.follow(caseOf(choice, text));
  else explainer.close();
}

/** Opens the steps of a token. */
function choose(side, at, step) {
  const choice = choices()[sides.indexOf(side)];
  selected = [side, at];
  if (at !== null) mark(at, step);
  explainer.open(caseOf(choice, side.text), at, step);
}

/** Opens the steps that a link names, or those of some token once the page is used. */
function showSteps() {
  const [side] = sides;
  if (selected || !side.text) return;
  const [, at, step] = /^(\d+)\.?(.*)$/.exec(state.step) ?? [];
  if (at < side.result.ids.length) choose(side, Number(at), step);
  else if (isUsed && !byId("explain").hidden) choose(side, null);
}
const use = () => {
  isUsed = true;
  showSteps();
};
for (const type of ["pointermove", "keydown", "scroll"]) addEventListener(type, use, { once: true });

function closed(byHand) {
  const [side, at] = selected ?? [];
  side?.strip.select(undefined);
  pair.select();
  if (byHand) state.other ? pair.focus(sides.indexOf(side), at) : side?.strip.focus(at);
  selected = null;
  keepStep(null);
}

function keepStep(step) {
  state.step = step;
  keepInAddress();
}

function answered(side) {
  if (side === sides[0]) say(side);
  showSteps();
  const isBoth = state.other && sides[0].text === sides[1].text;
  if (!isBoth) return;
  pair.element.hidden = false;
  const most = Math.min(sides[0].most, sides[1].most);
  const [results, tones] = [sides.map(({ result }) => result), sides.map(({ strip }) => strip.tones)];
  pair.update(side.text, side.bytes, results, tones, most, choices().map(nameOf));
  if (selected) pair.select(sides.indexOf(selected[0]), selected[1]);
}

/** Where a text begins, by its first letter. (`dir="auto"` takes seconds for a megabyte.) */
const startOf = (text) => directionOf(/\p{L}/u.exec(text.slice(0, 1000))?.[0] ?? "") ?? "ltr";

/** Asks for the tokens of the text, and for models that a link names if `opensLinks`. */
function updateTokens(opensLinks = false) {
  const dir = startOf(state.text);
  for (const strip of [byId("text"), pair.list, ...sides.map((side) => side.strip.list)]) strip.dir = dir;
  const text = state.text.toWellFormed();
  choices().forEach((choice, at) => {
    const vocabulary = vocabularyOf(choice);
    if (vocabulary) sides[at].update(vocabulary, text, options);
    else {
      pair.element.hidden = true;
      if (!isRemote(choice)) {
        const file = nameOf(choice);
        sides[at].fail(`This link was made with the file ${file}. Drop that file here to see its tokens.`, false);
      } else if (!models.isOpening(choice) && opensLinks) {
        sides[at].fail(`Opening ${nameOf(choice)} …`, false);
        models.open(choice, at);
      }
    }
  });
  followChoice(text);
  const isWhole = text === state.text;
  byId("status").hidden = isWhole;
  byId("status").textContent = isWhole ? "" : HALF;
  byId("shared").textContent = "";
  keepInAddress();
}

/** Shows the whole state. */
function render(opensLinks = false) {
  if (byId("text").value !== state.text) byId("text").value = state.text;
  byId("special").checked = state.special;
  byId("bos").checked = state.bos;
  fillSelect(byId("vocabulary"), state.vocabulary);
  fillSelect(byId("other"), state.other, "nothing");
  describe(state.vocabulary, byId("about"));
  describe(state.other, byId("about-other"));
  if (options.addSpecial !== state.bos || options.parseSpecial !== state.special) {
    options = { addSpecial: state.bos, parseSpecial: state.special };
  }
  (state.other ? sides[0].body : byId("ids")).append(sides[0].ids);
  const elements = state.other ? [pair.element, ...sides.map(({ element }) => element)] : [sides[0].element];
  byId("sides").replaceChildren(...elements);
  byId("sides").classList.toggle("comparing", state.other !== null);
  sides.forEach((side, at) => {
    const place = state.other ? `${["Upper", "Lower"][at]} line: ` : "";
    side.title.replaceChildren(place, el("bdi", {}, nameOf(choices()[at] ?? "")));
    side.name = choices()[at] ?? "";
  });
  updateTokens(opensLinks);
  if (chat) showChat();
}

// The address

let waiting = null;
let written = null;

/** Writes the case into the address. False if the text is too long for it. */
async function writeAddress() {
  clearTimeout(waiting);
  const now = { ...state, text: state.text.toWellFormed() };
  const fragment = await toFragment(now);
  const withoutText = (await toFragment({ ...now, text: "" })).replace(/&t=$/, "");
  if (now.text !== state.text.toWellFormed()) return null; // typed meanwhile, which has its own turn
  written = `#${fragment ?? withoutText}`;
  // A long text survives a reload, but is in no link.
  const isKept = fragment === null && now.text.length <= MOST_KEPT;
  history.replaceState(isKept ? { text: now.text } : null, "", written);
  return fragment !== null;
}

function keepInAddress() {
  clearTimeout(waiting);
  waiting = setTimeout(writeAddress, 300);
}

async function readAddress() {
  try {
    const given = await fromFragment(location.hash);
    const isKnown = (choice) => choice && (choice.startsWith(FILE) || choice in EMBEDDED || isRemote(choice));
    const named = given.vocabulary;
    explainer.close();
    if (named && !isKnown(named)) notify(`No vocabulary here is named ${named}.`);
    Object.assign(state, given, {
      text: given.text ?? history.state?.text ?? FIRST.text,
      vocabulary: isKnown(given.vocabulary) ? given.vocabulary : FIRST.vocabulary,
      other: isKnown(given.other) ? given.other : null,
    });
  } catch (error) {
    Object.assign(state, FIRST);
    notify(`The text of this link could not be read: ${error.message}.`);
  }
  written = location.hash;
  render(true);
}

async function share() {
  if ((await writeAddress()) === false) {
    byId("shared").textContent = TOO_LONG;
    return;
  }
  const names = choices().filter((choice) => choice.startsWith(FILE)).map(nameOf);
  const note = names.length ? ` It asks for ${names.join(" and ")}, which is not in it.` : "";
  try {
    await navigator.clipboard.writeText(location.href);
    byId("shared").textContent = `Copied. The link holds the text, the vocabulary’s name and the options.${note}`;
  } catch {
    byId("shared").textContent = `The address of this page is the link.${note}`;
  }
}

// What people do

function typed() {
  state.text = byId("text").value;
  updateTokens();
}
byId("text").addEventListener("input", typed);
byId("text").addEventListener("paste", (event) => {
  const pasted = event.clipboardData.getData("text/plain");
  if (pasted.length < LONG_PASTE) return;
  event.preventDefault();
  const box = byId("text");
  box.setRangeText(pasted, box.selectionStart, box.selectionEnd, "end");
  typed();
});
const chooses = (id, change) =>
  byId(id).addEventListener("change", ({ target }) => {
    notify("");
    change(target);
    render();
  });
const isNew = (choice) => isRemote(choice) && !models.get(choice);
chooses("vocabulary", ({ value }) => (isNew(value) ? models.open(value, 0) : (state.vocabulary = value)));
chooses("other", ({ value }) => (isNew(value) ? models.open(value, 1) : (state.other = value || null)));
chooses("special", ({ checked }) => (state.special = checked));
chooses("bos", ({ checked }) => (state.bos = checked));
chooses("file", (input) => {
  openFiles([...input.files]);
  input.value = "";
});
byId("share").addEventListener("click", share);
byId("examples").append(
  ...Object.entries(EXAMPLES).map(([name, example]) => {
    const onclick = () => {
      Object.assign(state, { special: false }, example);
      render();
    };
    return el("button", { type: "button", onclick }, name);
  }),
);

const isOfFiles = (event) => event.dataTransfer?.types.includes("Files");
addEventListener("dragover", (event) => {
  if (!isOfFiles(event)) return;
  event.preventDefault();
  document.body.classList.add("dragging");
});
addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) document.body.classList.remove("dragging");
});
addEventListener("drop", (event) => {
  document.body.classList.remove("dragging");
  if (!isOfFiles(event)) return;
  event.preventDefault();
  openFiles([...event.dataTransfer.files]);
});
addEventListener("hashchange", () => {
  if (location.hash !== written) readAddress();
});

// The theme, which is also that of the documentation

const dark = matchMedia("(prefers-color-scheme: dark)");
const chosen = document.documentElement.dataset;
const isDark = () => (chosen.theme ? chosen.theme === "dark" : dark.matches);
const nameTheme = () => (byId("theme").textContent = isDark() ? "Light theme" : "Dark theme");
byId("theme").addEventListener("click", () => {
  chosen.theme = isDark() ? "light" : "dark";
  try {
    localStorage.setItem("theme", chosen.theme);
  } catch {
    // Storage is switched off: the choice lasts as long as the page.
  }
  nameTheme();
});
dark.addEventListener("change", nameTheme);
nameTheme();

// Conversations

let chat = null; // made when its tab is first chosen
const showChat = () => chat.show(state.vocabulary, vocabularyOf(state.vocabulary), nameOf(state.vocabulary));
byId("tab-chat").addEventListener("change", async () => {
  const { Chat } = await import("./chat.js");
  chat ??= new Chat(full, byId("panel-chat"));
  showChat();
});

// Start

/** Loads the other files of the page once it is used, so that it works without a network from then on. */
async function loadAhead() {
  await navigator.serviceWorker?.ready;
  const names = await (await fetch("files.json")).json();
  for (const name of ["./", ...names]) await fetch(name);
}

if (chosen.package === "missing") {
  notify("The tokenizer was not built here: this copy of the site has no WebAssembly. scripts/build_wasm.py makes it.");
  document.querySelector("main").classList.add("off");
} else {
  await readAddress();
  const idle = window.requestIdleCallback ?? ((then) => setTimeout(then, 500));
  idle(() => navigator.serviceWorker?.register(new URL("sw.js", import.meta.url)).catch(() => {}));
  const once = () => {
    for (const type of ["input", "change", "click"]) removeEventListener(type, once);
    idle(() => loadAhead().catch(() => {}));
  };
  for (const type of ["input", "change", "click"]) addEventListener(type, once);
}
