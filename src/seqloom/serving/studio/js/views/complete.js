// Complete: what several language models expect next as one types, how each word surprised them, and what they write.

import { modelsFor, post, stream } from "../api.js";
import { bars, shadedWords } from "../draw.js";
import { h, later, set } from "../dom.js";
import { number, percent, t } from "../i18n.js";
import { choice, examples, field, head, nobody, own, py, pyLoad, same, statusLine, told } from "../parts.js";
import { picture } from "../picture.js";
import { BEGINNINGS } from "../samples.js";

const SURPRISE = 12; // nats at which a word is shown in full colour
const SHOWN = 8;
const BLANK = /_{3,}/;
const state = { text: null, chosen: null, writer: null, temperature: "0.8", words: 30, written: "" };

export const view = { id: "complete", endpoint: "next", render };

function render(root) {
  root.append(head("complete"));
  const models = modelsFor("next");
  if (!models.length) {
    root.append(nobody("complete"));
    return;
  }
  state.text ??= own(BEGINNINGS)[0].text;
  state.chosen ??= new Set(models.slice(0, 6).map((model) => model.name));
  const status = statusLine();
  const [next, surprise, blank] = [h("div", {}), h("div", {}), h("div", {})];
  const code = h("div", { class: "card" });
  const text = h("textarea", {
    value: state.text,
    oninput: () => {
      state.text = text.value;
      again();
    },
  });
  let running = null;
  const look = async () => {
    running?.abort();
    running = new AbortController();
    const { signal } = running;
    status.busy();
    const names = models.map((model) => model.name).filter((name) => state.chosen.has(name));
    try {
      const [words, scores, fills] = await Promise.all([ahead(names, signal), scored(names, signal), filled(names, signal)]);
      if (signal.aborted) return;
      set(next, words.length ? section("next", words.map(nextPicture)) : []);
      set(surprise, scores.length ? section("surprise", scores.map(surprisePicture), "multiples wide") : []);
      set(blank, fills.length ? section("blank", fills.map(fillPicture)) : []);
      const body = { model: names[0], prompt: state.text, k: SHOWN };
      set(code, names.length ? same({ python: `${pyLoad(names[0])}\nprint(model.next(${py(state.text)}, k=${SHOWN}))\nprint(model.score(${py(state.text)}).perplexity)`, path: "v1/next", body }) : []);
      status.say(t("done"));
    } catch (error) {
      if (error.name !== "AbortError") status.bad(error);
    }
  };
  const again = later(250, look);
  const boxes = models.map((model) => {
    const box = h("input", {
      type: "checkbox", checked: state.chosen.has(model.name),
      onchange: () => {
        if (box.checked) state.chosen.add(model.name);
        else state.chosen.delete(model.name);
        look();
      },
    });
    return h("label", { class: "check" }, box, model.name);
  });
  root.append(
    h(
      "div",
      { class: "stack" },
      h(
        "div",
        { class: "card fields" },
        field(t("complete.text"), text, t("complete.text.hint")),
        examples(own(BEGINNINGS).map((one) => ({ label: one.label, apply: () => ((text.value = state.text = one.text), look()) }))),
        h("fieldset", {}, h("legend", {}, t("complete.models")), h("div", { class: "checks" }, boxes)),
        status.element,
      ),
      next,
      blank,
      surprise,
      writing(() => state.text),
      code,
    ),
  );
  look();
}

function section(id, pictures, kind = "multiples") {
  return h(
    "section",
    { class: "card", "aria-label": t(`complete.${id}`) },
    h("div", { class: "section-head" }, h("h2", {}, t(`complete.${id}`)), h("p", { class: "hint" }, t(`complete.${id}.hint`))),
    h("div", { class: kind }, pictures),
  );
}

/** Ask several models the same; one that cannot answer says why, and the others are shown. */
function askAll(names, path, body, signal) {
  const one = async (model) => {
    try {
      return await post(path, { model, ...body }, signal);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      return { model, error };
    }
  };
  return Promise.all(names.map(one));
}

const ahead = (names, signal) => (BLANK.test(state.text) ? [] : askAll(names, "v1/next", { prompt: state.text, k: SHOWN }, signal));

function scored(names, signal) {
  if (!state.text.trim() || BLANK.test(state.text)) return [];
  return askAll(names, "v1/score", { text: state.text }, signal);
}

