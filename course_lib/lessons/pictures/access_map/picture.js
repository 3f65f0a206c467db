// Lesson 07: which lane of which program asks for which address, and how often. Python has recorded every access of a launch; passes,
// paths of lanes and sectors are counted here.

import { FONT, LINE_HEIGHT, MONO, SMALL, breakCode, bytes, cell, code, count, drawLines, joinSentences, linear, list, measure, number, path, slider, stepper, svg, target, text, tr } from "../../kit/kit.js";

const VERBS = ["read", "write", "atomic"];
const LAST = [4, 2, 1]; // passes told apart, by verb; what comes after is counted with the last
const namePass = (verb, pass) => [[tr`first read`, tr`second read`, tr`third read`, tr`later reads`], [tr`write`, tr`later writes`], [tr`atomic operations`]][verb][pass];
const WARP = 32;
const SECTOR = 32; // bytes that a GPU fetches at least
const WINDOW = 6; // programs on show at a time
const FINE = 500; // addresses told apart in a tensor's width

/** Runs of lanes (start, step, how many) as the offset of each lane. */
const expand = (runs) => runs.flatMap(([start, step, many]) => Array.from({ length: many }, (_, i) => start + step * i));

/** Offsets as stretches [first, last] without a gap, ascending. */
function joinOffsets(offsets) {
  const stretches = [];
  for (const offset of [...new Set(offsets)].sort((a, b) => a - b)) {
    if (stretches.length && offset === stretches.at(-1)[1] + 1) stretches.at(-1)[1] = offset;
    else stretches.push([offset, offset]);
  }
  return stretches;
}

/** The operations of a program: the offset and the pass (from 0) of each lane, and the stretches of memory that belong to each pass. */
export function listSteps(accesses) {
  const seen = new Map();
  return accesses.map(([line, verb, tensor, itemsize, live, masked, runs]) => {
    const lanes = expand(runs);
    const key = `${tensor}|${verb}`;
    if (!seen.has(key)) seen.set(key, new Map());
    const visits = seen.get(key);
    const parts = new Map();
    let most = 0;
    for (const offset of new Set(lanes)) visits.set(offset, (visits.get(offset) ?? 0) + 1); // lanes that meet in one element are one visit
    const passOf = lanes.map((offset) => {
      most = Math.max(most, visits.get(offset));
      const pass = Math.min(visits.get(offset), LAST[verb]) - 1;
      if (!parts.has(pass)) parts.set(pass, []);
      parts.get(pass).push(offset);
      return pass;
    });
    const passes = new Map([...parts].map(([pass, offsets]) => [pass, joinOffsets(offsets)]));
    const ends = lanes.reduce(([low, high], offset) => [Math.min(low, offset), Math.max(high, offset)], [Infinity, -Infinity]);
    return { line, verb, tensor, itemsize, live, masked, lanes, passOf, passes, ends, most };
  });
}

/** The sectors of memory that the 32 lanes from `first` on touch, and the bytes that they ask for. */
export function countSectors(step, first) {
  const lanes = step.lanes.slice(first, first + WARP);
  const sectors = new Set(lanes.flatMap((offset) => [Math.floor((offset * step.itemsize) / SECTOR), Math.floor(((offset + 1) * step.itemsize - 1) / SECTOR)]));
  return { lanes, sectors: [...sectors].sort((a, b) => a - b), asked: new Set(lanes).size * step.itemsize };
}

const often = (times) => ({ 1: tr`once`, 2: tr`twice`, 3: tr`three times` }[times] ?? tr`${times} times`);

/** How often the program goes over the tensor that it asks most of, by verb, as far as it has come. */
function sayPasses(data, steps) {
  const parts = VERBS.flatMap((_, verb) => {
    const asked = new Map();
    for (const step of steps) if (step.verb === verb && step.tensor >= 0 && step.live) {
      const before = asked.get(step.tensor) ?? [0, 0];
      asked.set(step.tensor, [before[0] + step.live * step.itemsize, Math.max(before[1], step.most)]);
    }
    const [most] = [...asked].sort((a, b) => b[1][0] - a[1][0]);
    if (!most) return [];
    const [name, times] = [data.tensors[most[0]].name, often(most[1][1])];
    return [[tr`reads ${name} ${times}`, tr`writes ${name} ${times}`, tr`updates ${name} ${times}`][verb]];
  });
  return list(parts);
}

