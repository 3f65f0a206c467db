// Lesson 05: how far each statistics kernel is from the truth, against mean/std. Python ran the kernels; all that is left is to look.

import { SMALL, along, axes, choice, handle, joinClauses, joinSentences, labels, linear, log, measure, number, path, slider, svg, target, text, tr } from "../../kit/kit.js";

const [FLOOR, CEILING] = [1e-9, 1e4];
const LOOKS = {
  one_pass: { fill: "var(--one-pass)", dash: null, mark: "circle" }, shifted: { fill: "var(--shifted)", dash: "9 4", mark: "square" },
  two_pass: { fill: "var(--two-pass)", dash: null, mark: "triangle" }, welford: { fill: "var(--welford)", dash: "5 3", mark: "diamond" },
  "05a": { fill: "var(--ink)", dash: null, mark: "star" }, "05b": { fill: "var(--ink)", dash: "2 3", mark: "plus" },
};
/** A number as Python wrote it: JSON has no words for these. */
const read = (value) => (value === null ? NaN : value === "Inf" ? Infinity : value);
const inside = (value) => (Number.isNaN(value) ? CEILING : Math.min(Math.max(value, FLOOR), CEILING));
const sayRatio = (ratio) => (ratio >= 9.99 ? ratio.toFixed(0) : ratio.toFixed(1));
const sayError = (error) => (Number.isNaN(error) ? "NaN" : number(error, 2));
const nameError = (quantity) => ({ var: tr`relative error of the variance`, rstd: tr`relative error of the rstd`, y: tr`absolute error of y` })[quantity];

/** Every curve of a setting, with the error and the right digits at the chosen mean/std; and the bound there. */
export function explain(data, { quantity, rows, chosen, ratio }) {
  const curves = Object.entries(data.curves[`${quantity}|${rows}`]).map(([key, given]) => {
    const errors = given.map(read);
    const error = errors[ratio];
    return { key, name: data.names[key], errors, error, digits: error > 0 ? Math.max(-Math.log10(error), 0) : Number.isNaN(error) ? 0 : 16 };
  });
  return { curves, bound: data.bounds[`${quantity}|${rows}|${chosen}`].map(read) };
}

export function makeTitle(data, state, seen) {
  const at = `mean/std = ${sayRatio(data.ratios[state.ratio])}`;
  const worst = seen.curves.filter(({ key }) => data.bounded.includes(key)).reduce((a, b) => (inside(b.error) > inside(a.error) ? b : a));
  const name = worst.name[0].toUpperCase() + worst.name.slice(1);
  if (worst.error < 1e-4) return tr`At ${at} every kernel keeps at least four digits`;
  if (worst.error >= 1 || Number.isNaN(worst.error)) return tr`${name} has no digit left at ${at}`;
  return tr`${name} at ${at}: the ${nameError(state.quantity)} is ${number(worst.error, 2)}`;
}

export function makeCaption(data, state, seen) {
  const name = data.names[state.chosen];
  const limit = seen.bound[state.ratio];
  const shown = state.rows === "loud" ? tr`rows whose first element lies ${Math.sqrt(data.n - 1).toFixed(0)} standard deviations out` : tr`normal rows`;
  const errors = joinClauses(seen.curves.map((curve) => `${curve.name} ${sayError(curve.error)}`));
  return joinSentences([
    tr`N = ${data.n}, BLOCK = ${data.block}, fp32, ${shown}. Largest ${nameError(state.quantity)} in ${data.samples} rows at mean/std = ${sayRatio(data.ratios[state.ratio])}: ${errors}.`,
    Number.isFinite(limit) ? tr`The bound of ${name} at this mean/std is ${number(limit, 2)}.` : tr`At this mean/std ${name} has no bound.`,
    ...data.notes,
  ]);
}

export function picture(data) {
  return {
    start: data.start,
    explain: (state) => explain(data, state),
    controls: [
      [choice("quantity", tr`error of`, Object.entries(data.quantities)), choice("rows", tr`rows`, Object.entries(data.rows))],
      [choice("chosen", tr`bound of`, data.bounded.map((key) => [key, data.names[key]])),
        slider("ratio", "mean/std", { max: data.ratios.length - 1, format: (index) => sayRatio(data.ratios[index]) })],
    ],
    render(state, width) {
      const seen = explain(data, state);
      const title = makeTitle(data, state, seen);
      const wide = width >= 700;
      const chart = wide ? width * 0.63 : width;
      const panel = drawDigits(data, state, seen, wide ? { left: chart + 24, top: 14, width: width - chart - 30 } : { left: 4, top: 360, width: width - 12 });
      return {
        title, caption: makeCaption(data, state, seen), height: Math.max(340, panel.bottom),
        alt: tr`Error against mean/std of the row, both axes logarithmic, one line per kernel, with the bound of ${data.names[state.chosen]}; beside it the digits that are right at the chosen mean/std.`,
        draw: [drawCurves(data, state, seen, [58, 30, chart - 14, 282]), panel.draw],
      };
    },
  };
}

