// League: what the runs on this machine reached, how they learned, and language models side by side on a text.

import { get, modelsFor, post } from "../api.js";
import { bars, lines } from "../draw.js";
import { h, set } from "../dom.js";
import { number, t } from "../i18n.js";
import { choice, field, findModel, head, own, py, same, statusLine } from "../parts.js";
import { picture, tableOf } from "../picture.js";
import { ARTICLES } from "../samples.js";

const UNKNOWN = 0.2; // a model that does not know more of a text than this says little about it
const state = { text: null, runs: null, measured: null, task: null, metric: null };

export const view = { id: "league", render };

async function render(root) {
  const status = statusLine();
  const place = h("div", { class: "stack" });
  root.append(head("league"), status.element, place);
  status.busy();
  try {
    state.runs = await get("studio/runs");
    status.say("");
  } catch (error) {
    status.bad(error);
    return;
  }
  set(place, side(), tables(), state.runs.leagues.map(leagueOf), h("div", { class: "card" }, same({ python: `import seqloom\n\nmodel = seqloom.load("DIRECTORY")\nprint(model.metrics_, model.provenance_)`, path: "studio/runs" })));
}

// -- language models on a text -----------------------------------------------------------------------

function side() {
  if (!modelsFor("score").length) return null;
  state.text ??= own(ARTICLES)[0].text.split("\n")[0];
  const status = statusLine();
  const place = h("div", { class: "tight" });
  const text = h("textarea", { value: state.text, oninput: () => (state.text = text.value) });
  const run = async () => {
    status.busy();
    try {
      const models = modelsFor("score").filter((model) => !model.reverse);
      const answers = await Promise.allSettled(models.map((model) => post("v1/score", { model: model.name, text: state.text })));
      const found = answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []));
      if (!found.length) throw answers[0].reason;
      const characters = [...state.text].length + 1;
      state.measured = found
        .map((one) => ({ model: one.model, architecture: findModel(one.model).architecture, bits: one.total === null ? null : -one.total / Math.LN2 / characters, perplexity: one.perplexity, unknown: one.unknown.filter(Boolean).length, words: one.words.length }))
        .map((row) => ({ ...row, comparable: row.bits !== null && row.unknown <= UNKNOWN * row.words }))
        .sort((a, b) => b.comparable - a.comparable || (a.bits ?? Infinity) - (b.bits ?? Infinity));
      set(place, measuredTable());
      status.say(t("done"));
    } catch (error) {
      status.bad(error);
    }
  };
  if (state.measured) set(place, measuredTable());
  return h(
    "section",
    { class: "card fields", "aria-label": t("league.side") },
    h("div", { class: "section-head" }, h("h2", {}, t("league.side")), h("p", { class: "hint" }, t("league.side.hint"))),
    field(t("text"), text),
    h("div", { class: "actions" }, h("button", { type: "button", class: "main", id: "compare", onclick: run }, t("league.run"))),
    status.element,
    place,
  );
}

function measuredTable() {
  const rows = state.measured;
  return [
    picture({
      title: t("league.bits"),
      hint: t("league.bits.hint"),
      name: "bits-per-character",
      data: rows,
      draw: (width) => bars(rows.map((row, i) => ({ label: row.model, value: row.bits ?? 0, text: number(row.bits), dim: i > 0 || !row.comparable })), width),
    }),
    tableOf({
      caption: t("league.side"),
      best: rows[0].comparable ? 0 : -1,
      columns: [{ label: t("model") }, { label: t("league.architecture") }, { label: t("league.bitscolumn"), number: true }, { label: t("league.perplexity"), number: true }, { label: t("league.unknown"), number: true }],
      rows: rows.map((row) => [row.model, row.architecture, number(row.bits), number(row.perplexity, 1), `${row.unknown} / ${row.words}${row.comparable ? "" : " *"}`]),
    }),
    rows.every((row) => row.comparable) ? null : h("p", { class: "hint" }, t("league.incomparable")),
    same({ python: `import math\n\nimport seqloom\n\ntext = ${py(state.text)}\nscore = seqloom.load(${py(rows[0].model)}).score(text)\nprint(-score.total / math.log(2) / (len(text) + 1), score.perplexity)`, path: "v1/score", body: { model: rows[0].model, text: state.text } }),
  ];
}

// -- runs --------------------------------------------------------------------------------------------

