// Keys, and the list of them.
import { find, html, toast } from "./elements.js";
import { actions } from "./review.js";

const KEYS = [
  ["t", "Enter something to show", () => find("input")?.focus()],
  ["Enter", "Accept its answer", () => actions.accept(), "a"],
  ["1 – 5", "Teach that class instead", null],
  ["n", "Name another class, or a new one", () => actions.name()],
  ["x", "Skip it", () => actions.remove()],
  ["j k", "Look at the next one, or the one before", null],
  ["u", "Undo the last change", () => (find("undo").disabled ? toast("No change can be taken back just now.") : find("undo").click())],
  ["/", "Search classes", () => find("search").focus()],
  ["d", "Change between light and dark", () => find("theme").click()],
  ["Esc", "Leave a field or a dialog", null],
  ["?", "This list", () => find("help").showModal()],
];

const isTyping = (element) => element.matches("input:not([type=checkbox]), textarea, select, [contenteditable]");

export function startKeys() {
  find("keys").replaceChildren(...KEYS.map(([key, what]) => html("div", {}, html("dt", {}, ...key.split(" ").map((part) => (part === "–" ? "–" : html("kbd", {}, part)))), html("dd", {}, what))));
  find("help-button").addEventListener("click", () => find("help").showModal());
  for (const button of document.querySelectorAll("[data-close]")) button.addEventListener("click", () => button.closest("dialog").close());
  for (const dialog of document.querySelectorAll("dialog")) dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || document.querySelector("dialog[open]")) return;
    const { target, key } = event;
    if (isTyping(target)) {
      if (key === "Escape") (find("card") ?? document.body).focus();
      return;
    }
    // Enter presses the button that has the focus; only elsewhere does it accept.
    if (key === "Enter" && target.closest("button, a, summary, label")) return;
    const found = KEYS.find(([name, , act, other]) => act !== null && (name === key || other === key));
    if (/^[1-9]$/.test(key)) actions.choose(Number(key));
    else if (key === "j") actions.move(1);
    else if (key === "k") actions.move(-1);
    else if (found) found[2]();
    else return;
    event.preventDefault();
  });
}
