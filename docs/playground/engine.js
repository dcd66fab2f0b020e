/* The page's side of the worker: calls as promises, only the newest of a kind, and a new worker after a crash. */

/** The answer of a call that a newer one has replaced. */
export const STALE = Symbol("stale");

/** The most crashes in a row, without an answer in between, after which a new worker is started. */
const MOST_FAILURES = 2;

/** The worker stopped in the middle of a call. */
export class Crash extends Error {
  name = "Crash";
}

export class Engine {
  #script;
  #onCrash;
  #load;
  #worker;
  #waiting = new Map(); // what to do with each answer, by the message's id
  #lanes = new Map(); // by name: what is being asked, and what to ask next
  #next = 0;
  #hasAnswered = false;
  #failures = 0; // crashes since the last answer

  /** The worker of a script starts with the first call, and after a crash a new one with the next call.
   * `onCrash(message, goesOn)` is called after a crash; `goesOn` is false if no worker has worked so far, or too many
   * have crashed. `load()` is a promise of compiled WebAssembly, for a worker that leaves this to the page. */
  constructor(script, onCrash = () => {}, load = null) {
    this.#script = new URL(script, import.meta.url);
    this.#onCrash = onCrash;
    this.#load = load;
  }

  get #isOver() {
    return this.#failures > MOST_FAILURES;
  }

  #start() {
    const worker = new Worker(this.#script, { type: "module" });
    worker.onmessage = ({ data: { id, result, error } }) => {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      this.#hasAnswered = true;
      this.#failures = 0;
      if (error) waiting.reject(Object.assign(new Error(error.message), { name: error.name }));
      else waiting.resolve(result);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      this.#stop(event.message || "it could not be loaded");
    };
    // Without it, the worker tries for itself, and says why it cannot.
    this.#load?.().catch(() => undefined).then((code) => worker.postMessage({ code }));
    this.#worker = worker;
  }

  #stop(message) {
    this.#worker.terminate();
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    this.#failures += 1;
    this.#worker = null;
    for (const { reject } of waiting) reject(new Crash(message));
    this.#onCrash(message, this.#hasAnswered && !this.#isOver);
  }

  /** Asks the worker. Rejects with the core's error, named like the Python exception, or with a `Crash`. */
  call(name, ...args) {
    if (this.#isOver) return Promise.reject(new Crash("it could not be started"));
    if (!this.#worker) this.#start();
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, call: name, args });
    });
  }

  /** Asks the worker, one question of a lane at a time. A question that was overtaken resolves to `STALE`: while the
   * worker is busy only the newest waits, so texts that are already replaced are not encoded. */
  async newest(lane, name, ...args) {
    const mine = {};
    const before = this.#lanes.get(lane);
    const asked = (async () => {
      await before?.asked.catch(() => {});
      if (this.#lanes.get(lane).mine !== mine) return STALE;
      return this.call(name, ...args);
    })();
    this.#lanes.set(lane, { mine, asked });
    const result = await asked;
    return this.#lanes.get(lane).mine === mine ? result : STALE;
  }
}
