// The walk of an expression inside a page: a frame with the page of the walk, made when it is about to be seen.

/** Give every figure its frame; `isDark` says how it is to look. */
export function mountWalks(isDark) {
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      open(target, isDark);
    }
  }, { rootMargin: "400px" });
  for (const figure of document.querySelectorAll("figure.walk")) seen.observe(figure);
}

function open(figure, isDark) {
  const frame = document.createElement("iframe");
  frame.title = figure.dataset.said;
  const address = () => `${figure.querySelector("a").getAttribute("href")}&mode=embed&theme=${isDark() ? "dark" : "light"}`;
  frame.src = address();
  figure.prepend(frame);
  addEventListener("gradwalk-theme", () => { frame.src = address(); });
}
