// A fold that a link names is opened, one that answers a prediction says what the reader predicted, and what scrolls can be reached by the
// keyboard. Nothing is kept or sent.
function openNamed() {
  const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!named?.closest("details")) return;
  for (let fold = named; fold; fold = fold.parentElement) if (fold.matches("details")) fold.open = true;
  named.scrollIntoView();
}
function reachScrolling() {
  for (const box of document.querySelectorAll("pre, .formula-block, .table-wrapper, .output.text_html")) {
    if (box.scrollWidth > box.clientWidth + 1) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}
// as read_number in lessons/prediction.py reads it; NaN if it is none
function readNumber(said) {
  const parts = said.replaceAll(",", ".").split("/").map((part) => (part.trim() ? Number(part) : NaN));
  return parts.length === 1 ? parts[0] : parts.length === 2 && parts[1] ? parts[0] / parts[1] : NaN;
}
// which sentence Question.write_verdict writes: right, close, other, or an answer that has a sentence of its own
function judge(said, own, { kind, answer, within, factor }) {
  if (kind !== "number") return said === answer ? "right" : own.includes(said) ? said : "other";
  const [number, right] = [readNumber(said), Number(answer)];
  if (!Number.isFinite(number)) return "skipped";
  const named = own.find((key) => Number(key) === number);
  if (named) return named;
  const off = Math.abs(number - right);
  const expected = Number(factor) && number * right > 0 ? number / right >= 1 / factor && number / right <= Number(factor) : off <= Number(within);
  const halfADigit = 0.5 * 10 ** -(answer.split(".")[1] ?? "").length;
  return !expected ? "other" : off < halfADigit || off <= 0.005 * Math.max(Math.abs(number), Math.abs(right)) ? "right" : "close";
}
function sayWhatWasPredicted(fold) {
  const box = fold.querySelector(".said");
  const fields = [...document.querySelectorAll(`[data-question="${fold.dataset.answers}"] :is(input:checked, input[type=text])`)];
  const read = (field) => (field.type === "text" ? field.value.trim() : field.type === "checkbox" ? field.value : field.nextElementSibling.textContent);
  const words = fields.map(read).join(" ");
  const when = words ? judge(words, [...box.children].map((line) => line.dataset.when), box.dataset) : "skipped";
  for (const line of box.children) {
    line.hidden = line.dataset.when !== when;
    for (const span of line.querySelectorAll("span")) span.textContent = words;
  }
}
for (const fold of document.querySelectorAll("[data-answers]")) fold.addEventListener("toggle", () => fold.open && sayWhatWasPredicted(fold));
// "Run here": what the lesson needs is loaded into the browser's cache, with a bar, while the page can be read; then the lesson is opened
async function loadFiles(link, bar, words) {
  const list = new URL(link.dataset.files, location.href);
  const files = await (await fetch(list)).json();
  const sum = files.reduce((total, [, size]) => total + size, 0);
  let read = 0;
  for (const [name] of files) {
    const reader = (await fetch(new URL(name, list))).body.getReader();
    for (let part; !(part = await reader.read()).done; ) {
      bar.value = (read += part.value.length) / sum;
      const [loaded, all] = [read, sum].map((bytes) => Math.round(bytes / 1e6));
      words.textContent = words.dataset.words.replace("{loaded}", loaded).replace("{all}", all);
    }
  }
}
for (const link of document.querySelectorAll("a.here"))
  link.addEventListener("click", async (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const [bar, words] = link.parentElement.querySelectorAll("progress, [role=status]");
    bar.hidden = false;
    navigator.storage?.persist?.(); // asks the browser not to delete what the reader will write
    // a file that does not come is asked for again by the lesson, which says what is missing
    await loadFiles(link, bar, words).catch((problem) => (words.textContent = String(problem)));
    // on a phone JupyterLab's side bars leave a lesson no room
    location.assign(innerWidth < 700 ? link.href.replace("/lab/index.html", "/notebooks/index.html") : link.href);
  });
// the theme leaves its two side columns without names that tell them apart
document.querySelector(".sidebar-drawer")?.setAttribute("aria-label", "Pages of the site");
document.querySelector(".toc-drawer")?.setAttribute("aria-label", "Sections of this page");
// A copy takes the focus from its button: the next Tab would begin at the top of the page.
document.addEventListener("click", (event) => event.target.closest?.("button.copybtn")?.focus());
// The theme opens a side column by a label, which only a pointer can press. By keyboard it opens at Enter, with its first link in focus, and
// closes at Escape or when the focus leaves it.
for (const label of document.querySelectorAll(".nav-overlay-icon, .toc-overlay-icon")) {
  const [box, opener] = [label.control, label.querySelector(".icon")];
  const column = document.querySelector(box.id === "__toc" ? ".toc-drawer" : ".sidebar-drawer");
  const attributes = { tabindex: 0, role: "button", "aria-label": column.getAttribute("aria-label"), "aria-expanded": false };
  for (const [name, value] of Object.entries(attributes)) opener.setAttribute(name, value);
  box.addEventListener("change", () => opener.setAttribute("aria-expanded", box.checked));
  opener.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    box.click();
    if (box.checked) [...column.querySelectorAll("a[href]")].find((link) => link.checkVisibility()).focus();
  });
  column.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && box.checked && opener.checkVisibility()) opener.focus();
  });
  column.addEventListener("focusout", (event) => {
    if (box.checked && event.relatedTarget && !column.contains(event.relatedTarget)) box.click();
  });
}
addEventListener("hashchange", openNamed);
addEventListener("resize", reachScrolling);
document.addEventListener("toggle", reachScrolling, true);
openNamed();
reachScrolling();