export function makeTitle(data, program, steps, at) {
  const last = at === steps.length - 1;
  if (data.fault && data.stopped === null) return tr`The launch was stopped before its first access to memory`;
  if (data.fault && program === data.stopped && last) {
    const step = steps[at];
    return step.tensor < 0 && step.live ? tr`Program ${program} accesses memory outside its tensors in operation ${at + 1}` : tr`The launch was stopped after operation ${at + 1} of program ${program}`;
  }
  const words = sayPasses(data, steps.slice(0, at + 1));
  if (!words) return steps.length ? tr`Program ${program}: every lane has been masked so far` : data.programs.every(([, accesses]) => !accesses.length) ? tr`No program accesses memory` : tr`Program ${program} accesses no memory`;
  return last ? tr`Program ${program} ${words}` : tr`Program ${program} so far: ${words}`;
}

function describeStep(data, step) {
  if (!step.live) return [tr`a load whose ${step.masked} lanes are all masked`, tr`a store whose ${step.masked} lanes are all masked`, tr`an atomic operation whose ${step.masked} lanes are all masked`][step.verb];
  const passes = list([...step.passes.keys()].sort().map((pass) => namePass(step.verb, pass)));
  const what = step.tensor < 0 ? [tr`read outside the tensors`, tr`write outside the tensors`, tr`atomic operation outside the tensors`][step.verb] : tr`${passes} of tensor ${data.tensors[step.tensor].name}`;
  const [lanes, size] = [count(step.live, "lane"), bytes(step.live * step.itemsize)];
  return step.masked ? tr`${what} by ${lanes} (${count(step.masked, "more lane")} masked), ${size}` : tr`${what} by ${lanes}, ${size}`;
}

export function makeCaption(data, program, steps, at, lane) {
  const words = [tr`Kernel ${data.kernel} on a grid of ${data.grid.join(" x ")} programs.`];
  const step = steps[at];
  if (step) {
    const what = describeStep(data, step);
    words.push(step.line === null ? tr`Program ${program}, operation ${at + 1} of ${steps.length}: ${what}.` : tr`Program ${program}, operation ${at + 1} of ${steps.length}: ${what}, line ${step.line}.`);
    if (step.lanes[lane] !== undefined) {
      const { sectors, asked, lanes } = countSectors(step, Math.floor(lane / WARP) * WARP);
      const touched = count(sectors.length, "sector");
      words.push(tr`Lane ${lane} accesses ${data.tensors[step.tensor].name}[${step.lanes[lane]}]. The ${lanes.length} lanes drawn access ${bytes(asked)}, which lie in ${touched} of ${SECTOR} bytes.`);
    } else if (step.live && step.tensor >= 0) words.push(tr`Lane ${lane} accesses nothing in this operation.`);
    words.push(tr`So far this program has asked for ${bytes(steps.slice(0, at + 1).reduce((sum, each) => sum + each.live * each.itemsize, 0))}.`);
  }
  if (data.fault && (program === data.stopped || data.stopped === null) && at >= steps.length - 1) words.push(data.fault);
  else words.push(tr`A cache may supply some of these bytes.`);
  if (data.apart) words.push(data.apart);
  return joinSentences(words);
}

export function picture(data) {
  const accesses = new Map(data.programs);
  const numbers = data.programs.map(([program]) => program);
  const known = new Map();
  const stepsOf = (program) => { if (!known.has(program)) known.set(program, listSteps(accesses.get(program))); return known.get(program); };
  const lanesOf = (state) => Math.max(1, ...stepsOf(state.program).map((step) => step.live + step.masked));
  const place = (state) => Math.min(state.at, Math.max(stepsOf(state.program).length - 1, 0));
  const first = data.stopped ?? numbers[0];
  return {
    start: { program: first, at: data.stopped === null ? 0 : Math.max(stepsOf(first).length - 1, 0), lane: 0 },
    steps: (program) => stepsOf(program).map(({ lanes, passOf, most, live, masked }) => ({ lanes, passOf, most, live, masked })),
    sectors: (program, at, from) => countSectors(stepsOf(program)[at], from),
    controls: [
      [stepper("at", tr`operation`, (state) => Math.max(stepsOf(state.program).length, 1))],
      [slider("program", tr`program`, { values: numbers, format: String }), slider("lane", tr`lane`, { min: 0, max: (state) => lanesOf(state) - 1, format: String })],
    ],
    off: () => (numbers.length < 2 ? ["program"] : []),
    render(given, width) {
      const steps = stepsOf(given.program);
      const state = { ...given, at: place(given) };
      const lane = Math.min(state.lane, lanesOf(state) - 1);
      const zoom = drawLanes(data, steps[state.at], lane, width);
      const map = drawMap(data, numbers, stepsOf, state, lane, width, zoom.bottom + 30);
      const table = drawTable(data, steps, state.at, width, map.bottom + 22);
      const title = makeTitle(data, state.program, steps, state.at);
      const caption = makeCaption(data, state.program, steps, state.at, lane);
      return { title, caption, height: table.bottom, draw: [patterns(data), zoom.draw, map.draw, table.draw] };
    },
  };
}

