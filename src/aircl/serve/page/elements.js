// Elements, and how numbers, times and labels are written. Whatever is a child is text or an element, never markup.

export const find = (id) => document.getElementById(id);

const build = (element, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
};
export const html = (tag, attributes = {}, ...children) => build(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, ...children) =>
  build(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

// A label is whatever somebody has sent: of any length, direction and content.
export const labelText = (label) => (typeof label === "string" ? label : JSON.stringify(label));
export const labelKey = (label) => JSON.stringify(label);
const CUT = 200;
export const cut = (text, length = CUT) => (text.length > length ? `${text.slice(0, length)}…` : text);
export const labelled = (label, className = "label") => {
  const text = labelText(label);
  return html("bdi", { class: className, title: cut(text, 1000), dir: "auto" }, text === "" ? "(empty)" : text === text.trim() ? cut(text) : `“${cut(text)}”`); // "cat" and "cat " are two classes
};

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const few = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 });
export const NONE = "–";
export const count = (value) => (value === null || value === undefined ? NONE : Number.isInteger(value) ? whole.format(value) : few.format(value));
export const percent = (value, digits = 1) => (value === null || value === undefined ? NONE : `${(100 * value).toFixed(digits)} %`);
export const milliseconds = (seconds) => {
  if (seconds === null || seconds === undefined) return NONE;
  const value = 1000 * seconds;
  if (value >= 1000) return `${seconds.toPrecision(2)} s`;
  if (value === 0) return "0";
  return `${value >= 100 ? value.toFixed(0) : value.toPrecision(2)} ms`;
};
export const rows = (n) => `${count(n)} ${n === 1 ? "row" : "rows"}`;
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
export const when = (text) => {
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) return NONE;
  return date.toDateString() === new Date().toDateString() ? clock.format(date) : day.format(date);
};

// Labels in an order that people expect: 2 before 10.
const order = new Intl.Collator("en", { numeric: true });
export const inOrder = (a, b) => order.compare(labelText(a), labelText(b));

// What is told to whoever looks, and to whoever listens.
let hiding = 0;
export const toast = (text, kind = "") => {
  const place = find("toast");
  place.textContent = text;
  place.className = `shown ${kind}`;
  clearTimeout(hiding);
  hiding = setTimeout(() => { place.className = ""; }, kind === "bad" ? 9000 : 5000);
};
export const tell = (text) => { find("told").textContent = text; };
