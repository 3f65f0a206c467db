// Lesson 09: a chain of launches against one fused launch, as a race along the time that their bytes take at the memory limit.

import { LINE_HEIGHT, SMALL, axes, bytes, choice, count, drawLines, duration, handle, joinSentences, legend, linear, measure, number, roundUp, slider, stepper, svg, text, toggle, tr } from "../../kit/kit.js";

const COLOURS = { x: "var(--x)", y: "var(--y)", xhat: "var(--y)", residual: "var(--r)", total: "var(--r)", "x^2": "var(--mean)", ms: "var(--mean)", rstd: "var(--rstd)" };
const STEPS = 40; // of the race
const nameTransfer = (part) => (part.write ? tr`write ${part.tensor}` : tr`read ${part.tensor}`);

/** Both ways: each launch with when it starts and ends, in microseconds, and so its parts; and where the race is. */
export function explain(data, { kind, m, n, dtype, upcast, bandwidth, at }) {
  const chains = data.chains[`${kind}|${dtype}|${upcast}`];
  const ways = Object.fromEntries(Object.entries(chains).map(([name, launches]) => {
    let moved = 0;
    const laid = launches.map((launch) => {
      const start = moved;
      const parts = launch.traffic.map((part) => {
        const from = moved;
        moved += part.itemsize * (part.whole ? m * n : m);
        return { ...part, start: from / bandwidth / 1e3, end: moved / bandwidth / 1e3 };
      });
      return { name: launch.name, parts, bytes: moved - start, start: start / bandwidth / 1e3, end: moved / bandwidth / 1e3 };
    });
    return [name, { launches: laid, bytes: moved, us: moved / bandwidth / 1e3, launching: laid.length * data.launch_us }];
  }));
  return { ...ways, now: (Math.min(at, STEPS) / STEPS) * ways.separate.us };
}

/** What is under way in a chain at that time: the launch and the part, or null when it is over. */
const findCurrent = (way, now) => {
  const launch = way.launches.findIndex(({ end }) => now < end);
  return launch < 0 ? null : { launch, part: way.launches[launch].parts.find(({ end }) => now < end) };
};

export function makeTitle(data, state, seen) {
  const times = seen.separate.bytes / seen.fused.bytes;
  const launches = count(seen.separate.launches.length, "launch");
  if (state.at === 0) return tr`${launches} and 1 launch compute the same result: which is done first?`;
  if (state.at >= STEPS) {
    return state.kind === "add" ? tr`Fusing add and rms_norm moves ${(1 / times).toFixed(2)} times the bytes: 4 M N elements instead of 5 M N`
      : tr`Op by op, rms_norm moves ${times.toFixed(1)} times the bytes of the fused kernel, in ${launches}`;
  }
  const current = findCurrent(seen.separate, seen.now);
  const fused = findCurrent(seen.fused, seen.now);
  const { write, tensor } = current.part;
  const [at, all] = [current.launch + 1, seen.separate.launches.length];
  const place = write ? tr`launch ${at} of ${all}, which writes ${tensor}` : tr`launch ${at} of ${all}, which reads ${tensor}`;
  return fused ? tr`After ${duration(seen.now)} the chain is in ${place}` : tr`The fused kernel is done; the chain is in ${place}`;
}

export function makeCaption(data, state, seen) {
  const { m, n, dtype } = state;
  const matrix = m * n * data.dtypes[dtype];
  const launches = count(seen.separate.launches.length, "launch");
  const words = [tr`M = ${m}, N = ${n}, ${dtype}. At ${state.bandwidth} GB/s, ${launches} move ${bytes(seen.separate.bytes)} in ${duration(seen.separate.us)}, and 1 launch moves ${bytes(seen.fused.bytes)} in ${duration(seen.fused.us)}.`];
  if (state.kind === "eager") words.push(state.upcast && data.dtypes[dtype] !== 4 ? tr`x is cast to fp32 first, and xhat is cast back to ${dtype} before it is multiplied by w.` : tr`Every intermediate result is ${dtype}.`);
  words.push(tr`The count: a launch moves each of its tensors once from or to HBM. w (N elements) and the saved rstd are left out on both sides.`);
  if (seen.separate.us < seen.separate.launching) words.push(tr`At this size the launches set the time, not the bytes: ${number(seen.separate.launching)} \u00b5s for the chain and ${number(seen.fused.launching)} \u00b5s for the fused kernel, if a launch takes ${data.launch_us} \u00b5s.`);
  if (m < 16) words.push(tr`With so few rows, w is not small compared with x.`);
  else if (matrix < data.l2_bytes) words.push(tr`A tensor of ${bytes(matrix)} fits in an H100's 50 MB of L2, so on a real H100 the second launch finds part of this tensor in L2.`);
  return joinSentences(words);
}

export function picture(data) {
  return {
    start: data.start,
    explain: (state) => explain(data, state),
    controls: [
      [...(Object.keys(data.cases).length > 1 ? [choice("kind", tr`case`, Object.entries(data.cases))] : []), choice("dtype", "dtype", Object.keys(data.dtypes)),
        ...("eager" in data.cases ? [toggle("upcast", tr`op by op in fp32`)] : [])],
      [slider("m", tr`M rows`, { values: data.rows }), slider("n", tr`N columns`, { values: data.columns }), slider("bandwidth", "GB/s", { min: 100, max: 8000, step: 100 })],
      [stepper("at", tr`race`, () => STEPS + 1, { interval: 110 })],
    ],
    off: ({ kind, dtype }) => (kind === "eager" && data.dtypes[dtype] !== 4 ? [] : ["upcast"]),
    render(state, width) {
      const seen = explain(data, state);
      const title = makeTitle(data, state, seen);
      const { draw, height } = drawRace(data, state, seen, width);
      return { title, caption: makeCaption(data, state, seen), height, draw,
        alt: tr`Bars for each launch, reads plain and writes hatched, laid end to end along the time at the memory limit.` };
    },
  };
}

