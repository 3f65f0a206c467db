// Lesson 14: losses of the same training, and how far each run is from the first. The differences come from Python, of all their digits.

import { SMALL, along, axes, choice, count, decimal, handle, joinSentences, labels, legend, linear, log, measure, number, path, slider, svg, text, toggle, tr } from "../../kit/kit.js";

const LOOKS = [["--ours", "7 4"], ["--quack", "2 3"], ["--liger", "9 3 2 3"], ["--blocked", "12 4"], ["--compile", "4 2"]];
const FLOOR = 1e-8; // where equal losses stand on an axis that has no 0

/** A number as Python wrote it: JSON has no words for these. */
const read = (value) => (value === null ? NaN : value === "Inf" ? Infinity : value === "-Inf" ? -Infinity : value);

/** The mean of a step and the nine before it: what is left when the noise of single batches goes. */
const smoothed = (losses) => losses.map((_, i) => {
  const last = losses.slice(Math.max(0, i - 9), i + 1);
  return last.reduce((sum, value) => sum + value, 0) / last.length;
});

/** The chosen run against the first: differences, the first step beyond the limit, how many are equal at the start, the largest. */
export function explain(data, { run, limit }) {
  const gaps = data.gaps[run].map(read);
  const first = (wanted) => { const at = gaps.findIndex(wanted); return at < 0 ? null : at; };
  const finite = gaps.filter((gap) => !Number.isNaN(gap));
  const largest = finite.length ? Math.max(...finite) : NaN;
  return { gaps, parts: first((gap) => !(gap <= limit)), equal: first((gap) => gap !== 0) ?? gaps.length, largest, largestAt: gaps.indexOf(largest) };
}

const end = (losses) => {
  const last = losses.slice(-10).map(read);
  return last.reduce((sum, value) => sum + value, 0) / last.length;
};

export function makeTitle(data, { run, limit }, seen) {
  if (!seen.gaps.length) return tr`Waiting for the losses of ${run}`;
  if (seen.equal === seen.gaps.length) return tr`Every loss is equal, bit for bit, over ${count(seen.gaps.length, "step")}`;
  if (seen.parts === null) return tr`The losses never differ by more than ${number(seen.largest, 2)} nats in ${count(seen.gaps.length, "step")}`;
  return tr`The losses first differ by more than ${number(limit)} nats at step ${seen.parts}`;
}

export function makeCaption(data, { run, limit, step }, seen) {
  const [reference] = data.names;
  const [wanted, losses] = [data.losses[reference], data.losses[run]];
  if (!seen.gaps.length) return tr`${reference}, ${count(wanted.length, "step")}. No losses yet of ${run}.`;
  const words = [
    tr`${count(seen.gaps.length, "step")}: the loss of ${run} goes from ${decimal(read(losses[0]), 3)} to ${decimal(end(losses), 3)} nats, that of ${reference} from ${decimal(read(wanted[0]), 3)} to ${decimal(end(wanted), 3)} nats (mean of the last ten steps).`,
    seen.equal ? tr`The losses are equal bit for bit in the first ${count(seen.equal, "step")}.` : tr`The losses differ from the first step on.`,
  ];
  if (seen.largest > 0) words.push(tr`The largest difference is ${number(seen.largest, 2)} nats, at step ${seen.largestAt}.`);
  if (data.baseline !== null) {
    const baseline = decimal(data.baseline, 3);
    words.push(end(losses) < data.baseline ? tr`The loss of ${run} ends below ${baseline} nats, the loss that counting single characters reaches.` : tr`The loss of ${run} does not end below ${baseline} nats, the loss that counting single characters reaches.`);
  }
  if (step < seen.gaps.length) {
    const [own, other] = [losses, wanted].map((values) => decimal(read(values[step]), 4));
    words.push(seen.gaps[step] === 0 ? tr`Step ${step}: ${own} and ${other} nats, equal.` : tr`Step ${step}: ${own} and ${other} nats, which differ by ${number(seen.gaps[step], 2)} nats.`);
  }
  return joinSentences(words);
}

