// The interface of the service: requests with the key, problems in words, signed addresses.

import { key } from "./session.js";

export const API = "api/v1/"; // relative to the document's base

// What went wrong, as the service tells it (RFC 9457), or the network did.
export class Problem extends Error {
  constructor(status, told, retryAfter) {
    const errors = (told.errors ?? []).map((error) =>
      [error.pointer ?? error.parameter, error.detail].filter(Boolean).join(": "));
    const words = [told.detail || told.title || `Status ${status}`, ...errors].join(" · ");
    super(words.charAt(0).toUpperCase() + words.slice(1));
    this.status = status;
    this.action = told.action;
    this.nextByte = told.next_byte;
    this.retryAfter = retryAfter;
  }

  get mayPass() {
    // what stands between, such as a proxy, says no action
    return this.action ? this.action === "retry" : this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

// "answered" and "silent" tell whether the service can be reached, "locked" that it wants a key.
export const line = new EventTarget();

// Whether the service can be reached now.
export const answers = () => fetch("healthz", { cache: "no-store" }).then(({ ok }) => ok, () => false);

export async function ask(path, { method = "GET", headers = {}, body, signal, keepalive } = {}) {
  let response;
  try {
    // a key with other letters than Latin-1 cannot be a header at all
    response = await fetch(API + path, {
      method, body, signal, keepalive, cache: "no-store",
      headers: { Authorization: `Bearer ${encodeURI(key())}`, ...headers },
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    line.dispatchEvent(new Event("silent"));
    throw new Problem(0, { detail: "The service does not answer." });
  }
  line.dispatchEvent(new Event("answered"));
  if (response.ok) return response;
  const told = await response.json().catch(() => ({ title: response.statusText }));
  const problem = new Problem(response.status, told, Number(response.headers.get("Retry-After")) || 0);
  if (problem.status === 401) line.dispatchEvent(new CustomEvent("locked", { detail: problem }));
  throw problem;
}

export async function askJson(path, options) {
  return (await ask(path, options)).json();
}

const MOST = 200; // records that the service gives at once

// All records of a list, page after page; `field` has those of a page.
export async function askAll(path, field, options) {
  const records = [];
  let from = "";
  for (;;) {
    const page = await askJson(`${path}${path.includes("?") ? "&" : "?"}limit=${MOST}${from}`, options);
    records.push(...page[field]);
    if (!page.next_cursor) return records;
    from = `&cursor=${encodeURIComponent(page.next_cursor)}`;
  }
}

export function send(method, path, values, options = {}) {
  const headers = { "Content-Type": "application/json" };
  return askJson(path, { method, headers, body: JSON.stringify(values), ...options });
}

export function post(path, values, options) {
  return send("POST", path, values, options);
}

const tokens = new Map();
const EARLY = 300; // seconds before its end that a token is no longer handed out

// The token that opens a path of the interface and what is below it, for an hour or so many seconds.
export async function tokenOf(place, seconds) {
  const name = `${place} ${seconds ?? ""}`;
  const known = tokens.get(name);
  if (known && known.key === key() && known.until > Date.now() / 1000 + EARLY) return known.token;
  const { token } = await post("url-token", { url: `/${API}${place}`, ...(seconds && { seconds }) });
  const claims = token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/");
  tokens.set(name, { token, key: key(), until: JSON.parse(atob(claims)).exp });
  return token;
}

// The address of `path` that needs no header, by a token of `place`, which is at or above it.
export async function signed(path, place = path.split("?")[0], seconds = undefined) {
  const url = new URL(API + path, document.baseURI);
  url.searchParams.set("token", await tokenOf(place, seconds));
  return url.href;
}
