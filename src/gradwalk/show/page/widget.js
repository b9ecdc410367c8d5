// The same page inside a notebook, through anywidget. It lives in a shadow tree, so that neither styles the other;
// edits of leaves go to the kernel, and what Python changes comes back.

import { mount } from "./app.js";

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
      model.send({ kind: "edit", values: edits });
      edits = {};
    };
    const kernel = {
      edit(i, value) {
        edits[i] = value;
        sending ??= setTimeout(send, 60);
      },
    };
    let app = mount(shadow, { start: model.get("start"), kernel });
    model.on("msg:custom", (message) => {
      if (message.kind === "values") app.receive(message.values);
    });
    model.on("change:start", () => {
      app.root.remove();
      app = mount(shadow, { start: model.get("start"), kernel });
    });
  },
};
