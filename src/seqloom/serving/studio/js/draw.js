// Our own drawing: bars, heat maps, lines, words with shades, alignments. Data in, an SVG element out.

const SPACE = "http://www.w3.org/2000/svg";
const canvas = document.createElement("canvas").getContext("2d");

export function s(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) element.append(child);
  }
  return element;
}

export function sheet(width, height, ...children) {
  return s(
    "svg",
    { class: "drawn", viewBox: `0 0 ${width} ${height}`, width, height, role: "img" },
    ...children,
  );
}

/** How wide a text is in the page's own fonts. */
export function textWidth(text, kind = "sans") {
  const style = getComputedStyle(document.documentElement);
  const [size, family] = kind === "serif" ? [16.5, "--serif"] : [12.5, "--sans"];
  canvas.font = `${size}px ${style.getPropertyValue(family)}`;
  return canvas.measureText(text).width;
}

/** A text no wider than `most`, cut with an ellipsis. */
export function fitted(text, most, kind) {
  if (textWidth(text, kind) <= most) return text;
  const letters = [...text];
  while (letters.length > 1 && textWidth(`${letters.join("")}…`, kind) > most) letters.pop();
  return `${letters.join("")}…`;
}

function titled(element, text) {
  element.prepend(s("title", {}, text));
  return element;
}

/** Horizontal bars: rows of {label, value, text, dim}; values from 0 to `most`. */
export function bars(rows, width, { most = null, labelShare = 0.4 } = {}) {
  const top = most ?? Math.max(1e-12, ...rows.map((row) => row.value));
  const line = 27;
  const numbers = Math.max(...rows.map((row) => textWidth(row.text))) + 10;
  const labels = Math.min(width * labelShare, Math.max(...rows.map((row) => textWidth(row.label))) + 12);
  const space = Math.max(30, width - labels - numbers);
  const parts = rows.map((row, i) => {
    const y = i * line;
    const length = Math.max(1.5, (space * row.value) / top);
    return titled(
      s(
        "g",
        {},
        s("text", { x: 0, y: y + 17 }, fitted(row.label, labels - 8)),
        s("rect", { class: "track", x: labels, y: y + 5, width: space, height: 16, rx: 3 }),
        s("rect", { class: row.dim ? "bar dim" : "bar", x: labels, y: y + 5, width: length, height: 16, rx: 3 }),
        s("text", { class: "soft", x: width, y: y + 17, "text-anchor": "end" }, row.text),
      ),
      `${row.label}: ${row.text}`,
    );
  });
  return sheet(width, rows.length * line, parts);
}

/** A heat map. Values from 0 to `most`, or with `signed` from -most to most in two colours. */
export function heat(values, rows, columns, width, { most = null, signed = false, now = null, square = false } = {}) {
  const flat = values.flat().map(Math.abs);
  const top = most ?? Math.max(1e-12, ...flat);
  const labels = Math.min(width * 0.32, Math.max(10, ...rows.map((row) => textWidth(row))) + 10);
  const longest = Math.max(...columns.map((column) => textWidth(fitted(column, 110))));
  const tilted = longest + 6 > (width - labels - 2) / columns.length;
  const given = (width - labels - 2 - (tilted ? Math.min(48, textWidth(columns.at(-1)) * 0.75) : 0)) / columns.length;
  const cell = Math.max(square ? 22 : 14, Math.min(given, square ? 44 : 64));
  const height = square ? Math.min(cell, 30) : Math.max(7, Math.min(15, 190 / rows.length));
  const slanted = longest + 6 > cell;
  const head = slanted ? Math.min(96, longest * 0.72 + 16) : 20;
  const total = Math.max(width, labels + cell * columns.length + (slanted ? 40 : 0));
  const parts = columns.map((column, j) => {
    const x = labels + cell * (j + 0.5);
    const shown = fitted(column, 110);
    if (!slanted) return s("text", { x, y: head - 7, "text-anchor": "middle" }, shown);
    return s("text", { x: x - 2, y: head - 6, transform: `rotate(-42 ${x - 2} ${head - 6})` }, shown);
  });
  rows.forEach((row, i) => {
    const y = head + i * height;
    if (height >= 12 || rows.length <= 8) {
      parts.push(
        s("text", { class: square ? "" : "soft", x: labels - 8, y: y + height / 2 + 4, "text-anchor": "end" }, fitted(row, labels - 10)),
      );
    }
    columns.forEach((column, j) => {
      const value = values[i][j];
      const share = Math.min(1, Math.abs(value) / top);
      parts.push(
        titled(
          s("rect", {
            class: signed && value < 0 ? "neg" : "pos",
            x: labels + j * cell,
            y,
            width: cell - 1,
            height: height - 1,
            "fill-opacity": (0.04 + 0.96 * share).toFixed(3),
          }),
          `${row} · ${column}: ${value.toFixed(3)}`,
        ),
      );
    });
  });
  const bottom = head + rows.length * height;
  parts.push(s("rect", { class: "frame", x: labels - 0.5, y: head - 0.5, width: cell * columns.length, height: bottom - head }));
  if (now !== null) {
    parts.push(s("rect", { class: "now", x: labels + now * cell - 0.5, y: head - 1.5, width: cell, height: bottom - head + 2 }));
  }
  return sheet(total, bottom + 4, parts);
}

