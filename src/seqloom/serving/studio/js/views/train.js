// Train: a table of one's own becomes a classifier, with live progress.

import { post, stream } from "../api.js";
import { countLines, firstRecords } from "../csv.js";
import { lines } from "../draw.js";
import { h, later, set } from "../dom.js";
import { number, percent, t } from "../i18n.js";
import { choice, command, examples, field, head, py, same, statusLine } from "../parts.js";
import { picture, tableOf } from "../picture.js";
import { TABLE } from "../samples.js";
import { probabilities } from "./classify.js";

const ARCHITECTURES = ["softmax", "logistic", "mlp", "cnn", "blstm", "att-blstm", "transformer"];
const PREVIEW = 6;
const state = { table: "", file: "", text: null, label: null, architecture: "softmax", epochs: "", reports: [], begun: null, end: null, running: null, message: null, tried: { text: "", answer: null } };

export const view = { id: "train", render };

/** Shows the run again wherever the view stands now: it goes on while one looks at another view. */
let drawRun = () => {};

function render(root) {
  const status = statusLine();
  const preview = h("div", { class: "tight" });
  const results = h("section", { class: "tight", "aria-label": t("result") });
  const table = h("textarea", { class: "code", value: state.table, rows: 8, spellcheck: "false", oninput: later(300, () => load(table.value, state.file)) });
  const load = (text, file) => {
    state.table = text;
    state.file = file;
    if (table.value !== text) table.value = text;
    set(preview, look());
  };
  const file = h("input", { type: "file", accept: ".csv,.tsv,.txt,text/csv", onchange: async () => file.files[0] && load(await file.files[0].text(), file.files[0].name) });
  const epochs = h("input", { type: "number", min: 1, max: 100, value: state.epochs, oninput: () => (state.epochs = epochs.value) });
  const start = h("button", { type: "submit", class: "main" }, t("train.run"));
  const stop = h("button", { type: "button", onclick: () => state.running?.abort() }, t("stop"));
  drawRun = () => {
    stop.disabled = !state.running;
    start.disabled = Boolean(state.running);
    if (state.message) state.message(status);
    set(results, state.begun ? progress() : h("p", { class: "empty" }, t("train.waits")));
  };
  const form = h(
    "form",
    {
      class: "card fields",
      novalidate: true,
      onsubmit: (event) => {
        event.preventDefault();
        run();
      },
    },
    field(t("train.file"), file, t("train.file.hint")),
    field(t("train.table"), table),
    examples([{ label: t("train.sample"), apply: () => load(TABLE, "reviews.csv") }]),
    preview,
    field(t("train.architecture"), choice(ARCHITECTURES.map((name) => [name, `${name} · ${t(`arch.${name}`)}`]), state.architecture, (value) => (state.architecture = value))),
    field(t("train.epochs"), epochs, t("train.epochs.hint")),
    h("div", { class: "actions" }, start, stop),
    status.element,
  );
  if (state.table) load(state.table, state.file);
  drawRun();
  root.append(head("train"), h("div", { class: "columns" }, form, results));
}

/** The columns to choose from and the first rows. */
function look() {
  const records = firstRecords(state.table, PREVIEW + 1);
  const columns = records[0] ?? [];
  if (columns.length < 2) return h("p", { class: "hint" }, t("train.nocolumns"));
  const guess = (names, otherwise) => columns.find((name) => names.includes(name.trim().toLowerCase())) ?? otherwise;
  if (!columns.includes(state.text)) state.text = guess(["text", "sentence", "review", "name", "文本", "内容"], columns[0]);
  if (!columns.includes(state.label)) state.label = guess(["label", "class", "category", "标签", "类别"], columns[columns.length - 1]);
  const options = columns.map((name) => [name, name]);
  return [
    h("div", { class: "row" }, field(t("train.text"), choice(options, state.text, (value) => (state.text = value))), field(t("train.label"), choice(options, state.label, (value) => (state.label = value)))),
    h("p", { class: "hint" }, t("train.rows", { count: number(countLines(state.table), 0) })),
    tableOf({ caption: t("train.preview"), columns: columns.map((label) => ({ label })), rows: records.slice(1).map((row) => columns.map((_, i) => shortened(row[i] ?? ""))) }),
  ];
}

const shortened = (text) => (text.length > 80 ? `${text.slice(0, 80)}…` : text);

