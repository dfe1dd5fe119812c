// What was shown in this session: the least certain comes first, is looked at, and taught with one click or key.
import { cut, find, html, labelKey, labelText, labelled, percent, plural, tell, toast } from "./elements.js";
import { preview } from "./rows.js";
import { ask, change, newKey } from "./server.js";
import { canChange, on, state, whyNot } from "./state.js";

const TOP = 5;
// Rows of one request: an image is large.
const AT_ONCE = { texts: 100, features: 100, images: 8 };
// A row of which fewer new rows would be as unlike what was learned is "nothing I know".
const NOVEL = 0.01;
const SURE = 0.95;
const LISTED = 100, SUGGESTED = 2000;

const items = [];
let letGoOf = 0; // rows that were taught and are not listed any more
let current = null;
let numbered = 0;

const waiting = () => items.filter((item) => item.status !== "taught").sort((a, b) => certainty(a) - certainty(b) || a.id - b.id);
const taught = () => items.filter((item) => item.status === "taught").sort((a, b) => b.taughtAt - a.taughtAt);
const best = (item) => item.prediction?.label ?? null;
// No answer comes before every answer.
const certainty = (item) => (item.prediction === null ? -2 : item.prediction.label === null ? item.prediction.probability - 1 : item.prediction.probability);
const isSure = (item) => item.status === "ready" && best(item) !== null && item.prediction.probability >= SURE;
// Hours of teaching must not fill the memory: rows beyond the list go, but for the last change, which may be taken back.
const letGo = () => {
  const done = taught();
  for (const item of done.slice(LISTED)) {
    if (item.version === done[0].version || item === current) continue;
    items.splice(items.indexOf(item), 1);
    letGoOf++;
  }
};
const rowsOf = (chosen) => ({ [state.about.rows]: chosen.map((item) => item.row.value) });

// -- predictions --
export function show(rows) {
  const fresh = rows.map((row) => ({ id: numbered++, row, status: "asking", prediction: null, label: null, version: null, rowId: newKey(), problem: null }));
  items.push(...fresh);
  current = null;
  draw();
  find("card").focus({ preventScroll: true });
  predict(fresh, true);
}

async function predict(chosen, first = false) {
  const step = AT_ONCE[state.about.rows];
  for (let start = 0; start < chosen.length; start += step) {
    const part = chosen.slice(start, start + step);
    try {
      const answer = state.now.classes ? await asked({ ...rowsOf(part), top: TOP, again: !first }) : { predictions: part.map(() => null) };
      part.forEach((item, k) => {
        item.prediction = answer.predictions[k];
        if (item.status === "asking") item.status = "ready";
        if (item.status !== "taught") item.problem = null;
      });
    } catch (problem) {
      for (const item of part.filter((one) => one.status !== "taught")) {
        item.problem = problem.status === 409 ? null : problem.message; // 409: nothing is learned yet
        if (item.status === "asking") item.status = "ready";
      }
    }
    if (first) current = null; // the least certain of all that are there by now
    draw();
  }
  if (first && current !== null) tell(said(current));
}

// Novelty is told by how rows of a class differ: not of the first row of each, and not if all are alike. Rows that are
// not solved yet do not count.
async function asked(body) {
  if (state.now.rows - state.now.behind <= state.now.classes) return ask("predict", body);
  try {
    return await ask("predict", { ...body, novelty: NOVEL });
  } catch (problem) {
    if (problem.status !== 409 || !state.now.classes) throw problem;
    return ask("predict", body);
  }
}

const said = (item) => {
  if (item.problem !== null) return item.problem;
  if (item.prediction === null) return "Nothing is learned yet: name the class.";
  const answer = best(item) === null ? "Nothing I know" : `${labelText(best(item))}, ${percent(item.prediction.probability, 0)}`;
  return `${cut(item.row.summary, 60)}: ${answer}`;
};

// -- teaching --
// Labels are of the kind that there is: texts, whole numbers, or true and false. An answer tells it, too, if the classes
// are not read yet.
const readLabel = (text) => {
  const known = state.classes?.[0]?.label ?? current?.prediction?.top?.[0]?.label;
  if (typeof known === "number") {
    if (!/^[+-]?\d{1,15}$/.test(text)) throw new Error("Classes are whole numbers here.");
    return Number(text);
  }
  if (typeof known === "boolean") {
    if (!["true", "false"].includes(text.toLowerCase())) throw new Error("Classes are true and false here.");
    return text.toLowerCase() === "true";
  }
  return text;
};
// A whole number beyond 2^53 is rounded when it is read: sent back, it would be another class.
const isExact = (label) => typeof label !== "number" || Number.isSafeInteger(label);
const idsOf = (chosen) => (state.now.ids ? { ids: chosen.map((item) => item.rowId) } : {});