/** Words of a text, shaded by a share from 0 to 1, wrapped as a paragraph; notes are shown on hover. */
export function shadedWords(words, shares, notes, width, { under = null, spaced = true } = {}) {
  const line = under ? 54 : 34;
  const gap = spaced ? 5 : 1;
  let x = 0;
  let y = 0;
  const parts = [];
  words.forEach((word, i) => {
    const label = under?.[i] ?? "";
    const wide = Math.max(textWidth(word, "serif") + 8, label ? textWidth(label) * 0.88 + 6 : 0);
    if (x && x + wide > width) {
      x = 0;
      y += line;
    }
    parts.push(
      titled(
        s(
          "g",
          {},
          s("rect", { class: "shade", x, y: y + 4, width: wide, height: 25, rx: 4, "fill-opacity": (0.6 * shares[i]).toFixed(3) }),
          s("text", { class: "serif", x: x + wide / 2, y: y + 22, "text-anchor": "middle" }, word),
          label ? s("text", { class: "soft", x: x + wide / 2, y: y + 43, "text-anchor": "middle", "font-size": 11 }, label) : null,
        ),
        notes[i],
      ),
    );
    x += wide + gap;
  });
  return sheet(width, y + line, parts);
}

/** Two lines of words joined where one looked at the other; weights[i][j] of target i at source j. */
export function alignment(source, target, weights, width) {
  const place = (words) => {
    const sizes = words.map((word) => textWidth(word, "serif") + 14);
    const whole = sizes.reduce((a, b) => a + b, 0);
    let x = 0;
    return { whole, middles: sizes.map((size) => (x += size) - size / 2) };
  };
  const [above, below] = [place(source), place(target)];
  const total = Math.max(width, above.whole, below.whole);
  const [shiftAbove, shiftBelow] = [(total - above.whole) / 2, (total - below.whole) / 2];
  const parts = [];
  weights.forEach((row, i) =>
    row.forEach((weight, j) => {
      if (weight < 0.04) return;
      const [x1, x2] = [shiftAbove + above.middles[j], shiftBelow + below.middles[i]];
      parts.push(
        titled(
          s("path", {
            class: "link",
            d: `M${x1.toFixed(1)} 30C${x1.toFixed(1)} 78 ${x2.toFixed(1)} 72 ${x2.toFixed(1)} 120`,
            "stroke-width": (0.75 + 5 * weight).toFixed(2),
            "stroke-opacity": (0.12 + 0.78 * weight).toFixed(2),
          }),
          `${target[i]} ← ${source[j]}: ${weight.toFixed(3)}`,
        ),
      );
    }),
  );
  source.forEach((word, j) => parts.push(s("text", { class: "serif", x: shiftAbove + above.middles[j], y: 22, "text-anchor": "middle" }, word)));
  target.forEach((word, i) => parts.push(s("text", { class: "serif", x: shiftBelow + below.middles[i], y: 138, "text-anchor": "middle" }, word)));
  return sheet(total, 150, parts);
}

