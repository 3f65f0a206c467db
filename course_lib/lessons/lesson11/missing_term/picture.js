// Lesson 11: a mistake in dx, read from its error. Only what bf16 makes of the statistics is rounding, and comes from Python.

import { FONT, SMALL, axes, button, cell, choice, joinSentences, labels, linear, number, path, slider, svg, target, text, tr } from "../../kit/kit.js";

const nameTerms = () => ({ none: tr`nothing`, c1: "c1", c2: "c2", both: tr`c1 and c2`, rstd: tr`last rstd`, w: "w", mean: tr`mean`, divisor: "1/N", statistics: tr`bf16 statistics` });
const NOTHING = 1e-9; // of the size of wdy * rstd: what rounding leaves

// ---- arithmetic on rows

const sum = (values) => values.reduce((total, value) => total + value, 0);
const average = (values) => sum(values) / values.length;
const product = (a, b) => a.map((value, i) => value * b[i]);
const size = (values) => Math.sqrt(average(product(values, values)));
const minus = (a, b) => a.map((value, i) => value - b[i]);

function gradient(xhat, wdy, rstd, { c1 = true, c2 = true, divide = true, last = true }) {
  const total = divide ? average : sum;
  const [one, two] = [c1 ? total(product(xhat, wdy)) : 0, c2 ? total(wdy) : 0];
  return xhat.map((value, i) => (wdy[i] - one * value - two) * (last ? rstd : 1));
}

/** The row of a setting: x, w and dy, its statistics, and those that bf16 would have saved. */
function makeRow(data, { kind, columns, ratio, weights, gradient: sent }) {
  const [noise, w, dy] = data.rows[columns];
  const x = noise.map((value) => data.std * (ratio + value));
  const mean = kind === "layer_norm" ? average(x) : 0;
  const centred = x.map((value) => value - mean);
  const ones = x.map(() => 1);
  return { x, mean, w: weights === "ones" ? ones : w, dy: sent === "ones" ? ones : dy, rstd: 1 / Math.sqrt(average(product(centred, centred)) + data.eps), saved: data.saved[`${kind}|${columns}|${number(ratio)}`] };
}

function mistake(term, layer, { x, mean, w, dy, rstd, saved }) {
  const scaled = (about, factor) => x.map((value) => (value - about) * factor);
  const [xhat, wdy] = [scaled(mean, rstd), product(w, dy)];
  if (term === "w") return gradient(xhat, dy, rstd, { c2: layer });
  if (term === "mean") return gradient(scaled(layer ? 0 : average(x), rstd), wdy, rstd, { c2: layer });
  if (term === "statistics") return gradient(scaled(...saved), wdy, saved[1], { c2: layer });
  const c2 = layer !== (term === "c2" || term === "both"); // for RMSNorm the mistake is to have one
  return gradient(xhat, wdy, rstd, { c1: term !== "c1" && term !== "both", c2, divide: term !== "divisor", last: term !== "rstd" });
}

/** dx with a mistake, its error, and the error taken apart: a multiple of 1, one of xhat, and as little as possible besides. */
export function explain(data, state, term = state.hidden ?? state.term) {
  const layer = state.kind === "layer_norm";
  const row = makeRow(data, state);
  const xhat = row.x.map((value) => (value - row.mean) * row.rstd);
  const wdy = product(row.w, row.dy);
  const [dx, right] = [mistake(term, layer, row), mistake("none", layer, row)];
  const error = minus(dx, right);
  const centred = xhat.map((value) => value - average(xhat));
  const slope = sum(product(centred, error)) / sum(product(centred, centred));
  const intercept = average(error) - slope * average(xhat);
  const rest = error.map((value, i) => value - intercept - slope * xhat[i]);
  const noise = NOTHING * size(wdy) * row.rstd;
  const clean = (value) => (Math.abs(value) <= Math.max(noise, 1e-6 * size(error)) ? 0 : value);
  return { term, layer, xhat, dx, right, error, slope, intercept, rest, noise, rstd: row.rstd, c1: average(product(xhat, wdy)), c2: average(wdy), clean, parts: [Math.abs(intercept), size(product(xhat, xhat.map(() => slope))), size(rest)].map(clean) };
}

