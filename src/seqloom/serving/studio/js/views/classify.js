// Classify: the class of a text, how probable each is, and which words counted.

import { modelsFor, post } from "../api.js";
import { bars, shadedWords } from "../draw.js";
import { h } from "../dom.js";
import { number, percent, t } from "../i18n.js";
import { bench, examples, field, findModel, head, modelField, nobody, own, py, pyLoad, same } from "../parts.js";
import { picture } from "../picture.js";
import { SENTENCES } from "../samples.js";

const state = { text: "", model: null, result: null };

export const view = { id: "classify", endpoint: "classify", render };

function render(root) {
  root.append(head("classify"));
  if (!modelsFor("classify").length) {
    root.append(nobody("classify"));
    return;
  }
  state.text ||= own(SENTENCES)[0].text;
  const text = h("textarea", { value: state.text, oninput: () => (state.text = text.value) });
  const form = bench({
    state,
    label: t("classify.run"),
    waits: t("classify.waits"),
    fields: [
      field(t("text"), text),
      examples(own(SENTENCES).map((one) => ({ label: one.label, apply: () => ((text.value = state.text = one.text), form.run()) }))),
      modelField("classify", state),
    ],
    ask: async (signal) => {
      const body = { model: state.model, text: state.text, explain: Boolean(findModel(state.model)?.explains) };
      return { body, found: await post("v1/classify", body, signal) };
    },
    show: ({ body, found }) => [
      h("div", { class: "card tight" }, h("p", { class: "big", id: "label" }, found.labels?.length ? found.labels.join(", ") : found.label, h("span", { class: "hint" }, percent(found.probability))), probabilities(found)),
      looked(found.explanation),
      h("div", { class: "card" }, same({ python: `${pyLoad(body.model)}\nfound = model.classify(${py(body.text)}${body.explain ? ", explain=True" : ""})\nprint(found.label, found.probability)`, path: "v1/classify", body })),
    ],
  });
  root.append(form.element);
}

/** Bars of the likeliest classes. */
export function probabilities(found) {
  const rows = found.probabilities.slice(0, 12);
  if (!rows.length) return h("p", { class: "hint" }, t("classify.noprobabilities"));
  return picture({
    title: t("classify.classes"),
    hint: found.probabilities.length > rows.length ? t("classify.more", { shown: rows.length, total: found.probabilities.length }) : "",
    name: "probabilities",
    data: found.probabilities,
    draw: (width) => bars(rows.map((row) => ({ label: String(row.label), value: row.probability, text: percent(row.probability) })), width, { most: 1 }),
  });
}

/** Words shaded by how much the model looked at them. */
export function looked(explanation) {
  if (!explanation) return h("p", { class: "hint" }, t("classify.noattention"));
  const most = Math.max(...explanation.weights, 1e-9);
  return h(
    "div",
    { class: "card" },
    picture({
      title: t("classify.attention"),
      hint: t("classify.attention.hint"),
      name: "attention",
      data: explanation,
      draw: (width) => shadedWords(explanation.words, explanation.weights.map((w) => w / most), explanation.words.map((word, i) => `${word}: ${number(explanation.weights[i])}`), width),
      table: {
        columns: [{ label: t("word") }, { label: t("weight"), number: true }],
        rows: explanation.words.map((word, i) => [word, number(explanation.weights[i])]),
      },
    }),
  );
}
