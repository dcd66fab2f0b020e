/* The theme before the first paint: as the documentation's button has set it, and as the system's without one. */
{
  let chosen = null;
  try {
    chosen = localStorage.getItem("theme");
  } catch {
    // Storage is switched off.
  }
  // A link has another text than the one that is painted here.
  if (location.hash.length > 1) document.documentElement.dataset.linked = "";
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
}
