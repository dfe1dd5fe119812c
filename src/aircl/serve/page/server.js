// The service: requests with the token, changes that are made once however often they are sent, and the stream of events.

// In memory only.
let token = null;

export class Problem extends Error {
  // status 0: nobody answered.
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const detailOf = (value) => {
  const detail = value?.detail;
  if (typeof detail === "string") return detail;
  if (Array.isArray(detail)) return detail.map((one) => `${(one.where ?? []).join(".")}: ${one.what ?? one.msg ?? ""}`).join("; ");
  return "";
};
const sentence = (text) => (text === "" ? "" : text[0].toUpperCase() + text.slice(1));
const usual = {
  401: "A token is needed.", 403: "This token may not do that.", 404: "There is no such thing here.",
  413: "That is too much at once.", 503: "The service is busy: try again.", 507: "The disk of the service is full.",
};
const headers = () => (token === null ? {} : { Authorization: `Bearer ${token}` });

export const setToken = (value) => { token = value; };
export const hasToken = () => token !== null;

export async function ask(path, body, key) {
  const options = { headers: headers(), cache: "no-store" };
  if (body !== undefined) {
    options.method = "POST";
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
    if (key !== undefined) options.headers["Idempotency-Key"] = key;
  }
  let answer, value;
  try {
    answer = await fetch(path, options);
    value = await answer.json();
  } catch (error) {
    if (answer === undefined || answer.ok) throw new Problem(0, "The service cannot be reached.");
    value = {};
  }
  if (answer.ok) return value;
  if (answer.status === 401) needToken();
  throw new Problem(answer.status, sentence(detailOf(value)) || usual[answer.status] || `The service answers ${answer.status}.`);
}

export const newKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const pause = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));

// A change whose answer was lost is sent again by the same key, so it is made once.
export async function change(path, body, key = newKey()) {
  for (let attempt = 0; ; attempt++) {
    try {
      return await ask(path, body, key);
    } catch (problem) {
      if (attempt === 2 || ![0, 503].includes(problem.status)) throw problem;
      await pause(0.5 * 2 ** attempt);
    }
  }
}

// -- the stream --
// By fetch, as an EventSource cannot have a token in its headers, and an address with a token in it ends up in logs.
let needToken = () => {};
let wake = () => {};
let stop = () => {};
export const reconnect = () => { stop(); wake(); };

const SILENT_SECONDS = 45;
const LONGEST_WAIT = 8;

export async function listen(handle) {
  let tokenWanted = false;
  needToken = () => {
    if (tokenWanted) return;
    tokenWanted = true;
    stop();
    wake();
  };
  let wait = 0.5;
  for (;;) {
    const controller = new AbortController();
    stop = () => controller.abort();
    let status = 0;
    if (!tokenWanted) {
      try {
        handle.connecting();
        const answer = await fetch("events", { headers: headers(), cache: "no-store", signal: controller.signal });
        status = answer.status;
        if (answer.ok) {
          await read(answer.body, controller, (name, value) => {
            wait = 0.5;
            handle[name]?.(value);
          });
        } else if (status === 403) handle.refused(detailOf(await answer.json().catch(() => ({}))));
      } catch { /* nobody is there, or it was ended here */ }
    }
    if (tokenWanted || status === 401) {
      handle.token(hasToken());
      await new Promise((done) => { wake = done; });
      tokenWanted = false;
      continue;
    }
    if (status !== 403) handle.lost(wait);
    await Promise.race([pause(status === 403 ? 30 : wait), new Promise((done) => { wake = done; })]);
    wait = Math.min(LONGEST_WAIT, 2 * wait);
  }
}

async function read(body, controller, handle) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const silent = setTimeout(() => controller.abort(), 1000 * SILENT_SECONDS);
    const { done, value } = await reader.read().finally(() => clearTimeout(silent));
    if (done) return;
    text += value;
    let end;
    while ((end = text.indexOf("\n\n")) >= 0) {
      const lines = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const part = (name) => lines.find((line) => line.startsWith(name))?.slice(name.length);
      if (part("data: ") !== undefined) handle(part("event: "), JSON.parse(part("data: ")));
    }
  }
}
