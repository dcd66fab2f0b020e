/* The live pages in a page follow its theme, and are as high as what they show, so that nothing scrolls inside. */

addEventListener("DOMContentLoaded", () => {
  const frames = document.querySelectorAll("iframe.live");
  const follow = () => {
    const { theme } = document.body.dataset;
    for (const frame of frames) {
      const root = frame.contentDocument?.documentElement; // null if the site is opened as files
      if (root && theme !== "auto") root.dataset.theme = theme;
      else if (root) delete root.dataset.theme;
    }
  };
  /** Makes room for the highest step so far: what is below moves once, and not with every step. */
  const grow = (frame) => {
    const body = frame.contentDocument?.body;
    if (!body) return;
    let [width, height] = [0, 0];
    new ResizeObserver(() => {
      if (width !== frame.clientWidth) [width, height] = [frame.clientWidth, 0];
      height = Math.max(height, body.offsetHeight);
      frame.style.height = `${height + 2}px`;
    }).observe(body);
  };
  for (const frame of frames) {
    frame.addEventListener("load", () => {
      follow();
      grow(frame);
    });
  }
  new MutationObserver(follow).observe(document.body, { attributeFilter: ["data-theme"] });
  follow();
});
