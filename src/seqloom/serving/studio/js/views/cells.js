// Cells: gates and states over a sentence, step by step, beside the equations; gradients by distance.

import { allModels, get, post } from "../api.js";
import { bars, heat, lines } from "../draw.js";
import { h, set } from "../dom.js";
import { number, t } from "../i18n.js";
import { math, plain } from "../math.js";
import { bench, choice, examples, field, head, own, py, pyLoad, same, statusLine } from "../parts.js";
import { picture } from "../picture.js";
import { STEPPED } from "../samples.js";

const RECURRENT = new Set(["rnn", "lstm", "gru", "peephole", "recurrent"]);
const state = { text: null, source: null, layer: 0, result: null, step: 0, cells: null, chosen: null, distance: 50, remember: false, flow: null };

export const view = { id: "cells", render };

async function render(root) {
  root.append(head("cells"));
  const place = h("div", {});
  const status = statusLine();
  root.append(status.element, place);
  try {
    state.cells ??= (await get("studio/cells")).cells;
  } catch (error) {
    status.bad(error);
    return;
  }
  state.text ??= own(STEPPED)[0].text;
  state.chosen ??= new Set(["rnn", "residual", "lstm", "gru"]);
  set(place, walk(), flowCard());
}

function summary(name) {
  return t(`cell.${name}`);
}

// -- step by step ------------------------------------------------------------------------------------

function walk() {
  const models = allModels().filter((model) => model.task === "lm" && RECURRENT.has(model.architecture));
  const options = [
    ...models.map((model) => [`model:${model.name}`, t("cells.trained", { model: model.name })]),
    ...state.cells.map((cell) => [`cell:${cell.name}`, `${cell.name} · ${summary(cell.name)}`]),
  ];
  if (!options.some(([value]) => value === state.source)) state.source = models.length ? options[0][0] : "cell:lstm";
  const text = h("input", { type: "text", value: state.text, oninput: () => (state.text = text.value) });
  const layer = h("input", { type: "number", min: 1, max: 8, value: state.layer + 1, oninput: () => (state.layer = Math.max(0, Number(layer.value) - 1)) });
  const form = bench({
    state,
    wide: true,
    label: t("cells.run"),
    waits: t("cells.waits"),
    fields: [
      field(t("sentence"), text),
      examples(own(STEPPED).map((one) => ({ label: one.label, apply: () => ((text.value = state.text = one.text), form.run()) }))),
      h("div", { class: "row" }, field(t("cells.cell"), choice(options, state.source, (value) => ((state.source = value), form.run()))), models.length ? field(t("cells.layer"), layer) : null),
    ],
    ask: async (signal) => {
      const [kind, name] = [state.source.slice(0, state.source.indexOf(":")), state.source.slice(state.source.indexOf(":") + 1)];
      const body = kind === "model" ? { text: state.text, model: name, layer: state.layer } : { text: state.text, cell: name, hidden_size: 16 };
      const found = await post("studio/steps", body, signal);
      state.step = 0;
      return { body, found };
    },
    show,
  });
  if (!state.result) form.run();
  return form.element;
}

function show({ body, found }) {
  const names = Object.keys(found.values);
  const maps = h("div", { class: "maps" });
  const now = h("div", { class: "stack" });
  const word = h("output", {}, "");
  const slider = h("input", { type: "range", min: 0, max: found.words.length - 1, value: state.step, "aria-label": t("cells.step"), oninput: () => move(Number(slider.value)) });
  const move = (step) => {
    state.step = Math.max(0, Math.min(found.words.length - 1, step));
    slider.value = state.step;
    set(word, `${state.step + 1}. ${found.words[state.step]}`);
    set(maps, names.map((name) => mapOf(found, name)));
    set(now, atStep(found, names));
  };
  move(state.step);
  return [
    h(
      "div",
      { class: "columns narrow" },
      h(
        "div",
        { class: "card tight" },
        h("div", { class: "section-head" }, h("h2", {}, t("cells.equations")), h("p", { class: "hint" }, found.trained ? t("cells.is.trained", { units: found.units }) : t("cells.is.fresh", { units: found.units }))),
        h("div", { class: "equations", tabindex: "0", role: "group", "aria-label": t("cells.equations") }, found.equations.map((line) => math(line))),
        h("div", { class: "stepper" }, h("button", { type: "button", onclick: () => move(state.step - 1) }, "←", h("span", { class: "visually-hidden" }, t("cells.back"))), slider, h("button", { type: "button", onclick: () => move(state.step + 1) }, "→", h("span", { class: "visually-hidden" }, t("cells.forth"))), word),
        now,
      ),
      h("div", { class: "card tight" }, h("div", { class: "section-head" }, h("h2", {}, t("cells.maps")), h("p", { class: "hint" }, t("cells.maps.hint"))), maps),
    ),
    h("div", { class: "card" }, same({ python: python(body), path: "studio/steps", body })),
  ];
}

function mapOf(found, name) {
  const values = found.values[name];
  const units = values[0].length;
  const rows = Array.from({ length: units }, (_, unit) => String(unit + 1));
  const turned = rows.map((_, unit) => values.map((row) => row[unit]));
  const signed = turned.flat().some((value) => value < 0);
  const most = Math.max(1, ...turned.flat().map(Math.abs));
  const title = plain(name);
  return picture({
    title,
    hint: has(name) ? t(`gate.${title}`) : "",
    name: `${found.cell}-${title}`,
    data: { words: found.words, name, values },
    draw: (width) => heat(turned, rows, found.words, width, { signed, most, now: state.step }),
  });
}

