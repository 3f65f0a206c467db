// The base of every moving picture: a stage with native controls, and SVG pieces that look alike. Plain ES module, no build step:
// kit/output.py puts this file, the picture and its data into one output of a cell.

const SVG = "http://www.w3.org/2000/svg";
export const FONT = 13; // px, the size of text in a picture; nothing is smaller than SMALL
export const SMALL = 11.5;
export const LINE_HEIGHT = 17; // px from one line of words to the next

// ---- elements

function create(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An SVG element. `onclick` and its like become listeners, null and false attributes and children are left out. */
export const svg = (tag, attributes = {}, ...children) => create(document.createElementNS(SVG, tag), attributes, children);

/** An HTML element, as `svg`. */
export const html = (tag, attributes = {}, ...children) => create(document.createElement(tag), attributes, children);

// ---- words in the learner's language

let translations = {}; // by their English, in which {0} stands for the first value, {1} for the second

const fillIn = (words, values) => words.replace(/\{(\d+)\}/g, (place, index) => values[index]);

/** A template in the learner's language, or in English without a translation. "Column {0} of {1}" is the English that is looked up of Column ${at} of ${n}. */
export function tr(parts, ...values) {
  const english = parts.reduce((words, part, index) => `${words}{${index - 1}}${part}`);
  return fillIn(translations[english] ?? english, values);
}

/** Words as a list: "a", "a and b", "a, b and c". */
export const list = (words) => words.slice(1).reduce((before, word, i) => (i < words.length - 2 ? tr`${before}, ${word}` : tr`${before} and ${word}`), words[0] ?? "");

/** Parts of a sentence with commas between them. */
export const joinClauses = (parts) => parts.join(tr`, `);

/** Sentences one after the other. After Chinese punctuation stands no space. */
export const joinSentences = (sentences) => sentences.join(" ").replace(/(?<=[\u3002\uff01\uff1b\uff1f]) /g, "");

// ---- numbers in words

const RAISED = { "-": "\u207b", 0: "\u2070", 1: "\u00b9", 2: "\u00b2", 3: "\u00b3", 4: "\u2074", 5: "\u2075", 6: "\u2076", 7: "\u2077", 8: "\u2078", 9: "\u2079" };

/** 10 to the power of a whole number, with raised digits. */
export const powerOfTen = (exponent) => "10" + [...String(exponent)].map((digit) => RAISED[digit]).join("");

/** A number to so many significant digits; null is NaN, as JSON has no word for it. */
export function number(value, digits = 4) {
  if (value === null || Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value < 0 ? "-Inf" : "Inf";
  if (value === 0) return "0";
  if (Math.abs(value) >= 1e6 || Math.abs(value) < 1e-4) {
    const [mantissa, exponent] = value.toExponential(Math.min(digits, 3) - 1).split("e");
    return `${mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa}\u00b7${powerOfTen(Number(exponent))}`;
  }
  return String(Number(value.toPrecision(digits)));
}

/** A number with so many decimals, for columns of numbers that are compared. */
export const decimal = (value, places = 2) => {
  if (value === null || !Number.isFinite(value)) return number(value);
  const text = value.toFixed(places);
  return Number(text) === 0 ? text.replace("-", "") : text;
};

/** "1 warp", "2 warps", in the learner's language. */
export const count = (many, noun, plural = `${noun}${/(ch|sh|s|x)$/.test(noun) ? "es" : "s"}`) => fillIn(translations[`{0} ${plural}`] ?? `{0} ${many === 1 ? noun : plural}`, [number(many)]);

/** Bytes: exact below ten thousand, then three digits of kB, MB or GB (powers of 1000, as bandwidth has them). */
export function bytes(size) {
  if (size < 1e4) return count(Math.round(size), "byte");
  const [scale, name] = size >= 1e9 ? [1e9, "GB"] : size >= 1e6 ? [1e6, "MB"] : [1e3, "kB"];
  return `${Number((size / scale).toPrecision(3))} ${name}`;
}

/** A number rounded to the nearest of a dtype, ties to even. One + - * / or square root of two such numbers, computed in JavaScript's
 * float64 and rounded once by this, is what the dtype's own operation gives: float64 has more than twice the digits of either. */
export const rounding = {
  fp32: Math.fround,
  fp16: (value) => {
    if (!(Math.abs(value) < 65520)) return Number.isNaN(value) ? NaN : Math.sign(value) * Infinity;
    const unit = 2 ** (Math.max(Math.floor(Math.log2(Math.abs(value))), -14) - 10);
    const below = Math.floor(value / unit);
    const rest = value / unit - below;
    return (rest > 0.5 || (rest === 0.5 && below % 2 !== 0) ? below + 1 : below) * unit;
  },
};

/** Microseconds, to three digits of \u00b5s, ms or s. */
export function duration(us) {
  if (us > 0 && us < 0.01) return tr`under 0.01 \u00b5s`;
  const [scale, name] = us >= 1e6 ? [1e6, "s"] : us >= 1e3 ? [1e3, "ms"] : [1, "\u00b5s"];
  return `${number(us / scale, 3)} ${name}`;
}

/** The next round number from there on: where an axis may end. */
export function roundUp(value) {
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 5, 7, 10].find((factor) => factor * unit >= value * 0.9999) * unit;
}

/** A number with at most so many decimals and no trailing zeros. */
export const short = (value, places = 3) => {
  const words = decimal(value, places);
  return /^-?\d+\.\d+$/.test(words) ? words.replace(/\.?0+$/, "") : words;
};

// ---- scales

/** A straight scale: a function from `domain` to pixels, with `invert` and `ticks(about how many)`. */
export function linear([from, to], [start, end]) {
  const scale = (value) => start + ((value - from) / (to - from)) * (end - start);
  scale.invert = (pixel) => from + ((pixel - start) / (end - start)) * (to - from);
  scale.ticks = (about = 6) => {
    const rough = Math.abs(to - from) / about;
    const unit = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find((factor) => factor * unit >= rough * 0.999) * unit;
    const ticks = [];
    for (let k = Math.ceil(Math.min(from, to) / step - 1e-9); k * step <= Math.max(from, to) + step * 1e-9; k++) ticks.push(Number((k * step).toPrecision(12)));
    const digits = Math.max(4, Math.ceil(Math.log10(Math.max(Math.abs(from), Math.abs(to)) / step)) + 1); // neighbours must differ
    return ticks.map((value) => [value, number(value, digits)]);
  };
  return scale;
}

/** A logarithmic scale, as `linear`; its ticks are powers of ten. */
export function log([from, to], range) {
  const inner = linear([Math.log10(from), Math.log10(to)], range);
  const scale = (value) => inner(Math.log10(value));
  scale.invert = (pixel) => 10 ** inner.invert(pixel);
  scale.ticks = (about = 8) => {
    const [low, high] = [Math.ceil(Math.log10(from) - 1e-9), Math.floor(Math.log10(to) + 1e-9)];
    const step = Math.max(1, Math.ceil((high - low) / about));
    const ticks = [];
    for (let k = low; k <= high; k += step) ticks.push([10 ** k, Math.abs(k) <= 3 ? number(10 ** k) : powerOfTen(k)]);
    return ticks;
  };
  return scale;
}

// ---- pieces

let ruler = null;
const widths = new Map(); // the same words come back at every move

/** How wide `text` will be, in pixels. */
export function measure(text, size = FONT, weight = "normal") {
  const font = `${weight} ${size}px system-ui, sans-serif`;
  const key = font + text;
  if (!widths.has(key)) {
    ruler ??= document.createElement("canvas").getContext("2d");
    if (widths.size > 5000) widths.clear();
    ruler.font = font;
    widths.set(key, ruler.measureText(text).width * 1.04); // the page's font may be a little wider
  }
  return widths.get(key);
}

/** Text at (x, y), its middle line at y. `anchor` is start, middle or end. */
export const text = (x, y, words, { anchor = "start", size = FONT, bold = false, fill = "var(--ink)", halo = false, ...rest } = {}) =>
  svg("text", { x, y, "text-anchor": anchor, "dominant-baseline": "central", "font-size": size, "font-weight": bold ? 600 : null, class: halo ? "halo" : null, fill, ...rest }, words);

export const MONO = 6.95; // px, the width of a letter of `code`

/** A line of code, or a part of it, as `text`. */
export const code = (x, y, words, options = {}) => text(x, y, words, { size: SMALL, "font-family": "ui-monospace, monospace", ...options });

/** The parts of `words` between which a line may end: after a space, and between Chinese characters, but not before a sign that closes. */
export const splitAtBreaks = (words) => words.split(/(?<= )|(?<=[\u2e80-\uffef])(?<![\u2018\u201c\u300a\uff08])(?![\u3001-\u3002\u300b\uff01\uff09\uff0c\uff1a\uff1b\uff1f])|(?=[\u4e00-\u9fff\uff08])(?<![\u2018\u201c\u300a\uff08])/);

/** The lines of at most `room` pixels into which `words` are broken. */
export function wrapWords(words, room, size = FONT, weight = "normal") {
  const lines = [""];
  for (const part of splitAtBreaks(words)) {
    const longer = lines.at(-1) + part;
    if (lines.at(-1) && measure(longer.trim(), size, weight) > room) lines.push(part);
    else lines[lines.length - 1] = longer;
  }
  return lines.map((line) => line.trim());
}

/** Words in lines of at most `room` pixels from `top` on, as {draw, height}. */
export function drawLines(words, left, top, room, options = {}) {
  if (!words) return { draw: [], height: 0 };
  const lines = wrapWords(words, room, options.size, options.bold ? "600" : "normal");
  return { draw: lines.map((line, i) => text(left, top + LINE_HEIGHT * (i + 0.5), line, options)), height: LINE_HEIGHT * lines.length };
}

/** Code broken behind a comma, a bracket, a dot or a space into lines of at most `room` letters; the lines below the first have
 * `room_below` letters, and are to be indented by four. */
export function breakCode(words, room, room_below = room - 4) {
  if (words.length <= room || room < 8) return [words];
  const cut = Math.max(...[" ", "(", ".", ","].map((sign) => words.lastIndexOf(sign, room - 1)));
  const at = cut > room / 3 ? cut + 1 : room;
  return [words.slice(0, at).trimEnd(), ...breakCode(words.slice(at), room_below, room_below)];
}

/** A line through [x, y] points; a null point interrupts it. */
export function path(points, attributes = {}) {
  let pen = "M";
  const parts = [];
  for (const point of points) {
    if (point === null) { pen = "M"; continue; }
    parts.push(`${pen}${point[0].toFixed(2)},${point[1].toFixed(2)}`);
    pen = "L";
  }
  return svg("path", { d: parts.join(""), fill: "none", stroke: "var(--ink)", "stroke-width": 2, ...attributes });
}

/** A box with a label, in the colour and the hatch of a state: waiting, active, done, masked or fault. `heavy` is what is at work now. */
export function cell(x, y, width, height, label = "", { state = "waiting", heavy = false, size = FONT, fill = `var(--${state})`, ink = `var(--on-${state})`, ...rest } = {}) {
  const hatched = state === "masked" || state === "fault";
  return svg("g", rest,
    svg("rect", { x, y, width, height, rx: 2, fill, stroke: heavy ? "var(--ink)" : "var(--edge)", "stroke-width": heavy ? 2.5 : 1 }),
    hatched && svg("rect", { x, y, width, height, rx: 2, fill: `url(#hatch-${state})`, "pointer-events": "none" }),
    label !== "" && text(x + width / 2, y + height / 2, label, { anchor: "middle", size, fill: ink, "pointer-events": "none", class: hatched ? `on-${state}` : null }));
}

/** An arrow from one point to the other; `bend` moves its middle aside, in pixels. */
export function arrow([x1, y1], [x2, y2], { bend = 0, colour = "var(--quiet)", width = 1.6, ...rest } = {}) {
  const length = Math.hypot(x2 - x1, y2 - y1) || 1;
  const [cx, cy] = [(x1 + x2) / 2 - ((y2 - y1) / length) * bend, (y1 + y2) / 2 + ((x2 - x1) / length) * bend];
  const angle = Math.atan2(y2 - cy, x2 - cx);
  const wing = (turn) => `${(x2 - 8 * Math.cos(angle + turn)).toFixed(1)},${(y2 - 8 * Math.sin(angle + turn)).toFixed(1)}`;
  return svg("g", { "pointer-events": "none", ...rest },
    svg("path", { d: `M${x1},${y1}Q${cx},${cy} ${x2},${y2}`, fill: "none", stroke: colour, "stroke-width": width }),
    svg("path", { d: `M${x2},${y2}L${wing(0.42)}L${wing(-0.42)}Z`, fill: colour }));
}

/** Swatches with words, one after the other and on a new line where `width` ends: [{words, fill, hatch, line}] from (x, y) on. `hatch` is
 * a state whose hatch lies over the colour, `line` draws a line of that dash instead of a box. Returns {draw, height}. */
export function legend(entries, x, y, width, size = SMALL) {
  let [at, line] = [x, y];
  const draw = entries.map(({ words, fill, hatch = null, line: dash = null, ink = "var(--ink)" }) => {
    const room = 22 + measure(words, size);
    if (at > x && at + room > x + width) [at, line] = [x, line + size * 1.6];
    const left = at;
    at += room + 16;
    const first = line;
    const lines = wrapWords(words, width - 22, size);
    line += (lines.length - 1) * size * 1.6;
    return svg("g", {},
      dash === null
        ? [svg("rect", { x: left, y: first - 6, width: 14, height: 12, fill, stroke: "var(--edge)" }), hatch && svg("rect", { x: left, y: first - 6, width: 14, height: 12, fill: `url(#hatch-${hatch})` })]
        : svg("line", { x1: left, x2: left + 16, y1: first, y2: first, stroke: fill, "stroke-width": 2.4, "stroke-dasharray": dash }),
      lines.map((part, i) => text(left + 20, first + i * size * 1.6, part, { size, fill: ink })));
  });
  return { draw, height: line - y + size * 1.6 };
}

/** Axes with ticks, a grid and names. `x` and `y` are scales; `box` is [left, top, right, bottom] in pixels. */
export function axes(box, { x, y, xName = "", yName = "", xTicks = x.ticks(Math.max(2, Math.floor((box[2] - box[0]) / 80))), yTicks = y.ticks(Math.max(2, Math.floor((box[3] - box[1]) / 36))) }) {
  const [left, top, right, bottom] = box;
  return svg("g", {},
    xTicks.map(([value, words]) => [
      svg("line", { x1: x(value), x2: x(value), y1: top, y2: bottom, stroke: "var(--grid)" }),
      text(x(value), bottom + 14, words, { anchor: "middle", size: SMALL, fill: "var(--quiet)" })]),
    yTicks.map(([value, words]) => [
      svg("line", { x1: left, x2: right, y1: y(value), y2: y(value), stroke: "var(--grid)" }),
      text(left - 6, y(value), words, { anchor: "end", size: SMALL, fill: "var(--quiet)" })]),
    svg("path", { d: `M${left},${top}V${bottom}H${right}`, fill: "none", stroke: "var(--quiet)" }),
    xName && text((left + right) / 2, bottom + 34, xName, { anchor: "middle" }),
    yName && text(Math.max(2, Math.min(left, right - measure(yName))), top - 14, yName));
}

/** Boxes along a line through [x, y] points, as obstacles for `labels`. */
export const along = (points, apart = 4) => points.slice(1).flatMap(([x, y], i) => {
  const [x0, y0] = points[i];
  const steps = Math.ceil(Math.hypot(x - x0, y - y0) / 10) || 1;
  return Array.from({ length: steps + 1 }, (_, k) => [x0 + ((x - x0) * k) / steps, y0 + ((y - y0) * k) / steps]).map(([a, b]) => [a - apart, b - apart, a + apart, b + apart]);
});

/** Labels that lie on nothing: each [{at: [[x, y], ...], words, ...text's options}] is tried on the sides of its points, inside `box`,
 * clear of the labels before it and of `obstacles` ([left, top, right, bottom]). What fits nowhere is left out: a label over another
 * says nothing. */
export function labels(wanted, box, obstacles = []) {
  const taken = [...obstacles];
  const drawn = [];
  for (const { at, words, gap = 9, size = FONT, ...options } of wanted) {
    const [width, height] = [measure(words, size, options.bold ? "600" : "normal"), size * 1.25];
    const sides = [[gap, -height / 2], [-gap - width, -height / 2], [-width / 2, -gap - height], [-width / 2, gap], [gap, -gap - height], [gap, gap], [-gap - width, -gap - height], [-gap - width, gap]];
    const free = ([left, top, right, bottom]) =>
      left >= box[0] && top >= box[1] && right <= box[2] && bottom <= box[3] && taken.every((t) => right <= t[0] || left >= t[2] || bottom <= t[1] || top >= t[3]);
    const spot = at.flatMap(([x, y]) => sides.map(([dx, dy]) => [x + dx, y + dy, x + dx + width, y + dy + height])).find(free);
    if (!spot) continue;
    taken.push(spot);
    drawn.push(text(spot[0], (spot[1] + spot[3]) / 2, words, { size, halo: true, ...options }));
  }
  return drawn;
}

/** A point that a hand moves. `drag(x, y)` and `key(dx, dy)` return the changes of the state; dx and dy are -1, 0 or 1, up is 1.
 * `hover(x, y)` does so when a pointer without a pressed button lies over it, and once without arguments when it has left the drawing. */
export const handle = (name, x, y, { label, value, text: words = number(value), min, max, drag, key, hover, radius = 9, fill = "var(--active)", shape = null }) => {
  const plain = (limit) => limit?.toLocaleString("en", { useGrouping: false, maximumFractionDigits: 20 }); // ARIA's numbers have no exponent
  const grip = svg("g", { "data-key": name, tabindex: 0, role: "slider", class: "handle", "aria-label": label, "aria-valuenow": plain(value), "aria-valuetext": words, "aria-valuemin": plain(min), "aria-valuemax": plain(max) },
    shape ?? [svg("circle", { cx: x, cy: y, r: radius + 9, fill: "transparent" }), svg("circle", { cx: x, cy: y, r: radius, fill, stroke: "var(--ink)", "stroke-width": 2 })]);
  grip.course = { drag, key, hover };
  return grip;
};

const segmenter = new Intl.Segmenter(undefined, { granularity: "word" });
const splitWords = (sentence) => [...segmenter.segment(sentence.toLowerCase())].filter(({ isWordLike }) => isWordLike).map(({ segment }) => segment);

/** The accessible name of something with `words` in view: `label`, behind the words if it does not contain them. A person who
 * steers a browser by voice says the words in view (WCAG 2.5.3, Label in Name). */
export function nameWith(words, label) {
  const joinWords = (sentence) => ` ${splitWords(sentence).join(" ")} `;
  const visible = words.replace(/[\u25b8\u25c2]/g, "").replace(/\s+/g, " ").trim(); // a voice would read out the arrows
  return !splitWords(visible).length || joinWords(label).includes(joinWords(visible)) ? label : tr`${visible}: ${label}`;
}

/** Something to press in the drawing, by hand or with Enter or Space. `press()` returns the changes of the state. `label` says what it
 * is; the accessible name has the words in view, too. */
export const target = (name, { label, press, pressed = null, ...rest }, ...children) => {
  const made = svg("g", { "data-key": name, tabindex: 0, role: "button", class: "target", "aria-pressed": pressed === null ? null : String(pressed), ...rest }, ...children);
  made.querySelectorAll("text").forEach((words) => words.after(" ")); // else the words of two texts count as one word
  made.setAttribute("aria-label", nameWith(made.textContent, label));
  made.course = { press };
  return made;
};

// ---- controls: each takes a key of the state

let unique = 0;

/** One of a few, all in sight. `options` are [value, words] or plain values. */
export const choice = (key, label, options) => (stage) => {
  const group = `choice-${unique++}`;
  const boxes = options.map((option) => (Array.isArray(option) ? option : [option, String(option)])).map(([value, words]) => {
    const input = html("input", { type: "radio", name: group, onchange: () => stage.set({ [key]: value }) });
    return { value, input, item: html("label", { class: "segment" }, input, html("span", {}, words)) };
  });
  const element = html("fieldset", { class: "choice", "data-control": key }, html("legend", {}, label), boxes.map((box) => box.item));
  return { key, element, show: (value) => boxes.forEach((box) => { box.input.checked = box.value === value; }) };
};

/** A slider over `values`, or from `min` to `max` in steps of `step` (numbers, or functions of the state). `format` says a value in words. */
export const slider = (key, label, { values = null, min = 0, max = values ? values.length - 1 : 1, step = 1, format = number } = {}) => (stage) => {
  const at = (limit) => (typeof limit === "function" ? limit(stage.state) : limit);
  const said = html("output", {});
  const input = html("input", { type: "range", "aria-label": label, oninput: () => stage.set({ [key]: values ? values[input.valueAsNumber] : input.valueAsNumber }) });
  const element = html("label", { class: "slider", "data-control": key }, html("span", {}, label), input, said);
  return {
    key, element,
    show: (value) => {
      [input.min, input.max, input.step] = [at(min), at(max), values ? 1 : at(step)];
      input.value = values ? values.indexOf(value) : value;
      said.value = format(value);
      input.setAttribute("aria-valuetext", said.value);
    },
  };
};

/** On or off. */
export const toggle = (key, label) => (stage) => {
  const input = html("input", { type: "checkbox", onchange: () => stage.set({ [key]: input.checked }) });
  return { key, element: html("label", { class: "toggle", "data-control": key }, input, html("span", {}, label)), show: (value) => { input.checked = value; } };
};

/** A button; `press(state)` returns the changes of the state. */
export const button = (label, press) => (stage) => ({ element: html("button", { type: "button", onclick: () => stage.set(press(stage.state)) }, label), show: () => {} });

/** A line of text, taken at Enter or when the field is left. `take(words)` returns the changes of the state. */
export const entry = (key, label, { take = (words) => ({ [key]: words }), size = 36 } = {}) => (stage) => {
  const taken = () => stage.set(take(input.value));
  // a notebook may keep Enter from the field, so it is not left to the change that Enter makes
  const input = html("input", { type: "text", size, spellcheck: "false", autocomplete: "off", onchange: taken, onkeydown: (event) => { if (event.key === "Enter") taken(); } });
  return { key, element: html("label", { class: "entry", "data-control": key }, html("span", {}, label), input), show: (value) => { input.value = value; } };
};

/** Back, Step, Play and a slider over frames. `frames` says how many there are in this state, `format(frame, last)` how one is called. */
export const stepper = (key, label, frames, { interval = 700, format = (value, last) => tr`${value + 1} of ${last + 1}` } = {}) => (stage) => {
  const last = () => frames(stage.state) - 1;
  const scrub = slider(key, label, { min: 0, max: last, format: (value) => format(value, last()) })(stage);
  let timer = null;
  const stop = () => { clearInterval(timer); timer = null; play.textContent = tr`Play`; };
  const at = () => Math.min(stage.state[key], last()); // another setting may have fewer frames
  const move = (by) => stage.set({ [key]: Math.min(Math.max(at() + by, 0), last()) });
  const play = html("button", { type: "button", onclick: () => {
    if (timer) return stop();
    if (at() >= last()) stage.set({ [key]: 0 });
    play.textContent = tr`Pause`;
    timer = setInterval(() => (stage.host.isConnected && at() < last() ? move(1) : stop()), interval);
  } }, tr`Play`);
  const back = html("button", { type: "button", onclick: () => { stop(); move(-1); } }, tr`Back`);
  const step = html("button", { type: "button", onclick: () => { stop(); move(1); } }, tr`Step`);
  const element = html("div", { class: "stepper", "data-control": key }, back, step, play, scrub.element);
  return { key, element, stop, show: () => {
    scrub.show(at());
    [back.disabled, step.disabled] = [at() <= 0, at() >= last()];
  } };
};

// ---- the stage

/**
 * Whether what lies behind the element is dark: pages say it in many ways, but all of them paint it. A page that paints nothing lies over another
 * one, as in VS Code, and its text has the colour for that.
 */
function isDark(element) {
  const read = (colour) => (colour.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
  const isDim = ([r, g, b]) => 0.2126 * r + 0.7152 * g + 0.0722 * b < 128;
  for (let node = element; node; node = node.parentElement ?? node.getRootNode().host) {
    const paper = read(getComputedStyle(node).backgroundColor);
    if ((paper[3] ?? 1) > 0.5) return isDim(paper);
  }
  return !isDim(read(getComputedStyle(element).color));
}

/**
 * A picture at work. `render(state, width)` returns {height, title, caption, alt, draw: [elements]}; it is called at every move and
 * has no effect of its own. Behind the title `alt` describes the drawing to those who do not see it; without it the caption does. `controls` are rows of what choice, slider, toggle, button and stepper return.
 * `off(state)` names the controls that have no meaning now.
 */
export class Stage {
  constructor(host, css, { start, controls, render, off = () => [] }) {
    Object.assign(this, { host, render, off, start, state: { ...start } });
    const root = (this.root = host.attachShadow({ mode: "open" }));
    this.title = html("p", { class: "title" });
    this.svg = svg("svg", { role: "group", class: "drawing" });
    this.caption = html("p", { class: "caption", role: "status", "aria-live": "polite" });
    const reset = button(tr`Reset`, () => ({ ...start }));
    this.rows = controls.map((row, index) => (index === controls.length - 1 ? [...row, reset] : row).map((make) => make(this)));
    root.append(
      html("style", {}, css),
      html("div", { class: "stage" }, this.title,
        this.rows.map((row) => html("div", { class: "controls" }, row.map((control) => control.element))), this.svg, this.caption));
    this.#listen();
    this.#follow();
    this.show();
  }

  get width() { return Math.min(Math.max(Math.floor(this.root.lastChild.clientWidth) || 720, 300), 1000); }

  /** Change the state and show it. */
  set(changes) {
    if (!changes) return;
    Object.assign(this.state, changes);
    if (Object.keys(this.start).every((key) => changes[key] === this.start[key])) this.rows.flat().forEach((control) => control.stop?.());
    this.show();
  }

  show() {
    const off = new Set(this.off(this.state));
    for (const control of this.rows.flat()) {
      control.show(this.state[control.key]);
      const fields = control.element.matches("button, input, fieldset") ? [control.element] : control.element.querySelectorAll("input, button");
      if (control.key) control.element.classList.toggle("off", off.has(control.key));
      if (control.key && (off.has(control.key) || control.dulled)) fields.forEach((field) => { field.disabled = off.has(control.key); });
      control.dulled = off.has(control.key);
    }
    const listStops = () => [...this.svg.querySelectorAll('[data-key][tabindex="0"]')];
    const focused = this.root.activeElement?.dataset?.key;
    const place = Math.max(listStops().findIndex(({ dataset }) => dataset.key === focused), 0);
    const width = this.width;
    const { height, title, caption, alt = caption, draw } = this.render(this.state, width);
    this.title.textContent = title;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.setAttribute("width", width);
    this.svg.setAttribute("height", height);
    this.svg.setAttribute("aria-label", joinSentences([/[?\uff1f]$/.test(title) ? title : tr`${title}.`, alt]));
    this.svg.replaceChildren(hatches(), ...draw.flat(Infinity).filter(Boolean));
    if (this.caption.textContent !== caption) this.caption.textContent = caption;
    if (!focused) return;
    const stops = listStops(); // what had the focus may be gone: then what took its place has it, lest the next Tab begin at the top of the page
    const next = this.svg.querySelector(`[data-key="${CSS.escape(focused)}"]`) ?? stops[Math.min(place, stops.length - 1)] ?? this.root.querySelector("button:enabled");
    next?.focus({ preventScroll: true });
  }

  #listen() {
    let dragged = null;
    const find = (event) => event.target.closest?.("[data-key]");
    const place = (event) => {
      const frame = this.svg.getBoundingClientRect();
      const scale = this.svg.viewBox.baseVal.width / frame.width;
      return [(event.clientX - frame.left) * scale, (event.clientY - frame.top) * scale];
    };
    const current = (name) => this.svg.querySelector(`[data-key="${CSS.escape(name)}"]`);
    this.svg.addEventListener("pointerdown", (event) => {
      const element = find(event);
      if (!element?.course?.drag) return;
      dragged = element.dataset.key;
      this.svg.setPointerCapture(event.pointerId);
      element.focus({ preventScroll: true });
      event.preventDefault();
    });
    this.svg.addEventListener("pointermove", (event) => this.set(dragged ? current(dragged)?.course.drag(...place(event)) : find(event)?.course?.hover?.(...place(event))));
    this.svg.addEventListener("pointerleave", () => { if (!dragged) for (const element of this.svg.querySelectorAll("[data-key]")) this.set(element.course?.hover?.()); });
    for (const end of ["pointerup", "pointercancel"]) this.svg.addEventListener(end, () => { dragged = null; });
    this.svg.addEventListener("click", (event) => this.set(find(event)?.course?.press?.()));
    this.svg.addEventListener("keydown", (event) => {
      const course = find(event)?.course;
      const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      const changes = move ? course?.key?.(...move) : event.key === "Enter" || event.key === " " ? course?.press?.() : null;
      if (!changes) return;
      event.preventDefault();
      this.set(changes);
    });
  }

  /** Follow the page's width and theme. */
  #follow() {
    const paint = () => { this.host.dataset.theme = isDark(this.host.parentElement ?? document.body) ? "dark" : "light"; };
    const later = () => requestAnimationFrame(() => { if (this.host.isConnected) paint(); });
    paint();
    let width = this.width;
    new ResizeObserver(() => { paint(); if (this.width !== width) { width = this.width; this.show(); } }).observe(this.root.lastChild);
    // the attribute changes before the new theme's colours have arrived: look now, and once more when they have
    const watch = new MutationObserver(() => { later(); setTimeout(later, 400); });
    for (const node of [document.documentElement, document.body]) watch.observe(node, { attributes: true, attributeFilter: ["class", "style", "data-theme", "data-mode", "data-jp-theme-light", "data-vscode-theme-kind"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", later);
  }
}

function hatches() {
  const hatch = (state, turn) => svg("pattern", { id: `hatch-${state}`, width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: `rotate(${turn})` },
    svg("line", { x1: 0, y1: 0, x2: 0, y2: 7, stroke: `var(--hatch-${state})`, "stroke-width": 1.6 }));
  return svg("defs", {}, hatch("masked", 45), hatch("fault", -45));
}

/** Bring every place of this picture in the page to life, once; `picture(data)` returns what Stage takes. `words` are the translations that `tr` needs. */
export function mount(name, css, picture, data, words = {}) {
  translations = words;
  for (const host of document.querySelectorAll(`[data-picture="${name}"]:not([data-live])`)) {
    host.dataset.live = "";
    const made = picture(data);
    host.stage = Object.assign(new Stage(host, css, made), { made }); // what tests of the page reach it by
  }
}
