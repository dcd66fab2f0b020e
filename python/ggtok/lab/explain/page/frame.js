/* The frame around the steps: the idea, the bar of stages with a slider in the current one, what just happened, and
 * the drawing. It knows nothing about tokenizers but units, which stages.js describes. */

const SPEEDS = [0.5, 1, 2, 4];
const PAUSE = 1300; // milliseconds between steps at speed 1
const MOVE = 420; // how long a movement takes
const MOST_ROOM = 760; // pixels

/** Moves what has just been drawn from where it comes from, unless motion is not wanted. Only transforms change. */
function animate(root, speed) {
  if (!root.animate || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const run = (node, delay, ...from) => {
    const timing = { duration: MOVE / speed, delay: delay / speed, fill: "backwards", easing: "ease-in-out" };
    node.animate([...from.map((transform, at) => ({ transform, offset: at / 100 })), { transform: "none" }], timing);
  };
  for (const node of root.querySelectorAll("[data-move]")) {
    const [dx, dy, delay, isLate] = node.dataset.move.split(" ").map(Number);
    const start = `translate(${dx}px, ${dy}px)`;
    run(node, delay, ...(isLate ? [`${start} scale(0)`] : []), `${start} scale(1)`);
  }
  for (const node of root.querySelectorAll("[data-grow]")) run(node, Number(node.dataset.grow), "scale(0)");
  for (const node of root.querySelectorAll("[data-fade]")) {
    const timing = { duration: 2 * MOVE / speed, delay: Number(node.dataset.fade) / speed, fill: "backwards" };
    node.animate([{ opacity: 1 }, {}], timing);
  }
}

/** Keeps the room of the largest content so far, so that what is below does not move up and down from step to step. */
function keepRoom(box, isNew) {
  if (isNew) box.style.minHeight = "";
  const height = Math.ceil(box.getBoundingClientRect().height); // 0 for what is not shown
  if (height && height <= MOST_ROOM) box.style.minHeight = `${height}px`;
}

/** A place in the steps as people can link to it, such as `merge.2` or, in what is open, `merge.2.3`. */
const addressOf = ({ key }, unit, inner) => [key, unit + 1, ...(inner == null ? [] : [inner + 1])].join(".");

/**
 * Builds the frame in a container. `head` and `foot` are nodes over and below the steps. `onStep(stages, at)` is called
 * after each step; `at` is `{stage, unit, inner, isOpen, address}`, places in `stages` and what a link says. With the option `links`, the page's
 * address says the step. Keys work in the element `keys`. Returns `{root, show, end, showToken, destroy}`.
 */
function mountFrame(container, { idea, names: stageNames, units, head = [], foot = [], onStep = () => {} }, { links = false, keys = null } = {}) {
  const all = units.map((unit) => ({ tokens: [0, 0], ...unit, length: Math.max(1, unit.length) }));
  const stages = stageNames.map(([key, name]) => ({ key, name, units: all.filter(({ stage }) => stage === key) }));
  const open = new Set();
  let at = null; // {stage, unit, inner}: places in stages, in its units, and in the unit's steps
  let timer = null;
  let speed = 1;

  const isClosed = (unit) => Boolean(unit.opens && !open.has(unit));
  const stepsOf = (unit) => (isClosed(unit) ? 1 : unit.length);
  const count = (stage) => stages[stage].units.reduce((sum, unit) => sum + stepsOf(unit), 0);
  const unitAt = () => stages[at.stage].units[at.unit];
  /** The step in its stage, and back. */
  const stepInStage = () =>
    stages[at.stage].units.slice(0, at.unit).reduce((sum, unit) => sum + stepsOf(unit), at.inner);
  const placeOf = (stage, step) => {
    const { units: all } = stages[stage];
    let unit = 0;
    let inner = Math.max(0, Math.min(step, count(stage) - 1));
    while (inner >= stepsOf(all[unit])) inner -= stepsOf(all[unit++]);
    return { stage, unit, inner };
  };

  const button = (text, name, onclick, attributes = {}) =>
    el("button", { type: "button", "aria-label": name, title: name, onclick, ...attributes }, text);
  const slider = el("input", { type: "range", class: "slider", min: 0, step: 1, "aria-label": "Step in this stage" });
  const names = stages.map(({ name }, stage) => {
    const onclick = () => user(() => go({ stage, unit: 0, inner: 0 }));
    return el("button", { type: "button", onclick }, name);
  });
  const bar = el("ol", { class: "bar", "aria-label": "Stages" }, names.map((name) => el("li", {}, name)));
  const playButton = button("▶", "Play or pause (Space)", () => play(), { class: "play" });
  const speedSelect = el(
    "select",
    { "aria-label": "Speed", onchange: () => (speed = Number(speedSelect.value)) },
    SPEEDS.map((value) => el("option", { value, selected: value === 1 }, `${value === 0.5 ? "½" : value}×`)),
  );
  const openButton = el("button", { type: "button", class: "open", onclick: () => user(toggle) });
  const link = el("a", { class: "link", title: "A link to this step", hidden: !links, onclick: () => copy() }, "link");
  const counter = el("span", { class: "count" });
  const title = el("h3", { class: "unit" });
  const controls = el(
    "div",
    { class: "controls", role: "group", "aria-label": "Steps" },
    button("‹", "Back one step (←)", () => user(() => move(-1))),
    playButton,
    button("›", "Next step (→)", () => user(() => move(1)), { class: "next" }),
    ...[speedSelect, openButton, counter, link],
  );
  const caption = el("p", { class: "caption", role: "status" });
  const picture = el("div", { class: "picture" });
  const root = el(
    "div",
    { class: "explain", tabindex: -1 },
    ...[el("p", { class: "idea" }, idea), bar, controls, title, caption, picture, ...head, ...foot],
  );

  function go(to, isForward = false) {
    const before = at;
    at = to;
    const stage = stages[at.stage];
    const unit = unitAt();
    const closed = isClosed(unit);
    const step = closed ? null : at.inner;
    const view = { width: Math.max(280, picture.clientWidth || 720) };
    const steps = count(at.stage);
    const place = stepInStage();

    if (before?.stage !== at.stage) {
      const hadFocus = slider.getRootNode().activeElement === slider;
      names.forEach((name, i) => {
        name.parentNode.className = i < at.stage ? "done" : i === at.stage ? "now" : "later";
        if (i === at.stage) name.setAttribute("aria-current", "step");
        else name.removeAttribute("aria-current");
      });
      names[at.stage].after(slider);
      if (hadFocus) slider.focus();
    }
    slider.hidden = steps < 2;
    slider.max = steps - 1;
    slider.value = place;
    slider.setAttribute("aria-valuetext", `Step ${place + 1} of ${steps}: ${unit.title}`);
    counter.textContent = `${(place + 1).toLocaleString("en")} of ${steps.toLocaleString("en")}`;
    title.textContent = unit.length > 1 && !closed ? `${unit.title} (${at.inner + 1} of ${unit.length})` : unit.title;
    openButton.hidden = !(unit.opens && unit.length > 1);
    openButton.textContent = closed ? `Open ${unit.length.toLocaleString("en")} steps` : "Close steps";
    openButton.title = closed ? "See the steps in this one (Enter)" : "Back to one step (Enter)";
    const address = addressOf(stage, at.unit, closed || unit.length < 2 ? null : at.inner);
    link.href = `#step=${address}`;
    link.textContent = "link";
    caption.replaceChildren(...[unit.caption(step)].flat());
    const drawn = unit.draw(step, view);
    picture.replaceChildren(...drawn.filter((node) => node != null));
    for (const box of [caption, picture]) keepRoom(box, before?.stage !== at.stage);
    if (isForward) animate(picture, speed);
    onStep(stages, { ...at, inner: step ?? unit.length - 1, isOpen: !closed, address });
  }

  /** One step on, or back. Returns whether there is one. */
  function move(by) {
    const step = stepInStage() + by;
    const isInside = step >= 0 && step < count(at.stage);
    const stage = isInside ? at.stage : at.stage + by;
    if (stage < 0 || stage >= stages.length) return false;
    go(placeOf(stage, isInside ? step : by > 0 ? 0 : Infinity), by > 0);
    return true;
  }
  function moveStage(by) {
    const isAtStart = stepInStage() === 0;
    const stage = Math.max(0, Math.min(stages.length - 1, at.stage + (by < 0 && !isAtStart ? 0 : by)));
    go({ stage, unit: 0, inner: 0 });
  }
  const end = () => go(placeOf(stages.length - 1, Infinity));
  const start = () => go({ stage: 0, unit: 0, inner: 0 });
  function toggle() {
    const unit = unitAt();
    if (!unit.opens || unit.length < 2) return;
    if (isClosed(unit)) open.add(unit);
    else open.delete(unit);
    go({ ...at, inner: 0 });
  }

  const stop = () => {
    clearTimeout(timer);
    timer = null;
    playButton.textContent = "▶";
    playButton.setAttribute("aria-pressed", "false");
  };
  const tick = () => {
    timer = setTimeout(() => (move(1) ? tick() : stop()), PAUSE / speed);
  };
  function play() {
    if (timer !== null) return stop();
    if (at.stage === stages.length - 1 && stepInStage() === count(at.stage) - 1) start();
    playButton.textContent = "❚❚";
    playButton.setAttribute("aria-pressed", "true");
    tick();
  }
  /** What a person does by hand ends the play. */
  function user(action) {
    stop();
    action();
  }
  async function copy() {
    try {
      await navigator.clipboard.writeText(link.href);
      link.textContent = "copied";
    } catch {
      link.textContent = "in the address";
    }
  }

  /** Goes to an address as in links. Returns whether the step exists. */
  function show(address) {
    const [key, unit = 1, inner] = String(address).split(".");
    const stage = stages.findIndex((one) => one.key === key);
    const found = stages[stage]?.units[unit - 1];
    if (!found || (inner != null && !(inner >= 1 && inner <= found.length))) return false;
    stop();
    if (inner != null && found.opens && found.length > 1) open.add(found);
    go({ stage, unit: unit - 1, inner: inner == null ? 0 : inner - 1 });
    return true;
  }

  slider.addEventListener("input", () => user(() => go(placeOf(at.stage, Number(slider.value)))));
  const actions = {
    ArrowLeft: () => user(() => move(-1)),
    ArrowRight: () => user(() => move(1)),
    Home: () => user(start),
    End: () => user(end),
    PageUp: () => user(() => moveStage(-1)),
    PageDown: () => user(() => moveStage(1)),
    Enter: () => user(toggle),
    " ": play,
  };
  const onkeydown = (event) => {
    const action = actions[event.key];
    if (!action || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const isPress = event.key === " " || event.key === "Enter";
    const itsOwn = `.scroll, select, textarea, input:not([type=range])${isPress ? ", button, summary, a" : ""}`;
    if (event.composedPath()[0].closest?.(itsOwn)) return; // the target is the host of a shadow, seen from outside
    event.preventDefault();
    action();
  };
  const onhash = () => {
    const step = /^#step=([\w.]+)$/.exec(location.hash);
    return step ? show(step[1]) : false;
  };
  const keyTarget = keys ?? (links ? document : root);
  keyTarget.addEventListener("keydown", onkeydown);
  if (links) window.addEventListener("hashchange", onhash);
  container.append(root);
  if (!links || !onhash()) start();

  return {
    root,
    show,
    end: () => user(end),
    /** Goes to the first unit that makes a token. */
    showToken(token) {
      for (const [stage, { units: all }] of stages.entries()) {
        const unit = all.findIndex(({ tokens: [from, to] }) => from <= token && token < to);
        if (unit < 0) continue;
        const { tokens: [from], byStep, length } = all[unit];
        const inner = isClosed(all[unit]) ? 0 : byStep ? token - from : length - 1;
        return user(() => go({ stage, unit, inner }, true));
      }
    },
    destroy() {
      stop();
      keyTarget.removeEventListener("keydown", onkeydown);
      window.removeEventListener("hashchange", onhash);
      root.remove();
    },
  };
}

/** The tokens that are known at a step: ranges of all units that came before, and of this one as far as it is. */
function rangesKnown(stages, { stage, unit, inner }) {
  const before = stages.slice(0, stage).flatMap(({ units }) => units);
  const now = stages[stage].units[unit];
  const [from, to] = now.tokens;
  const known = inner === now.length - 1 ? to : now.byStep ? from + inner + 1 : from;
  return [...before, ...stages[stage].units.slice(0, unit)].map(({ tokens }) => tokens).concat([[from, known]]);
}
