/* Draws steps of a trace as SVG text, with the page's own scripts and a document that only knows what they use. Run by
 * draw_steps.py, which puts the page's scripts where the line below is. Reads `{trace, values, width}` from standard
 * input, where values are `[stage, step]`, or null for all; a step of null is a stage before it is opened. Writes what
 * `answer` returns. */

import { readFileSync } from "node:fs";

/** A node of a document. Drawing functions only build trees, so nothing here is measured or shown. */
class Node {
  constructor(tag) {
    this.tag = tag;
    this.attributes = new Map();
    this.children = [];
    this.dataset = {};
    const own = this;
    this.style = new Proxy({}, { set: (_, name, value) => Boolean(own.styles.set(name, value)) });
    this.styles = new Map();
    this.classList = {
      add: (...names) => own.setAttribute("class", [own.attributes.get("class"), ...names].filter(Boolean).join(" ")),
      remove: (...names) => own.setAttribute("class", own.classes().filter((name) => !names.includes(name)).join(" ")),
      toggle: (name, on) => (on ? own.classList.add(name) : own.classList.remove(name)),
      contains: (name) => own.classes().includes(name),
    };
  }
  classes() {
    return (this.attributes.get("class") ?? "").split(" ").filter(Boolean);
  }
  setAttribute(name, value) {
    this.attributes.set(name, String(value));
  }
  getAttribute(name) {
    return this.attributes.get(name) ?? null;
  }
  removeAttribute(name) {
    this.attributes.delete(name);
  }
  append(...nodes) {
    this.children.push(...nodes);
  }
  prepend(...nodes) {
    this.children.unshift(...nodes);
  }
  replaceChildren(...nodes) {
    this.children = nodes;
  }
  set textContent(text) {
    this.children = [text];
  }
  get textContent() {
    return this.children.map((child) => child.textContent ?? String(child)).join("");
  }
  addEventListener() {}
  set hidden(hidden) {
    hidden ? this.attributes.set("hidden", "") : this.attributes.delete("hidden");
  }
}

const XHTML = "http://www.w3.org/1999/xhtml";
globalThis.document = {
  createElement: (tag) => new Node(tag),
  createElementNS: (_, tag) => new Node(tag),
  createTextNode: (text) => text,
  createDocumentFragment: () => new Node("g"),
};
Object.assign(globalThis, {
  window: globalThis,
  addEventListener() {},
  matchMedia: () => Object.assign(new Node(""), { matches: true }),
  requestAnimationFrame() {},
});

