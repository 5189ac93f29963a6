// Read: a passage and a question; the answer marked in the text, runners-up, the attention map.

import { modelsFor, post } from "../api.js";
import { bars, heat } from "../draw.js";
import { cut, h } from "../dom.js";
import { percent, t } from "../i18n.js";
import { bench, examples, field, head, modelField, nobody, own, py, pyLoad, same } from "../parts.js";
import { picture } from "../picture.js";
import { ARTICLES, QUESTIONS } from "../samples.js";

const MOST_WORDS = 60;
const state = { passage: "", question: "", model: null, result: null };

export const view = { id: "read", endpoint: "answer", render };

function render(root) {
  root.append(head("read"));
  if (!modelsFor("answer").length) {
    root.append(nobody("read"));
    return;
  }
  state.passage ||= own(ARTICLES)[0].text;
  state.question ||= own(QUESTIONS)[0].question;
  const passage = h("textarea", { class: "tall", value: state.passage, oninput: () => (state.passage = passage.value) });
  const question = h("input", { type: "text", value: state.question, oninput: () => (state.question = question.value) });
  const apply = (one) => {
    passage.value = state.passage = ARTICLES.find((article) => article.lang === one.lang).text;
    question.value = state.question = one.question;
    form.run();
  };
  const form = bench({
    state,
    label: t("read.run"),
    waits: t("read.waits"),
    fields: [
      field(t("read.passage"), passage),
      field(t("read.question"), question),
      examples(own(QUESTIONS).map((one) => ({ label: one.label, apply: () => apply(one) }))),
      modelField("answer", state),
    ],
    ask: async (signal) => {
      const body = { model: state.model, passage: state.passage, question: state.question, k: 5, attention: true };
      return { body, found: await post("v1/answer", body, signal) };
    },
    show,
  });
  root.append(form.element);
}

function show({ body, found }) {
  const answers = found.answers ?? [];
  const best = answers[0];
  const shown = answers.map((one) => ({ text: one.answer ?? one.text, share: one.probability ?? one.score, start: one.start, end: one.end }));
  return [
    h(
      "div",
      { class: "card tight" },
      h("p", { class: "big", id: "answer" }, best ? shown[0].text || t("read.none") : t("read.none"), h("span", { class: "hint" }, best ? percent(shown[0].share) : "")),
      h("div", { class: "passage" }, marked(body.passage, shown)),
    ),
    h(
      "div",
      { class: "card" },
      picture({
        title: t("read.others"),
        name: "answers",
        data: answers,
        draw: (width) => bars(shown.map((one) => ({ label: one.text || t("read.none"), value: Math.max(0, one.share), text: percent(one.share) })), width, { labelShare: 0.6 }),
      }),
    ),
    attentionOf(found, body.passage, best?.start ?? 0),
    h("div", { class: "card" }, same({ python: python(body), path: "v1/answer", body })),
  ];
}

/** The best answer marked, the others underlined where they do not overlap what is marked. */
function marked(text, answers) {
  const spans = [];
  for (const [rank, one] of answers.entries()) {
    if (one.start == null || one.end <= one.start) continue;
    if (spans.every((other) => one.end <= other.start || one.start >= other.end)) spans.push({ ...one, rank });
  }
  spans.sort((a, b) => a.start - b.start);
  const parts = [];
  let at = 0;
  for (const span of spans) {
    parts.push(cut(text, at, span.start), h("mark", { class: span.rank ? "other" : "" }, cut(text, span.start, span.end), h("sup", {}, span.rank + 1)));
    at = span.end;
  }
  return [...parts, cut(text, at)];
}

/** The map of the words around the answer. */
function attentionOf(found, passage, start) {
  const map = found.attention;
  if (!map?.weights?.length) return null;
  let at = 0;
  const places = map.passage.map((word) => {
    const place = passage.indexOf(word, at);
    at = place < 0 ? at : place + word.length;
    return at;
  });
  const middle = Math.max(0, places.findIndex((place) => place > cut(passage, 0, start).length));
  const from = Math.max(0, Math.min(middle - MOST_WORDS / 2, map.passage.length - MOST_WORDS));
  const rows = map.passage.slice(from, from + MOST_WORDS);
  return h(
    "div",
    { class: "card" },
    picture({
      title: t("read.attention"),
      hint: t("read.attention.hint"),
      name: "attention",
      data: map,
      draw: (width) => heat(map.weights.slice(from, from + MOST_WORDS), rows, map.question, width, { square: true }),
    }),
  );
}

function python(body) {
  return `${pyLoad(body.model)}\npassage = ${py(body.passage)}\nfor answer in model.answer_all([(passage, ${py(body.question)})], top=5)[0]:\n    print(answer.text, answer.probability, answer.start, answer.end)`;
}
