/* The page itself: which view its data is for, and the theme. */

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);

byId("theme").onclick = () => {
  const { dataset } = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  dataset.theme = (dataset.theme ?? system) === "dark" ? "light" : "dark";
};

function traceView(view) {
  const { page, why } = data;
  byId("facts").textContent = page.facts;
  mountTrace(view, { page, why: (place) => why[place] }, { links: true });
}

({ trace: traceView, trie: trieView, compare: compareView })[data.view](byId("steps"));