const escaped = (text) =>
  text
    .replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`)
    .replace(/[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]/gu, "\ufffd");

function markup(node) {
  if (!(node instanceof Node)) return escaped(String(node));
  if (node.attributes.has("hidden")) return "";
  const styles = [...node.styles].map(([name, value]) => `${name}: ${value}`).join("; ");
  const attributes = [...node.attributes, ...(styles ? [["style", styles]] : [])];
  const written = attributes.map(([name, value]) => ` ${name}="${escaped(value)}"`).join("");
  return `<${node.tag}${written}>${node.children.map(markup).join("")}</${node.tag}>`;
}

const pathTo = (node, tag) =>
  !(node instanceof Node) ? [] : node.tag === tag ? [node] : node.children.flatMap((child) => pathTo(child, tag));
const numberOf = (node, name) => Number(node.getAttribute(name));

const LINE = 28;

/** Whether a node is a line of spans, such as the strip of tokens. */
const isStrip = (node) =>
  node.children.length > 1 && node.children.every((child) => child instanceof Node && child.tag === "span");

/** How many lines boxes of these widths fill, and how wide the widest line is. */
function wrapped(widths, width) {
  let [lines, x, widest] = [1, 0, 0];
  for (const w of widths) {
    if (x + w > width) [lines, x] = [lines + 1, 0];
    widest = Math.max(widest, (x += w));
  }
  return [lines, widest];
}

/** About how wide and how high a strip is, whose spans wrap at `width`: tokens over their ids, or words. */
function sizeOfStrip(node, width) {
  const isTall = node.children.some((span) => pathTo(span, "span").length + span.children.length > 2);
  const widths = node.children.map((span) => {
    const parts = span.children.map((part, at) => widthOf(part.textContent ?? String(part)) * (at ? 7.4 : 9.3));
    return isTall ? 14 + Math.max(...parts) : 19 + (parts[0] * 10.2) / 9.3;
  });
  const [lines, widest] = wrapped(widths, width - 6);
  return [lines > 1 ? width : widest + 6, lines * (isTall ? 49 : 38) + 6];
}

/** About how wide the longest line of an element is. */
const widthOfCell = (node) =>
  Math.max(...node.children.map((part) => (part.textContent ?? String(part)).length)) * 8 + 28;

/** About how high an element is on the page, by the numbers of style.css: only a browser knows. */
function heightOf(node, width) {
  const elements = node.children.filter((child) => child instanceof Node && child.tag !== "details");
  if (node.attributes.has("hidden")) return 0;
  if (isStrip(node)) return sizeOfStrip(node, width)[1];
  if (node.tag === "tr") return node.classes().includes("gap") ? 0 : width < 400 ? 24 : 31;
  if (node.classes().includes("cells") || node.classes().includes("bits")) {
    const [lines] = wrapped(elements.map((cell) => Math.max(98, widthOfCell(cell))), width);
    const rows = Math.max(...elements.map((cell) => cell.children.length));
    return lines * (node.classes().includes("bits") ? 72 : 28 + rows * 21);
  }
  if (node.classes().includes("columns")) return 16 + Math.max(...elements.map((child) => heightOf(child, width)));
  if (!elements.length || ["p", "h4", "li", "pre"].includes(node.tag)) {
    const letter = node.classes().includes("mono") ? 10.2 : 9;
    return LINE * Math.max(1, Math.ceil((widthOf(node.textContent) * letter) / width));
  }
  const sum = 8 + elements.reduce((sum, child) => sum + heightOf(child, width), 0);
  return node.classes().includes("table") ? Math.min(362, sum) : sum;
}

/** What a step shows, without what is folded: its drawings one below the other, or else its tables and cells. */
function picture(nodes, name, width) {
  const drawings = nodes.flatMap((node) => pathTo(node, "svg"));
  const parts = [];
  let top = 0;
  let widest = 0;
  const shown = nodes.filter((node) => node instanceof Node && node.tag !== "details");
  for (const node of drawings.length ? drawings : shown) {
    if (node.tag === "svg") {
      const [w, h] = [numberOf(node, "width"), numberOf(node, "height")];
      node.setAttribute("y", top);
      parts.push(markup(node));
      widest = Math.max(widest, w);
      top += h;
    } else {
      const h = heightOf(node, width);
      parts.push(
        `<foreignObject x="0" y="${top}" width="${width}" height="${h}"><div xmlns="${XHTML}">${markup(node)}</div>` +
          "</foreignObject>",
      );
      widest = Math.max(widest, isStrip(node) ? Math.min(width, sizeOfStrip(node, width)[0]) : width);
      top += h;
    }
  }
  return { name, width: Math.ceil(widest), height: Math.ceil(top), parts: parts.join("\n") };
}

const plain = (caption) =>
  caption instanceof Node ? caption.textContent : [caption].flat(9).map((part) => part.textContent ?? part).join("");

/* {{scripts}} */

function answer({ trace, values, width }) {
  const made = trace.insertions ? trieUnits(trace) : unitsOf(prepare(trace));
  const lengthOf = (stage) => Math.max(1, stage.length ?? 1);
  if (!values) return made.map((stage) => ({ title: stage.title, length: lengthOf(stage) }));
  return values.map(([stageAt, stepAt]) => {
    const stage = made.at(stageAt);
    if (stepAt === null && stage?.opens) {
      const nodes = stage.draw(null, { width }).filter((node) => node != null && node.tag !== "details");
      return { caption: plain(stage.caption(null)), title: stage.title, ...picture(nodes, stage.title, width) };
    }
    const step = stepAt < 0 ? lengthOf(stage) + stepAt : Number(stepAt);
    if (!stage || step < 0 || step >= lengthOf(stage)) throw new RangeError(`no step ${stageAt}, ${stepAt}`);
    const nodes = (stage.draw?.(step, { width }) ?? []).filter((node) => node != null && node.tag !== "details");
    return { caption: plain(stage.caption(step)), title: stage.title, ...picture(nodes, stage.title, width) };
  });
}

process.stdout.write(JSON.stringify(answer(JSON.parse(readFileSync(0, "utf-8")))));
