// Lesson 03: what each algorithm loses of a variance as the mean moves away. The numbers of the algorithms come from Python, which
// rounds in each dtype; rows and LayerNorm's output are arithmetic on them.

import { FONT, SMALL, along, arrow, axes, choice, decimal, handle, joinSentences, labels, linear, log, measure, number, path, slider, svg, text, toggle, tr } from "../../kit/kit.js";

const [FLOOR, CEILING] = [1e-9, 1e5];
const inside = (value) => Math.min(Math.max(Number.isNaN(value) ? CEILING : value, FLOOR), CEILING);

/** A number as Python wrote it: JSON has no words for these. */
const read = (value) => (value === null ? NaN : value === "Inf" ? Infinity : value === "-Inf" ? -Infinity : value);

/** The curve of an algorithm: its name, the relative errors, and what Python computed. */
function findCurve(data, algorithm, { order, dtype, n }) {
  const ordered = data.ordered.includes(algorithm);
  const curve = data.curves[[algorithm, ordered ? order : "pairwise", dtype, n].join("|")];
  const error = curve.var.map((value, i) => {
    const [got, want] = [read(value), data.true[`${dtype}|${n}`][i][curve.row[i]][1]];
    return !Number.isFinite(got) ? Infinity : got === want ? 0 : Math.abs(got - want) / want;
  });
  return { ...curve, ordered, error };
}

/** All that one setting shows: the curve's point at the chosen mean/std, and LayerNorm of the row with the statistics computed. */
export function explain(data, state) {
  const { algorithm, dtype, n, ratio, clamp } = state;
  const curve = findCurve(data, algorithm, state);
  const at = data.ratios.indexOf(ratio);
  const [trueMean, want] = data.true[`${dtype}|${n}`][at][curve.row[at]];
  const [got, mean] = [read(curve.var[at]), read(curve.mean[at])];
  const clamped = clamp && got < 0;
  const used = clamped ? 0 : got;
  const row = data.rows[`${dtype}|${n}`][at][curve.row[at]];
  return {
    ordered: curve.ordered, curve, at, want, got, used, clamped,
    error: clamped ? (want ? 1 : 0) : curve.error[at],
    bound: read(curve.bound[at]),
    terms: curve.terms?.[at].map(read) ?? null,
    y: row.map((x) => (x - mean) / Math.sqrt(used + data.eps)),
    yTrue: row.map((x) => (x - trueMean) / Math.sqrt(want + data.eps)),
    scale: Math.sqrt((want + data.eps) / (used + data.eps)),
  };
}

export function makeTitle(data, state, seen) {
  const name = data.names[state.algorithm];
  const head = tr`${name[0].toUpperCase() + name.slice(1)} at mean/std = ${number(state.ratio)}`;
  if (seen.want === 0) return tr`${head}: rounding made the row constant before anything was computed`;
  if (!Number.isFinite(seen.used)) return seen.used === Infinity ? tr`${head}: the variance is infinite, y is 0` : tr`${head}: the variance is NaN, and so is y`;
  if (seen.used + data.eps < 0) return tr`${head}: the variance is negative, y is NaN`;
  if (seen.error === 0) return tr`${head}: right to the last digit`;
  if (seen.error <= 1e-3) return tr`${head}: right to ${Math.min(Math.floor(-Math.log10(seen.error)), 15)} digits`;
  if (seen.error < 0.5) return tr`${head}: the variance is ${number(100 * seen.error, 2)} % off, and y looks right`;
  return tr`${head}: the variance is lost, y has ${number(seen.scale, 3)} times its true size`;
}

export function makeCaption(state, seen) {
  const [want, got] = [number(seen.want, 5), number(seen.got, 5)];
  const [error, bound] = [number(seen.error, 2), Number.isFinite(seen.bound) ? number(seen.bound, 2) : tr`none, because there are too many roundings`];
  const words = [
    !seen.ordered ? tr`N = ${state.n}, all arithmetic in ${state.dtype}.` : state.order === "pairwise" ? tr`N = ${state.n}, all arithmetic in ${state.dtype}, sums pairwise.` : tr`N = ${state.n}, all arithmetic in ${state.dtype}, sums sequential.`,
    seen.clamped ? tr`The true variance of the stored row is ${want}, the computed one ${got}, clamped to 0. Its relative error: ${error}. The bound of this error: ${bound}.` : tr`The true variance of the stored row is ${want}, the computed one ${got}. Its relative error: ${error}. The bound of this error: ${bound}.`,
  ];
  const broken = seen.curve.error.indexOf(Infinity);
  if (broken >= 0) words.push(tr`From the point marked Inf on, a square or a sum leaves the range of ${state.dtype}.`);
  return joinSentences(words);
}

