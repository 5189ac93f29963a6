// A cell's equations: the little LaTeX they are written in, as MathML that browsers draw and read aloud.

const SPACE = "http://www.w3.org/1998/Math/MathML";
const SYMBOLS = { sigma: "σ", odot: "⊙", cdot: "·", infty: "∞", ge: "≥", le: "≤" };
const FUNCTIONS = new Set(["tanh", "exp", "log", "max", "min"]);
const ACCENTS = { tilde: "~", hat: "^", bar: "¯" };

function m(tag, ...children) {
  const element = document.createElementNS(SPACE, tag);
  element.append(...children);
  return element;
}

/** LaTeX as a <math> element; its label is the source. */
export function math(latex) {
  const tokens = latex.match(/\\[a-zA-Z]+|[a-zA-Z]|\d+(\.\d+)?|\S/g) ?? [];
  const element = m("math", row(tokens, null));
  element.setAttribute("display", "block");
  return element;
}

/** LaTeX names such as i_t or \tilde{h}_t as plain text, for places where only text can stand. */
export function plain(latex) {
  return latex
    .replace(/\\(tilde|hat|bar)\{([^}]*)\}/g, (_, accent, letter) => letter + { tilde: "\u0303", hat: "\u0302", bar: "\u0304" }[accent])
    .replace(/\\mathrm\{([^}]*)\}/g, "$1")
    .replace(/_t$/, "")
    .replace(/[{}\\]/g, "");
}

function row(tokens, until) {
  const parts = [];
  while (tokens.length && tokens[0] !== until) {
    const token = tokens.shift();
    let part = atom(token, tokens);
    while (tokens[0] === "_" || tokens[0] === "^" || tokens[0] === "'") {
      const sign = tokens.shift();
      if (sign === "'") {
        const base = part;
        if (tokens[0] === "_") {
          tokens.shift();
          part = m("msubsup", base, argument(tokens), m("mo", "′"));
        } else part = m("msup", base, m("mo", "′"));
      } else part = m(sign === "_" ? "msub" : "msup", part, argument(tokens));
    }
    parts.push(part);
  }
  if (until) tokens.shift();
  return m("mrow", ...parts);
}

function argument(tokens) {
  const token = tokens.shift();
  return token === "{" ? row(tokens, "}") : atom(token, tokens);
}

function atom(token, tokens) {
  if (token === "{") return row(tokens, "}");
  if (token.startsWith("\\")) {
    const name = token.slice(1);
    if (name === "frac") return m("mfrac", argument(tokens), argument(tokens));
    if (name === "sqrt") return m("msqrt", argument(tokens));
    if (name === "mathrm") return named(tokens);
    if (name in ACCENTS) {
      const over = m("mover", argument(tokens), m("mo", ACCENTS[name]));
      over.setAttribute("accent", "true");
      return over;
    }
    if (FUNCTIONS.has(name)) return m("mi", name);
    const symbol = SYMBOLS[name] ?? name;
    return m(name === "sigma" ? "mi" : "mo", symbol);
  }
  if (/^[a-zA-Z]$/.test(token)) return m("mi", token);
  if (/^\d/.test(token)) return m("mn", token);
  return m("mo", token === "-" ? "−" : token);
}

function named(tokens) {
  let text = "";
  tokens.shift();
  while (tokens.length && tokens[0] !== "}") text += tokens.shift();
  tokens.shift();
  const element = m("mi", text);
  element.setAttribute("mathvariant", "normal");
  return element;
}
