// Relate: what holds between two entities that are marked in a sentence.

import { modelsFor, post } from "../api.js";
import { h } from "../dom.js";
import { percent, t } from "../i18n.js";
import { bench, examples, field, findModel, head, modelField, nobody, own, py, pyLoad, same } from "../parts.js";
import { RELATIONS } from "../samples.js";
import { looked, probabilities } from "./classify.js";

const state = { text: "", model: null, result: null };

export const view = { id: "relate", endpoint: "relate", render };

function render(root) {
  root.append(head("relate"));
  if (!modelsFor("relate").length) {
    root.append(nobody("relate"));
    return;
  }
  state.text ||= own(RELATIONS)[0].text;
  const text = h("textarea", { value: state.text, oninput: () => (state.text = text.value) });
  const mark = (entity) => {
    const plain = (part) => part.replace(new RegExp(`</?${entity}>`, "g"), "");
    const { selectionStart: begin, selectionEnd: end, value } = text;
    if (begin === end) return;
    text.value = state.text = `${plain(value.slice(0, begin))}<${entity}>${plain(value.slice(begin, end))}</${entity}>${plain(value.slice(end))}`;
    text.focus();
  };
  const form = bench({
    state,
    label: t("relate.run"),
    waits: t("relate.waits"),
    fields: [
      field(t("sentence"), text, t("relate.hint")),
      h("div", { class: "actions" }, h("button", { type: "button", class: "chip", onclick: () => mark("e1") }, t("relate.first")), h("button", { type: "button", class: "chip", onclick: () => mark("e2") }, t("relate.second"))),
      examples(own(RELATIONS).map((one) => ({ label: one.label, apply: () => ((text.value = state.text = one.text), form.run()) }))),
      modelField("relate", state),
    ],
    ask: async (signal) => {
      const body = { model: state.model, text: state.text, explain: Boolean(findModel(state.model)?.explains) };
      return { body, found: await post("v1/relate", body, signal) };
    },
    show: ({ body, found }) => [
      h(
        "div",
        { class: "card tight" },
        h("p", { class: "big", id: "label" }, found.relation, h("span", { class: "hint" }, percent(found.probability))),
        h("p", { class: "written" }, found.arguments.join(" → ")),
        probabilities(found),
      ),
      looked(found.explanation),
      h("div", { class: "card" }, same({ python: `${pyLoad(body.model)}\nfound = model.relate(${py(body.text)}${body.explain ? ", explain=True" : ""})\nprint(found.relation, found.arguments, found.probability)`, path: "v1/relate", body })),
    ],
  });
  root.append(form.element);
}