/** What the error itself says about its cause: read from the line and the rest, not from what was chosen. */
export function nameCause({ term, layer, dx, right, error, slope, intercept, rest, noise, rstd, c1, c2 }) {
  const whole = size(error);
  if (whole <= noise) return term === "none" ? tr`No error` : tr`This test does not see the mistake`;
  const [one, hat, over] = [c2 * rstd, c1 * rstd, 1 - dx.length];
  const is = (value, wanted) => Math.abs(value - wanted) <= 1e-6 * Math.max(Math.abs(wanted), whole);
  if (size(rest) <= 1e-6 * whole) {
    const height = layer ? one : -one;
    if (is(intercept, height) && is(slope, 0)) return layer ? tr`The error is c2 * rstd along 1: c2 is missing` : tr`The error is -c2 * rstd along 1: RMSNorm has no c2`;
    if (is(slope, hat) && is(intercept, 0)) return tr`The error is c1 * rstd along xhat: c1 is missing`;
    if (is(slope, hat) && is(intercept, height)) return layer ? tr`The error is c1 * rstd along xhat and c2 * rstd along 1: c1 and c2 are missing` : tr`The error lies along 1 and xhat: c1 is missing, and RMSNorm has no c2`;
    if (is(slope, over * hat) && is(intercept, layer ? over * one : 0)) return tr`The error is N - 1 = ${-over} times what should be taken out: 1/N is missing`;
  }
  const factor = size(right) > noise ? sum(product(dx, right)) / sum(product(right, right)) : 0;
  if (factor && size(dx.map((value, i) => value - factor * right[i])) <= 1e-6 * whole) return tr`dx is right but for a factor of ${number(factor, 3)}: rstd is ${number(rstd, 3)}`;
  if (size(rest) < 0.25 * whole) return tr`The error lies along 1 and xhat, by other amounts than c1 and c2: xhat is wrong`;
  if (whole < 0.01 * size(right)) return tr`The error is below 1 % of dx, and its points form no line: digits are lost somewhere`;
  return tr`The points form no line: the row sums may be right, so look at wdy`;
}

// ---- words

const inWords = (value) => number(value, 3);

export function makeTitle({ kind, term, hidden }, seen, guess, data) {
  if (!hidden) return nameCause(seen);
  if (!term) return tr`One mistake is hidden in this dx: which one? Read it from the points, then name it`;
  const named = data.terms[kind][term];
  if (term === hidden) return joinSentences([tr`Yes, ${named}.`, nameCause(seen)]);
  if (size(minus(guess.error, seen.error)) <= Math.max(1e-6 * size(seen.error), seen.noise)) return tr`The mistake is not \u201c${named}\u201d, but with this dy and w both mistakes give the same dx`;
  return tr`Not \u201c${named}\u201d: that mistake would give the hollow points`;
}

/** Whether the picture may say what the error consists of: nothing is hidden, or it has been named. */
const isNamed = ({ hidden, term }) => !hidden || term === hidden;

export function makeCaption(state, seen, data) {
  const { clean, parts } = seen;
  const named = isNamed(state);
  const [right, error] = [seen.right, seen.error].map((values) => inWords(clean(size(values))));
  const words = [
    state.hidden
      ? tr`${data.kinds[state.kind]}, N = ${state.columns}, mean/std = ${number(state.ratio)}.`
      : tr`${data.kinds[state.kind]}, N = ${state.columns}, mean/std = ${number(state.ratio)}; ${data.terms[state.kind][state.term]}.`,
    named
      ? tr`Root mean squares: true dx ${right}, error ${error}; parts of the error: ${inWords(parts[0])} along 1, ${inWords(parts[1])} along xhat, ${inWords(parts[2])} in neither.`
      : tr`Root mean squares: true dx ${right}, error ${error}.`,
  ];
  if (named) words.push(tr`The fitted line is ${inWords(clean(seen.intercept))} at xhat = 0 and has slope ${inWords(clean(seen.slope))}; c2 * rstd is ${inWords(clean(seen.c2 * seen.rstd))}, c1 * rstd is ${inWords(clean(seen.c1 * seen.rstd))}.`);
  const at = Math.min(state.column, state.columns - 1);
  words.push(tr`Column ${at}: dx is ${inWords(clean(seen.dx[at]))} and should be ${inWords(clean(seen.right[at]))}.`);
  if (size(seen.right) <= seen.noise) words.push(tr`With this dy and w the true dx is 0: any code that returns 0 passes.`);
  return joinSentences(words);
}

// ---- the picture

