// What it knows: classes with counts, expected accuracy and confusions, and where more rows would help most.
import { drawPoints } from "./charts.js";
import { NONE, count, find, html, inOrder, labelText, labelled, percent, plural, rows } from "./elements.js";
import { notYet, on, state } from "./state.js";

const FEW = 12, MOST = 500, HELPFUL = 5, DRAWN = 2000;
// Five more rows are a share of 5 / (n + 5) of a class: what they can change of its expected errors.
const MORE = 5;
const view = { sort: "rows", ascending: true, search: "", all: false };

const help = (entry) => (entry.expected === null ? 0 : (1 - entry.expected) * MORE / (entry.rows + MORE));
const compare = {
  label: (a, b) => inOrder(a.label, b.label),
  rows: (a, b) => a.rows - b.rows,
  expected: (a, b) => (a.expected ?? 2) - (b.expected ?? 2),
};

function drawClasses() {
  const classes = state.classes;
  const body = find("classes").tBodies[0], empty = find("no-classes"), more = find("all-classes");
  if (classes === null) {
    const waits = state.connection === "connecting" || state.connection === "live";
    empty.hidden = waits;
    empty.textContent = notYet();
    if (!waits) { body.replaceChildren(); return; }
    body.replaceChildren(...Array.from({ length: 6 }, () => html("tr", { class: "loading", "aria-hidden": "true" }, html("td", { colspan: 4 }, html("i")))));
    return;
  }
  const wanted = view.search.trim().toLowerCase();
  const found = classes.filter((entry) => labelText(entry.label).toLowerCase().includes(wanted));
  found.sort((a, b) => (view.ascending ? 1 : -1) * compare[view.sort](a, b) || compare.label(a, b));
  const shown = found.slice(0, view.all ? MOST : FEW);
  const most = classes.reduce((rows, entry) => Math.max(rows, entry.rows), 1);
  body.replaceChildren(...shown.map((entry) => row(entry, most)));
  find("found").textContent = wanted ? `${count(found.length)} of ${count(classes.length)}` : plural(classes.length, "class", "classes");
  empty.hidden = shown.length > 0;
  empty.textContent = classes.length ? "No class is called so." : "Nothing is learned yet. Show it something, and name its class.";
  more.hidden = found.length <= FEW;
  more.textContent = view.all ? `Show ${FEW} only` : `Show ${found.length > MOST ? `the first ${count(MOST)} of ` : "all "}${count(found.length)}`;
  for (const head of find("classes").tHead.rows[0].cells) {
    const name = head.querySelector("button")?.dataset.sort;
    if (name) head.setAttribute("aria-sort", name !== view.sort ? "none" : view.ascending ? "ascending" : "descending");
  }
}

function row(entry, most) {
  const bar = html("i", { class: "amount" });
  bar.style.width = `${100 * Math.sqrt(entry.rows / most)}%`;
  const [first] = entry.confusions, others = entry.confusions.slice(1).map(({ label, share }) => `${labelText(label).slice(0, 60)} ${percent(share, 0)}`).join(", ");
  const taken = () => (first === undefined ? [NONE] : [labelled(first.label), html("small", {}, ` ${percent(first.share, 0)}`)]);
  return html("tr", {},
    html("th", { scope: "row" }, labelled(entry.label), first === undefined ? null : html("span", { class: "under" }, "taken for ", ...taken())),
    html("td", { class: "bar-cell" }, bar, html("span", {}, count(entry.rows))),
    html("td", { class: entry.expected !== null && entry.expected < 0.7 ? "low" : null }, percent(entry.expected, 0)),
    html("td", { class: "wide", title: others && `also ${others}` }, ...taken()));
}

function drawDoubt() {
  const known = (state.classes ?? []).filter((entry) => entry.expected !== null);
  const ranked = [...known].sort((a, b) => help(b) - help(a)).slice(0, HELPFUL).filter((entry) => help(entry) > 0.001);
  const strong = new Set(ranked);
  const why = state.classes === null ? notYet() : !state.classes.length ? "Nothing is learned yet"
    : state.about.parameters.calibrate ? "Known when more rows are learned" : "Known of a model with calibrate=True";
  drawPoints(find("doubt"), {
    points: known.filter((entry, k) => k < DRAWN || strong.has(entry)).map((entry) => ({ x: entry.rows, y: entry.expected, name: `${labelText(entry.label).slice(0, 100)}: ${rows(entry.rows)}, ${percent(entry.expected, 0)}`, strong: strong.has(entry) })),
    label: `Expected accuracy of ${plural(known.length, "class", "classes")} against rows`, empty: why,
    xLabel: "rows learned", format: (value) => percent(value, 0),
  });
  find("helpful").replaceChildren(...ranked.map((entry) => html("li", {}, labelled(entry.label),
    html("span", { class: "soft" }, ` ${rows(entry.rows)}, ${percent(entry.expected, 0)} expected`),
    entry.confusions.length ? html("span", { class: "soft" }, ", taken for ", labelled(entry.confusions[0].label, "label ink")) : null)));
}

function drawParameters() {
  const { about, now } = state;
  const pairs = Object.entries(about.parameters).filter(([, value]) => value !== null);
  pairs.unshift(["model", about.model], ["rows are", about.backbone === null ? "features" : `${about.rows}, by ${about.backbone}`], ["features", now.features]);
  find("parameters").replaceChildren(...pairs.map(([name, value]) => html("div", {}, html("dt", {}, name), html("dd", {}, value === null ? NONE : String(value)))));
}

export function startKnowing() {
  find("search").addEventListener("input", (event) => { view.search = event.target.value; drawClasses(); });
  find("all-classes").addEventListener("click", () => { view.all = !view.all; drawClasses(); });
  for (const button of find("classes").tHead.querySelectorAll("button")) {
    button.addEventListener("click", () => {
      const name = button.dataset.sort;
      view.ascending = view.sort === name ? !view.ascending : true;
      view.sort = name;
      drawClasses();
    });
  }
  on("classes", () => { drawClasses(); drawDoubt(); drawParameters(); });
  on("hello", drawParameters);
  on("connection", () => { if (state.classes === null) { drawClasses(); drawDoubt(); } });
  on("resize", drawDoubt);
  drawClasses();
  drawDoubt();
}