/** A hatch for each pass, so that passes differ in more than colour: nothing, one way, both ways, dots, upright, level, rings. */
const HATCHES = { "0-0": "", "0-1": "M0,7L7,0", "0-2": "M0,7L7,0M0,0L7,7", "0-3": "M2,3.5h2M5.5,0.5h1", "1-0": "M2,0V7M5.5,0V7", "1-1": "M0,2H7M0,5.5H7", "2-0": "M1.5,3.5a2,2 0 1 0 4,0a2,2 0 1 0 -4,0" };

function patterns(data) {
  return svg("defs", {}, data.tensors.flatMap((tensor, i) => Object.entries(HATCHES).map(([pass, d]) =>
    svg("pattern", { id: `pass-${i}-${pass}`, width: 7, height: 7, patternUnits: "userSpaceOnUse" },
      svg("rect", { width: 7, height: 7, fill: `var(--${tensor.colour})`, "fill-opacity": 0.55 }), d && svg("path", { d, stroke: "var(--ink)", "stroke-width": 1.1, fill: "none" })))));
}

/** The line of the kernel, and 32 of its lanes with the elements that they reach. */
function drawLanes(data, step, lane, width) {
  if (!step) return { draw: text(2, 12, tr`No memory is accessed here.`, { fill: "var(--quiet)" }), bottom: 24 };
  const source = data.source[step.line];
  const lines = source ? breakCode(`${step.line}  ${source}`, Math.floor((width - 4) / MONO)) : [];
  const draw = lines.map((part, i) => code(2 + (i ? 6 * MONO : 0), 10 + 16 * i, part));
  const below_code = 34 + 16 * Math.max(lines.length - 1, 0);
  const all = step.live + step.masked;
  const from = Math.floor(lane / WARP) * WARP;
  const shown = Math.min(WARP, all - from);
  const size = Math.min(30, (width - 4) / shown);
  const middle = (i) => 2 + (i + 0.5) * size;
  const which = all > WARP ? tr`lanes ${from} to ${from + shown - 1} of ${all}, as many as a warp has threads: press a lane` : tr`lanes ${from} to ${from + shown - 1} of ${all}: press a lane`;
  const said = drawLines(which, 2, below_code - LINE_HEIGHT / 2, width - 2, { size: SMALL, fill: "var(--quiet)" });
  draw.push(said.draw);
  const top = below_code + said.height - LINE_HEIGHT;
  for (let i = 0; i < shown; i++) {
    const live = from + i < step.live;
    const chosen = from + i === lane;
    const words = size >= 22 || chosen ? String(from + i) : "";
    const label = !live ? tr`lane ${from + i}, masked` : step.lanes.length ? tr`lane ${from + i}, ${data.tensors[step.tensor].name}[${step.lanes[from + i]}]` : tr`lane ${from + i}`;
    draw.push(target(`lane-${i}`, { label, pressed: chosen, press: () => ({ lane: from + i }), tabindex: -1 },
      cell(2 + i * size, top + 14, size - 2, 24, size >= 18 || !chosen ? words : "", { state: live ? (step.tensor < 0 ? "fault" : "active") : "masked", heavy: chosen, size: SMALL })));
  }
  const memory = top + 108;
  if (!step.lanes.length) {
    draw.push(text(2, top + 62, step.live ? tr`These lanes access memory outside the tensors.` : tr`Every lane is masked: nothing moves.`, { fill: "var(--quiet)" }));
    return { draw, bottom: top + 74 };
  }
  const { lanes, sectors } = countSectors(step, from);
  const touched = count(sectors.length, "sector");
  const tensor = data.tensors[step.tensor];
  if (!lanes.length) return { draw: [...draw, text(2, top + 62, tr`These lanes are masked: nothing moves.`, { fill: "var(--quiet)" })], bottom: top + 74 };
  const [low, high] = [Math.min(...lanes), Math.max(...lanes)];
  const per = SECTOR / step.itemsize;
  const ends = [Math.floor(low / per) * per, (Math.floor(high / per) + 1) * per];
  const x = linear(ends, [2, width - 2]);
  const each = x(ends[0] + 1) - x(ends[0]);
  const boxes = sectors.map((sector) => `M${x(sector * per).toFixed(1)},${memory}h${Math.max(each * per - 1.5, 1).toFixed(1)}v20H${x(sector * per).toFixed(1)}Z`).join("");
  const reached = [...new Set(lanes)].map((offset) => `M${x(offset).toFixed(1)},${memory + 3}h${Math.max(each - 1, 1).toFixed(1)}v14H${x(offset).toFixed(1)}Z`).join("");
  const lines_to = lanes.map((offset, i) => `M${middle(i).toFixed(1)},${top + 40}L${(x(offset) + each / 2).toFixed(1)},${memory - 2}`).join("");
  draw.push(
    svg("path", { d: boxes, fill: "var(--masked)", stroke: "var(--edge)" }), svg("path", { d: reached, fill: `var(--${tensor.colour})` }),
    svg("path", { d: lines_to, stroke: `var(--${tensor.colour})`, "stroke-width": 1.2, opacity: 0.65, fill: "none" }),
    text(2, memory + 34, `${tensor.name}[${ends[0]}]`, { size: SMALL, fill: "var(--quiet)" }),
    text(width - 2, memory + 34, `[${ends[1] - 1}]`, { anchor: "end", size: SMALL, fill: "var(--quiet)" }),
    text(width / 2, memory + 34, tr`${touched} of ${SECTOR} bytes`, { anchor: "middle", size: SMALL }));
  const mine = step.lanes[lane];
  if (mine !== undefined && lane - from < lanes.length) draw.push(path([[middle(lane - from), top + 40], [x(mine) + each / 2, memory - 2]], { "stroke-width": 2.4 }), svg("circle", { cx: x(mine) + each / 2, cy: memory + 10, r: 4.5, fill: "var(--paper)", stroke: "var(--ink)", "stroke-width": 2 }));
  return { draw, bottom: memory + 44 };
}

