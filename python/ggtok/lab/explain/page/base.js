/* Elements, bytes and labels: what all views are made of. Text only ever becomes a text node or an attribute's value,
 * never markup. */

const SVG = "http://www.w3.org/2000/svg"; // a name, not an address that anything is loaded from

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child != null));
  return node;
}
/** An HTML element. A string among the children becomes text. */
const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
/** An SVG element. */
const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

/** A drawing that is shown in its size, or smaller where there is less room. */
const drawing = (name, width, height, ...children) =>
  svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": name }, ...children);

const toBytes = new TextEncoder();
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The bytes of bytes, of a string, or of `{"base64": ...}`, as the data has bytes that are not UTF-8. */
function bytesOf(text) {
  if (text instanceof Uint8Array) return text;
  if (typeof text === "string") return toBytes.encode(text);
  return Uint8Array.from(atob(text.base64), (letter) => letter.charCodeAt(0));
}

const hex = (byte) => byte.toString(16).toUpperCase().padStart(2, "0");

function decoded(bytes) {
  try {
    return strict.decode(bytes);
  } catch {
    return null;
  }
}

const lengthOfCharacter = (byte) => (byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4);

const visible = (line) =>
  line.replace(/[\0-\x20\x7f-\xa0\xad\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]/g, (character) => {
    const code = character.charCodeAt(0);
    if (code === 0x20) return "␣";
    if (code === 0x0a) return "↵";
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    if (code === 0x7f) return "␡";
    return `⟨${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });

/** Bytes as a line of text in which everything can be seen: spaces, controls, and in hexadecimal what is only a part of
 * a character. */
function label(text) {
  const bytes = bytesOf(text);
  const whole = decoded(bytes);
  if (whole !== null) return visible(whole);
  const parts = [""];
  for (let at = 0; at < bytes.length; ) {
    const n = lengthOfCharacter(bytes[at]);
    const character = at + n <= bytes.length ? decoded(bytes.subarray(at, at + n)) : null;
    if (character === null) parts.push(hex(bytes[at]), "");
    else parts[parts.length - 1] += visible(character);
    at += character === null ? 1 : n;
  }
  return parts.filter((part) => part).join(" ");
}

const short = (line, n = 24) => {
  const characters = Array.from(line);
  return characters.length <= n ? line : `${characters.slice(0, n - 1).join("")}…`;
};

const WIDE = /[\u1100-\u115f\u2e80-\uffdc\u{1f000}-\u{3ffff}]/u;
/** About how wide a line is, in letters: East Asian characters and emoji take two. */
const widthOf = (line) => Array.from(line).reduce((sum, character) => sum + (WIDE.test(character) ? 2 : 1), 0);

const quoted = (text) => `“${label(text)}”`;
const number = (value) => {
  if (value == null) return "";
  if (Number.isInteger(value)) return String(value).replace("-", "−");
  return value.toFixed(Math.abs(value) < 100 ? 4 : 2).replace(/\.?0+$/, "").replace("-", "−");
};
const plural = (n, one) => `${n.toLocaleString("en")} ${one}${n === 1 ? "" : "s"}`;

/** A sentence of `words.json` in parts, `[text, isStrong]`. Marks in a value have no meaning. */
const sentenceOf = (name, values = {}) =>
  WORDS[name].split("**").map((part, at) => [part.replace(/\{(\w+)\}/g, (_, value) => values[value]), at % 2 === 1]);
const TURNED = /[\u0590-\u08ff\ufb1d-\ufefc](?:[\s\u0590-\u08ff\ufb1d-\ufefc]*[\u0590-\u08ff\ufb1d-\ufefc])?/g;
/** A sentence of a story as nodes: what is emphasised stands between two U+0001. Letters that are written from right to
 * left turn neither the signs nor the numbers beside them. */
const nodesOf = (told) =>
  told.split("\u0001").map((text, at) => (at % 2 ? el("strong", {}, text) : text.replace(TURNED, "$&\u200e")));

/** `size` indices around `middle`, inside 0..count. */
function windowAround(middle, size, count) {
  const start = Math.max(0, Math.min(middle - (size >> 1), count - size));
  return [start, Math.min(count, start + size)];
}

/** A box that scrolls sideways, and by keys. `middle()` is what it begins with in the middle, in pixels. */
function scroller(name, child, middle = null) {
  const box = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": name }, child);
  if (middle) queueMicrotask(() => (box.scrollLeft = middle() - box.clientWidth / 2));
  return box;
}

const mono = (text) => el("span", { class: "mono" }, label(text));
const muted = (text) => el("p", { class: "muted" }, text);
const panel = (title, ...children) => el("div", { class: "panel" }, el("h4", {}, title), ...children);

/** Keys in a list: Tab reaches one item, arrows, Home and End the others with `focus(at)`, and Enter and Space call
 * `choose(at)`. `placeOf(event)` is the place of an item, or undefined. */
function listKeys(list, placeOf, count, focus, choose) {
  list.addEventListener("keydown", (event) => {
    const at = placeOf(event);
    if (at === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: count() - 1 }[event.key];
    if (to !== undefined) focus(to);
    else if (event.key === "Enter" || event.key === " ") choose(at);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  list.addEventListener("focusin", ({ target }) => reach(list, target));
}

/** Lets Tab reach one item of a list. */
function reach(list, item) {
  list.querySelector('[tabindex="0"]')?.setAttribute("tabindex", -1);
  item?.setAttribute("tabindex", 0);
}

/** Says which of many things are drawn, if not all are. */
const partNote = (what, [from, to], count) =>
  to - from < count
    ? muted(`${what} ${from} to ${to - 1} of ${count.toLocaleString("en")}: those around this step.`)
    : null;

/** Shows `count` things, `size` at a time: `add(from, to)` shows some, and the button asks for more. */
function inParts(count, size, noun, verb, add) {
  let shown = 0;
  const button = el("button", { type: "button", onclick: () => more() });
  const more = () => {
    const from = shown;
    shown = Math.min(count, from + size);
    add(from, shown);
    button.hidden = shown === count;
    button.textContent = `Show more: ${shown.toLocaleString("en")} of ${plural(count, noun)} are ${verb}`;
  };
  return { button, more, shown: () => shown };
}