export function picture(data) {
  const hide = ({ kind, hidden, term }) => {
    const others = Object.keys(data.terms[kind]).filter((key) => key !== "none" && key !== (hidden ?? term));
    return { hidden: others[Math.floor(Math.random() * others.length)], term: null };
  };
  const look = (state) => explain(data, state);
  return {
    start: data.start,
    explain: look,
    name: (state) => nameCause(look(state)),
    controls: [
      [choice("kind", tr`norm`, Object.entries(data.kinds)), choice("columns", "N", data.columns), slider("ratio", "mean/std", { values: data.ratios })],
      [choice("gradient", "dy", Object.entries(data.gradients)), choice("weights", "w", Object.entries(data.weights))],
      [choice("term", tr`what is wrong`, Object.entries(nameTerms()))],
      [choice("across", tr`across`, Object.entries(data.across)), button(tr`Hide a mistake`, hide), button(tr`Choose it myself`, ({ hidden }) => (hidden ? { hidden: null, term: "none" } : null)), slider("column", tr`column`, { min: 0, max: ({ columns }) => columns - 1 })],
    ],
    render(state, width) {
      const seen = look(state);
      const guess = state.hidden && state.term && state.term !== state.hidden ? explain(data, state, state.term) : null;
      const title = makeTitle(state, seen, guess, data);
      const against = state.across === "xhat" ? tr`The error of dx against xhat, one point per column` : tr`The error of dx against the column`;
      const wide = width >= 760;
      const plot = wide ? [62, 48, width * 0.55, 350] : [62, 48, width - 12, 300];
      const right = wide ? { left: width * 0.55 + 40, width: width * 0.45 - 50 } : { left: 8, width: width - 20 };
      return {
        title, caption: makeCaption(state, seen, data),
        alt: isNamed(state) ? tr`${against}, with the line that fits it best; the sizes of its three parts; dx by column beside the true dx.` : tr`${against}; dx by column beside the true dx.`,
        height: wide ? 396 : 680,
        draw: [
          drawError(state, seen, guess, plot),
          drawParts(isNamed(state) ? seen.parts : null, { ...right, top: wide ? 20 : 366 }),
          drawColumns(state, seen, { ...right, top: wide ? 186 : 520, height: wide ? 164 : 116 }),
        ],
      };
    },
  };
}

/** Limits that keep 0 in sight and do not blow rounding up to the height of the picture. */
function room(values, seen) {
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const scale = 0.1 * Math.max(size(seen.right), NOTHING);
  return high - low <= Math.max(seen.noise, NOTHING) ? [-scale, scale] : [low - 0.12 * (high - low), high + 0.12 * (high - low)];
}

const press = (column) => ({ label: tr`column ${column}`, press: () => ({ column }), tabindex: -1 });

/** The error of each column against its xhat or its number: the line, what a wrong guess would give, and the points. */
function drawError(state, seen, guess, box) {
  const [left, , right] = box;
  const named = isNamed(state);
  const by = state.across === "xhat" ? seen.xhat : seen.xhat.map((_, i) => i);
  const reach = Math.max(...by.map(Math.abs), 1) * 1.1;
  const x = linear([Math.min(0, ...by) - 0.1 * reach, Math.max(0, ...by) + 0.1 * reach], [left, right]);
  const y = linear(room([...seen.error, ...(guess?.error ?? [])].map(seen.clean), seen), [box[3], box[1]]);
  const line = (value) => seen.intercept + seen.slope * value;
  const ends = [x.invert(left), x.invert(right)];
  const [height, slope] = [seen.clean(seen.intercept), seen.clean(seen.slope)];
  const at = Math.min(state.column, state.columns - 1);
  const terms = [height && inWords(height), slope && `${height ? (slope < 0 ? "\u2212 " : "+ ") : slope < 0 ? "\u2212" : ""}${inWords(Math.abs(slope))} \u00b7 xhat`, seen.parts[2] && (height || slope ? tr`+ rest` : tr`rest`)].filter(Boolean);
  const diamond = (cx, cy, radius) => `M${cx},${cy - radius}l${radius},${radius}l${-radius},${radius}l${-radius},${-radius}Z`;
  return [
    named && text(8, 8, tr`error = ${terms.join(" ") || "0"}`, { bold: true }),
    axes(box, { x, y, xName: state.across === "xhat" ? tr`xhat of the column` : tr`column`, yName: tr`dx computed \u2212 true dx` }),
    svg("line", { x1: left, x2: right, y1: y(0), y2: y(0), stroke: "var(--quiet)" }),
    svg("line", { x1: x(0), x2: x(0), y1: box[1], y2: box[3], stroke: "var(--quiet)" }),
    named && state.across === "xhat" && path(ends.map((value) => [x(value), Math.min(Math.max(y(line(value)), box[1]), box[3])]), { "stroke-dasharray": "7 5", "stroke-width": 1.6 }),
    named && state.across === "xhat" && height !== 0 && svg("path", { d: `M${x(0) - 7},${y(height) - 5}h14l-7,11Z`, fill: "var(--mean)", stroke: "var(--ink)" }),
    guess && guess.error.map((value, i) => svg("path", { d: diamond(x(by[i]), y(value), 5), fill: "none", stroke: "var(--ink)", "stroke-width": 1.4 })),
    seen.error.map((value, i) => target(`column-${i}`, { ...press(i), pressed: i === at },
      svg("circle", { cx: x(by[i]), cy: y(seen.clean(value)), r: 9, fill: "transparent" }),
      svg("path", { d: diamond(x(by[i]), y(seen.clean(value)), i === at ? 9 : 6), fill: "var(--dx)", stroke: "var(--ink)", "stroke-width": i === at ? 2.5 : 1 }))),
    guess && labels([{ at: [[left + 8, box[1] + 10], [left + 8, box[3] - 12]], words: tr`hollow: your guess`, size: SMALL, gap: 0 }], box, seen.error.map((value, i) => [x(by[i]) - 9, y(value) - 9, x(by[i]) + 9, y(value) + 9])),
  ];
}