function tables() {
  const runs = state.runs.runs.filter((run) => run.task);
  if (!runs.length) return h("p", { class: "empty" }, t("league.none"));
  const tasks = [...new Set(runs.map((run) => run.task))];
  if (!tasks.includes(state.task)) state.task = tasks[0];
  const place = h("div", { class: "tight" });
  const draw = () => set(place, ofTask(runs.filter((run) => run.task === state.task), draw));
  draw();
  return h(
    "section",
    { class: "card fields", "aria-label": t("league.runs") },
    h("div", { class: "section-head" }, h("h2", {}, t("league.runs")), h("p", { class: "hint" }, t("league.runs.hint"))),
    field(t("league.task"), choice(tasks.map((task) => [task, t(`task.${task}`)]), state.task, (value) => ((state.task = value), (state.metric = null), draw()))),
    place,
  );
}

function ofTask(runs, redraw) {
  const metrics = [...new Set(runs.flatMap((run) => Object.keys(run.metrics)))];
  if (!metrics.includes(state.metric)) state.metric = metrics.find((name) => /perplexity|accuracy|f1|bleu/.test(name)) ?? metrics[0] ?? null;
  const lower = /perplexity|loss|error/.test(state.metric ?? "");
  const value = (run) => run.metrics[state.metric];
  const sorted = [...runs].sort((a, b) => ((value(a) ?? Infinity) - (value(b) ?? Infinity)) * (lower ? 1 : -1) || 0);
  sorted.sort((a, b) => (value(a) === undefined) - (value(b) === undefined));
  const shown = [state.metric, ...metrics.filter((name) => name !== state.metric)].filter(Boolean).slice(0, 5);
  const curves = runs.filter((run) => run.curve.points > 1);
  return [
    metrics.length > 1 ? field(t("league.metric"), choice(metrics.map((name) => [name, name]), state.metric, (name) => ((state.metric = name), redraw()))) : null,
    tableOf({
      caption: t("league.runs"),
      best: value(sorted[0]) === undefined ? -1 : 0,
      columns: [{ label: t("league.run.name") }, { label: t("league.architecture") }, ...shown.map((label) => ({ label, number: true })), { label: t("league.data") }, { label: t("league.seconds"), number: true }],
      rows: sorted.map((run) => [run.name, run.architecture ?? "–", ...shown.map((name) => number(run.metrics[name], 4)), run.data ?? "–", number(run.seconds, 1)]),
    }),
    curves.length ? curvesOf(curves) : h("p", { class: "hint" }, t("league.nocurves")),
  ];
}

/** One picture of the measure that is sorted by, for runs that have it by step, and one of the losses. */
function curvesOf(runs) {
  const measure = (state.metric ?? "").replace(/^valid_/, "");
  return [...new Set([measure, "loss"])].filter(Boolean).map((name) => {
    const having = runs.filter((run) => (run.curve.series[name] ?? []).filter((y) => y !== null).length > 1);
    if (!having.length) return null;
    const series = having.map((run) => ({ name: run.name, xs: run.curve.steps, ys: run.curve.series[name] }));
    return picture({
      title: name === "loss" ? t("league.losses") : t("league.curves", { name }),
      name: name === "loss" ? "training-loss" : "learning-curves",
      data: having.map((run) => ({ name: run.name, curve: run.curve })),
      draw: (width) => lines(series, width, { xlabel: t("train.updates"), ylabel: name }),
    });
  });
}

/** A table that `seqloom compare` wrote. */
function leagueOf(league) {
  const rows = league.league;
  const contexts = Object.entries(league.contexts ?? {}).map(([name, values]) => {
    const known = Object.entries(values).filter(([k]) => k !== "all");
    return { name, xs: known.map(([k]) => Number(k)), ys: known.map(([, y]) => y) };
  });
  return h(
    "section",
    { class: "card tight", "aria-label": league.name },
    h("div", { class: "section-head" }, h("h2", {}, t("league.compared", { name: league.name })), h("p", { class: "hint" }, t("league.compared.hint"))),
    tableOf({
      caption: league.name,
      best: 0,
      columns: [{ label: t("model") }, { label: t("league.wordperplexity"), number: true }, { label: t("league.ratio"), number: true }, { label: t("league.bitscolumn"), number: true }, { label: t("league.parameters"), number: true }, { label: t("league.seconds"), number: true }],
      rows: rows.map((row) => [row.name, number(row.word_perplexity, 1), row.ratio === 1 ? t("league.best") : `×${number(row.ratio)} (${number(row.low)}–${number(row.high)})`, number(row.bits_per_character), number(row.parameters, 0), number(row.seconds, 1)]),
    }),
    contexts.length ? picture({ title: t("league.contexts"), name: "contexts", data: league.contexts, draw: (width) => lines(contexts, width, { xlabel: t("league.contexts.x"), ylabel: t("league.perplexity") }) }) : null,
  );
}
