// The parts of the page together: the connection, what is read again when something changes, and undo.
import { count, find, html, labelKey, NONE, percent, toast, when } from "./elements.js";
import { startKeys } from "./keys.js";
import { startKnowing } from "./knows.js";
import { startReview, undone } from "./review.js";
import { ask, change, listen, reconnect, setToken } from "./server.js";
import { canChange, emit, on, state } from "./state.js";
import { startTeaching } from "./teach.js";
import { startWatching, undoText } from "./watch.js";

const POINTS = 900;

// -- the connection --
const TEXTS = { connecting: "Connecting", live: "Live", offline: "Offline: trying again", token: "A token is needed", refused: "Refused" };
function connected(how, text = TEXTS[how], retry = null) {
  const before = state.connection;
  state.connection = how;
  document.body.dataset.connection = how;
  const told = find("connection").lastElementChild;
  if (told.textContent !== text) told.textContent = text; // what is written again is read out again
  told.title = text;
  find("reconnect").hidden = retry === null;
  find("reconnect").textContent = retry ?? "";
  if (state.about === null && how !== "connecting") find("name").textContent = location.hostname;
  if (how !== before) emit("connection", how);
}

const handle = {
  connecting() { if (state.connection !== "offline") connected("connecting"); },
  hello(about) {
    const before = state.about;
    const { points, now, ...rest } = about;
    Object.assign(state, { about: rest, now, points: [...points, now], received: performance.now() });
    find("token-dialog").close();
    live();
    if (before !== null && before.started !== rest.started) toast("The service was restarted. Confirmed changes are not lost.");
    document.title = `${rest.name} – aircl serve`;
    find("name").textContent = rest.name;
    find("meta").replaceChildren(...[`aircl ${rest.aircl}`, rest.model, rest.backbone === null ? null : `${rest.rows} by ${rest.backbone}`, rest.read_only ? "reads along" : null, rest.token === null ? null : `token ${rest.token}: ${rest.may.join(", ")}`]
      .filter((part) => part !== null).map((part) => html("span", {}, part)));
    emit("hello");
    changed(null);
  },
  now(now) {
    const before = state.now;
    state.now = now;
    state.received = performance.now();
    state.points.push(now);
    if (state.points.length > POINTS) state.points.shift();
    live();
    changed(before);
  },
  lost(wait) { connected("offline", wait > 1 ? `Offline: next try in ${wait} s` : TEXTS.offline, "Try now"); },
  refused(detail) {
    connected("refused", `Refused: ${detail || "this token may not see it."}`, "Another token");
    find("token-problem").textContent = `Refused: ${detail}`;
  },
  token(wasWrong) {
    connected("token", wasWrong ? "Refused: this token is not known" : TEXTS.token, "Enter a token");
    find("token-problem").textContent = wasWrong ? "This token is not known here, or was taken back." : "";
    askToken();
  },
};
const live = () => connected("live", state.now.problem === null ? TEXTS.live : `Live, with a problem: ${state.now.problem}`);

const askToken = () => {
  if (!find("token-dialog").open) find("token-dialog").showModal();
  find("token").select();
};

// -- what is read again --
let reading = false, readAgain = false;
async function readClasses() {
  if (reading) { readAgain = true; return; }
  reading = true;
  try {
    do {
      readAgain = false;
      const began = performance.now();
      const [{ classes }, accuracy] = await Promise.all([ask("classes"), ask("expected-accuracy")]);
      const known = new Map((accuracy.per_class ?? []).map((entry) => [labelKey(entry.label), entry]));
      state.classes = classes.map((entry) => ({ expected: null, confusions: [], ...known.get(labelKey(entry.label)), ...entry }));
      emit("classes");
      // While it learns all the time, twice a second is enough, and less of what takes long.
      await new Promise((done) => setTimeout(done, Math.max(500, 5 * (performance.now() - began))));
    } while (readAgain);
  } catch { /* the stream says whether the service is gone */ }
  reading = false;
}

function changed(before) {
  const { now } = state;
  if (before === null || before.version !== now.version || before.solved !== now.solved) readClasses();
  if (before === null || before.solved !== now.solved) emit("solved");
  drawGlance();
  drawUndo();
  emit("now");
}

function drawGlance() {
  const { now, about } = state;
  const behind = now === null ? NONE : now.behind ? `${count(now.behind)} behind` : "up to date";
  const facts = [
    ["Classes", now && count(now.classes)],
    ["Rows learned", now && count(now.rows)],
    ["Expected accuracy", now && percent(now.expected)],
    ["Progressive accuracy", now && percent(now.progressive), now?.progressive_rows ? `last ${count(now.progressive_rows)}` : ""],
    ["Version", now && count(now.version), now && (about.read_only ? "reads along" : behind)],
    ["Last learned", now && (now.last_learned === null ? NONE : when(now.last_learned)), now && now.last_learned === null ? "not here yet" : ""],
  ];
  find("glance").replaceChildren(...facts.map(([name, value, more]) => html("div", {}, html("dt", {}, name), html("dd", {}, value ?? NONE, html("small", {}, more || "\u00a0")))));
}

// -- undo --
function drawUndo() {
  const { now } = state;
  find("undo").disabled = !canChange() || now.undo === null;
  find("undo-what").textContent = now === null ? "" : undoText(now);
}
async function undo() {
  const version = state.now?.undo ?? null;
  if (version === null) return;
  find("undo").disabled = true;
  try {
    const answer = await change("undo", { version });
    undone(version);
    toast(`Took back change ${version}. Version ${answer.version}.`);
  } catch (problem) {
    toast(problem.message, "bad");
    drawUndo();
  }
}

startKnowing();
startReview();
startTeaching();
startWatching();
startKeys();
drawGlance();
on("connection", () => { if (state.now !== null) drawUndo(); });
find("undo").addEventListener("click", undo);
find("reconnect").addEventListener("click", () => (["token", "refused"].includes(state.connection) ? askToken() : reconnect()));
find("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken(find("token").value.trim());
  find("token").value = "";
  find("token-problem").textContent = "";
  reconnect();
});
for (const name of ["online", "offline"]) addEventListener(name, reconnect);
let resizing = 0;
addEventListener("resize", () => { cancelAnimationFrame(resizing); resizing = requestAnimationFrame(() => emit("resize")); });
listen(handle);
