/* The page itself: which view its data is for, and the theme. */

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);

byId("theme").onclick = () => {
  const { dataset } = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  dataset.theme = (dataset.theme ?? system) === "dark" ? "light" : "dark";
};

function traceView(view) {
  byId("facts").textContent = data.page.facts;
  mountTrace(view, data, { links: true });
}

({ trace: traceView, trie: trieView, compare: compareView })[data.view](byId("steps"));
