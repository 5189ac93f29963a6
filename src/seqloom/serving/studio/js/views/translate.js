// Translate: the translation, and which word of the source each of its words looked at.

import { modelsFor, post } from "../api.js";
import { alignment, heat } from "../draw.js";
import { h } from "../dom.js";
import { number, t } from "../i18n.js";
import { bench, choice, examples, field, head, modelField, nobody, own, py, pyLoad, same } from "../parts.js";
import { picture } from "../picture.js";
import { TRANSLATED } from "../samples.js";

const state = { text: "", model: null, beam: "5", result: null };

export const view = { id: "translate", endpoint: "translate", render };

function render(root) {
  root.append(head("translate"));
  if (!modelsFor("translate").length) {
    root.append(nobody("translate"));
    return;
  }
  const [first] = own(TRANSLATED);
  state.model ??= first.model;
  state.text ||= first.text;
  const text = h("textarea", { value: state.text, oninput: () => (state.text = text.value) });
  const models = modelField("translate", state);
  const take = (one) => {
    text.value = state.text = one.text;
    if (modelsFor("translate").some((model) => model.name === one.model)) {
      models.querySelector("select").value = state.model = one.model;
    }
    form.run();
  };
  const form = bench({
    state,
    label: t("translate.run"),
    waits: t("translate.waits"),
    fields: [
      field(t("text"), text),
      examples(own(TRANSLATED).map((one) => ({ label: one.label, apply: () => take(one) }))),
      h("div", { class: "row" }, models, field(t("translate.beam"), choice(["1", "3", "5", "8"].map((n) => [n, n]), state.beam, (value) => (state.beam = value)))),
    ],
    ask: async (signal) => {
      const body = { model: state.model, text: state.text, beam: Number(state.beam), n_best: Math.min(3, Number(state.beam)), attention: true };
      return { body, found: await post("v1/translate", body, signal) };
    },
    show,
  });
  root.append(form.element);
}

function show({ body, found }) {
  const others = (found.others ?? []).filter((one) => one.text !== found.text);
  return [
    h(
      "div",
      { class: "card tight" },
      h("p", { class: "written", id: "translation" }, found.text || t("translate.empty")),
      others.length ? [h("h3", {}, t("translate.others")), h("ul", {}, others.map((one) => h("li", {}, one.text, h("span", { class: "hint" }, ` ${number(one.score, 2)}`))))] : null,
      found.cut ? h("p", { class: "hint" }, t("translate.cut")) : null,
    ),
    found.attention?.length ? pictures(found) : h("p", { class: "hint" }, t("classify.noattention")),
    h("div", { class: "card" }, same({ python: `${pyLoad(body.model)}\nfound = model.translate(${py(body.text)}, beam=${body.beam}, n_best=${body.n_best}, attention=True)\nprint(found.text)`, path: "v1/translate", body })),
  ];
}

function pictures(found) {
  const rows = found.attention;
  const target = rows.map((_, i) => found.words[i] ?? "·");
  const data = { source: found.source, words: found.words, attention: rows };
  return h(
    "div",
    { class: "card stack" },
    picture({ title: t("translate.alignment"), hint: t("translate.alignment.hint"), name: "alignment", data, draw: (width) => alignment(found.source, target, rows, width) }),
    picture({ title: t("translate.map"), name: "attention", data, draw: (width) => heat(rows, target, found.source, width, { square: true, most: 1 }) }),
  );
}