const GATES = new Set(["i", "f", "g", "o", "c", "h", "r", "z", "n"]);

function has(name) {
  return GATES.has(plain(name));
}

/** The mean size of everything at one step, and how it changed the state. */
function atStep(found, names) {
  const mean = (row) => row.reduce((a, b) => a + b, 0) / row.length;
  const rows = names.map((name) => {
    const row = found.values[name][state.step];
    return { label: plain(name), value: mean(row.map(Math.abs)), mean: mean(row) };
  });
  return picture({
    title: t("cells.now", { word: found.words[state.step] }),
    hint: t("cells.now.hint"),
    name: `${found.cell}-step-${state.step + 1}`,
    data: Object.fromEntries(names.map((name) => [name, found.values[name][state.step]])),
    draw: (width) => bars(rows.map((row) => ({ label: row.label, value: row.value, text: number(row.value) })), width, { most: Math.max(1, ...rows.map((row) => row.value)) }),
  });
}

function python(body) {
  if (!body.model) {
    return `import torch\n\nfrom seqloom.explain.steps import cell_steps\nfrom seqloom.nn.recurrent import Recurrent\nfrom seqloom.text import TextConfig, TextPipeline\n\ntorch.manual_seed(0)\nlayer = Recurrent(${py(body.cell)}, ${body.hidden_size}, ${body.hidden_size})\nwords = TextPipeline(TextConfig()).words(${py(body.text)})\nkinds = list(dict.fromkeys(words))\nvectors = torch.randn(len(kinds), ${body.hidden_size})\nsteps = cell_steps(layer, vectors[[kinds.index(word) for word in words]])\nprint(*steps.equations, steps.values, sep="\\n")`;
  }
  return `${pyLoad(body.model)}\n\nimport torch\n\nfrom seqloom.explain.steps import cell_steps\n\nvocabulary = model.vocabulary_\nwords = [vocabulary.specials.eos, *model.reader.words(${py(body.text)})]\nvectors = model.model_.embedding(torch.as_tensor(vocabulary.encode(words)))\nsteps = cell_steps(model.model_.rnn, vectors.detach(), number=${body.layer})\nprint(*steps.equations, steps.values, sep="\\n")`;
}

// -- gradients ---------------------------------------------------------------------------------------

function flowCard() {
  const status = statusLine();
  const place = h("div", { class: "tight" });
  const boxes = state.cells.map((cell) => {
    const box = h("input", { type: "checkbox", checked: state.chosen.has(cell.name), onchange: () => (box.checked ? state.chosen.add(cell.name) : state.chosen.delete(cell.name)) });
    return h("label", { class: "check" }, box, cell.name);
  });
  const distance = h("input", { type: "number", min: 2, max: 200, value: state.distance, oninput: () => (state.distance = Number(distance.value)) });
  const remember = h("input", { type: "checkbox", checked: state.remember, onchange: () => (state.remember = remember.checked) });
  const run = async () => {
    status.busy();
    const body = { cells: state.cells.map((cell) => cell.name).filter((name) => state.chosen.has(name)), distance: state.distance, remember: state.remember };
    try {
      state.flow = { body, found: await post("studio/flow", body) };
      set(place, flowPicture(state.flow));
      status.say(t("done"));
    } catch (error) {
      status.bad(error);
    }
  };
  if (state.flow) set(place, flowPicture(state.flow));
  else run();
  return h(
    "div",
    { class: "stack" },
    h(
      "section",
      { class: "card fields", "aria-label": t("flow.title") },
      h("div", { class: "section-head" }, h("h2", {}, t("flow.title")), h("p", { class: "hint" }, t("flow.lede"))),
      h("fieldset", {}, h("legend", {}, t("cells.cell")), h("div", { class: "checks" }, boxes)),
      h("div", { class: "row" }, field(t("flow.distance"), distance), h("label", { class: "check" }, remember, t("flow.remember")), h("button", { type: "button", class: "main", id: "measure", onclick: run }, t("flow.run"))),
      status.element,
      place,
    ),
  );
}

function flowPicture({ body, found }) {
  const series = Object.entries(found.norms).map(([name, ys]) => ({ name, xs: found.distances, ys: ys.map((y) => y / ys[0]) }));
  return [
    picture({
      title: t("flow.picture"),
      hint: t("flow.hint"),
      name: "gradient-flow",
      data: found,
      draw: (width) => lines(series, width, { xlabel: t("flow.x"), ylabel: t("flow.y"), log: true, height: 340 }),
      table: {
        columns: [{ label: t("cells.cell") }, { label: t("flow.change", { distance: found.distances.length }), number: true }],
        rows: Object.entries(found.change).map(([name, value]) => [name, value === null ? "–" : Number(value).toExponential(2)]),
      },
    }),
    same({
      python: `import torch\n\nfrom seqloom.explain.gradients import gradient_flow\n${body.remember ? "from seqloom.explain.memory import open_gates\n" : ""}from seqloom.nn.recurrent import Recurrent\n\ntorch.manual_seed(0)\ninputs = torch.randn(8, ${body.distance}, 16)\nlayers = {}\nfor name in ${JSON.stringify(body.cells)}:\n    layer = Recurrent(name, 16, 16)\n${body.remember ? "    open_gates(layer, None)\n" : ""}    layers[name] = (layer, lambda output: output.sum(1))\nflow = gradient_flow(layers, inputs, distance=${body.distance})\nprint({name: flow.change(name) for name in flow.norms})`,
      path: "studio/flow",
      body,
    }),
  ];
}
