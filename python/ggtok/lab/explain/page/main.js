/* The page itself: which view its data is for, and the theme. */

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);

function themeButton() {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const chosen = document.documentElement.dataset;
  const isDark = () => (chosen.theme ? chosen.theme === "dark" : dark.matches);
  const name = () => {
    const title = isDark() ? "Light theme" : "Dark theme";
    byId("theme").setAttribute("aria-label", title);
    byId("theme").title = title;
  };
  byId("theme").onclick = () => {
    chosen.theme = isDark() ? "light" : "dark";
    name();
  };
  dark.onchange = name;
  name();
}

function traceView(view) {
  byId("facts").textContent = data.page.facts;
  mountTrace(view, data, { links: true });
}

themeButton();
({ trace: traceView, trie: trieView, compare: compareView })[data.view](byId("steps"));
