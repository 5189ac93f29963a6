// The pieces views are made of: fields, a bench that asks and shows, the same in Python and curl.

import { allModels, modelsFor } from "./api.js";
import { fresh, h, kept, set } from "./dom.js";
import { language, t } from "./i18n.js";

const STACKED = 1080; // pixels up to which results stand below the form

/** A control with its label. */
export function field(label, control, hint = "") {
  const id = control.id || fresh("field");
  control.id = id;
  const about = hint ? fresh("hint") : null;
  if (about) control.setAttribute("aria-describedby", about);
  return h("div", { class: "field" }, h("label", { for: id }, label), control, hint ? h("p", { class: "hint", id: about }, hint) : null);
}

/** A choice of one of some [value, label]. */
export function choice(options, value, change) {
  const element = h("select", { onchange: () => change(element.value) });
  for (const [own, label] of options) element.append(h("option", { value: own, selected: own === value }, label));
  return element;
}

/** The models that answer at an endpoint, as a choice kept in `state.model`. */
export function modelField(endpoint, state, change = () => {}, fits = () => true) {
  const models = modelsFor(endpoint).filter(fits);
  if (!models.some((model) => model.name === state.model)) state.model = models[0]?.name;
  const options = models.map((model) => [model.name, model.architecture === model.name ? model.name : `${model.name} · ${model.architecture}`]);
  return field(
    t("model"),
    choice(options, state.model, (value) => {
      state.model = value;
      change();
    }),
  );
}

export function findModel(name) {
  return allModels().find((model) => model.name === name);
}

/** Buttons that put an example into the form: [{label, apply}]. */
export function examples(list) {
  if (!list.length) return null;
  return h("div", { class: "examples" }, h("span", {}, t("examples")), list.map(({ label, apply }) => h("button", { type: "button", class: "chip", onclick: apply }, label)));
}

/** The examples of the present language first. */
export function own(list) {
  return [...list].sort((a, b) => (a.lang === language() ? 0 : 1) - (b.lang === language() ? 0 : 1));
}

/** A line that says what happens, read aloud when it changes. */
export function statusLine() {
  const element = h("p", { class: "status", role: "status", "aria-live": "polite" });
  return {
    element,
    say(text) {
      // That all is well is seen; it is said for those who do not see it.
      element.className = text === t("done") ? "status visually-hidden" : "status";
      set(element, text);
    },
    busy(text = t("working")) {
      element.className = "status busy";
      set(element, text);
    },
    bad(error) {
      element.className = "status bad";
      set(element, told(error));
    },
  };
}

/** What went wrong, in words. */
export function told(error) {
  if (error.code === "unreachable") return t("unreachable");
  if (error.status === 429 || error.status === 503) return `${t("later")} ${error.message ?? ""}`;
  return error.message || t("failed");
}

/**
 * A form that asks the server and shows what came.
 * @param {object} given
 *   state: kept by the view, `state.result` is what came; fields: the form's elements;
 *   ask(signal): a promise of the result; show(result): what is shown of it;
 *   label: of the button; waits: what stands there before anything was asked.
 */
export function bench({ state, fields, ask, show, label, waits, wide = false }) {
  const status = statusLine();
  const results = h("section", { class: "results tight", "aria-label": t("result") });
  let running = null;
  const draw = () => {
    if (state.result) set(results, show(state.result));
    else set(results, h("p", { class: "empty" }, waits));
  };
  const run = async () => {
    running?.abort();
    running = new AbortController();
    const mine = running;
    status.busy();
    try {
      const found = await ask(mine.signal);
      if (mine.signal.aborted) return;
      state.result = found;
      draw();
      status.say(t("done"));
    } catch (error) {
      if (error.name === "AbortError") return;
      status.bad(error);
    }
  };
  const form = h(
    "form",
    {
      class: "fields card",
      novalidate: true,
      onsubmit: async (event) => {
        event.preventDefault();
        await run();
        if (innerWidth <= STACKED && state.result) results.scrollIntoView();
      },
      onkeydown: (event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
      },
    },
    fields,
    h("div", { class: "actions" }, h("button", { class: "main", type: "submit" }, label), h("span", { class: "hint" }, t("shortcut"))),
    status.element,
  );
  draw();
  return { element: h("div", { class: wide ? "stack" : "columns" }, form, results), run, draw, status, form };
}

/** The head of a view: its title and what it is for. */
export function head(id) {
  return h("div", {}, h("h1", {}, t(`${id}.title`)), h("p", { class: "lede" }, t(`${id}.lede`)));
}

/** A view that nobody serves says so, with the command that would. */
export function nobody(id) {
  return h("div", { class: "nobody" }, h("p", {}, t("nobody", { what: t(`${id}.what`) })), commandFor(id));
}

const RECIPES = {
  read: "squad-bidaf",
  complete: "english-lstm",
  classify: "sst-cnn",
  relate: "semeval-att-blstm",
  tag: "english-pos",
  translate: "tatoeba-en-zh",
  write: "scitldr-pointer",
};

/** The command that fits a model by a recipe and serves it. */
export function commandFor(id) {
  const recipe = RECIPES[id];
  return command(recipe ? `seqloom reproduce ${recipe} --out runs && seqloom serve runs/${recipe}-0` : "seqloom serve textrank");
}

/** A command with a button that copies it. */
export function command(text) {
  return h("div", { class: "command" }, h("code", {}, text), copyButton(() => text));
}

function copyButton(text) {
  const button = h("button", { type: "button", class: "quiet copy" }, t("copy"));
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text());
    set(button, t("copied"));
    setTimeout(() => set(button, t("copy")), 1500);
  });
  return button;
}

/** The Python and the curl that give the same. */
export function same({ python, path, body }) {
  const texts = { Python: python, curl: curl(path, body) };
  const source = h("pre", { class: "source", tabindex: "0" });
  const buttons = {};
  const pick = (name) => {
    kept.set("code", name);
    for (const [own, button] of Object.entries(buttons)) button.setAttribute("aria-pressed", String(own === name));
    set(source, h("code", {}, texts[name]));
    source.setAttribute("aria-label", name);
  };
  for (const name of Object.keys(texts)) buttons[name] = h("button", { type: "button", onclick: () => pick(name) }, name);
  pick(kept.get("code", "Python") in texts ? kept.get("code", "Python") : "Python");
  const element = h(
    "details",
    { class: "same", open: kept.get("same", innerWidth > 860 ? "open" : "closed") === "open" },
    h("summary", {}, t("same")),
    h("div", { class: "switch", role: "group", "aria-label": t("same") }, Object.values(buttons)),
    h("div", { class: "code" }, source, copyButton(() => source.textContent)),
  );
  element.addEventListener("toggle", () => kept.set("same", element.open ? "open" : "closed"));
  return element;
}

function curl(path, body) {
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const lines = [`curl ${location.origin}/${path}`];
  if (kept.get("token")) lines.push(`-H "Authorization: Bearer $SEQLOOM_TOKEN"`);
  if (body) lines.push("-H 'Content-Type: application/json'", `-d ${quote(JSON.stringify(body))}`);
  return lines.join(" \\\n  ");
}

/** A text as Python writes it. */
export function py(text) {
  return JSON.stringify(text);
}

/** Python that loads a served model by its directory. */
export function pyLoad(name) {
  return `import seqloom\n\nmodel = seqloom.load(${py(name)})  # ${t("directory")}`;
}
