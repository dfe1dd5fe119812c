// What is typed, pasted or dropped, as rows that the service takes. A row knows how it is sent and how it is shown.
import { count, cut, html, svg } from "./elements.js";

export class Unreadable extends Error {}

// -- texts --
export const readTexts = (text, eachLine) => {
  const found = (eachLine ? text.split(/\r?\n/) : [text]).map((line) => line.trim()).filter((line) => line !== "");
  if (!found.length) throw new Unreadable("There is no text yet.");
  return found.map((value) => ({ kind: "texts", value, summary: cut(value, 160) }));
};

// -- features: JSON, or numbers with commas, semicolons, tabs or spaces between them, one row a line --
export const readFeatures = (text, width) => {
  const trimmed = text.trim();
  if (trimmed === "") throw new Unreadable("There are no numbers yet.");
  const found = trimmed.startsWith("[") ? fromJson(trimmed) : trimmed.split(/\r?\n/).filter((line) => line.trim() !== "").map(fromLine);
  const columns = width ?? found[0].length;
  const wrong = found.findIndex((row) => row.length !== columns);
  if (wrong >= 0) throw new Unreadable(`Row ${wrong + 1} has ${count(found[wrong].length)} numbers, but ${count(columns)} are needed.`);
  return found.map((value) => ({ kind: "features", value, summary: cut(value.slice(0, 8).map((x) => +x.toPrecision(4)).join("  "), 80) }));
};
const fromJson = (text) => {
  let value;
  try { value = JSON.parse(text); } catch { throw new Unreadable("This begins like JSON, but is not."); }
  const found = Array.isArray(value[0]) ? value : [value];
  const wrong = found.findIndex((row) => !Array.isArray(row) || !row.length || !row.every((x) => typeof x === "number"));
  if (wrong >= 0) throw new Unreadable(`Row ${wrong + 1} is not a list of numbers.`);
  return found;
};
const fromLine = (line, index) => {
  const parts = line.trim().split(/[,;\t]/.test(line.trim()) ? /\s*[,;\t]\s*/ : /\s+/);
  const numbers = parts.map(Number);
  const wrong = numbers.findIndex((x, k) => parts[k] === "" || !Number.isFinite(x));
  if (wrong >= 0) throw new Unreadable(`Row ${index + 1}, column ${wrong + 1}: “${cut(parts[wrong], 20)}” is not a number.`);
  return numbers;
};

// -- images: the bytes of files, as they are --
export const readImages = async (files) => {
  const found = [...files].filter((file) => file.type.startsWith("image/"));
  if (!found.length) throw new Unreadable("These are not images.");
  return Promise.all(found.map(async (file) => {
    const address = await new Promise((done, failed) => {
      const reader = new FileReader();
      reader.onload = () => done(reader.result);
      reader.onerror = () => failed(new Unreadable(`${cut(file.name, 60)} cannot be read.`));
      reader.readAsDataURL(file);
    });
    return { kind: "images", value: address.slice(address.indexOf(",") + 1), address, summary: cut(file.name || "image", 80) };
  }));
};

// -- how a row looks --
const FEW = 12; // numbers that need no picture
export const preview = (row) => {
  if (row.kind === "images") return html("img", { src: row.address, alt: row.summary });
  if (row.kind === "texts") return html("p", { dir: "auto" }, cut(row.value, 2000));
  return html("div", {}, row.value.length < FEW ? null : bars(row.value), html("p", { class: "numbers" }, cut(row.value.slice(0, 24).map((x) => +x.toPrecision(3)).join("  "), 300), row.value.length > 24 ? ` … ${count(row.value.length)} numbers` : ""));
};
const bars = (values) => {
  const most = Math.max(1e-12, ...values.slice(0, 400).map(Math.abs));
  const shown = values.slice(0, 400);
  const path = shown.map((value, k) => `M${k + 0.5} 0V${(-value / most).toFixed(3)}`).join("");
  return svg("svg", { class: "bars", viewBox: `0 -1 ${shown.length} 2`, preserveAspectRatio: "none", role: "img", "aria-label": `${count(values.length)} numbers` }, svg("path", { d: path }));
};