export function picture(data) {
  const nearest = (ratio) => data.ratios.reduce((best, r) => (Math.abs(Math.log(Math.max(r, 0.3) / ratio)) < Math.abs(Math.log(Math.max(best, 0.3) / ratio)) ? r : best));
  const names = Object.entries(data.names);
  return {
    start: data.start,
    explain: (state) => explain(data, state),
    controls: [
      [choice("algorithm", tr`algorithm`, names)],
      [choice("dtype", "dtype", data.dtypes), choice("n", tr`N columns`, data.columns), choice("order", tr`sums`, Object.entries(data.orders)), toggle("clamp", tr`clamp at 0`)],
      [slider("ratio", "mean/std", { values: data.ratios })],
    ],
    off: ({ algorithm }) => [...(data.ordered.includes(algorithm) ? [] : ["order"]), ...(["one_pass", "shifted"].includes(algorithm) ? [] : ["clamp"])],
    render(state, width) {
      const seen = explain(data, state);
      const wide = width >= 700;
      const curve_width = wide ? width * 0.58 : width;
      const right = { left: wide ? curve_width + 28 : 12, top: wide ? 8 : 320, width: wide ? width - curve_width - 32 : width - 24 };
      const title = makeTitle(data, state, seen);
      const caption = makeCaption(state, seen);
      return {
        title, caption,
        alt: tr`Left: relative error of the variance against mean/std, one line per algorithm, with the bound of the chosen one. Right: the subtraction, digit by digit, and LayerNorm's output.`,
        height: wide ? 330 : 620,
        draw: [drawCurves(data, state, seen, [58, 30, curve_width - 14, 272], nearest), drawDigits(state, seen, right), drawOutput(seen, { ...right, top: right.top + 176 })],
      };
    },
  };
}

function drawCurves(data, state, seen, box, nearest) {
  const [left, top, right, bottom] = box;
  const x = log([0.25, 45000], [left, right]);
  const y = log([FLOOR / 2, CEILING * 3], [bottom, top]);
  const at = (ratio) => x(Math.max(ratio, 0.3));
  const points = (values) => data.ratios.map((ratio, i) => [at(ratio), y(inside(values[i]))]);
  const others = Object.keys(data.names).filter((name) => name !== state.algorithm)
    .map((name) => path(points(findCurve(data, name, state).error), { stroke: `var(--${name.replace("_", "-")})`, "stroke-width": 1.4, opacity: 0.4 }));
  const own = points(seen.curve.error);
  const colour = `var(--${state.algorithm.replace("_", "-")})`;
  const bound = points(seen.curve.bound.map(read)).map((point, i) => (read(seen.curve.bound[i]) < CEILING ? point : null));
  const here = [own[seen.at][0], y(inside(seen.error))]; // the clamp moves this point alone
  const marks = seen.curve.var.map((value, i) => value < 0 && i !== seen.at && { at: [own[i]], words: "< 0", size: SMALL });
  return [
    axes(box, { x, y, xName: tr`mean/std: drag the point`, yName: tr`relative error of the variance`, xTicks: [[0.3, "0"], [1, "1"], [10, "10"], [100, "100"], [1000, "1000"], [10000, "10\u2074"]] }),
    svg("line", { x1: left, x2: right, y1: y(1), y2: y(1), stroke: "var(--quiet)", "stroke-dasharray": "2 4" }),
    others,
    path(bound, { "stroke-dasharray": "7 5", "stroke-width": 1.4 }),
    path(own, { stroke: colour, "stroke-width": 2.6 }),
    own.map(([cx, cy]) => svg("circle", { cx, cy, r: 3.5, fill: colour })),
    seen.clamped && arrow(own[seen.at], [here[0], here[1] - 11], { colour: "var(--ink)" }),
    labels([
      { at: [[left + 4, y(1) - 9], [left + 4, y(1) + 9]], words: tr`1: no digit is right`, gap: 0, size: SMALL, fill: "var(--quiet)" },
      { at: own.toReversed(), words: data.names[state.algorithm], bold: true, fill: colour },
      { at: bound.filter(Boolean).toReversed(), words: tr`bound` },
      ...marks.filter(Boolean),
    ], box, [[here[0] - 12, Math.min(here[1], own[seen.at][1]) - 12, here[0] + 12, here[1] + 12], ...along(own), ...along(bound.filter(Boolean))]),
    handle("ratio", here[0], here[1], {
      label: "mean/std", value: state.ratio, min: data.ratios[0], max: data.ratios.at(-1), fill: colour,
      text: tr`${number(state.ratio)}, relative error ${number(seen.error, 2)}`,
      drag: (px) => ({ ratio: nearest(x.invert(px)) }),
      key: (dx, dy) => ({ ratio: data.ratios[Math.min(Math.max(seen.at + (dx || dy), 0), data.ratios.length - 1)] }),
    }),
  ];
}

