// What every page does: the menu, light and dark, the search, walks, and, where there are any, live cells.

import { mountWalks } from "./walks.js";

const { documentElement: html, body } = document;
const up = new URL(body.dataset.up, location.href).href;

const menu = document.querySelector("button.menu");
menu.addEventListener("click", () => {
  const open = body.classList.toggle("menu-open");
  menu.setAttribute("aria-expanded", String(open));
});

export const isDark = () => (html.dataset.theme ? html.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);

document.querySelector("button.theme").addEventListener("click", () => {
  html.dataset.theme = isDark() ? "light" : "dark";
  try {
    localStorage.setItem("gradwalk-theme", html.dataset.theme);
  } catch {
    // it holds for this page
  }
  dispatchEvent(new Event("gradwalk-theme"));
});

const list = document.querySelector("#navigation"); // longer than most windows are high
const here = list.querySelector("[aria-current]");
if (here) list.scrollTop = here.offsetTop - list.clientHeight / 2;

mountWalks(isDark);

const field = document.querySelector(".search input");
const searching = () => import("./search.js").then((search) => search.mount(field, up));
field.addEventListener("focus", searching, { once: true });
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.closest("input, textarea, select")) return;
  event.preventDefault();
  field.focus();
});

const cells = JSON.parse(document.querySelector("#cells").textContent);
if (cells.length) import("./cells.js").then((module) => module.mount(cells, up));

if ("serviceWorker" in navigator && location.protocol !== "file:") {
  addEventListener("load", () => navigator.serviceWorker.register(`${up}service-worker.js`).catch(() => {}));
}
