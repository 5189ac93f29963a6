// Two languages: texts by key, the choice remembered.

import { kept } from "./dom.js";
import { english } from "./texts-en.js";
import { chinese } from "./texts-zh.js";

export const LANGUAGES = { en: "English", zh: "中文" };
const TEXTS = { en: english, zh: chinese };

let current = pick();

function pick() {
  const asked = kept.get("language");
  if (asked in LANGUAGES) return asked;
  return navigator.language?.toLowerCase().startsWith("zh") ? "zh" : "en";
}

export function language() {
  return current;
}

export function setLanguage(wanted) {
  current = wanted;
  kept.set("language", wanted);
  markPage();
}

export function markPage() {
  document.documentElement.lang = current === "zh" ? "zh-CN" : "en";
}

/** The text of a key in the present language; {name} is filled in. */
export function t(key, values = {}) {
  const text = TEXTS[current][key] ?? TEXTS.en[key];
  if (text === undefined) throw new Error(`no text for ${key}`);
  return text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

/** Whether there is a text for a key. */
export function has(key) {
  return key in TEXTS.en;
}

/** A number as people of the language write it. */
export function number(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size && (size < 1e-4 || size >= 1e9)) return value.toExponential(2);
  return value.toLocaleString(current === "zh" ? "zh-CN" : "en", { maximumFractionDigits: digits });
}

export function percent(value) {
  if (value === null || value === undefined) return "–";
  return `${(100 * value).toFixed(value > 0 && value < 0.1 ? 2 : 1)}%`;
}