/** The two terms of the subtraction one above the other; the digits in which they agree cancel. */
function drawDigits(state, seen, { left, top, width }) {
  const head = text(left, top + 8, tr`The subtraction`, { bold: true });
  if (!seen.terms) {
    const why = {
      naive: tr`The deviations are small before
they are squared: nothing large
is subtracted. But every result is
stored, and rounded, in between.`,
      two_pass: tr`The deviations from the mean are
small before they are squared:
nothing large is subtracted
from anything large.`,
      welford: tr`Each number's deviation from the
running mean is small: nothing large
is subtracted after the squaring.`,
      chan: tr`Each half has an M2 around its own
mean: nothing large is subtracted
after the squaring.`,
    }[state.algorithm];
    return [head, why.split("\n").map((line, i) => text(left, top + 38 + 20 * i, line, { fill: "var(--quiet)" }))];
  }
  const [squares, square] = seen.terms;
  const names = state.algorithm === "shifted" ? ["E[(x-s)\u00b2]", "E[x-s]\u00b2"] : ["E[x\u00b2]", "E[x]\u00b2"];
  if (![squares, square].every(Number.isFinite)) return [head, text(left, top + 40, tr`${names[0]} is ${number(squares)}: past the range of ${state.dtype}.`, { fill: "var(--quiet)" })];
  const places = Math.max(0, Math.min(8, 9 - Math.floor(Math.log10(Math.max(squares, 1e-3)))));
  const [a, b] = [squares.toFixed(places), square.toFixed(places)];
  const length = Math.max(a.length, b.length);
  const lines = [a, b].map((digits) => digits.padStart(length, " "));
  let shared = 0;
  while (shared < length && lines[0][shared] === lines[1][shared]) shared++;
  const room = width - 92;
  const step = Math.min(13, room / length);
  const start = left + 88;
  const kept = `var(--${state.algorithm.replace("_", "-")})`;
  const draw = (digits, name, y) => [
    text(left, y, name),
    [...digits].map((digit, i) => digit !== " " && text(start + step * (i + 0.5), y, digit, { anchor: "middle", size: Math.min(FONT + 2, step * 1.6), bold: i >= shared, fill: i < shared ? "var(--quiet)" : kept })),
  ];
  const digits = [...lines[0].slice(0, shared)].filter((digit) => digit >= "0" && digit <= "9").length;
  return [
    head, draw(lines[0], names[0], top + 36), draw(lines[1], names[1], top + 60),
    shared > 0 && digits > 0 && svg("line", { x1: start, x2: start + step * shared, y1: top + 48, y2: top + 48, stroke: "var(--quiet)", "stroke-width": 9, opacity: 0.25 }),
    svg("line", { x1: left, x2: start + step * length, y1: top + 76, y2: top + 76, stroke: "var(--ink)" }),
    text(left, top + 92, tr`difference`), text(start + step * length, top + 92, number(seen.got, 6), { anchor: "end", bold: true, fill: kept }),
    text(left, top + 114, tr`should be`), text(start + step * length, top + 114, number(seen.want, 6), { anchor: "end" }),
    text(left, top + 140, digits === 0 ? tr`The terms share no leading digit.` : digits === 1 ? tr`The first digit is equal and cancels.` : tr`The first ${digits} digits are equal and cancel.`, { size: SMALL, fill: "var(--quiet)" }),
  ];
}

/** LayerNorm's output with these statistics: each element from what it should be to what it is. */
function drawOutput(seen, { left, top, width }) {
  const words = tr`y of this row: true and computed`;
  const head = text(left, top + 8, words, { bold: true, size: Math.min(FONT, (width / measure(words, FONT, "600")) * FONT) });
  if (!seen.y.every(Number.isFinite)) return [head, text(left + width / 2, top + 66, "NaN", { anchor: "middle", size: 30, bold: true, fill: "var(--y)" })];
  const reach = Math.max(4, 1.05 * Math.max(...seen.y.map(Math.abs), ...seen.yTrue.map(Math.abs)));
  const x = linear([-reach, reach], [left + 66, left + width - 8]);
  const rows = [[tr`true`, seen.yTrue, top + 46, "var(--quiet)"], [tr`computed`, seen.y, top + 98, "var(--y)"]];
  return [
    head,
    seen.y.map((value, i) => svg("line", { x1: x(seen.yTrue[i]), y1: rows[0][2], x2: x(value), y2: rows[1][2], stroke: "var(--grid)", "stroke-width": 1.5 })),
    rows.map(([name, values, y, fill]) => [
      svg("line", { x1: x(-reach), x2: x(reach), y1: y, y2: y, stroke: "var(--quiet)" }), text(left, y, name, { size: SMALL }),
      values.map((value) => svg("circle", { cx: x(value), cy: y, r: 4, fill, stroke: "var(--paper)" }))]),
    [-reach, 0, reach].map((value) => text(x(value), top + 116, decimal(value, reach > 10 ? 0 : 1), { anchor: value === 0 ? "middle" : value < 0 ? "start" : "end", size: SMALL, fill: "var(--quiet)" })),
  ];
}
