// Lesson 15: a race of norms over the same matrix. Each bar is as long as one call takes.

import { SMALL, axes, choice, duration, joinClauses, joinSentences, linear, list, measure, number, slider, svg, text, tr } from "../../kit/kit.js";

const LONGEST = 3.2; // times the floor; what takes longer is drawn to the edge
const LOOKS = { torch: "var(--torch)", compile: "var(--compile)", liger: "var(--liger)", quack: "var(--quack)", locked: "var(--tutorial)", ours: "var(--ours)", own: "var(--ink)" };

/** Who takes part at this row length, with the time by the chosen clock, and the floor; who has no time is in it with null. */
export function explain(data, { op, n, clock }) {
  const at = data.lengths.indexOf(n);
  const calls = clock === "call" ? data.calls[op] ?? {} : {};
  const runners = Object.entries(data.races[op]).map(([key, times]) => {
    const device = times[at];
    const call = calls[key] ?? 0;
    return { key, name: data.names[key], device, call, us: device === null ? null : Math.max(device, call) };
  });
  const floor = data.floors[op][at];
  const known = runners.filter(({ us }) => us !== null);
  return { runners, floor, first: known.reduce((a, b) => (b.us < a.us ? b : a)), end: LONGEST * floor };
}

const lead = (seen) => {
  const others = seen.runners.filter(({ us, key }) => us !== null && key !== seen.first.key);
  return Math.min(...others.map(({ us }) => us)) / seen.first.us;
};

export function makeTitle(data, state, seen) {
  const what = tr`${data.operations[state.op]}, N = ${state.n}`;
  const ahead = lead(seen);
  if (ahead < 1.02) return tr`${what}: ${seen.first.name} is ${number(100 * (ahead - 1), 2)} % faster, but two runs differ as much`;
  return tr`${what}: ${seen.first.name} is first, and the next one takes ${number(ahead, 3)} times as long`;
}

export function makeCaption(data, state, seen) {
  const { op, n, clock } = state;
  const words = [tr`M = ${data.elements / n} rows, N = ${n} columns, fp16.`];
  const times = seen.runners.map(({ name, us }) => (us === null ? tr`${name} no time` : tr`${name} ${duration(us)} (${number(us / seen.floor, 3)} times the floor)`));
  words.push(tr`${joinClauses(times)}.`);
  words.push(tr`The floor is the time of an elementwise sweep over as many bytes: ${duration(seen.floor)}. Device times: ${data.source}.`);
  if (clock === "call" && data.calls[op]) words.push(tr`With Python: the longer of the device's time and the host's for one call (${data.host}).`);
  return joinSentences(words);
}

export function picture(data) {
  return {
    start: data.start,
    explain: (state) => explain(data, state),
    controls: [
      [choice("op", tr`norm`, Object.entries(data.operations))],
      [choice("clock", tr`clock`, [["device", tr`the device alone`], ["call", tr`with Python's call`]]), slider("n", tr`N columns`, { values: data.lengths })],
    ],
    off: ({ op }) => (data.calls[op] ? [] : ["clock"]),
    render(state, width) {
      const shown = data.calls[state.op] ? state : { ...state, clock: "device" };
      const seen = explain(data, shown);
      const title = makeTitle(data, shown, seen);
      const { draw, height } = drawRace(data, shown, seen, width);
      return { title, caption: makeCaption(data, shown, seen), height, draw,
        alt: tr`A bar for each of ${list(seen.runners.map(({ name }) => name))}, as long as one call takes; a dashed line at the time of an elementwise sweep.` };
    },
  };
}

function drawRace(data, state, seen, width) {
  const wide = width >= 560;
  const [left, right, top, row] = [wide ? 168 : 10, width - 74, 26, wide ? 34 : 50];
  const bottom = top + seen.runners.length * row + 4;
  const x = linear([0, seen.end], [left, right]);
  const lanes = seen.runners.map(({ key, name, us, call, device }, i) => {
    const y = top + i * row + (wide ? 6 : 20);
    const over = us !== null && us > seen.end;
    const until = us === null ? 0 : Math.min(us, seen.end);
    const fill = LOOKS[key];
    return [
      wide ? text(left - 10, y + 11, name, { anchor: "end", bold: key === "own" || key === "ours" }) : text(left, y - 10, name, { size: SMALL, bold: key === "own" || key === "ours", halo: true }),
      until > 0 && svg("rect", { x: left, y, width: x(until) - left, height: 22, fill, "fill-opacity": 0.5, stroke: fill, "stroke-width": 1.2 }),
      until > device && call > device && svg("rect", { x: x(device), y, width: x(until) - x(device), height: 22, fill: "url(#hatch-masked)" }),
      us === null && text(left + 6, y + 11, tr`no time: this kernel refuses such rows`, { size: SMALL, fill: "var(--quiet)" }),
      us !== null && text(right + 70, y + 11, over ? `\u203a ${duration(us)}` : duration(us), { anchor: "end", size: SMALL, bold: key === seen.first.key }),
    ];
  });
  return {
    draw: [
      axes([left, top, right, bottom], { x, y: linear([0, 1], [bottom, top]), yTicks: [], xName: state.clock === "call" && data.calls[state.op] ? tr`\u00b5s of one call, hatched: the device waits for Python` : tr`\u00b5s of the device` }),
      svg("line", { x1: x(seen.floor), x2: x(seen.floor), y1: top - 6, y2: bottom, stroke: "var(--ink)", "stroke-dasharray": "5 4", "stroke-width": 1.4 }),
      text(x(seen.floor) + (measure(tr`the floor`, SMALL) / 2 > right - x(seen.floor) ? -30 : 0), top - 14, tr`the floor`, { anchor: "middle", size: SMALL, fill: "var(--quiet)" }),
      lanes,
    ],
    height: bottom + 44,
  };
}
