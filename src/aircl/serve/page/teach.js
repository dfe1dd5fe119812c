// Where rows are entered: texts or features to type and paste, images to drop.
import { count, find, html } from "./elements.js";
import { show } from "./review.js";
import { Unreadable, readFeatures, readImages, readTexts } from "./rows.js";
import { notYet, on, state, whyNot } from "./state.js";

const hints = {
  texts: "Show it a text. Accept what it says, choose another class, or name a new one.",
  features: "Show it rows of numbers. Accept what it says, choose another class, or name a new one.",
  images: "Show it images, several at once if you like. Accept what it says, choose another class, or name a new one.",
};

const attempt = async (problem, read) => {
  problem.textContent = "";
  try {
    const rows = await read();
    if (rows.length > state.about.max_rows) throw new Unreadable(`${count(rows.length)} rows are more than the ${count(state.about.max_rows)} of one request.`);
    show(rows);
    return true;
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    problem.textContent = error.message;
    return false;
  }
};

function typed(kind) {
  const problem = html("p", { class: "problem", role: "alert" });
  const area = html("textarea", {
    id: "input", rows: 3, spellcheck: "false", "aria-keyshortcuts": "t", "aria-label": kind === "texts" ? "Text to show" : "Rows of features to show",
    placeholder: kind === "texts" ? "Type or paste a text, and press Enter" : "Paste rows: numbers with commas, tabs or spaces between them, or JSON",
  });
  const each = html("input", { type: "checkbox", id: "each-line", checked: true });
  const go = async () => {
    const text = area.value;
    if (await attempt(problem, () => (kind === "texts" ? readTexts(text, each.checked) : readFeatures(text, state.now.features)))) area.value = "";
  };
  area.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    go();
  });
  return [area, html("div", { class: "under" },
    kind === "texts" ? html("label", { class: "check" }, each, "Each line is a text") : html("span", { class: "soft" }, "One row a line"),
    problem, html("button", { type: "button", class: "strong", id: "show", onclick: go }, "Show it"))];
}

function dropped() {
  const problem = html("p", { class: "problem", role: "alert" });
  const take = (files) => attempt(problem, () => readImages(files));
  const chosen = html("input", { type: "file", id: "input", class: "hidden", accept: "image/*", multiple: true, "aria-label": "Images to show" });
  chosen.addEventListener("change", async () => { await take(chosen.files); chosen.value = ""; });
  const zone = html("label", { class: "drop", for: "input" }, html("b", {}, "Drop images here"), html("span", { class: "soft" }, "or choose files, or paste one"));
  for (const name of ["dragenter", "dragover"]) zone.addEventListener(name, (event) => { event.preventDefault(); zone.classList.add("over"); });
  for (const name of ["dragleave", "drop"]) zone.addEventListener(name, () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => { event.preventDefault(); take(event.dataTransfer.files); });
  document.addEventListener("paste", (event) => { if (event.clipboardData?.files.length) take(event.clipboardData.files); });
  return [chosen, zone, html("div", { class: "under" }, problem)];
}

// A file that is dropped beside the place for it must not replace the page.
for (const name of ["dragover", "drop"]) document.addEventListener(name, (event) => event.preventDefault());

let built = null;
export function startTeaching() {
  const wait = () => { if (state.about === null) find("teach-hint").textContent = notYet(); };
  wait();
  on("connection", wait);
  on("hello", () => {
    const kind = state.about.rows;
    find("teach-hint").textContent = whyNot() ?? hints[kind];
    if (built === kind) return;
    built = kind;
    find("enter").replaceChildren(...(kind === "images" ? dropped() : typed(kind)));
  });
}
