// What the file runs: everything it needs is in the document itself.

import { mount } from "./app.js";
import { hostedPython } from "./own.js";

const pristine = document.documentElement.cloneNode(true);
const start = JSON.parse(document.querySelector("#start").textContent);
const python = start.site ? hostedPython(start.site) : null;
const app = mount(document.body, { start, pristine, python, ownsAddress: true });

// for people who want to look inside, and for the tests
globalThis.gradwalk = app;