function drawRace(data, state, seen, width) {
  const wide = width >= 640;
  const [left, right, bar, line] = [wide ? 124 : 10, width - 40, 24, wide ? 32 : 46];
  const end = roundUp(Math.max(...[seen.separate, seen.fused].map((way) => Math.max(way.us, way.launching))));
  const x = linear([0, end], [left, right]);
  const unit = end >= 1e6 ? [1e6, "s"] : end >= 1e3 ? [1e3, "ms"] : [1, "\u00b5s"];
  let y = 28;
  const [drawn, said] = [[], []];
  for (const [name, way] of [["separate", seen.separate], ["fused", seen.fused]]) {
    const [launches, moved, took] = [count(way.launches.length, "launch"), bytes(way.bytes), duration(way.us)];
    const head = name === "separate" ? tr`One after the other: ${launches}, ${moved}, ${took}` : tr`Fused: ${launches}, ${moved}, ${took}`;
    const heading = drawLines(head, wide ? 0 : left, y + 8 - LINE_HEIGHT / 2, width - (wide ? 0 : left), { bold: true, halo: true });
    said.push(heading.draw);
    if (seen.now >= way.us && state.at > 0 && measure(head, 13, "600") + 70 < width) said.push(text(measure(head, 13, "600") + 26, y + 8, tr`\u2713 done`, { bold: true, halo: true, fill: "var(--welford)" }));
    y += heading.height + 7;
    for (const launch of way.launches) {
      const top = y + (wide ? 0 : 16);
      const words = bytes(launch.bytes);
      const after = x(launch.end) + 8 + measure(words, SMALL) < width;
      drawn.push(launch.parts.map((part) => drawPart(part, x, top, bar, seen.now)));
      said.push(
        wide ? text(left - 10, top + bar / 2, launch.name, { anchor: "end" }) : text(left, top - 9, launch.name, { size: SMALL, halo: true }),
        text(after ? x(launch.end) + 8 : x(launch.start) - 8, top + bar / 2, words, { anchor: after ? "start" : "end", size: SMALL, halo: true, fill: "var(--quiet)" }),
        launch.parts.map((part) => namePart(part, x, top, bar)));
      y += line;
    }
    const mark = x(way.launching);
    drawn.push(svg("path", { d: `M${mark},${y - line + bar + (wide ? 1 : 17)}l-5,8h10Z`, fill: "var(--ink)" }));
    y += 16;
  }
  const bottom = y;
  const here = x(seen.now);
  const to = (step) => ({ at: Math.min(Math.max(Math.round(step), 0), STEPS) });
  const key = legend([{ words: tr`read`, fill: "var(--paper)" }, { words: tr`write`, fill: "var(--paper)", hatch: "masked" },
    { words: tr`\u25b4 ${data.launch_us} \u00b5s for each launch`, fill: "none", line: "" }], left, bottom + 60, right - left);
  return {
    draw: [
      axes([left, 18, right, bottom], { x, y: linear([0, 1], [bottom, 18]), xTicks: x.ticks(wide ? 6 : 3).map(([value]) => [value, number(value / unit[0], 6)]), yTicks: [],
        xName: wide ? tr`time at the memory limit, one launch after the other: drag the line` : tr`time at the memory limit` }),
      text(right + 18, bottom + 14, unit[1], { size: SMALL, fill: "var(--quiet)" }),
      drawn, svg("line", { x1: here, x2: here, y1: 10, y2: bottom, stroke: "var(--ink)", "stroke-width": 1.6 }), said, key.draw,
      handle("at", here, 10, { label: tr`time`, value: state.at, min: 0, max: STEPS, text: duration(seen.now),
        drag: (px) => to((x.invert(px) / seen.separate.us) * STEPS), key: (dx, dy) => to(state.at + (dx || dy)),
        shape: [
          svg("rect", { x: here - 7, y: 20, width: 14, height: bottom - 20, fill: "transparent" }),
          svg("circle", { cx: here, cy: 10, r: 16, fill: "transparent" }), svg("circle", { cx: here, cy: 10, r: 8, fill: "var(--active)", stroke: "var(--ink)", "stroke-width": 2 })] })],
    height: bottom + 60 + key.height,
  };
}

/** One tensor's share of a bar: pale until it is moved. */
function drawPart(part, x, top, height, now) {
  const [from, until] = [x(part.start), x(part.end)];
  const moved = Math.max(x(Math.min(now, part.end)) - from, 0);
  const colour = COLOURS[part.tensor];
  return [
    svg("rect", { x: from, y: top, width: until - from, height, fill: "var(--paper)", stroke: "var(--ink)", "stroke-width": 0.8 }),
    svg("rect", { x: from, y: top, width: until - from, height, fill: colour, "fill-opacity": 0.12 }),
    moved > 0 && svg("rect", { x: from, y: top, width: moved, height, fill: colour, "fill-opacity": 0.4 }),
    part.write && svg("rect", { x: from, y: top, width: until - from, height, fill: "url(#hatch-masked)" })];
}

/** Its name, where there is room. */
function namePart(part, x, top, height) {
  const [from, until] = [x(part.start), x(part.end)];
  const words = [nameTransfer(part), part.tensor].find((label) => measure(label, SMALL) < until - from - 4);
  return words && text((from + until) / 2, top + height / 2, words, { anchor: "middle", size: SMALL, halo: part.write, "pointer-events": "none" });
}