async function run() {
  const running = new AbortController();
  const body = { table: state.table, text: state.text ?? "text", label: state.label ?? "label", architecture: state.architecture, name: state.file.replace(/\.[^.]*$/, "") || "classifier" };
  if (state.epochs) body.epochs = Number(state.epochs);
  const say = (message) => {
    state.message = message;
    drawRun();
  };
  Object.assign(state, { running, reports: [], begun: { body }, end: null, tried: { text: "", answer: null } });
  say((status) => status.busy(t("train.starting")));
  try {
    await stream(
      "studio/train",
      body,
      (event, found) => {
        if (event === "begin") state.begun = { ...found, body };
        if (event === "step") state.reports.push(found);
        if (event === "refused") throw Object.assign(new Error(found.message), { status: 422 });
        if (event === "end") {
          state.end = found; // shown once, when the stream has ended, so that nothing is drawn over
          return;
        }
        const last = state.reports.at(-1);
        say((status) => status.busy(last ? t("train.running", { done: percent(last.share) }) : t("train.starting")));
      },
      running.signal,
    );
    state.running = null;
    say((status) => status.say(t("train.done")));
  } catch (error) {
    state.running = null;
    if (!state.reports.length) state.begun = null;
    say((status) => (error.name === "AbortError" ? status.say(t("stopped")) : status.bad(error)));
  }
}

function progress() {
  const last = state.reports.at(-1);
  const bar = h("progress", { max: 1, "aria-label": t("train.progress") });
  if (state.end) bar.value = 1;
  else if (last) bar.value = last.share;
  const facts = [[t("train.architecture"), state.begun.body.architecture]];
  if (state.begun.examples) facts.push([t("train.examples"), number(state.begun.examples, 0)], [t("train.labels"), state.begun.labels.slice(0, 12).join(", ") + (state.begun.labels.length > 12 ? " …" : "")]);
  if (last) facts.push([t("train.epoch"), number(last.epoch, 0)], [t("train.loss"), number(last.loss, 4)], [t("train.left"), `${number(Math.max(0, last.seconds_left), 0)} s`]);
  return [
    h("div", { class: "card tight" }, h("h2", {}, t("train.progress")), bar, h("dl", { class: "facts" }, facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]))),
    state.reports.length ? h("div", { class: "card" }, curve(state.reports)) : null,
    state.end ? finished(state.end) : null,
  ];
}

function curve(reports) {
  const names = [...new Set(reports.flatMap((report) => Object.keys(report.metrics)))].filter((name) => ["loss", "accuracy", "f1_macro", "macro_f1"].includes(name));
  const xs = reports.map((report) => report.step);
  const series = [{ name: t("train.loss"), xs, ys: reports.map((report) => report.loss) }, ...names.map((name) => ({ name: t("train.valid", { name }), xs, ys: reports.map((report) => report.metrics[name] ?? null) }))];
  return picture({ title: t("train.curve"), name: "learning-curve", data: reports, draw: (width) => lines(series, width, { xlabel: t("train.updates"), ylabel: "", height: 240 }) });
}

function finished(end) {
  const metrics = Object.entries(end.metrics).filter(([, value]) => typeof value === "number");
  const found = h("div", { class: "tight" });
  const status = statusLine();
  const text = h("input", { type: "text", value: state.tried.text, oninput: () => (state.tried.text = text.value) });
  const say = (answer) => set(found, h("p", { class: "big", id: "tried" }, answer.label), probabilities(answer));
  if (state.tried.answer) say(state.tried.answer);
  const ask = async (event) => {
    event.preventDefault();
    status.busy();
    try {
      const answer = await post("studio/try", { run: end.run, text: text.value });
      state.tried.answer = answer;
      say(answer);
      status.say(t("done"));
    } catch (error) {
      status.bad(error);
    }
  };
  const { body } = state.begun;
  const shown = { ...body, table: body.table.length > 300 ? `${body.table.slice(0, 300)}…` : body.table };
  return [
    h(
      "div",
      { class: "card tight" },
      h("h2", {}, t("train.reached")),
      metrics.length ? tableOf({ caption: t("train.reached"), columns: [{ label: t("metric") }, { label: t("value"), number: true }], rows: metrics.map(([name, value]) => [name, number(value, 4)]) }) : h("p", { class: "hint" }, t("train.nometrics")),
      h("form", { class: "fields", novalidate: true, onsubmit: ask }, field(t("train.try"), text), h("div", { class: "actions" }, h("button", { type: "submit", class: "main" }, t("classify.run"))), status.element),
      found,
      h("p", { class: "hint" }, t("train.serve")),
      command(`seqloom serve ${/^[\w/.~-]+$/.test(end.place) ? end.place : py(end.place)}`),
    ),
    h("div", { class: "card" }, same({ python: `from seqloom import Classifier\nfrom seqloom.data.fields import read_labeled\n\ntable = read_labeled(${py(state.file || "table.csv")}, text=${py(body.text)}, label=${py(body.label)})\nmodel = Classifier(${py(body.architecture)}${body.epochs ? `, training={"epochs": ${body.epochs}}` : ""})\nmodel.fit(list(table), out=${py(end.run)})\nprint(model.metrics_)`, path: "studio/train", body: shown })),
  ];
}
