// Lesson 15: norm kernels under the roofline. What a kernel counts as bytes moves it along the roof; its time puts it at a height.

import { SMALL, along, axes, choice, joinSentences, labels, linear, log, measure, number, path, slider, svg, target, text, tr } from "../../kit/kit.js";

const LOOKS = {
  blocked: ["var(--blocked)", "square"], resident: ["var(--resident)", "circle"], rms: ["var(--quack)", "diamond"], unfused: ["var(--compile)", "square"],
  fused: ["var(--torch)", "circle"], locked: ["var(--tutorial)", "triangle"], two_stage: ["var(--liger)", "square"], persistent: ["var(--ours)", "triangle"], own: ["var(--ink)", "star"],
};

/** Each kernel at a row length: operations per byte, what the roof allows there, and where a time is known TFLOP/s, GB/s and share of the roof. */
export function explain(data, { n, counted }) {
  const at = data.lengths.indexOf(n);
  const { gbps, tflops } = data.roof;
  return Object.entries(data.kernels).map(([key, kernel]) => {
    const bytes = kernel[counted] * data.itemsize; // of an element
    const intensity = kernel.flop / bytes;
    const roof = Math.min(tflops, (intensity * gbps) / 1e3);
    const us = kernel.us[at];
    const speed = us === null ? null : (kernel.flop * data.elements) / us / 1e6;
    return { key, label: kernel.label, us, intensity, roof, tflops: speed, gbps: us === null ? null : (bytes * data.elements) / us / 1e3, share: speed === null ? null : speed / roof };
  });
}

const percent = (share) => tr`${Math.round(100 * share)} %`;

export function makeTitle(data, state, seen) {
  const kernel = seen.find(({ key }) => key === state.chosen);
  const name = kernel.label[0].toUpperCase() + kernel.label.slice(1);
  if (kernel.share === null) return tr`${name}: ${number(kernel.intensity, 3)} operations per byte, and no time at N = ${state.n}`;
  if (kernel.share > 1) return tr`${name} stands ${percent(kernel.share - 1)} above the roof, because a cache supplied data`;
  return tr`${name} reaches ${percent(kernel.share)} of the roof at N = ${state.n}`;
}

export function makeCaption(data, state, seen) {
  const kernel = seen.find(({ key }) => key === state.chosen);
  const { [state.counted]: passes, flop } = data.kernels[state.chosen];
  const words = [
    state.counted === "least"
      ? tr`${kernel.label}, fp16, M N = 2\u00b2\u2075: ${flop} operations per element, at least ${number(passes, 3)} sweeps over a matrix, ${number(kernel.intensity, 3)} operations per byte.`
      : tr`${kernel.label}, fp16, M N = 2\u00b2\u2075: ${flop} operations per element, ${number(passes, 3)} sweeps over a matrix asked for, ${number(kernel.intensity, 3)} operations per byte.`,
    kernel.us === null
      ? state.chosen === "own" && !data.gpu ? tr`The time of your kernel was not measured, because this machine has no GPU. The dashed line shows how high your kernel could stand.` : tr`No time is stored for rows of ${state.n} columns.`
      : tr`${number(kernel.us)} \u00b5s correspond to ${number(kernel.tflops, 3)} TFLOP/s and ${Math.round(kernel.gbps)} GB/s.`,
    tr`Roof: data sheet of the ${data.roof.name}, ${data.roof.gbps} GB/s and ${data.roof.tflops} TFLOP/s in fp32. Dashed: a copy in the same run, ${Math.round(data.copies[data.lengths.indexOf(state.n)])} GB/s. Times: ${data.source}.`,
    tr`The bytes of w, b, statistics and partial sums are left out.`,
  ];
  return joinSentences(words);
}

export function picture(data) {
  return {
    start: data.start,
    explain: (state) => explain(data, state),
    controls: [[choice("counted", tr`bytes`, [["least", tr`cannot do without`], ["asked", tr`asks for`]]), slider("n", tr`N columns`, { values: data.lengths })]],
    render(state, width) {
      const seen = explain(data, state);
      const title = makeTitle(data, state, seen);
      const wide = width >= 760;
      const chart = wide ? width * 0.52 : width;
      const panel = drawShares(data, state, seen, wide ? { left: chart + 20, top: 16, width: width - chart - 26 } : { left: 4, top: 396, width: width - 12 });
      return {
        title, caption: makeCaption(data, state, seen), height: Math.max(374, panel.bottom),
        alt: tr`TFLOP/s against operations per byte, both axes logarithmic, one mark per kernel under the roof of an ${data.roof.name}; beside it bars of the share of the roof.`,
        draw: [drawRoof(data, state, seen, [52, 30, chart - 12, 316]), panel.draw],
      };
    },
  };
}