const ROW_GAP = 10;

/** A row for each of a few programs, the addresses of each tensor side by side, a strip for each pass; the path of the chosen lane. */
function drawMap(data, numbers, stepsOf, state, lane, width, top) {
  const index = numbers.indexOf(state.program);
  const from = Math.floor(index / WINDOW) * WINDOW;
  const shown = numbers.slice(from, from + WINDOW);
  const used = data.tensors.map((_, tensor) => tensor).filter((tensor) => shown.some((program) => stepsOf(program).some((step) => step.tensor === tensor && step.lanes.length)));
  const passes = new Map(used.map((tensor) => [tensor, [...new Set(shown.flatMap((program) => stepsOf(program).filter((step) => step.tensor === tensor).flatMap((step) => [...step.passes.keys()].map((pass) => `${step.verb}-${pass}`))))].sort()]));
  const strip = 9;
  const tall = strip * Math.max(1, ...[...passes.values()].map((each) => each.length));
  const row = tall + ROW_GAP;
  const left = 40;
  const gap = 10;
  const spans = new Map(used.map((tensor) => {
    const ends = shown.flatMap((program) => stepsOf(program).filter((step) => step.tensor === tensor).map((step) => step.ends));
    return [tensor, [Math.min(...ends.map(([low]) => low)), Math.max(...ends.map(([, high]) => high))]];
  }));
  const weights = used.map((tensor) => (spans.get(tensor)[1] - spans.get(tensor)[0] + 1) ** 0.4);
  const narrow = Math.min(34, (width - left) / Math.max(used.length, 1) - gap);
  const room = width - left - 2 - (narrow + gap) * used.length + gap;
  let at_x = left;
  const columns = new Map(used.map((tensor, i) => {
    const wide = narrow + (room * weights[i]) / weights.reduce((a, b) => a + b, 0);
    const [low, high] = spans.get(tensor);
    const scale = linear([low, high + 1], [at_x, at_x + wide]);
    at_x += wide + gap;
    return [tensor, { scale, low, high, wide }];
  }));
  const upper = top + 18;
  const y = (program) => upper + shown.indexOf(program) * row;
  const strips = new Map(); // look -> path
  const add = (look, tensor, program, pass, stretches) => {
    const { scale, low, high } = columns.get(tensor);
    const apart = (high - low) / FINE; // a gap that nobody could see
    const parts = [];
    const draw = (begin, end) => parts.push(`M${scale(begin).toFixed(1)},${y(program) + passes.get(tensor).indexOf(pass) * strip}h${Math.max(scale(end + 1) - scale(begin), 1.2).toFixed(1)}v${strip - 1}H${scale(begin).toFixed(1)}Z`);
    let [begin, end] = stretches[0];
    for (const [from, to] of stretches.slice(1)) { if (from - end > Math.max(apart, 1)) { draw(begin, end); begin = from; } end = to; }
    draw(begin, end);
    strips.set(look, (strips.get(look) ?? "") + parts.join(""));
  };
  for (const program of shown) {
    const done = program < state.program ? Infinity : program > state.program ? -1 : state.at;
    stepsOf(program).forEach((step, i) => step.tensor >= 0 && step.passes.forEach((stretches, pass) => {
      const key = `${step.verb}-${pass}`;
      add(i <= done ? `url(#pass-${step.tensor}-${key})` : "var(--grid)", step.tensor, program, key, stretches);
      if (program === state.program && i === state.at) add("now", step.tensor, program, key, stretches);
    }));
  }
  const draw = [
    ...shown.map((program) => target(`program-${program}`, { label: tr`program ${program}`, pressed: program === state.program, press: () => ({ program, at: 0 }) },
      svg("rect", { x: 0, y: y(program) + tall / 2 - 10, width: 32, height: 20, rx: 4, fill: program === state.program ? "var(--chosen)" : "var(--control)", stroke: "var(--edge)" }),
      text(16, y(program) + tall / 2, String(program), { anchor: "middle", size: SMALL, fill: program === state.program ? "var(--on-chosen)" : "var(--ink)" }))),
    ...used.flatMap((tensor) => {
      const { scale, low, high, wide } = columns.get(tensor);
      const bottom = upper + shown.length * row - ROW_GAP / 2;
      const [a, b] = [String(low), String(high)];
      return [
        svg("rect", { x: scale(low), y: upper - 4, width: wide, height: bottom - upper + 4, fill: "none", stroke: "var(--grid)" }),
        measure(data.tensors[tensor].name, FONT, "600") <= wide + gap - 2 && text(scale(low), top + 4, data.tensors[tensor].name, { bold: true }),
        measure(a, SMALL) <= wide + gap - 2 && text(scale(low), bottom + 10, a, { size: SMALL, fill: "var(--quiet)" }),
        low !== high && measure(a + b, SMALL) + 12 < wide && text(scale(low) + wide, bottom + 10, b, { anchor: "end", size: SMALL, fill: "var(--quiet)" })];
    }),
    ...[...strips].sort(([a], [b]) => (a === "now") - (b === "now")).map(([look, d]) => (look === "now"
      ? svg("path", { d, fill: "none", stroke: "var(--ink)", "stroke-width": 2.2, "pointer-events": "none" }) : svg("path", { d, fill: look, "pointer-events": "none" }))),
    drawPath(stepsOf(state.program), state, lane, columns, passes, strip, y(state.program)),
  ];
  let bottom = upper + shown.length * row + 14;
  let x = 2;
  const keys = [...new Set([...passes.values()].flat())].sort().map((pass) => [`url(#pass-${used[0]}-${pass})`, namePass(pass[0], pass[2])]);
  bottom += 12;
  for (const [fill, words] of [...keys, ["var(--grid)", tr`still to come`], ["lane", tr`path of lane ${lane}`]]) {
    const need = 26 + measure(words, SMALL) + 14;
    if (x + need > width && x > 2) { x = 2; bottom += 20; }
    draw.push(fill === "lane" ? [svg("line", { x1: x, x2: x + 18, y1: bottom, y2: bottom, stroke: "var(--ink)", "stroke-width": 1.6 }), svg("circle", { cx: x + 9, cy: bottom, r: 3.5, fill: "var(--paper)", stroke: "var(--ink)" })] : svg("rect", { x, y: bottom - 6, width: 20, height: 12, fill, stroke: "var(--edge)" }), text(x + 26, bottom, words, { size: SMALL, fill: "var(--quiet)" }));
    x += need;
  }
  if (numbers.length > shown.length || numbers.length < data.count) {
    bottom += 20;
    const which = numbers.length < data.count ? tr`programs ${shown[0]} to ${shown.at(-1)} of ${data.count}; this page has only the first ${numbers.length} programs` : tr`programs ${shown[0]} to ${shown.at(-1)} of ${data.count}`;
    draw.push(text(2, bottom, which, { size: SMALL, fill: "var(--quiet)" }));
  }
  return { draw, bottom: bottom + 6 };
}