export function picture(data) {
  const others = data.names.slice(1);
  return {
    start: data.start,
    explain: (state) => explain(data, state),
    controls: [
      [choice("run", tr`run`, others)],
      [slider("limit", tr`limit of the difference`, { values: data.limits, format: (limit) => tr`${number(limit)} nats` }), slider("step", tr`step`, { min: 0, max: data.steps - 1 }), toggle("smooth", tr`mean of ten steps`)],
    ],
    off: () => (others.length > 1 ? [] : ["run"]),
    render(state, width) {
      const seen = explain(data, state);
      const title = makeTitle(data, state, seen);
      const x = linear([0, Math.max(data.steps - 1, 1)], [58, width - 16]);
      const key = legend(data.names.map((name) => ({ words: name, fill: `var(${lookOf(data, name)[0]})`, line: lookOf(data, name)[1] })), 0, 8, width);
      const top = key.height + 34;
      const above = [58, top, width - 16, top + 190];
      const below = [58, top + 266, width - 16, top + 446];
      return {
        title, caption: makeCaption(data, state, seen),
        alt: tr`Above, the losses by step; below, on a logarithmic axis, how far each run is from the first, with a limit that can be dragged.`,
        height: below[3] + 68,
        draw: [key.draw, drawLosses(data, state, x, above), drawGaps(data, state, seen, x, below), drawStep(data, state, x, above[1], below[3])],
      };
    },
  };
}

/** Some of a curve's points, the last first: places to try for its name. */
const thin = (points) => points.toReversed().filter((_, i) => i % 4 === 0);

/** A run's colour and dash; those of the first run, with which the others are compared, are PyTorch's and a solid line. */
const lookOf = (data, run) => { const at = data.names.indexOf(run); return at ? LOOKS[(at - 1) % LOOKS.length] : ["--torch", ""]; };

function drawLosses(data, { run, smooth }, x, box) {
  const values = Object.fromEntries(data.names.map((name) => [name, (smooth ? smoothed : (losses) => losses)(data.losses[name].map(read))]));
  const [reference] = data.names;
  const shown = [...values[reference], ...values[run], data.baseline ?? NaN].filter(Number.isFinite);
  const [low, high] = shown.length ? [Math.min(...shown), Math.max(...shown)] : [0, 1];
  const y = linear([low - 0.06 * (high - low || 1), high + 0.06 * (high - low || 1)], [box[3], box[1]]);
  const points = (name) => values[name].map((value, step) => (Number.isFinite(value) ? [x(step), y(value)] : null));
  const [colour, dashes] = lookOf(data, run);
  const [own, wanted] = [points(run), points(reference)];
  const drawn = [own, wanted].map((line) => line.filter(Boolean));
  const base = data.baseline !== null && y(data.baseline);
  return [
    axes(box, { x, y, xName: tr`step`, yName: smooth ? tr`loss, nats per character, mean of ten steps` : tr`loss, nats per character` }),
    base !== false && path([[box[0], base], [box[2], base]], { "stroke-width": 1.2, "stroke-dasharray": "2 4" }),
    // the reference is wide and light, so that a curve on top of it shows it on both sides
    path(wanted, { stroke: "var(--torch)", "stroke-width": 7, opacity: 0.4 }),
    path(own, { stroke: `var(${colour})`, "stroke-dasharray": dashes }),
    labels([
      base !== false && { at: [[box[2] - 4, base], [box[0] + 200, base]], words: tr`counting single characters`, size: SMALL, gap: 4 },
      { at: thin(drawn[1]), words: reference, bold: true, fill: "var(--torch)" },
      { at: thin(drawn[0]), words: run, bold: true, fill: `var(${colour})` },
    ].filter(Boolean), [box[0] + 2, box[1], box[2], box[3]], [...drawn.flatMap((line) => along(line, 5)), ...(base === false ? [] : [[box[0], base - 1, box[2], base + 1]])]),
  ];
}