/** How large each part of the error is; null as long as the mistake has no name. */
function drawParts(parts, { left, top, width }) {
  if (!parts) return text(left, top, tr`Parts of the error: once you have named it`, { size: FONT, fill: "var(--quiet)" });
  const names = [tr`along 1`, tr`along xhat`, tr`in neither`];
  const looks = [{ fill: "var(--mean)" }, { fill: "var(--x)" }, { fill: "url(#hatch-fault)" }];
  const scale = (width - 150) / Math.max(...parts, 1e-300);
  return [
    text(left, top, tr`Parts of the error (root mean square)`, { bold: true, size: FONT }),
    parts.map((value, i) => {
      const y = top + 26 + i * 36;
      return [
        text(left, y + 11, names[i]),
        svg("rect", { x: left + 82, y, width: Math.max(value * scale, 0), height: 22, stroke: "var(--ink)", ...looks[i] }),
        text(left + 90 + value * scale, y + 11, inWords(value), { bold: true, size: SMALL }),
      ];
    }),
  ];
}

/** dx by column: hollow as it should be, full as it is. */
function drawColumns(state, seen, { left, top, width, height }) {
  const y = linear(room([...seen.dx, ...seen.right], seen), [top + height, top + 22]);
  const step = (width - 48) / seen.dx.length;
  const at = Math.min(state.column, state.columns - 1);
  const bar = (value, x, wide, look) => svg("rect", { x, y: Math.min(y(0), y(value)), width: wide, height: Math.abs(y(value) - y(0)), ...look });
  return [
    text(left, top, tr`dx by column`, { bold: true }),
    cell(left + 110, top - 7, 14, 14, "", { fill: "none" }), text(left + 130, top, tr`true`, { size: SMALL }),
    cell(left + 170, top - 7, 14, 14, "", { fill: "var(--dx)" }), text(left + 190, top, tr`computed`, { size: SMALL }),
    y.ticks(3).map(([value, words]) => [svg("line", { x1: left + 44, x2: left + width, y1: y(value), y2: y(value), stroke: "var(--grid)" }), text(left + 38, y(value), words, { anchor: "end", size: SMALL, fill: "var(--quiet)" })]),
    seen.dx.map((value, i) => {
      const x = left + 46 + i * step;
      return target(`bar-${i}`, { ...press(i), pressed: i === at },
        svg("rect", { x, y: top + 18, width: step, height: height - 18, fill: i === at ? "var(--active)" : "transparent", "fill-opacity": 0.3 }),
        bar(value, x + step * 0.3, step * 0.55, { fill: "var(--dx)" }),
        bar(seen.right[i], x + step * 0.12, step * 0.55, { fill: "none", stroke: "var(--ink)", "stroke-width": 1.3 }));
    }),
    svg("line", { x1: left + 44, x2: left + width, y1: y(0), y2: y(0), stroke: "var(--quiet)" }),
  ];
}
