// Keeps the site, so that it works without a network from the second visit on. One version of all pages at a time:
// a new build has a new version, is fetched as a whole, and then takes the place of the old one. Python is large and
// changes seldom: it is kept when it is first used, under its own version; its memory after the start, with the pages'.

const VERSION = "gradwalk-site-" + "{{version}}";
const PYTHON = "gradwalk-python-" + "{{python}}";
const FILES = ["{{files}}"];

const isStarted = (url) => /\/python\/started-/.test(url.pathname);
const isPython = (url) => /\/python\/(?!gradwalk\.zip|sizes\.json|started-)/.test(url.pathname);

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(VERSION).then((cache) => cache.addAll(FILES.map((file) => new Request(file, { cache: "no-cache" })))));
  self.skipWaiting();
});

self.addEventListener("activate", (event) => {
  const old = (name) => /^gradwalk-(site|python)-/.test(name) && name !== VERSION && name !== PYTHON;
  event.waitUntil(caches.keys()
    .then((names) => Promise.all(names.filter(old).map((name) => caches.delete(name))))
    .then(() => self.clients.claim()));
});

self.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== "GET" || url.origin !== self.location.origin) return;
  event.respondWith(answered(event, url));
});

async function answered(event, url) {
  const name = isPython(url) ? PYTHON : VERSION;
  const cache = await caches.open(name);
  const kept = await cache.match(event.request, { ignoreSearch: true });
  if (kept) return kept;
  const response = await fetch(event.request);
  if (response.ok && (name === PYTHON || isStarted(url))) event.waitUntil(cache.put(event.request, response.clone()));
  return response;
}