/** How far the runs are from the first: the chosen one by points, the others as faint lines. Equal losses stand at the bottom. */
function drawGaps(data, { run, limit }, seen, x, box) {
  const all = data.names.slice(1).map((name) => [name, data.gaps[name].map(read)]);
  const top = Math.max(1, 2 * Math.max(0, ...all.flatMap(([, gaps]) => gaps.filter(Number.isFinite))));
  const y = log([FLOOR / 2, top], [box[3], box[1]]);
  const at = (gap) => y(Math.max(gap, FLOOR));
  const [colour] = lookOf(data, run);
  const nearest = (value) => data.limits.reduce((best, one) => (Math.abs(Math.log(one / value)) < Math.abs(Math.log(best / value)) ? one : best));
  const move = (by) => ({ limit: data.limits[Math.min(Math.max(data.limits.indexOf(limit) + by, 0), data.limits.length - 1)] });
  const points = seen.gaps.map((gap, step) => (Number.isFinite(gap) ? [x(step), at(gap), gap] : null)).filter(Boolean);
  const marks = points.map(([px, py, gap]) => (gap > 0
    ? svg("circle", { cx: px, cy: py, r: 3.2, fill: `var(${colour})` })
    : svg("line", { x1: px, x2: px, y1: py - 4, y2: py + 4, stroke: "var(--quiet)", "stroke-width": 1.6 })));
  const line = y(limit);
  return [
    axes(box, { x, y, xName: tr`step`, yName: tr`|difference from ${data.names[0]}|, nats`, yTicks: [[FLOOR, tr`equal`], ...y.ticks(6).filter(([value]) => value > 3 * FLOOR)] }),
    all.filter(([name]) => name !== run).map(([name, gaps]) => path(gaps.map((gap, step) => (Number.isFinite(gap) ? [x(step), at(gap)] : null)), { stroke: `var(${lookOf(data, name)[0]})`, "stroke-dasharray": lookOf(data, name)[1], "stroke-width": 1.3, opacity: 0.7 })),
    marks,
    seen.parts !== null && svg("circle", { cx: x(seen.parts), cy: at(Number.isFinite(seen.gaps[seen.parts]) ? seen.gaps[seen.parts] : top), r: 8, fill: "none", stroke: "var(--ink)", "stroke-width": 2 }),
    path([[box[0], line], [box[2], line]], { "stroke-width": 1.6, "stroke-dasharray": "7 4" }),
    labels([
      { at: [[box[0] + 4, line - 9], [box[2] - 4, line - 9], [box[0] + 4, line + 9], [box[2] - 60, line + 9]], words: tr`apart: more than ${number(limit)} nats`, gap: 0, size: SMALL },
    ], box, [...all.flatMap(([, gaps]) => gaps.map((gap, step) => [x(step) - 4, at(gap) - 4, x(step) + 4, at(gap) + 4])), [box[0], line - 1, box[2], line + 1], [box[2] - 12, line - 12, box[2] + 12, line + 12]]),
    handle("limit", box[2], line, {
      label: tr`how far counts as apart`, value: limit, min: data.limits[0], max: data.limits.at(-1), text: tr`${number(limit)} nats`,
      drag: (px, py) => ({ limit: nearest(y.invert(Math.min(Math.max(py, box[1]), box[3]))) }), key: (dx, dy) => move(dx || dy),
    }),
  ];
}

/** The step looked at, through both drawings. */
function drawStep(data, { step }, x, top, bottom) {
  const words = tr`step ${step}`;
  const half = measure(words, SMALL, "600") / 2 + 8;
  const middle = Math.min(Math.max(x(step), 58 + half - 20), x(data.steps - 1) - half + 12);
  const clamp = (value) => ({ step: Math.min(Math.max(Math.round(value), 0), data.steps - 1) });
  return handle("step", x(step), bottom + 56, {
    label: tr`step`, value: step, min: 0, max: data.steps - 1, text: words,
    drag: (px) => clamp(x.invert(px)), key: (dx, dy) => clamp(step + (dx || dy)),
    shape: [
      svg("line", { x1: x(step), x2: x(step), y1: top, y2: bottom + 46, stroke: "var(--quiet)", "stroke-width": 1.2 }),
      svg("rect", { x: middle - half, y: bottom + 46, width: 2 * half, height: 20, rx: 10, fill: "var(--chosen)" }),
      text(middle, bottom + 56, words, { anchor: "middle", size: SMALL, bold: true, fill: "var(--on-chosen)" }),
    ],
  });
}