/** Where the chosen lane goes, operation by operation, in the program's row; the last point is where it is now. */
function drawPath(steps, state, lane, columns, passes, strip, top) {
  const points = steps.slice(0, state.at + 1).flatMap((step) => {
    const offset = step.lanes[lane];
    if (offset === undefined || step.tensor < 0) return [];
    const { scale } = columns.get(step.tensor);
    return [[(scale(offset) + scale(offset + 1)) / 2, top + (passes.get(step.tensor).indexOf(`${step.verb}-${step.passOf[lane]}`) + 0.5) * strip]];
  });
  const here = steps[state.at]?.lanes[lane] !== undefined ? points.at(-1) : null;
  return svg("g", { "pointer-events": "none" }, path(points, { "stroke-width": 1.6, opacity: 0.8 }),
    points.map(([cx, cy]) => svg("circle", { cx, cy, r: 3, fill: "var(--paper)", stroke: "var(--ink)" })),
    here && svg("circle", { cx: here[0], cy: here[1], r: 6, fill: "var(--active)", stroke: "var(--ink)", "stroke-width": 2 }));
}

const countVisits = (times, verb) => {
  const many = number(times, 3);
  return (times === 1 ? [tr`${many} read`, tr`${many} write`, tr`${many} atomic operation`] : [tr`${many} reads`, tr`${many} writes`, tr`${many} atomic operations`])[VERBS.indexOf(verb)];
};

