/* A walk through an XCDA, step by step, with the bits of its units. */

const printable = (byte) => (byte > 0x20 && byte < 0x7f ? String.fromCharCode(byte) : byte === 0x20 ? "␣" : "");
const hexAndCharacter = (byte) => `${hex(byte)} ${printable(byte)}`;

/** The fields of an XCDA unit that is a node: name, first and last bit, colour. */
const NODE_FIELDS = [
  ["LCHECK flag", 31, 31, 3],
  ["BASE", 30, 10, 0],
  ["wide", 9, 9, 1],
  ["LEAF", 8, 8, 2],
  ["LCHECK", 7, 0, 3],
];
/** The fields of a unit that is a value. */
const VALUE_FIELDS = [
  ["is a value", 31, 31, 3],
  ["VALUE", 30, 0, 1],
];

/** A unit as bits, grouped and coloured by field. */
function bitField(index, unit) {
  const bits = unit.toString(2).padStart(32, "0");
  const groups = (unit >>> 31 ? VALUE_FIELDS : NODE_FIELDS).map(([name, from, to, tone]) =>
    el(
      "div",
      { class: `bit-group token-${tone}` },
      el("span", { class: "small" }, from === to ? String(from) : `${from}–${to}`),
      el("code", {}, bits.slice(31 - from, 32 - to)),
      el("span", { class: "small" }, name),
    ),
  );
  return [
    el("h4", {}, `Unit ${index}: 0x${unit.toString(16).padStart(8, "0")}`),
    scroller("Bits of the unit", el("div", { class: "bits" }, groups)),
  ];
}

function xcdaCaption(cell) {
  let what = `where LCHECK is ${hex(cell.lcheck & 0xff)}: another byte, so the walk ends.`;
  if (cell.unit == null) what = "beyond the array: the walk ends.";
  else if (cell.unit >>> 31) what = "which is a value: the walk ends.";
  else if (cell.matched)
    what = `where LCHECK is ${hex(cell.lcheck & 0xff)}: the byte matches${cell.leaf ? ", and a key ends here" : ""}.`;
  return `Byte ${hex(cell.byte)} leads to node ${cell.node}, ${what}`;
}

/** A walk through an XCDA, a cell for each step, of which those up to `step` have lit up; and the bits of its unit. */
function xcdaWalk(walk, step, name) {
  if (!walk[step]) return [];
  const linesOf = ({ unit, base, lcheck, leaf, value }) => {
    if (unit == null) return ["beyond the array"];
    if (unit >>> 31) return ["a value"];
    const key = leaf ? `LEAF, value ${value ?? ""}` : "no LEAF";
    return [`BASE ${base}`, `LCHECK ${hexAndCharacter(lcheck & 0xff)}`, key];
  };
  const cells = walk.map((one, i) => {
    const state = i > step ? "later" : one.matched ? "hit" : "miss";
    const lines = [`node ${one.node}`, ...linesOf(one)].map((line) => el("span", {}, line));
    const head = el("strong", { class: "mono" }, hexAndCharacter(one.byte));
    const [now, current] = i === step ? [" now", "step"] : ["", null];
    const attributes = { class: `step-cell ${state}${now}`, "aria-current": current };
    return el("li", attributes, head, lines);
  });
  const row = scroller(name, el("ol", { class: "cells" }, cells), () => cells[step].offsetLeft);
  const { node, unit } = walk[step];
  return unit == null ? [row] : [row, ...bitField(node, unit)];
}