function filled(names, signal) {
  if (!BLANK.test(state.text)) return [];
  const able = new Set(modelsFor("fill").map((model) => model.name));
  return askAll(names.filter((name) => able.has(name)), "v1/fill", { text: state.text, k: SHOWN }, signal);
}

const unable = (found) => h("div", {}, h("h3", {}, found.model), h("p", { class: "hint" }, told(found.error)));

function chances(found, name) {
  if (found.error) return unable(found);
  return picture({
    title: found.model,
    name: `${name}-${found.model}`,
    data: found.words,
    draw: (width) => bars(found.words.map((one) => ({ label: one.word, value: one.probability, text: percent(one.probability) })), width, { most: Math.max(0.05, ...found.words.map((one) => one.probability)) }),
  });
}

const nextPicture = (found) => chances(found, "next");
const fillPicture = (found) => chances(found, "blank");

function surprisePicture(found) {
  if (found.error) return unable(found);
  const shades = found.log_probs.map((value) => Math.min(1, -(value ?? -SURPRISE) / SURPRISE));
  const notes = found.words.map((word, i) => `${word}: ${percent(Math.exp(found.log_probs[i] ?? -Infinity))}${found.unknown[i] ? ` (${t("unknown")})` : ""}`);
  return picture({
    title: found.model,
    hint: t("complete.perplexity", { value: number(found.perplexity, 1) }),
    name: `surprise-${found.model}`,
    data: found,
    draw: (width) => shadedWords(found.words, shades, notes, width, { under: found.log_probs.map((value) => (value === null ? "0" : percent(Math.exp(value)))) }),
    table: {
      columns: [{ label: t("word") }, { label: t("probability"), number: true }],
      rows: found.words.map((word, i) => [word, percent(Math.exp(found.log_probs[i] ?? -Infinity))]),
    },
  });
}

function writing(prompt) {
  const models = modelsFor("generate");
  if (!models.some((model) => model.name === state.writer)) state.writer = models[0]?.name;
  const status = statusLine();
  const shown = h("p", { class: "written", id: "written", "aria-live": "polite", "aria-busy": "false" }, state.written);
  const code = h("div", {});
  let running = null;
  const go = async () => {
    running?.abort();
    running = new AbortController();
    stop.disabled = false;
    status.busy(t("complete.writing"));
    shown.setAttribute("aria-busy", "true"); // read aloud when it is whole
    const given = BLANK.test(prompt()) ? prompt().split(BLANK)[0] : prompt();
    const body = { model: state.writer, prompt: given, max_words: Number(state.words), temperature: Number(state.temperature), seed: Math.floor(Math.random() * 1e6) };
    try {
      await stream("v1/generate", { ...body, stream: true }, (event, found) => {
        state.written = found.text;
        set(shown, found.text);
      }, running.signal);
      status.say(t("done"));
      set(code, same({ python: `${pyLoad(body.model)}\nprint(model.generate(${py(body.prompt)}, max_words=${body.max_words}, temperature=${body.temperature}, seed=${body.seed}))`, path: "v1/generate", body }));
    } catch (error) {
      if (error.name === "AbortError") status.say(t("stopped"));
      else status.bad(error);
    }
    shown.setAttribute("aria-busy", "false");
    stop.disabled = true;
  };
  const stop = h("button", { type: "button", disabled: true, onclick: () => running?.abort() }, t("stop"));
  const words = h("input", { type: "number", min: 1, max: 200, value: state.words, oninput: () => (state.words = words.value) });
  return h(
    "section",
    { class: "card tight", "aria-label": t("complete.write") },
    h("div", { class: "section-head" }, h("h2", {}, t("complete.write")), h("p", { class: "hint" }, t("complete.write.hint"))),
    h(
      "div",
      { class: "row" },
      field(t("model"), choice(models.map((model) => [model.name, model.name]), state.writer, (value) => (state.writer = value))),
      field(t("complete.temperature"), choice(["0", "0.5", "0.8", "1", "1.2"].map((one) => [one, one]), state.temperature, (value) => (state.temperature = value))),
      field(t("complete.length"), words),
      h("div", { class: "actions" }, h("button", { type: "button", class: "main", id: "write", onclick: go }, t("complete.go")), stop),
    ),
    status.element,
    shown,
    code,
  );
}
