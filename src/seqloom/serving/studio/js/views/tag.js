// Tag: every word with its tag, how sure the model is, and the spans that tags mark.

import { modelsFor, post } from "../api.js";
import { shadedWords } from "../draw.js";
import { h } from "../dom.js";
import { percent, t } from "../i18n.js";
import { bench, examples, field, head, modelField, nobody, own, py, pyLoad, same } from "../parts.js";
import { picture, tableOf } from "../picture.js";
import { TAGGED } from "../samples.js";

const state = { text: "", model: null, result: null };

export const view = { id: "tag", endpoint: "tag", render };

function render(root) {
  root.append(head("tag"));
  if (!modelsFor("tag").length) {
    root.append(nobody("tag"));
    return;
  }
  state.text ||= own(TAGGED)[0].text;
  const text = h("textarea", { value: state.text, oninput: () => (state.text = text.value) });
  const form = bench({
    state,
    label: t("tag.run"),
    waits: t("tag.waits"),
    fields: [
      field(t("sentence"), text),
      examples(own(TAGGED).map((one) => ({ label: one.label, apply: () => ((text.value = state.text = one.text), form.run()) }))),
      modelField("tag", state),
    ],
    ask: async (signal) => {
      const body = { model: state.model, text: state.text, probabilities: true };
      return { body, found: await post("v1/tag", body, signal) };
    },
    show,
  });
  root.append(form.element);
}

function show({ body, found }) {
  const sure = found.probabilities;
  return [
    h(
      "div",
      { class: "card tight" },
      picture({
        title: t("tag.words"),
        hint: sure ? t("tag.words.hint") : "",
        name: "tags",
        data: found,
        draw: (width) => shadedWords(found.words, sure ? sure.map((p) => Math.min(1, 2 * (1 - p))) : found.words.map(() => 0), found.words.map((word, i) => `${word}: ${found.tags[i]}${sure ? ` ${percent(sure[i])}` : ""}`), width, { under: found.tags }),
        table: {
          columns: [{ label: t("word") }, { label: t("tag.tag") }, { label: t("probability"), number: true }],
          rows: found.words.map((word, i) => [word, found.tags[i], percent(sure?.[i])]),
        },
      }),
      found.segments ? h("p", { class: "written" }, found.segments.join(" ｜ ")) : null,
    ),
    found.spans?.length
      ? h("div", { class: "card tight" }, h("h2", {}, t("tag.spans")), tableOf({ caption: t("tag.spans"), columns: [{ label: t("text") }, { label: t("tag.type") }, { label: t("tag.place") }], rows: found.spans.map((span) => [span.text, span.type, span.offsets ? span.offsets.join("–") : `${span.start}–${span.end}`]) }))
      : null,
    h("div", { class: "card" }, same({ python: `${pyLoad(body.model)}\ntagged = model.tag(${py(body.text)}, probabilities=True)\nfor word, tag in tagged:\n    print(word, tag)`, path: "v1/tag", body })),
  ];
}