/** Lines: series of {name, xs, ys}; a gap where a value is null; the names stand beside, or below. */
export function lines(series, width, { xlabel, ylabel, log = false, height = 300, fine = () => false } = {}) {
  const usable = series.map((one) => ({
    ...one,
    points: one.xs.map((x, i) => [x, one.ys[i]]).filter(([, y]) => y !== null && Number.isFinite(y) && (!log || y > 0)),
  }));
  const all = usable.flatMap((one) => one.points);
  if (!all.length) return sheet(width, 20);
  const f = log ? Math.log10 : (y) => y;
  const xs = all.map(([x]) => x);
  const ys = all.map(([, y]) => f(y));
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  let [low, high] = [Math.min(...ys), Math.max(...ys)];
  if (low === high) [low, high] = log ? [low - 0.5, high + 0.5] : [Math.min(0, 2 * low), Math.max(2 * high, 1e-3)];
  if (!log && low > 0 && low < 0.4 * high) low = 0;
  const ticks = log ? powers(low, high) : steps(low, high, 5);
  low = Math.min(low, ticks[0]);
  high = Math.max(high, ticks[ticks.length - 1]);
  const write = (value) => (log ? power(value) : short(value));
  const margin = { left: Math.max(...ticks.map((tick) => textWidth(write(tick)))) + 14, top: 24, bottom: 44, right: 12 };
  const names = legend(usable, width);
  const inner = { width: width - margin.left - margin.right, height: height - margin.top - margin.bottom };
  const px = (x) => margin.left + (right === left ? inner.width / 2 : (inner.width * (x - left)) / (right - left));
  const py = (y) => margin.top + (inner.height * (high - y)) / (high - low);
  const parts = [s("text", { class: "soft", x: 0, y: 12 }, ylabel)];
  for (const tick of ticks) {
    parts.push(s("path", { class: "axis", d: `M${margin.left} ${py(tick).toFixed(1)}H${width - margin.right}` }));
    parts.push(s("text", { class: "soft", x: margin.left - 8, y: py(tick) + 4, "text-anchor": "end" }, write(tick)));
  }
  for (const tick of steps(left, right, Math.max(2, Math.floor(inner.width / 90)))) {
    if (tick < left || tick > right) continue;
    parts.push(s("text", { class: "soft", x: px(tick), y: height - 24, "text-anchor": "middle" }, short(tick)));
  }
  parts.push(s("text", { class: "soft", x: width - margin.right, y: height - 6, "text-anchor": "end" }, xlabel));
  usable.forEach((one, k) => {
    if (!one.points.length) return;
    const path = one.points.map(([x, y], i) => `${i ? "L" : "M"}${px(x).toFixed(1)} ${py(f(y)).toFixed(1)}`).join("");
    const kind = `line s${k % 11}${fine(one.name) ? " fine" : ""}`;
    parts.push(titled(s("path", { class: kind, d: path }), one.name));
    if (one.points.length === 1) {
      const [x, y] = one.points[0];
      parts.push(s("circle", { class: `f${k % 11}`, cx: px(x), cy: py(f(y)), r: 3.5 }));
    }
  });
  const below = names.map(({ name, x, y, k }) =>
    s(
      "g",
      {},
      s("rect", { class: `f${k % 11}`, x, y: height + y + 3, width: 14, height: 4, rx: 2 }),
      s("text", { x: x + 20, y: height + y + 10 }, name),
    ),
  );
  const last = names.length ? names[names.length - 1].y + 20 : 0;
  return sheet(width, height + last, parts, below);
}

function legend(series, width) {
  if (series.length < 2) return [];
  let [x, y] = [0, 0];
  return series.map((one, k) => {
    const wide = textWidth(one.name) + 38;
    if (x && x + wide > width) [x, y] = [0, y + 20];
    const found = { name: one.name, x, y, k };
    x += wide;
    return found;
  });
}

function steps(low, high, count) {
  const raw = (high - low) / Math.max(1, count) || 1;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * size).find((k) => k >= raw);
  const found = [];
  for (let tick = Math.floor(low / step) * step; tick <= high + step * 0.999; tick += step) found.push(Number(tick.toPrecision(10)));
  return found;
}

function powers(low, high) {
  const [first, last] = [Math.floor(low), Math.ceil(high)];
  const every = Math.max(1, Math.ceil((last - first) / 6));
  const found = [];
  for (let tick = last; tick >= first - every + 1; tick -= every) found.unshift(tick);
  return found;
}

function power(value) {
  if (value >= -3 && value <= 4) return short(10 ** value);
  const digits = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  const sign = value < 0 ? "⁻" : "";
  return `10${sign}${[...String(Math.abs(value))].map((digit) => digits[digit]).join("")}`;
}

function short(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(3))} M`;
  if (size >= 1e4) return `${Number((value / 1e3).toPrecision(3))} k`;
  return String(Number(value.toPrecision(4)));
}