function drawCurves(data, state, seen, box) {
  const [left, top, right, bottom] = box;
  const x = log([0.8, data.ratios.at(-1) * 1.3], [left, right]);
  const y = log([FLOOR / 2, CEILING * 3], [bottom, top]);
  const at = x(data.ratios[state.ratio]);
  const points = (values) => values.map((value, i) => [x(data.ratios[i]), y(inside(value))]);
  const bound = points(seen.bound).filter((_, i) => seen.bound[i] < CEILING);
  const colour = LOOKS[state.chosen].fill;
  const drawn = seen.curves.map(({ key, errors }) => ({ key, errors, line: points(errors), ...LOOKS[key] }));
  const step = (index) => ({ ratio: Math.min(Math.max(index, 0), data.ratios.length - 1) });
  const nearest = (px) => data.ratios.reduce((best, ratio, i) => (Math.abs(x(ratio) - px) < Math.abs(x(data.ratios[best]) - px) ? i : best), 0);
  return [
    axes(box, { x, y, xName: tr`mean/std of the row: drag the line`, yName: nameError(state.quantity) }),
    bound.length > 1 && svg("path", { d: `M${bound.map((point) => point.join()).join("L")}L${bound.at(-1)[0]},${top}H${bound[0][0]}Z`, fill: colour, opacity: 0.08 }),
    svg("line", { x1: left, x2: right, y1: y(1), y2: y(1), stroke: "var(--quiet)", "stroke-dasharray": "2 4" }),
    svg("line", { x1: at, x2: at, y1: top - 6, y2: bottom, stroke: "var(--ink)", "stroke-width": 1.4 }),
    path(bound, { stroke: colour, "stroke-width": 1.8, "stroke-dasharray": "1 4", "stroke-linecap": "round" }),
    drawn.map(({ key, line, fill, dash }) => [
      path(line, { stroke: fill, "stroke-width": key === state.chosen ? 2.8 : 1.6, "stroke-dasharray": dash }),
      data.bounded.includes(key) && target(`line-${key}`, { label: tr`show the bound of ${data.names[key]}`, tabindex: -1, press: () => ({ chosen: key }) }, path(line, { stroke: "transparent", "stroke-width": 14 }))]),
    drawn.map(({ errors, line, fill, mark }) => line.map(([cx, cy], i) => (Number.isNaN(errors[i]) ? cross(cx, cy, fill) : drawMark(mark, cx, cy, fill, i === state.ratio ? 6 : 3.6)))),
    labels([
      { at: [[left + 4, y(1) - 9], [left + 4, y(1) + 9]], words: tr`1: no digit is right`, gap: 0, size: SMALL, fill: "var(--quiet)" },
      ...drawn.map(({ key, line, fill }) => ({ at: line.toReversed(), words: data.names[key], bold: key === state.chosen, fill, size: SMALL })),
      { at: bound.toReversed(), words: tr`bound of ${data.names[state.chosen]}`, fill: colour, size: SMALL },
    ], box, [[at - 9, top, at + 9, bottom], ...drawn.flatMap(({ line }) => along(line)), ...along(bound)]),
    handle("ratio", at, top - 8, {
      label: "mean/std", value: data.ratios[state.ratio], min: data.ratios[0], max: data.ratios.at(-1), text: sayRatio(data.ratios[state.ratio]),
      drag: (px) => step(nearest(px)), key: (dx, dy) => step(state.ratio + (dx || dy)),
      shape: [svg("rect", { x: at - 7, y: top, width: 14, height: bottom - top, fill: "transparent" }), svg("circle", { cx: at, cy: top - 8, r: 16, fill: "transparent" }),
        svg("circle", { cx: at, cy: top - 8, r: 8, fill: "var(--active)", stroke: "var(--ink)", "stroke-width": 2 })],
    }),
  ];
}