async function make(chosen, label, work) {
  const reason = whyNot();
  if (reason !== null) { toast(reason, "bad"); return; }
  if (chosen.some((item) => !isExact(label(item)))) { toast("Not learned: a browser cannot hold this number exactly. Teach it with a client.", "bad"); return; }
  for (const item of chosen) Object.assign(item, { status: "sending", before: item.status, problem: null });
  draw();
  try {
    const answer = await work();
    chosen.forEach((item, k) => Object.assign(item, { status: "taught", label: label(item), version: answer.version, taughtAt: performance.now() + k, sent: null }));
    const what = chosen.length === 1 ? labelText(chosen[0].label) : plural(chosen.length, "row");
    toast(`Learned ${chosen.length === 1 ? "as " : ""}${cut(what, 60)}. Version ${answer.version}.`);
    undoneElsewhere();
  } catch (problem) {
    for (const item of chosen) Object.assign(item, { status: item.before, problem: `Not learned: ${problem.message}` });
    toast(`Not learned: ${problem.message}`, "bad");
  }
  if (chosen.includes(current) && current.status === "taught") current = null;
  draw();
}

// Sent again after it failed, it has the same key: it is made once.
const learn = (chosen, label) => make(chosen, label, () => {
  const body = { ...rowsOf(chosen), labels: chosen.map(label), ...idsOf(chosen) };
  const sent = JSON.stringify(body);
  const key = chosen[0].sent === sent ? chosen[0].key : newKey();
  Object.assign(chosen[0], { key, sent });
  return change("learn", body, key);
});

// Only the last change can be taken back, and another one may come in between.
async function isTakenBack(version) {
  if (state.now.undo !== version) return false;
  try {
    await change("undo", { version });
    return true;
  } catch (problem) {
    if (problem.status !== 409) throw problem;
    return false;
  }
}

function correct(item, label) {
  const old = { ...rowsOf([item]), labels: [item.label], ...idsOf([item]) };
  const fresh = { ...old, labels: [label] };
  return make([item], () => label, async () => {
    if (state.now.ids) return change("correct", { old, new: fresh });
    // Without ids, two changes: the row as it was learned is taken out, then learned as it should have been.
    if (!(await isTakenBack(item.version))) await change("forget", old);
    item.before = "ready"; // if the second one fails, it is not learned
    item.label = null;
    return change("learn", fresh);
  });
}

async function forget(item) {
  const reason = whyNot();
  if (reason !== null) { toast(reason, "bad"); return; }
  try {
    const answer = await change("forget", { ...rowsOf([item]), labels: [item.label], ...idsOf([item]) });
    Object.assign(item, { status: "ready", label: null, version: null });
    toast(`Forgotten. Version ${answer.version}.`);
    current = item;
  } catch (problem) {
    toast(`Not forgotten: ${problem.message}`, "bad");
  }
  draw();
}

const teach = (item, label) => {
  if (item.status === "taught") {
    if (labelKey(label) === labelKey(item.label)) { current = null; draw(); } else correct(item, label);
  } else if (item.status === "ready") learn([item], () => label);
};

// -- what keys do --
export const actions = {
  accept() {
    if (current === null) return;
    if (best(current) === null) toast("There is no answer to accept: choose a class, or name one.");
    else teach(current, best(current));
  },
  choose(number) {
    const entry = current?.prediction?.top?.[number - 1];
    if (entry !== undefined) teach(current, entry.label);
  },
  name() { find("class-name")?.focus(); },
  remove() { if (current !== null) leave(current); },
  move(by) {
    const order = waiting();
    if (!order.length) return;
    const at = order.indexOf(current);
    look(order[Math.min(order.length - 1, Math.max(0, at + by))]);
  },
};
// What waits is dropped; what is taught stays as it is.
const leave = (item) => {
  if (item.status !== "taught") items.splice(items.indexOf(item), 1);
  if (item === current) current = null;
  draw();
};
const look = (item) => {
  current = item;
  draw();
  find("card").focus({ preventScroll: true });
  find("card").scrollIntoView({ block: "nearest" });
  tell(said(item));
};
const acceptSure = () => { const sure = waiting().filter(isSure); if (sure.length) learn(sure, best); };

// A change was taken back: its rows wait again.
const waitAgain = (versions) => {
  const back = items.filter((item) => item.status === "taught" && versions.includes(item.version));
  for (const item of back) Object.assign(item, { status: "ready", label: null, version: null, sent: null });
  return back;
};
export function undone(version) {
  const [first] = waitAgain([version]);
  current = first ?? current;
  draw();
}
// Somebody else may have done so, or whoever did was answered before the change itself.
const undoneElsewhere = () => waitAgain(state.now.changes.filter(({ kind }) => kind === "undo").map(({ target }) => target)).length > 0;

