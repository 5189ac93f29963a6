// Summarize: chosen sentences marked, score bars and why, a slider for length, what a network writes beside it.

import { modelsFor, post } from "../api.js";
import { bars } from "../draw.js";
import { cut, h, later, set } from "../dom.js";
import { has, number, t } from "../i18n.js";
import { bench, choice, commandFor, examples, field, findModel, head, modelField, nobody, own, py, pyLoad, same } from "../parts.js";
import { picture, tableOf } from "../picture.js";
import { ARTICLES } from "../samples.js";

const WRITING = new Set(["seq2seq", "pointer", "transformer"]);
const state = { text: "", share: 30, query: "", model: null, result: null, about: null, wrote: null };
const chooses = (model) => !WRITING.has(model.architecture);

export const view = { id: "summarize", endpoint: "summarize", render };

function request() {
  const body = { model: state.model, text: state.text, ratio: state.share / 100, explain: true };
  return state.query.trim() ? { ...body, query: state.query.trim() } : body;
}

function render(root) {
  root.append(head("summarize"));
  if (!modelsFor("summarize").some(chooses)) {
    root.append(nobody("summarize"));
    return;
  }
  state.text ||= own(ARTICLES)[0].text;
  const text = h("textarea", { class: "tall", value: state.text, oninput: () => (state.text = text.value) });
  const shown = h("output", {}, `${state.share}%`);
  const again = later(200, () => state.result && form.run());
  const slider = h("input", {
    type: "range", min: 5, max: 100, step: 5, value: state.share,
    oninput: () => {
      state.share = Number(slider.value);
      set(shown, `${state.share}%`);
      again();
    },
  });
  const query = h("input", { type: "text", value: state.query, oninput: () => (state.query = query.value) });
  const length = field(t("summarize.length"), slider);
  length.querySelector("label").append(" ", shown);
  const form = bench({
    state,
    label: t("summarize.run"),
    waits: t("summarize.waits"),
    fields: [
      field(t("article"), text),
      examples(own(ARTICLES).map((one) => ({ label: one.label, apply: () => ((text.value = state.text = one.text), form.run()) }))),
      h("div", { class: "row" }, modelField("summarize", state, () => state.result && form.run(), chooses), length),
      field(t("summarize.query"), query, t("summarize.query.hint")),
    ],
    ask,
    show,
  });
  root.append(form.element);
}

async function ask(signal) {
  const body = request();
  const writer = modelsFor("summarize").find((model) => !chooses(model));
  if (state.wrote?.text !== body.text) state.wrote = null; // what a network writes does not depend on the slider
  const [chosen, written] = await Promise.all([
    post("v1/summarize", body, signal),
    writer ? (state.wrote?.found ?? post("v1/summarize", { model: writer.name, text: body.text }, signal)) : null,
  ]);
  if (written) state.wrote = { text: body.text, found: written };
  state.about = null;
  return { body, chosen, written };
}

function show({ body, chosen, written }) {
  const all = chosen.all ?? chosen.sentences.map((one) => ({ ...one, chosen: true }));
  const about = h("div", { class: "tight" });
  const labels = all.map((one) => [String(one.index), `${one.index + 1}. ${one.text.replace(/\s+/g, " ").slice(0, 60)}`]);
  const which = choice(labels, null, (index) => explain(all.find((one) => one.index === Number(index))));
  const explain = (sentence) => {
    state.about = sentence.index;
    which.value = String(sentence.index);
    set(about, why(sentence));
  };
  const best = chosen.sentences.reduce((a, b) => (b.score > a.score ? b : a), chosen.sentences[0]);
  explain(all.find((one) => one.index === (state.about ?? best.index)) ?? all[0]);
  return [
    h(
      "div",
      { class: "card tight" },
      h("div", { class: "section-head" }, h("h2", {}, t("summarize.marked")), h("p", { class: "hint" }, t("summarize.count", { chosen: chosen.sentences.length, total: chosen.total }))),
      h("div", { class: "passage" }, marked(body.text, all, explain)),
      h("h3", {}, t("summarize.short")),
      h("p", { class: "written", id: "summary" }, chosen.text),
    ),
    h("div", { class: "card tight" }, scores(chosen, all), field(t("summarize.why"), which), about),
    h(
      "div",
      { class: "card tight" },
      h("h2", {}, t("summarize.written")),
      written
        ? [h("p", { class: "written" }, written.text), h("p", { class: "hint" }, t("summarize.by", { model: written.model }))]
        : [h("p", { class: "hint" }, t("nobody", { what: t("summarize.writer") })), commandFor("write")],
    ),
    h("div", { class: "card" }, same({ python: python(body), path: "v1/summarize", body })),
  ];
}

function marked(text, all, explain) {
  const parts = [];
  let at = 0;
  for (const sentence of [...all].sort((a, b) => a.start - b.start)) {
    parts.push(cut(text, at, sentence.start));
    const inner = cut(text, sentence.start, sentence.end);
    parts.push(sentence.chosen ? h("mark", { onclick: () => explain(sentence), title: number(sentence.score) }, inner, h("sup", {}, sentence.index + 1)) : inner);
    at = sentence.end;
  }
  return [...parts, cut(text, at)];
}

function scores(chosen, all) {
  const rows = [...all].sort((a, b) => a.index - b.index).slice(0, 60);
  return picture({
    title: t("summarize.scores"),
    hint: t("summarize.scores.hint", { model: chosen.model }),
    name: "sentence-scores",
    data: all,
    draw: (width) => bars(rows.map((one) => ({ label: `${one.index + 1}  ${one.text.replace(/\s+/g, " ")}`, value: one.score, text: number(one.score), dim: !one.chosen })), width, { labelShare: 0.62 }),
    table: {
      columns: [{ label: "#", number: true }, { label: t("sentence") }, { label: t("score"), number: true }],
      rows: rows.map((one) => [one.index + 1, one.text, number(one.score)]),
    },
  });
}

function why(sentence) {
  const features = Object.entries(sentence.features ?? {});
  return [
    h("p", { class: "passage" }, `${sentence.index + 1}. ${sentence.text}`),
    features.length
      ? tableOf({
          caption: t("summarize.why"),
          columns: [{ label: t("feature") }, { label: t("value"), number: true }],
          rows: features.map(([name, value]) => [has(`feature.${name}`) ? t(`feature.${name}`) : name, number(value)]),
        })
      : h("p", { class: "hint" }, t("summarize.nofeatures")),
  ];
}

function python(body) {
  const rest = `ratio=${body.ratio}${body.query ? `, query=${py(body.query)}` : ""}`;
  const model = findModel(body.model);
  const isPlain = model && model.name === model.architecture;
  const begin = isPlain ? `from seqloom import Summarizer\n\nmodel = Summarizer(${py(model.name)})` : pyLoad(body.model);
  return `${begin}\ntext = ${py(body.text)}\nsummary = model.summarize(text, ${rest})\nfor sentence in summary:\n    print(sentence.score, sentence.text, dict(sentence.features))`;
}
