// Starts Python with gradwalk once, while the site is built, and keeps its memory: `node started.mjs FOLDER FILE`.
// A browser goes on from there, and does not spend seconds on starting it again.

import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";

const [folder, file] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide.mjs`));
// what is kept must not differ from build to build: no random order of sets
const env = { GRADWALK_ENGINE: "reference", HOME: "/home/pyodide", PYTHONHASHSEED: "0" };
const pyodide = await loadPyodide({ indexURL: `${folder}/`, env, _makeSnapshot: true });
pyodide.unpackArchive(new Uint8Array(readFileSync(`${folder}/gradwalk.zip`)), "zip", { extractDir: "/lib/python3.14/site-packages" });
pyodide.runPython("import gradwalk; from gradwalk.lessons import cells");
writeFileSync(file, gzipSync(pyodide.makeMemorySnapshot(), { level: 9 }));
