// Watch it: charts that go on, the last changes, and versions to roll back to.
import { drawLines } from "./charts.js";
import { count, cut, find, html, labelText, labelled, milliseconds, percent, plural, rows, toast, when } from "./elements.js";
import { ask, change } from "./server.js";
import { may, notYet, on, state, whyNot } from "./state.js";

const CHARTS = [
  { id: "rows", title: "Rows learned", format: count, least: 4, values: (now) => [count(now.rows)], empty: "Nothing is learned yet",
    series: [["rows", "main", (point) => point.rows]] },
  { id: "accuracy", title: "Accuracy", format: (value) => percent(value, 0), least: 0.04, high: 1, empty: "Known when it learns more",
    values: (now) => [`${percent(now.progressive, 0)} progressive`, `${percent(now.expected, 0)} expected`],
    series: [["progressive", "main", (point) => point.progressive], ["expected", "second", (point) => point.expected]] },
  { id: "novel", title: "Novel rows", format: (value) => percent(value, value < 0.1 ? 1 : 0), least: 0.04, low: 0, values: (now) => [percent(now.novel)], empty: "Known when it predicts",
    series: [["novel", "main", (point) => point.novel]] },
  { id: "latency", title: "Latency of a prediction", format: milliseconds, least: 0.001, low: 0, empty: "Known when it predicts",
    values: (now) => [`${milliseconds(now.latency?.[0])} median`, `${milliseconds(now.latency?.[1])} at 95 %`],
    series: [["median", "main", (point) => point.latency?.[0] ?? null], ["95 %", "second", (point) => point.latency?.[1] ?? null]] },
];

function drawCharts() {
  const { now, received } = state;
  // What was last is so until now, by the service's clock.
  const points = now === null ? [] : [...state.points, { ...now, at: now.at + (performance.now() - received) / 1000 }];
  for (const chart of CHARTS) {
    const series = chart.series.map(([name, kind, value]) => ({ name, kind, values: points.map((point) => [point.at, value(point)]) }));
    const told = now === null ? ["\u00a0"] : chart.values(now);
    // Where there are two lines, each value has a piece of its line before it.
    find(`value-${chart.id}`).replaceChildren(...told.flatMap((value, k) => [k ? ", " : "", told.length > 1 ? html("i", { class: `key ${chart.series[k][1]}`, "aria-hidden": "true" }) : "", value]));
    drawLines(find(`chart-${chart.id}`), { ...chart, series, label: `${chart.title}: ${told.join(", ")}`, empty: now === null ? notYet() : chart.empty });
  }
}

// -- changes --
const KINDS = { learn: "Learned", forget: "Forgot", correct: "Corrected", "forget-classes": "Forgot whole classes,", merge: "Merged a model of", rollback: "Rolled back to", undo: "Took back" };
export const describe = (entry) => {
  const kind = KINDS[entry.kind] ?? entry.kind;
  if (entry.target !== null) return [`${kind} ${entry.target}`];
  const parts = [kind];
  if (entry.rows) parts.push(` ${rows(entry.rows)}`);
  entry.classes.slice(0, 3).forEach(([label, n], k) => parts.push(k ? ", " : entry.rows ? ": " : " ", labelled(label), n > 1 && entry.rows > n ? ` × ${count(n)}` : ""));
  const more = entry.classes.length - Math.min(3, entry.classes.length) + entry.more_classes;
  if (more > 0) parts.push(` and ${plural(more, "more class", "more classes")}`);
  return parts;
};

function drawChanges() {
  const { changes } = state.now;
  const undone = new Set(changes.filter((entry) => entry.kind === "undo").map((entry) => entry.target));
  find("no-changes").hidden = changes.length > 0;
  find("no-changes").textContent = "Nothing was changed since the service was started.";
  find("changes").hidden = changes.length === 0;
  find("changes").tBodies[0].replaceChildren(...changes.map((entry) => html("tr", { class: undone.has(entry.version) ? "gone" : null },
    html("th", { scope: "row" }, String(entry.version)), html("td", {}, ...describe(entry), undone.has(entry.version) ? html("span", { class: "tag" }, "taken back") : null), html("td", {}, when(entry.made)))));
}

// -- versions --
let listing = null;
async function readVersions() {
  const about = state.about;
  if (!may("admin")) {
    state.versions = null;
    state.versionsProblem = "This token may not see versions: it lacks the scope admin.";
  } else if (listing !== `${about.started} ${state.now.checkpoint}`) {
    listing = `${about.started} ${state.now.checkpoint}`;
    try {
      state.versions = (await ask("versions")).versions;
      state.versionsProblem = null;
    } catch (problem) {
      listing = null;
      state.versionsProblem = problem.message;
    }
  }
  drawVersions();
}