/** Bytes of each tensor: what this program has asked for, of all that it will; and how often the launch goes over the tensor. */
function drawTable(data, steps, at, width, top) {
  const sum = (some, tensor) => some.filter((step) => step.tensor === tensor).reduce((all, step) => all + step.live * step.itemsize, 0);
  const rows = data.tensors.map((tensor, i) => ({ tensor, now: sum(steps.slice(0, at + 1), i), all: sum(steps, i) })).filter(({ tensor }) => VERBS.some((verb) => tensor.bytes[verb]));
  const most = Math.max(1, ...rows.map((row) => row.all));
  const name_room = Math.max(50, ...rows.map(({ tensor }) => measure(tensor.name, FONT, "600") + 12));
  const words_room = Math.max(80, ...rows.map(({ all }) => measure(`${bytes(all)} of ${bytes(all)}`, SMALL) + 14));
  const last = steps.length && at === steps.length - 1;
  const over_room = 96;
  const bar_room = Math.max(width - name_room - words_room - over_room, 30);
  const scale = bar_room / most;
  return {
    bottom: top + 20 + rows.length * 24,
    draw: [
      text(2, top, tr`bytes asked for by this program`, { size: SMALL, fill: "var(--quiet)" }),
      text(width - 2, top, width < 500 ? tr`whole launch` : tr`sweeps over the tensor, whole launch`, { anchor: "end", size: SMALL, fill: "var(--quiet)" }),
      rows.map(({ tensor, now, all }, i) => {
        const y = top + 24 + i * 24;
        const times = list(VERBS.filter((verb) => tensor.bytes[verb]).map((verb) => countVisits(tensor.times[verb], verb)));
        return [
          text(2, y, tensor.name, { bold: true }),
          svg("rect", { x: name_room, y: y - 7, width: Math.max(all * scale, 1), height: 14, fill: "none", stroke: "var(--edge)", "stroke-dasharray": "3 2" }),
          now > 0 && svg("rect", { x: name_room, y: y - 7, width: Math.max(now * scale, 1), height: 14, fill: `var(--${tensor.colour})` }),
          text(name_room + bar_room + 8, y, `${bytes(now)}`, { size: SMALL }),
          text(width - 2, y, last ? times : "\u2026", { anchor: "end", size: SMALL })];
      }),
    ],
  };
}