// -- drawing --
let card = null; // the elements of the current card

function draw() {
  const order = waiting();
  if (current === null || !items.includes(current)) current = order[0] ?? null;
  letGo();
  drawCard();
  keepingFocus(() => {
    drawWaiting(order);
    drawTaught(taught());
  });
}

// Lists are drawn again; a button that has the focus has it again.
function keepingFocus(work) {
  const { item, act } = document.activeElement?.dataset ?? {};
  work();
  if (item !== undefined) document.querySelector(`[data-item="${item}"][data-act="${act}"]`)?.focus({ preventScroll: true });
}

function drawCard() {
  const place = find("card-place"), hadFocus = place.contains(document.activeElement);
  if (current === null) {
    card = null;
    place.replaceChildren(html("p", { class: "empty card", id: "card", tabindex: "-1" }, items.length ? "All that was shown is taught." : "What you show appears here, the least certain first."));
    if (hadFocus) find("card").focus({ preventScroll: true });
    return;
  }
  if (card?.item !== current || card.isTaught !== (current.status === "taught")) {
    const name = html("input", { id: "class-name", list: "known-classes", placeholder: "Another class, or a new one", maxlength: 1000, autocomplete: "off", "aria-label": "Name of the class", "aria-keyshortcuts": "n", dir: "auto" });
    const item = current, note = html("p", { class: "said" }), options = html("ol", { class: "options" }), fresh = html("span", { class: "soft fresh" });
    const problem = html("p", { class: "problem", role: "alert" });
    const named = (event) => {
      event.preventDefault();
      const text = name.value.trim();
      if (text === "") { name.focus(); return; }
      try { teach(item, readLabel(text)); } catch (error) { problem.textContent = error.message; }
    };
    name.addEventListener("input", () => { fresh.textContent = newness(name.value.trim()); });
    const form = html("form", { class: "naming", onsubmit: named }, name, fresh, html("button", { type: "submit", class: "quiet" }, "Teach"));
    const close = html("button", { type: "button", class: "plain", title: "Skip it (x)", onclick: () => leave(item) }, item.status === "taught" ? "Leave it so" : "Skip");
    const root = html("article", { class: "card", id: "card", tabindex: "-1", "aria-label": "To review" },
      html("div", { class: `preview ${item.row.kind}` }, preview(item.row)), html("div", { class: "answer" }, html("div", { class: "line" }, note, close), options, form, problem));
    place.replaceChildren(root);
    const shown = root.firstElementChild;
    if (shown.scrollHeight > shown.clientHeight) shown.tabIndex = 0; // to be scrolled by keys
    card = { item, isTaught: item.status === "taught", root, name, note, options, form, problem, fresh };
  }
  fillCard();
  // Keys go on where they were, also if what had the focus is gone, or waits for an answer.
  if (hadFocus && (!place.contains(document.activeElement) || document.activeElement.disabled)) card.root.focus({ preventScroll: true });
}

const newness = (text) => {
  if (text === "" || state.classes === null) return "";
  try { const key = labelKey(readLabel(text)); return state.classes.some((entry) => labelKey(entry.label) === key) ? "" : "new class"; } catch { return ""; }
};

function fillCard() {
  const { item, note, options, problem } = card, { prediction } = item;
  const busy = item.status === "sending" || item.status === "asking";
  note.replaceChildren(...(
    item.status === "taught" ? ["Learned as ", labelled(item.label), `, version ${item.version}. What should it have been?`]
      : item.status === "asking" ? ["Asking …"] : item.status === "sending" ? ["Teaching …"]
        : prediction === null ? [item.problem === null ? "Nothing is learned yet: name its class." : "No answer."]
          : prediction.label === null ? [html("b", { class: "unknown" }, "Nothing I know"), ", but closest to these:"]
            : ["It says:"]));
  if (prediction?.novelty != null && prediction.label !== null && item.status === "ready") {
    note.append(html("span", { class: "tag", title: "The share of rows like those learned that would be as unlike" }, `novelty ${percent(prediction.novelty, prediction.novelty < 0.1 ? 1 : 0)}`));
  }
  const focused = [...options.querySelectorAll("button")].indexOf(document.activeElement);
  options.replaceChildren(...(prediction?.top ?? []).map((entry, k) => {
    const bar = html("i");
    bar.style.width = `${100 * entry.probability}%`;
    const isBest = k === 0 && prediction.label !== null;
    return html("li", {}, html("button", { type: "button", class: isBest ? "option best" : "option", disabled: busy || !canChange(), onclick: () => teach(item, entry.label), "aria-keyshortcuts": isBest ? "Enter 1" : k + 1 },
      html("kbd", { "aria-hidden": "true" }, String(k + 1)), labelled(entry.label), html("span", { class: "share" }, percent(entry.probability, entry.probability > 0.995 || entry.probability < 0.005 ? 1 : 0)), html("span", { class: "track", "aria-hidden": "true" }, bar)));
  }));
  if (focused >= 0) options.querySelectorAll("button")[focused]?.focus({ preventScroll: true });
  for (const control of card.form.elements) control.disabled = busy || !canChange();
  problem.textContent = item.problem ?? "";
}

