// Talking to the server: JSON in and out, server-sent events, one shape of error.

import { kept } from "./dom.js";

export class ServerError extends Error {
  constructor(message, status, code) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

let whenRefused = null;

/** Who asks the user for a token when the server wants one; it returns a promise of whether to try again. */
export function onRefused(call) {
  whenRefused = call;
}

function headers(withBody) {
  const found = withBody ? { "Content-Type": "application/json" } : {};
  const token = kept.get("token");
  return token ? { ...found, Authorization: `Bearer ${token}` } : found;
}

async function ask(path, options, again = true) {
  let answer;
  try {
    answer = await fetch(path, options());
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError("", 0, "unreachable");
  }
  if (answer.ok) return answer;
  if (answer.status === 401 && again && whenRefused && (await whenRefused())) return ask(path, options, false);
  let told = {};
  try {
    told = (await answer.json()).error ?? {};
  } catch {
    // an answer that is no JSON is told by its number alone
  }
  throw new ServerError(told.message ?? `HTTP ${answer.status}`, answer.status, told.code ?? "");
}

export async function get(path, signal) {
  return (await ask(path, () => ({ headers: headers(false), signal }))).json();
}

export async function post(path, body, signal) {
  const text = JSON.stringify(body);
  return (await ask(path, () => ({ method: "POST", headers: headers(true), body: text, signal }))).json();
}

/** Ask for server-sent events; `tell(event, data)` is called for each. */
export async function stream(path, body, tell, signal) {
  const text = JSON.stringify(body);
  const answer = await ask(path, () => ({ method: "POST", headers: headers(true), body: text, signal }));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    rest += value;
    let at = rest.search(/\r?\n\r?\n/);
    while (at >= 0) {
      emit(rest.slice(0, at), tell);
      rest = rest.slice(at).replace(/^(\r?\n){2}/, "");
      at = rest.search(/\r?\n\r?\n/);
    }
  }
  if (rest.trim()) emit(rest, tell);
}

function emit(block, tell) {
  let event = "message";
  const data = [];
  for (const line of block.split(/\r?\n/)) {
    if (line.startsWith("event:")) event = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
  }
  if (!data.length) return;
  const content = JSON.parse(data.join("\n"));
  if (event === "error") throw new ServerError(content.error?.message ?? "", 500, content.error?.code ?? "");
  tell(event, content);
}

let models = [];

/** Fetch which models are served; everything else looks at what was fetched last. */
export async function loadModels() {
  models = (await get("v1/models")).models;
  return models;
}

/** The models that answer at an endpoint, the default one first. */
export function modelsFor(endpoint) {
  const found = models.filter((model) => model.endpoints.includes(endpoint));
  const isDefault = (model) => (model.default_for ?? []).includes(endpoint);
  return [...found.filter(isDefault), ...found.filter((model) => !isDefault(model))];
}

export function allModels() {
  return models;
}
