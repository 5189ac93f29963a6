// The frame: which view is shown, in which language and theme.

import { loadModels, modelsFor, onRefused } from "./api.js";
import { fill, h, kept, set } from "./dom.js";
import { language, LANGUAGES, markPage, setLanguage, t } from "./i18n.js";
import { field, statusLine, told } from "./parts.js";
import { view as cells } from "./views/cells.js";
import { view as classify } from "./views/classify.js";
import { view as complete } from "./views/complete.js";
import { view as league } from "./views/league.js";
import { view as read } from "./views/read.js";
import { view as relate } from "./views/relate.js";
import { view as summarize } from "./views/summarize.js";
import { view as tag } from "./views/tag.js";
import { view as train } from "./views/train.js";
import { view as translate } from "./views/translate.js";

const GROUPS = {
  "group.text": [read, summarize, complete],
  "group.labels": [classify, relate, tag, translate],
  "group.own": [train],
  "group.inside": [cells, league],
};
const VIEWS = Object.values(GROUPS).flat();
const THEMES = ["auto", "light", "dark"];
const root = document.getElementById("view");
const places = document.getElementById("places");
const menu = document.getElementById("menu-button");
const dark = matchMedia("(prefers-color-scheme: dark)");

function isServed(view) {
  return !view.endpoint || modelsFor(view.endpoint).length > 0;
}

function currentView() {
  const id = location.hash.replace(/^#\//, "");
  return VIEWS.find((view) => view.id === id) ?? VIEWS.find((view) => view.id === kept.get("view")) ?? VIEWS.find(isServed);
}

function drawPlaces(now) {
  places.setAttribute("aria-label", t("places"));
  set(places);
  for (const [group, views] of Object.entries(GROUPS)) {
    fill(
      places,
      h("h2", {}, t(group)),
      h(
        "ul",
        {},
        views.map((view) =>
          h(
            "li",
            {},
            h(
              "a",
              { href: `#/${view.id}`, class: isServed(view) ? "" : "without", "aria-current": view === now ? "page" : null },
              t(`${view.id}.title`),
              isServed(view) ? null : h("span", { class: "hint" }, "–", h("span", { class: "visually-hidden" }, t("unserved"))),
            ),
          ),
        ),
      ),
    );
  }
}

function drawSwitches() {
  const group = (label, options, value, change) =>
    h(
      "div",
      { class: "switch", role: "group", "aria-label": label },
      options.map(([own, text, full]) =>
        h("button", { type: "button", "aria-pressed": String(own === value), "aria-label": full, title: full, lang: own === "zh" ? "zh-CN" : own === "en" ? "en" : null, onclick: () => change(own) }, text),
      ),
    );
  set(
    document.getElementById("switches"),
    group(t("theme"), THEMES.map((name) => [name, { auto: "◐", light: "☀", dark: "☾" }[name], t(`theme.${name}`)]), kept.get("theme", "auto"), (name) => {
      kept.set("theme", name);
      setTheme();
      drawSwitches();
    }),
    group(t("language"), Object.entries(LANGUAGES).map(([code, name]) => [code, code === "en" ? "EN" : "中文", name]), language(), (code) => {
      setLanguage(code);
      draw(false);
    }),
  );
}

function setTheme() {
  const asked = kept.get("theme", "auto");
  document.documentElement.dataset.theme = asked === "auto" ? (dark.matches ? "dark" : "light") : asked;
}

function drawFoot() {
  set(
    document.getElementById("foot"),
    h("span", {}, t("foot.local")),
    h("a", { href: "openapi.json" }, t("foot.api")),
    h("a", { href: "metrics" }, t("foot.metrics")),
  );
}

/** Draw everything; `moved` is whether another view was asked for, which then gets the focus. */
function draw(moved) {
  const view = currentView();
  document.title = `${t(`${view.id}.title`)} · Seqloom Studio`;
  document.querySelector("[data-text=skip]").textContent = t("skip");
  set(menu, t("menu"));
  drawSwitches();
  drawPlaces(view);
  drawFoot();
  set(root);
  view.render(root);
  kept.set("view", view.id);
  closeMenu();
  if (moved) {
    root.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
}

function closeMenu() {
  places.classList.remove("open");
  menu.setAttribute("aria-expanded", "false");
}

menu.addEventListener("click", () => {
  const open = places.classList.toggle("open");
  menu.setAttribute("aria-expanded", String(open));
});
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && places.classList.contains("open")) {
    closeMenu();
    menu.focus();
  }
});
addEventListener("hashchange", () => draw(true));
dark.addEventListener("change", setTheme);

/** Ask for the token the server wants; whether there is one to try. */
function askForToken() {
  return new Promise((resolve) => {
    const input = h("input", { type: "password", autocomplete: "current-password" });
    const dialog = h(
      "dialog",
      { "aria-label": t("token.title") },
      h(
        "form",
        { method: "dialog", class: "fields" },
        h("h2", {}, t("token.title")),
        h("p", { class: "hint" }, t("token.lede")),
        field(t("token"), input),
        h("div", { class: "actions" }, h("button", { class: "main" }, t("token.use"))),
      ),
    );
    dialog.addEventListener("close", () => {
      if (input.value) kept.set("token", input.value);
      dialog.remove();
      resolve(Boolean(input.value));
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

onRefused(askForToken);
markPage();
setTheme();
drawSwitches();
const status = statusLine();
set(root, status.element);
try {
  await loadModels();
  draw(false);
} catch (error) {
  status.bad(error);
  drawPlaces(null);
  console.warn(told(error));
}
document.documentElement.dataset.ready = "yes";