function drawRoof(data, state, seen, box) {
  const [left, top, right, bottom] = box;
  const x = log([0.3, 40], [left, right]);
  const y = log([0.4, 120], [bottom, top]);
  const { gbps, tflops, ridge } = data.roof;
  const copy = data.copies[data.lengths.indexOf(state.n)];
  const roof = [[x(0.3), y((0.3 * gbps) / 1e3)], [x(ridge), y(tflops)], [x(40), y(tflops)]];
  const floor = [[x(0.3), y((0.3 * copy) / 1e3)], [x((tflops / copy) * 1e3), y(tflops)]];
  const marks = seen.map((kernel) => ({ ...kernel, at: [x(kernel.intensity), kernel.tflops === null ? null : y(kernel.tflops)], look: LOOKS[kernel.key] }));
  const chosen = marks.find(({ key }) => key === state.chosen);
  const order = [...marks.filter((mark) => mark !== chosen), chosen];
  return [
    axes(box, { x, y, xName: tr`operations per byte`, yName: "TFLOP/s", xTicks: [[0.5, "0.5"], [1, "1"], [5, "5"], [20, "20"]], yTicks: [[0.5, "0.5"], [1, "1"], [5, "5"], [20, "20"], [67, "67"]] }),
    path(roof, { "stroke-width": 2.4 }), path(floor, { stroke: "var(--quiet)", "stroke-dasharray": "5 4", "stroke-width": 1.4 }),
    svg("line", { x1: chosen.at[0], x2: chosen.at[0], y1: y(chosen.roof), y2: bottom, stroke: chosen.look[0], "stroke-width": 1.6, "stroke-dasharray": "4 3" }),
    order.filter(({ at }) => at[1] !== null).map((kernel) => target(`mark-${kernel.key}`, { label: tr`${kernel.label}: ${percent(kernel.share)} of the roof`, tabindex: -1, press: () => ({ chosen: kernel.key }) },
      svg("circle", { cx: kernel.at[0], cy: kernel.at[1], r: 12, fill: "transparent" }), drawMark(kernel.look[1], ...kernel.at, kernel.look[0], kernel === chosen ? 8 : 5.5))),
    labels([
      ...(chosen.at[1] === null ? [{ at: [[chosen.at[0], y(chosen.roof)]], words: tr`${chosen.label}: no time`, bold: true }] : [{ at: [chosen.at], words: chosen.label, bold: true, gap: 12 }]),
      { at: [[x(ridge), y(tflops)]], words: tr`limit of the arithmetic`, size: SMALL, fill: "var(--quiet)" },
      { at: [[x(4), y((4 * gbps) / 1e3)], [x(0.5), y((0.5 * gbps) / 1e3)]], words: tr`limit of the memory`, size: SMALL, fill: "var(--quiet)" },
    ], [left + 4, top, right, bottom - 4], [...along(roof), ...along(floor), ...marks.filter(({ at }) => at[1] !== null).map(({ at: [a, b] }) => [a - 7, b - 7, a + 7, b + 7])]),
  ];
}

/** The share of the roof, a bar a kernel; a press chooses one. A bar beyond 100 % crosses the roof's line. */
function drawShares(data, state, seen, { left, top, width }) {
  const name = 168;
  const x = linear([0, 1.5], [left + name, left + width - 62]);
  const [row, first] = [31, top + 30];
  const bars = seen.map((kernel, i) => {
    const y = first + i * row;
    const chosen = kernel.key === state.chosen;
    const [fill, mark] = LOOKS[kernel.key];
    const share = kernel.share === null ? 0 : Math.min(kernel.share, 1.5);
    const words = kernel.share === null ? tr`no time` : percent(kernel.share);
    return target(`share-${kernel.key}`, { label: `${kernel.label}: ${words}`, pressed: chosen, press: () => ({ chosen: kernel.key }) },
      svg("rect", { x: left, y: y - 4, width, height: row - 3, fill: "transparent" }),
      drawMark(mark, left + 8, y + 9, fill, 5), text(left + 20, y + 9, kernel.label, { size: SMALL, bold: chosen }),
      svg("rect", { x: x(0), y, width: Math.max(x(share) - x(0), 0), height: 18, fill, "fill-opacity": 0.45, stroke: fill, "stroke-width": chosen ? 2.5 : 1 }),
      kernel.share > 1 && svg("rect", { x: x(1), y, width: x(share) - x(1), height: 18, fill: "url(#hatch-masked)" }),
      text(left + width - 2, y + 9, words, { anchor: "end", size: SMALL, bold: chosen }));
  });
  const bottom = first + seen.length * row;
  const head = tr`Share of the roof`;
  return {
    draw: [
      text(left, top, head, { bold: true }),
      measure(head, 13, "600") + left < x(1) - 40 && text(x(1), top + 10, tr`the roof`, { anchor: "middle", size: SMALL, fill: "var(--quiet)" }),
      svg("line", { x1: x(1), x2: x(1), y1: first - 8, y2: bottom - 4, stroke: "var(--ink)", "stroke-width": 1.8 }), bars],
    bottom: bottom + 8,
  };
}

function drawMark(kind, cx, cy, fill, r) {
  const shape = {
    circle: `M${cx - r},${cy}a${r},${r} 0 1 0 ${2 * r},0a${r},${r} 0 1 0 ${-2 * r},0Z`,
    square: `M${cx - r},${cy - r}h${2 * r}v${2 * r}h${-2 * r}Z`,
    triangle: `M${cx},${cy - r * 1.2}l${r * 1.2},${r * 2.1}h${-r * 2.4}Z`,
    diamond: `M${cx},${cy - r * 1.3}l${r * 1.3},${r * 1.3}l${-r * 1.3},${r * 1.3}l${-r * 1.3},${-r * 1.3}Z`,
    star: `M${cx - r * 1.3},${cy}h${r * 2.6}M${cx - r * 0.8},${cy - r * 1.1}l${r * 1.6},${r * 2.2}M${cx - r * 0.8},${cy + r * 1.1}l${r * 1.6},${-r * 2.2}`,
  }[kind];
  return svg("path", { d: shape, fill, stroke: kind === "star" ? fill : "var(--paper)", "stroke-width": kind === "star" ? 2.2 : 0.8 });
}