let drawn = "";
function drawVersions() {
  const versions = [...(state.versions ?? [])].reverse();
  const what = JSON.stringify([versions, state.versionsProblem, state.now.version, whyNot("admin")]);
  if (what === drawn) return; // a button that has the focus keeps it
  drawn = what;
  find("versions").hidden = versions.length === 0;
  find("no-versions").hidden = versions.length > 0;
  find("no-versions").textContent = state.versionsProblem ?? notYet();
  const version = state.now.version;
  find("versions").tBodies[0].replaceChildren(...versions.map((entry) => html("tr", {},
    html("th", { scope: "row" }, String(entry.version)), html("td", {}, count(entry.rows)), html("td", {}, count(entry.classes)),
    html("td", {}, when(entry.made), html("small", {}, entry.reason === "checkpoint" ? "" : ` ${entry.reason}`)),
    html("td", {}, entry.version === version ? html("span", { class: "soft" }, "current")
      : html("button", { type: "button", class: "plain", disabled: whyNot("admin") !== null, "aria-label": `Roll back to version ${entry.version}`, onclick: () => askBack(entry) }, "Roll back …")))));
}

let asked = null;
async function askBack(entry) {
  asked = entry;
  const what = find("rollback-what"), go = find("rollback-go");
  find("rollback-title").textContent = `Roll back to version ${entry.version}?`;
  find("rollback-problem").textContent = "";
  what.replaceChildren(html("p", { class: "soft" }, "Looking at what would be lost …"));
  go.disabled = true;
  go.textContent = `Roll back to ${entry.version}`;
  find("rollback-dialog").showModal();
  try {
    const told = await ask(`versions/${entry.version}`);
    if (asked !== entry) return;
    what.replaceChildren(...losses(told));
    go.disabled = false;
  } catch (problem) {
    find("rollback-problem").textContent = problem.message;
    what.replaceChildren();
  }
}

function losses(told) {
  const lost = told.classes.filter((entry) => entry.then < entry.now), back = told.classes.filter((entry) => entry.then > entry.now);
  const sum = (entries) => entries.reduce((total, entry) => total + Math.abs(entry.now - entry.then), 0);
  const list = (entries) => html("ul", { class: "losses" }, ...entries.slice(0, 8).map((entry) => html("li", {}, labelled(entry.label),
    html("span", { class: "soft" }, entry.then === 0 ? ` is gone: ${rows(entry.now)}` : entry.now === 0 ? ` comes back: ${rows(entry.then)}` : ` ${count(entry.now)} → ${count(entry.then)} rows`))),
  entries.length > 8 ? html("li", { class: "soft" }, `and ${plural(entries.length - 8, "more class", "more classes")}`) : null);
  const changes = told.current - told.version;
  const parts = [html("p", {}, `The model becomes what it was ${when(told.made)}. `, html("b", {}, lost.length ? `${rows(sum(lost))} of ${plural(lost.length, "class", "classes")} will be lost` : "No rows will be lost"), changes > 0 ? `, with every change after version ${told.version}.` : ".")];
  if (lost.length) parts.push(list(lost));
  if (back.length) parts.push(html("p", {}, `${rows(sum(back))} that were forgotten or rolled back come back:`), list(back));
  parts.push(html("p", { class: "soft" }, "It can be undone until the next change."));
  return parts;
}

async function goBack() {
  find("rollback-go").disabled = true;
  try {
    const answer = await change("rollback", { version: asked.version });
    find("rollback-dialog").close();
    toast(`Rolled back to ${asked.version}, as version ${answer.version}.`);
  } catch (problem) {
    find("rollback-problem").textContent = problem.message;
    find("rollback-go").disabled = false;
  }
}

export const undoText = (now) => {
  const last = now.undo === null ? null : now.changes.find((entry) => entry.version === now.undo);
  if (!last) return "";
  if (last.target !== null) return `${KINDS[last.kind] ?? last.kind} ${last.target}`;
  const label = last.classes[0]?.[0], classes = last.classes.length + last.more_classes;
  const of = classes > 1 ? ` of ${plural(classes, "class", "classes")}` : label === undefined ? "" : `: ${cut(labelText(label), 24)}`;
  return `${KINDS[last.kind] ?? last.kind} ${last.rows ? rows(last.rows) : ""}${of}`;
};

export function startWatching() {
  find("charts").replaceChildren(...CHARTS.map((chart) => html("figure", {}, html("figcaption", {}, html("b", {}, chart.title), html("span", { id: `value-${chart.id}` }, "\u00a0")), html("div", { class: "plot", id: `chart-${chart.id}` }))));
  find("rollback-go").addEventListener("click", goBack);
  on("hello", () => { listing = null; });
  on("now", () => { drawCharts(); drawChanges(); readVersions(); });
  on("connection", () => {
    if (state.now !== null) drawVersions();
    else drawNothing();
  });
  on("resize", drawCharts);
  setInterval(() => { if (state.connection === "live" && !document.hidden && !find("charts").matches(":hover")) drawCharts(); }, 5000);
  drawNothing();
}

function drawNothing() {
  drawCharts();
  for (const name of ["changes", "versions"]) {
    find(name).hidden = true;
    find(`no-${name}`).textContent = notYet();
  }
}
