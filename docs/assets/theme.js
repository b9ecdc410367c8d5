// Light or dark, before anything is painted: what was chosen here, else what the system says.

try {
  const chosen = localStorage.getItem("gradwalk-theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch {
  // a browser that keeps nothing: the system's choice
}
