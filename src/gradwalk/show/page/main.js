// What the file runs: everything it needs is in the document itself.

import { mount } from "./app.js";

const pristine = document.documentElement.cloneNode(true);
const start = JSON.parse(document.querySelector("#start").textContent);
const app = mount(document.body, { start, pristine, ownsAddress: true });

// for people who want to look inside, and for the tests
globalThis.gradwalk = app;
