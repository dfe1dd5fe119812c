// What is known of the service, and who wants to hear when it changes.

export const state = {
  about: null, // what is served
  now: null, // the last event
  points: [], // what charts are drawn of
  received: 0, // when the last event was
  classes: null, // [{label, rows, expected, confusions}], null before they are known
  versions: null,
  versionsProblem: null,
  connection: "connecting", // live, offline, token, refused
};

const wanting = new Map();
export const on = (name, listener) => wanting.set(name, [...(wanting.get(name) ?? []), listener]);
export const emit = (name, value) => { for (const listener of wanting.get(name) ?? []) listener(value); };

// What stands where nothing is known yet.
export const notYet = () => ({ token: "Known with a token", refused: "Not for this token", offline: "Not reached yet" })[state.connection] ?? "Loading";

export const may = (scope) => state.about?.may.includes(scope) ?? false;
export const canChange = () => state.connection === "live" && may("learn") && !state.about.read_only;
// Why nothing can be changed, or null.
export const whyNot = (scope = "learn") => {
  if (state.connection === "offline") return "The service cannot be reached.";
  if (state.connection !== "live") return "Not connected yet.";
  if (state.about.read_only) return "This service only reads along: another one learns.";
  return may(scope) ? null : `This token may not ${scope === "learn" ? "teach" : "do that"}: it lacks the scope ${scope}.`;
};
