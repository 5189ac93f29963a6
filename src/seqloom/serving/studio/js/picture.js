// A picture on the page: a title, the drawing at the width there is, its data as a table, and both to keep.

import { download, fresh, h, set } from "./dom.js";
import { t } from "./i18n.js";
import { s } from "./draw.js";

const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "opacity", "font-family", "font-size", "font-style"];

/**
 * @param {object} given
 *   title: what is shown; hint: a line below it; name: of saved files; data: what is drawn, as JSON;
 *   draw(width): the SVG; table: {columns, rows} for whoever cannot see it.
 */
export function picture({ title, hint = "", name, data, draw, table, heading = "h3" }) {
  const id = fresh("picture");
  const canvas = h("div", { class: "canvas", tabindex: "0", role: "group", "aria-labelledby": id });
  let width = 0;
  const redraw = () => {
    const room = Math.floor(canvas.clientWidth);
    if (!room || room === width) return;
    width = room;
    const drawn = draw(room);
    drawn.setAttribute("aria-label", hint ? `${title}. ${hint}` : title);
    set(canvas, drawn);
  };
  new ResizeObserver(redraw).observe(canvas);
  const keep = (kind, label, call) =>
    h("button", { type: "button", class: "quiet", "data-keep": kind, title: t("keep.title", { what: label }), "aria-label": `${t("keep.title", { what: label })}: ${title}`, onclick: call }, label);
  return h(
    "figure",
    { class: "picture", "data-name": name },
    h(
      "figcaption",
      {},
      h(heading, { id }, title),
      hint ? h("p", { class: "hint" }, hint) : null,
      h(
        "div",
        { class: "keep" },
        keep("svg", "SVG", () => download(`${name}.svg`, "image/svg+xml", saved(canvas.querySelector("svg"), title))),
        keep("json", "JSON", () => download(`${name}.json`, "application/json", JSON.stringify(data, null, 1))),
      ),
    ),
    canvas,
    table ? h("details", { class: "table" }, h("summary", {}, t("keep.table")), tableOf(table)) : null,
  );
}

/** A table of {columns: [{label, number}], rows: [[...]], best: index of a row}. */
export function tableOf({ columns, rows, best = -1, caption = "" }) {
  const kind = (column) => (column.number ? { class: "number" } : {});
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-label": caption || t("keep.table") },
    h(
      "table",
      {},
      caption ? h("caption", { class: "visually-hidden" }, caption) : null,
      h("thead", {}, h("tr", {}, columns.map((column) => h("th", { scope: "col", ...kind(column) }, column.label)))),
      h(
        "tbody",
        {},
        rows.map((row, i) => h("tr", i === best ? { class: "best" } : {}, row.map((value, j) => h("td", kind(columns[j]), value)))),
      ),
    ),
  );
}

/** The drawing as a file of its own: colours and fonts are written into it, on the card's ground. */
function saved(svg, title) {
  const copy = svg.cloneNode(true);
  const from = [svg, ...svg.querySelectorAll("*")];
  const to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((element, i) => {
    if (element.tagName === "title") return;
    const style = getComputedStyle(element);
    for (const name of STYLES) to[i].setAttribute(name, style.getPropertyValue(name));
    to[i].removeAttribute("class");
  });
  const { width, height } = svg.viewBox.baseVal;
  const edge = 16;
  copy.setAttribute("viewBox", `${-edge} ${-edge} ${width + 2 * edge} ${height + 2 * edge}`);
  copy.setAttribute("width", width + 2 * edge);
  copy.setAttribute("height", height + 2 * edge);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const ground = getComputedStyle(document.documentElement).getPropertyValue("--card").trim();
  copy.prepend(s("title", {}, title), s("rect", { x: -edge, y: -edge, width: width + 2 * edge, height: height + 2 * edge, fill: ground }));
  return new XMLSerializer().serializeToString(copy);
}
