// The real editor, and questions to it: window.editor. Files come and go as text.
import * as excalidraw from "excalidraw";
import "excalidraw/index.css";
import React from "react";
import { createRoot } from "react-dom/client";

const { Excalidraw, FONT_FAMILY, getCommonBounds, loadFromBlob, restoreElements, serializeAsJSON } = excalidraw;
const MARGIN = 90;
let api;

const json = (value) => JSON.stringify(value);
// The release needs to know how far an arrow ends from its shape; master computes it, and drops what is written.
const comparable = (value) =>
  value?.fixedPoint ? json([value.elementId, value.fixedPoint, value.mode]) : json(value ?? null);
const type = (text) => (text.trimStart().startsWith("<") ? "image/svg+xml" : "application/json");
const opened = (text) => loadFromBlob(new Blob([text], { type: type(text) }), null, null);
const frames = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));

/** What opening the file changes in it, a line for each key. Keys that are new in an editor, and null, are no change. */
async function changes(text) {
  const file = JSON.parse(text);
  const { elements } = await opened(text);
  const found = [];
  if (json(elements.map((one) => one.id)) !== json(file.elements.map((one) => one.id))) found.push("the elements or their order");
  const after = new Map(elements.map((one) => [one.id, one]));
  for (const before of file.elements) {
    const now = after.get(before.id) ?? {};
    for (const key of new Set([...Object.keys(before), ...Object.keys(now)])) {
      if (comparable(before[key]) !== comparable(now[key])) found.push(`${before.id}.${key}: ${json(before[key])} -> ${json(now[key])}`);
    }
  }
  return found;
}

/** The elements as the file has them, whatever carries it. */
async function read(text) {
  return (await opened(text)).elements;
}

/** Opens the file for a person, all of it in view. */
async function show(text) {
  const data = await opened(text);
  api.resetScene();
  api.addFiles(Object.values(data.files ?? {}));
  const { viewBackgroundColor } = data.appState;
  api.updateScene({ elements: data.elements, appState: { viewBackgroundColor, ...inView(data.elements) } });
  await Promise.all(data.elements.filter((one) => one.type === "text").map(fontLoaded));
  await frames();
}

/** Waits for the font of a text, which the editor registers and loads when it first shows one. */
async function fontLoaded({ fontFamily, fontSize, text }) {
  const [name] = Object.entries(FONT_FAMILY).find(([, value]) => value === fontFamily);
  while (![...document.fonts].some((face) => face.family.replaceAll('"', "") === name)) await frames();
  await document.fonts.load(`${fontSize}px "${name}", Xiaolai`, text);
}

/** A view of all the elements, with the tools of the editor around them: the builds' own ways to it differ. */
function inView(elements) {
  const { width, height } = api.getAppState();
  const [left, top, right, bottom] = getCommonBounds(elements);
  const value = Math.min(1, (width - 2 * MARGIN) / (right - left), (height - 2 * MARGIN) / (bottom - top));
  const scrollX = width / value / 2 - (left + right) / 2;
  const scrollY = height / value / 2 - (top + bottom) / 2;
  return { zoom: { value }, scrollX, scrollY };
}

/** Every text of the file that is shown, as the editor itself measures and wraps it. */
function measured() {
  const texts = restoreElements(structuredClone(api.getSceneElements()), null, { refreshDimensions: true, repairBindings: true });
  return texts.filter((one) => one.type === "text").map(({ id, text, width, height }) => ({ id, text, width, height }));
}

/** Brings a point of the scene to the middle of the screen, in full size; where that is. */
async function center(x, y) {
  const { width, height, offsetLeft, offsetTop } = api.getAppState();
  api.updateScene({ appState: { zoom: { value: 1 }, scrollX: width / 2 - x, scrollY: height / 2 - y } });
  await frames();
  return [width / 2 + offsetLeft, height / 2 + offsetTop];
}

// The release hands its API to `excalidrawAPI`, master to `onExcalidrawAPI`.
await new Promise((ready) => {
  const hold = (value) => { if (value) { api = value; ready(); } };
  createRoot(document.getElementById("root")).render(
    React.createElement(Excalidraw, { excalidrawAPI: hold, onExcalidrawAPI: hold }),
  );
});
await frames();
window.editor = {
  changes, read, show, measured, center,
  scene: () => api.getSceneElements(),
  saved: () => serializeAsJSON(api.getSceneElements(), api.getAppState(), api.getFiles(), "local"),
};
