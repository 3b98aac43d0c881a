// Small tools: elements are built node by node, and text is always text.

/** An element with attributes, properties and children; null children are left out. */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node && typeof value !== "string") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

export const byId = (id) => document.getElementById(id);

/** Says what a button without words is for, to whoever listens or points. */
export function label(id, words) {
  byId(id).setAttribute("aria-label", words);
  byId(id).title = words;
}

/** A clock time in the reader's own zone. */
export function clock(ms, seconds = false) {
  const format = { hour: "2-digit", minute: "2-digit", second: seconds ? "2-digit" : undefined, hour12: false };
  return new Date(ms).toLocaleTimeString([], format);
}

const YEAR_SECONDS = 31536000;

/** Kept by cookies, which outlive the port of one demo. */
export function remember(name, value) {
  document.cookie = `nod-${name}=${value}; path=/; max-age=${YEAR_SECONDS}; samesite=strict`;
}

export function recall(name) {
  const found = document.cookie.split("; ").find((part) => part.startsWith(`nod-${name}=`));
  return found ? found.split("=")[1] : null;
}

/** Whether the page was opened by the whole address, and not loaded again. */
export const fresh = location.hash.length > 1;

/** What the address of the page says after its `#`, kept for a reload and out of the history. */
function ticket() {
  const given = location.hash.slice(1);
  if (given) {
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", location.pathname + location.search);
  }
  return sessionStorage.getItem("token");
}

const token = ticket();

/** An answer that could not be had; `status` says why. */
class Refused extends Error {
  constructor(status, why) {
    super(why ?? `HTTP ${status}`);
    this.status = status;
  }
}

export async function call(path, body) {
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  const options = body === undefined ? { headers } : {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify(body),
  };
  const response = await fetch(path, options);
  const answer = await response.json();
  if (!response.ok) throw new Refused(response.status, answer.error);
  return answer;
}