function drawWaiting(order) {
  const rest = order.filter((item) => item !== current), sure = order.filter(isSure);
  find("waiting-title").textContent = order.length ? `To review: ${order.length}, least certain first` : "To review";
  find("accept-sure").hidden = sure.length < 2;
  find("accept-sure").textContent = `Accept ${sure.length} at ${percent(SURE, 0)} or more`;
  find("accept-sure").disabled = !canChange();
  find("clear").hidden = order.length < 2;
  find("waiting").replaceChildren(...rest.slice(0, LISTED).map((item) => html("li", {},
    html("button", { type: "button", class: "entry", "data-item": item.id, "data-act": "look", onclick: () => look(item) }, small(item), html("span", { class: "what", dir: "auto" }, item.row.summary),
      item.problem !== null ? html("span", { class: "bad" }, "problem")
        : item.prediction === null ? html("span", { class: "soft" }, item.status === "asking" ? "…" : "no answer")
          : item.prediction.label === null ? html("span", { class: "unknown" }, "nothing I know") : labelled(best(item)),
      html("span", { class: "share" }, item.prediction === null ? "" : percent(item.prediction.probability, 0))))));
  find("more-waiting").textContent = rest.length > LISTED ? `and ${rest.length - LISTED} more` : "";
}
const small = (item) => (item.row.kind === "images" ? html("img", { src: item.row.address, alt: "" }) : null);

function drawTaught(done) {
  const total = done.length + letGoOf;
  find("taught-title").textContent = total ? `Taught in this session: ${total}${total > LISTED ? `, the last ${LISTED} listed` : ""}` : "Taught in this session";
  find("no-taught").hidden = done.length > 0;
  find("taught").replaceChildren(...done.slice(0, LISTED).map((item) => html("li", {},
    html("div", { class: "entry" }, small(item), html("span", { class: "what", dir: "auto" }, item.row.summary), labelled(item.label), html("span", { class: "share" }, `v${item.version}`),
      html("button", { type: "button", class: "plain", "data-item": item.id, "data-act": "correct", disabled: !canChange(), onclick: () => look(item) }, "Correct"),
      html("button", { type: "button", class: "plain", "data-item": item.id, "data-act": "forget", disabled: !canChange(), onclick: () => forget(item) }, "Forget")))));
}

export function startReview() {
  find("review").replaceChildren(
    html("div", { id: "card-place" }), html("datalist", { id: "known-classes" }),
    html("div", { class: "line heading" }, html("h3", { id: "waiting-title" }), html("span", {},
      html("button", { type: "button", class: "plain", id: "accept-sure", onclick: acceptSure, hidden: true }),
      html("button", { type: "button", class: "plain", id: "clear", hidden: true, onclick: () => { for (const item of waiting()) items.splice(items.indexOf(item), 1); current = null; draw(); } }, "Skip all"))),
    html("ol", { class: "entries", id: "waiting", "aria-labelledby": "waiting-title" }), html("p", { class: "soft", id: "more-waiting" }),
    html("h3", { id: "taught-title" }), html("p", { class: "empty left", id: "no-taught" }, "Nothing yet."), html("ol", { class: "entries", id: "taught", "aria-labelledby": "taught-title" }));
  let suggested = "";
  on("classes", () => {
    const names = state.classes.slice(0, SUGGESTED).map((entry) => labelText(entry.label)), told = JSON.stringify(names);
    if (told !== suggested) find("known-classes").replaceChildren(...names.map((value) => html("option", { value })));
    suggested = told;
    if (card !== null) card.fresh.textContent = newness(card.name.value.trim());
  });
  on("connection", draw);
  on("now", () => { if (undoneElsewhere()) draw(); });
  // What waits is asked again as soon as predictions know more, but for a part of the time only; whatever is looked at
  // stays where it is.
  let asking = false, again = false;
  on("solved", async () => {
    if (asking) { again = true; return; }
    asking = true;
    do {
      again = false;
      const began = performance.now();
      await predict(waiting().filter((item) => item.status === "ready").slice(0, 200));
      await new Promise((done) => setTimeout(done, Math.max(1000, 9 * (performance.now() - began))));
    } while (again);
    asking = false;
  });
  draw();
}
