/* The live pages in a page follow its theme. */

addEventListener("DOMContentLoaded", () => {
  const follow = () => {
    const { theme } = document.body.dataset;
    for (const frame of document.querySelectorAll("iframe.live")) {
      const root = frame.contentDocument?.documentElement; // null if the site is opened as files
      if (root && theme !== "auto") root.dataset.theme = theme;
      else if (root) delete root.dataset.theme;
    }
  };
  for (const frame of document.querySelectorAll("iframe.live")) frame.addEventListener("load", follow);
  new MutationObserver(follow).observe(document.body, { attributeFilter: ["data-theme"] });
  follow();
});
