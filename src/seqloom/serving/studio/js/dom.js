// Making elements, and small things every view needs.

/** Make an element: h("p", {class: "hint"}, "text", child, [more]). Nothing is ever parsed as HTML. */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name === "class" ? "class" : name, value === true ? "" : value);
  }
  fill(element, ...children);
  return element;
}

/** Put children at the end of an element; strings become text. */
export function fill(element, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

/** Replace all children. */
export function set(element, ...children) {
  element.replaceChildren();
  return fill(element, ...children);
}

/** A piece of a text by characters as the server counts them: an emoji is one, not two. */
export function cut(text, start, end = Infinity) {
  return /[\ud800-\udfff]/.test(text) ? [...text].slice(start, end).join("") : text.slice(start, end);
}

let counter = 0;

/** An id no other element has. */
export function fresh(prefix = "id") {
  counter += 1;
  return `${prefix}-${counter}`;
}

/** Call something once, `wait` milliseconds after the last time it was asked for. */
export function later(wait, call) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...given), wait);
  };
}

/** Hand the browser a file to save. */
export function download(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = h("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** What the user prefers, kept in the browser. */
export const kept = {
  get(name, otherwise = null) {
    try {
      return localStorage.getItem(`seqloom.${name}`) ?? otherwise;
    } catch {
      return otherwise;
    }
  },
  set(name, value) {
    try {
      localStorage.setItem(`seqloom.${name}`, value);
    } catch {
      // private windows may refuse; the page works without
    }
  },
};
