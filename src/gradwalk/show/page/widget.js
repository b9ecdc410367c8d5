// The same page inside a notebook, through anywidget. It lives in a shadow tree, so that neither styles the other. The
// edited values are part of the model: the kernel, every view and a page that is loaded again have the same ones.

import { mount } from "./app.js";
import { fromJson, toJson } from "./numbers.js";

const SEND_MS = 120;
const live = new Map(); // how many views there are of each walk

export default {
  render({ model, el }) {
    const host = document.createElement("div");
    host.style.setProperty("height", `${model.get("height")}px`);
    const shadow = host.attachShadow({ mode: "open" });
    const style = document.createElement("style");
    style.textContent = model.get("stylesheet");
    shadow.append(style);
    el.append(host);
    let edits = {};
    let sending = null;
    const send = () => {
      sending = null;
      model.set("values", { ...model.get("values"), ...edits });
      model.save_changes();
      edits = {};
    };
    const kernel = {
      edit(i, value) {
        edits[i] = toJson(value);
        sending ??= setTimeout(send, SEND_MS);
      },
    };
    let answer = null; // to the view that asked for a function to be run
    const python = {
      run: (source) => new Promise((done) => {
        answer = done;
        model.send({ python: source });
      }),
    };
    const answered = ({ error }) => {
      answer?.({ error });
      answer = null;
    };
    let app = null;
    const receive = () => {
      const known = Object.entries(model.get("values") ?? {}).filter(([i]) => !Object.hasOwn(edits, i));
      app.receive(Object.fromEntries(known.map(([i, value]) => [i, fromJson(value)])));
    };
    const show = () => {
      app?.root.remove();
      app = mount(shadow, { start: model.get("start"), kernel, python });
      app.setTheme(notebookTheme());
      receive();
    };
    show();
    const heard = { "msg:custom": answered, "change:values": receive, "change:start": show };
    for (const [event, hear] of Object.entries(heard)) model.on(event, hear);
    const themes = new MutationObserver(() => app.setTheme(notebookTheme()));
    themes.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "class"] });
    const showCopy = hideCopy(model.get("copy"));
    return () => {
      for (const [event, hear] of Object.entries(heard)) model.off(event, hear);
      themes.disconnect();
      showCopy();
    };
  },
};

/** The theme of the notebook around, where it tells; else the system's. */
function notebookTheme() {
  const { jpThemeLight } = document.body.dataset;
  if (jpThemeLight !== undefined) return jpThemeLight === "false" ? "dark" : "light";
  if (document.body.classList.contains("vscode-dark")) return "dark";
  return document.body.classList.contains("vscode-light") ? "light" : null;
}

/** Beside a live view the copy for saved notebooks is not needed; with the last of them it is back. */
function hideCopy(name) {
  const count = (by) => {
    live.set(name, (live.get(name) ?? 0) + by);
    document.documentElement.classList.toggle(`${name}-live`, live.get(name) > 0);
  };
  count(1);
  return () => count(-1);
}