/** The digits that each kernel keeps at the chosen mean/std; a press chooses whose bound is drawn. */
function drawDigits(data, state, seen, { left, top, width }) {
  const most = 8;
  const name = 128;
  const x = linear([0, most], [left + name, left + width - 76]);
  const row = 34;
  const first = top + 34;
  const bars = seen.curves.map((curve, i) => {
    const y = first + i * row;
    const chosen = curve.key === state.chosen;
    const { fill, mark } = LOOKS[curve.key];
    const words = Number.isNaN(curve.error) ? "NaN" : curve.error >= 1 ? tr`none` : curve.error === 0 ? tr`all` : `${curve.digits.toFixed(1)}`;
    const drawn = [
      svg("rect", { x: left, y: y - 4, width, height: row - 2, fill: "transparent" }),
      drawMark(mark, left + 8, y + 10, fill, 5),
      text(left + 20, y + 10, curve.name, { size: SMALL, bold: chosen }),
      svg("rect", { x: x(0), y, width: Math.max(x(Math.min(curve.digits, most)) - x(0), 0), height: 20, fill, "fill-opacity": 0.45, stroke: fill, "stroke-width": chosen ? 2.5 : 1 }),
      text(x(Math.min(curve.digits, most)) + 8, y + 10, words, { size: SMALL, bold: chosen })];
    if (!data.bounded.includes(curve.key)) return drawn;
    return target(`curve-${curve.key}`, { label: tr`error ${sayError(curve.error)}; show its bound`, pressed: chosen, press: () => ({ chosen: curve.key }) }, drawn);
  });
  const bottom = first + seen.curves.length * row;
  const limit = seen.bound[state.ratio];
  const promised = limit < 1 ? Math.min(-Math.log10(limit), most) : 0;
  const head = tr`Right digits at mean/std = ${sayRatio(data.ratios[state.ratio])}`;
  const place = seen.curves.findIndex(({ key }) => key === state.chosen);
  return {
    draw: [
      text(left, top, measure(head, 13, "600") < width ? head : tr`Right digits`, { bold: true }),
      [0, 2, 4, 6, 8].map((digit) => [svg("line", { x1: x(digit), x2: x(digit), y1: first - 4, y2: bottom - 8, stroke: "var(--grid)" }), text(x(digit), bottom + 4, String(digit), { anchor: "middle", size: SMALL, fill: "var(--quiet)" })]),
      bars,
      svg("line", { x1: x(promised), x2: x(promised), y1: first + place * row - 4, y2: first + place * row + 24, stroke: "var(--ink)", "stroke-width": 2.4, "stroke-dasharray": "3 2" }),
      text(left, bottom + 28, promised > 0 ? tr`dashed: the bound promises ${promised.toFixed(1)} digits` : tr`dashed: the bound promises no digit`, { size: SMALL, fill: "var(--quiet)" })],
    bottom: bottom + 42,
  };
}

const cross = (cx, cy, stroke) => svg("path", { d: `M${cx - 5},${cy - 5}l10,10M${cx - 5},${cy + 5}l10,-10`, stroke, "stroke-width": 2.6 });

function drawMark(kind, cx, cy, fill, r) {
  const shape = {
    circle: `M${cx - r},${cy}a${r},${r} 0 1 0 ${2 * r},0a${r},${r} 0 1 0 ${-2 * r},0Z`,
    square: `M${cx - r},${cy - r}h${2 * r}v${2 * r}h${-2 * r}Z`,
    triangle: `M${cx},${cy - r * 1.2}l${r * 1.2},${r * 2.1}h${-r * 2.4}Z`,
    diamond: `M${cx},${cy - r * 1.3}l${r * 1.3},${r * 1.3}l${-r * 1.3},${r * 1.3}l${-r * 1.3},${-r * 1.3}Z`,
    plus: `M${cx - r * 1.3},${cy}h${r * 2.6}M${cx},${cy - r * 1.3}v${r * 2.6}`,
    star: `M${cx - r * 1.3},${cy}h${r * 2.6}M${cx - r * 0.8},${cy - r * 1.1}l${r * 1.6},${r * 2.2}M${cx - r * 0.8},${cy + r * 1.1}l${r * 1.6},${-r * 2.2}`,
  }[kind];
  return svg("path", { d: shape, fill, stroke: kind === "plus" || kind === "star" ? fill : "var(--paper)", "stroke-width": kind === "plus" || kind === "star" ? 2.2 : 0.8 });
}
