// Lesson 04: Welford within blocks, Chan's merge between them. The arithmetic is that of norms/statistics.py, rounded to the dtype at
// every operation, so that a hand can move the split and the numbers.

import { SMALL, along, arrow, axes, cell, choice, count, handle, joinSentences, labels, legend, linear, measure, rounding, short, slider, stepper, svg, target, text, tr } from "../../kit/kit.js";

const STEP = 0.5; // by which a number is moved

const findRow = (data, state) => (state.moved?.row === state.row ? state.moved.x : data.rows[state.row]);

/** Adds the upper neighbour to the lower one, and again: the sum in pairs, as one_pass has it. */
function addPairs(values, round) {
  while (values.length > 1) values = Array.from({ length: Math.ceil(values.length / 2) }, (_, i) => (2 * i + 1 < values.length ? round(values[2 * i] + values[2 * i + 1]) : values[2 * i]));
  return values[0];
}

function update(part, x, round) {
  const count = part.count + 1;
  const deviation = round(x - part.mean);
  const mean = round(part.mean + round(deviation / count));
  return { ...part, count, mean, M2: round(part.M2 + round(deviation * round(x - mean))) };
}

function merge(a, b, round) {
  const count = a.count + b.count;
  const share = round(b.count / Math.max(count, 1));
  const apart = round(b.mean - a.mean);
  const between = round(round(apart * round(a.count * share)) * apart);
  return { first: a.first, last: b.last, count, mean: round(a.mean + round(apart * share)), M2: round(round(a.M2 + b.M2) + between), between, apart };
}

/** The whole computation: the blocks while they take in numbers, the levels of the tree, and the frames in order. */
export function explain(data, state) {
  const round = rounding[state.dtype];
  const x = findRow(data, state).slice(0, state.n).map(round);
  const size = state.parts;
  const many = size === "split" ? 2 : 2 ** Math.ceil(Math.log2(Math.ceil(x.length / size)));
  const split = Math.min(state.split, x.length);
  const ends = Array.from({ length: many }, (_, i) => (size === "split" ? [i ? split : 0, i ? x.length : split] : [i * size, (i + 1) * size]));
  const taken = [ends.map(([first, end]) => ({ first, last: end - 1, count: 0, mean: 0, M2: 0 }))];
  const longest = Math.max(...ends.map(([first, end]) => Math.min(end, x.length) - first));
  for (let column = 0; column < longest; column++) {
    taken.push(taken.at(-1).map((part) => (part.first + column <= Math.min(part.last, x.length - 1) ? update(part, x[part.first + column], round) : part)));
  }
  const levels = [taken.at(-1)];
  while (levels.at(-1).length > 1) levels.push(Array.from({ length: levels.at(-1).length / 2 }, (_, i) => merge(levels.at(-1)[2 * i], levels.at(-1)[2 * i + 1], round)));
  const frames = Array.from({ length: longest }, (_, column) => ({ level: 0, column }));
  levels.slice(1).forEach((nodes, below) => nodes.forEach((_, place) => frames.push({ level: below + 1, place })));
  const mean = round(addPairs(x, round) / x.length);
  const exact = x.reduce((sum, value) => sum + value, 0) / x.length;
  return {
    x, taken, levels, frames, ends,
    direct: round(round(addPairs(x.map((value) => round(value * value)), round) / x.length) - round(mean * mean)),
    true: x.reduce((sum, value) => sum + (value - exact) ** 2, 0) / x.length,
  };
}

const span = ({ first, last }) => (last < first ? tr`no number` : first === last ? `x[${first}]` : `x[${first}..${last}]`);

/** What one frame is about: the node that it makes and the two that it makes it of, or the blocks that take in a number. */
function look(seen, state) {
  const at = Math.min(state.frame, seen.frames.length - 1);
  const frame = seen.frames[at];
  const ends = at === seen.frames.length - 1;
  if (frame.level === 0) return { at, frame, ends, blocks: seen.taken[frame.column + 1] };
  const below = seen.levels[frame.level - 1];
  return { at, frame, ends, node: seen.levels[frame.level][frame.place], a: below[2 * frame.place], b: below[2 * frame.place + 1] };
}

export function makeTitle(seen, now) {
  const root = seen.levels.at(-1)[0];
  if (now.ends && now.node && now.a.count && now.b.count) return tr`${count(root.count, "number")}: M2 = ${short(now.a.M2)} + ${short(now.b.M2)} + ${short(now.node.between)} = ${short(root.M2)}, variance ${short(root.M2 / root.count)}`;
  if (now.ends) return tr`${count(root.count, "number")}: variance = M2 / n = ${short(root.M2)} / ${root.count} = ${short(root.M2 / root.count)}`;
  if (now.blocks) return now.frame.column ? tr`Welford: each block takes in its number ${now.frame.column + 1}` : tr`Each block takes in its first number`;
  if (!now.a.count || !now.b.count) return tr`Merging with an empty side changes nothing`;
  return tr`Merge ${span(now.a)} with ${span(now.b)}: their means differ by ${short(Math.abs(now.node.apart))}`;
}

export function makeCaption(state, seen, now) {
  const words = [state.parts === "split" ? tr`${seen.x.length} numbers in ${state.dtype}, split in two by hand.` : tr`${seen.x.length} numbers in ${state.dtype}, blocks of ${state.parts}.`];
  if (now.blocks) {
    const { column } = now.frame;
    now.blocks.forEach((part, place) => {
      if (part.count === column + 1) words.push(tr`Block ${place} takes ${short(seen.x[part.first + column])}: n = ${part.count}, mean = ${short(part.mean)}, M2 = ${short(part.M2)}.`);
    });
  } else if (!now.a.count || !now.b.count) {
    words.push(now.b.count ? tr`The left side has no number: n = 0, mean = 0, M2 = 0.` : tr`The right side has no number: n = 0, mean = 0, M2 = 0.`);
  } else {
    const { a, b, node } = now;
    words.push(
      tr`The means are ${short(a.mean)} and ${short(b.mean)}, d = ${short(node.apart)}, n = ${a.count} + ${b.count} = ${node.count}.`,
      tr`The mean of both is ${short(node.mean)}.`,
      tr`M2 = ${short(a.M2)} + ${short(b.M2)} + ${short(node.between)} = ${short(node.M2)}: inside the left side, inside the right side, between the means.`);
  }
  if (now.ends) {
    const root = seen.levels.at(-1)[0];
    words.push(tr`Variance ${short(root.M2 / root.count)}, true variance ${short(seen.true)}; E[x\u00b2] - E[x]\u00b2 in ${state.dtype}: ${short(seen.direct)}.`);
  }
  return joinSentences(words);
}

export function picture(data) {
  return {
    start: data.start,
    explain: (state) => explain(data, state),
    controls: [
      [choice("row", "x", Object.entries(data.names)), choice("parts", tr`blocks of`, [...data.blocks, ["split", tr`two, split by hand`]])],
      [slider("n", tr`columns N`, { min: 1, max: Object.values(data.rows)[0].length }), choice("dtype", "dtype", data.dtypes),
        slider("split", tr`split after`, { min: 0, max: (state) => state.n })],
      [stepper("frame", tr`step`, (state) => explain(data, state).frames.length)],
    ],
    off: ({ parts }) => (parts === "split" ? [] : ["split"]),
    render(state, width) {
      const seen = explain(data, state);
      const now = look(seen, state);
      const title = makeTitle(seen, now);
      const caption = makeCaption(state, seen, now);
      const slots = Math.max(seen.ends.at(-1)[1], seen.x.length);
      const box = [56, 26, width - 10, 196];
      const slot = (box[2] - box[0]) / slots;
      const tree = drawTree(seen, now, box, slot, 224);
      const bar = drawShares(seen, now, box, 224 + tree.height + 22);
      return {
        title, caption,
        alt: tr`Points for the numbers, below them a tree of blocks and merges, each with n, mean and M2, and a bar for the parts of M2.`,
        height: 224 + tree.height + 22 + bar.height,
        draw: [drawNumbers(data, state, seen, now, box, slot), tree.draw, bar.draw],
      };
    },
  };
}

/** The numbers as points over their columns, the means that this step is about, and the border between the halves. */
function drawNumbers(data, state, seen, now, box, slot) {
  const [left, top, right, bottom] = box;
  const row = data.rows[state.row];
  const reach = Math.max(...row) - Math.min(...row);
  const [low, high] = [Math.min(...row) - 0.3 * reach, Math.max(...row) + 0.3 * reach];
  const y = linear([low, high], [bottom, top]);
  const inside = (value) => Math.min(Math.max(value, low), high);
  const centre = (column) => left + (column + 0.5) * slot;
  const dots = seen.x.map((value, i) => [centre(i), y(inside(value))]);
  const move = (i, value) => {
    const x = findRow(data, state).map((old, k) => (k === i ? inside(Math.round(value / STEP) * STEP) : old));
    return { moved: { row: state.row, x } };
  };
  const line = (part, end, colour, extra = {}) => part.count > 0 && svg("line", {
    x1: left + part.first * slot + 3, x2: left + end * slot - 3, y1: y(inside(part.mean)), y2: y(inside(part.mean)), stroke: colour, "stroke-width": 3, ...extra });
  const [words, means, lines] = [[], [], []];
  if (now.blocks) {
    now.blocks.forEach((part) => means.push(line(part, part.first + part.count, "var(--welford)")));
  } else {
    const { a, b, node } = now;
    const [ya, yb, yn] = [a, b, node].map((part) => y(inside(part.mean)));
    const border = left + b.first * slot;
    means.push(line(a, Math.min(a.last + 1, seen.x.length), "var(--welford)"), line(b, Math.min(b.last + 1, seen.x.length), "var(--welford)"),
      line({ ...node, first: node.first }, Math.min(node.last + 1, seen.x.length), "var(--chan)", { "stroke-dasharray": "7 5", "stroke-width": 2.4 }));
    if (a.count && b.count && Math.abs(ya - yb) > 12) {
      means.push(arrow([border, ya], [border, yb], { colour: "var(--ink)" }));
      words.push({ at: [[border, (ya + yb) / 2], [border, ya], [border, yb]], words: `d = ${short(node.apart)}`, bold: true });
    }
    const name = (part, lineY, label, fill) => {
      const [start, end] = [left + part.first * slot, left + (part.first + part.count) * slot];
      if (part.count) words.push({ at: [0.5, 0.25, 0.75, 0.1, 0.9].map((share) => [start + share * (end - start), lineY]), words: label, gap: 4, size: SMALL, fill });
    };
    lines.push(...[[a, ya], [b, yb], [node, yn]].flatMap(([part, lineY]) => along([[left + part.first * slot, lineY], [left + (part.first + part.count) * slot, lineY]], 2)));
    name(a, ya, `mean ${short(a.mean)}`, "var(--welford)");
    name(b, yb, `mean ${short(b.mean)}`, "var(--welford)");
    if (a.count && b.count) name(node, yn, tr`mean of both ${short(node.mean)}`, "var(--chan)");
  }
  const active = (i) => (now.blocks ? now.blocks.some((part) => part.first + now.frame.column === i && part.count === now.frame.column + 1) : i >= now.node.first && i <= now.node.last);
  const split = Math.min(state.split, seen.x.length);
  const at = left + split * slot;
  const byHand = state.parts === "split";
  const invite = tr`drag the split, or a number`;
  const border = (s) => ({ parts: "split", split: Math.min(Math.max(s, 0), seen.x.length), ...(byHand ? {} : { frame: 99 }) });
  return [
    axes(box, { x: linear([0, 1], [left, right]), y, xTicks: [], yTicks: y.ticks(4) }),
    seen.x.map((_, i) => text(centre(i), bottom + 13, slot < 30 ? `${i}` : `x[${i}]`, { anchor: "middle", size: SMALL, fill: "var(--quiet)" })),
    means,
    labels(words, [left, top - 8, right, bottom], [...lines, ...dots.map(([cx, cy]) => [cx - 11, cy - 11, cx + 11, cy + 11])]),
    seen.x.map((value, i) => handle(`x${i}`, ...dots[i], {
      label: `x[${i}]`, value, min: low, max: high, text: short(value), radius: Math.min(8, slot / 4), fill: active(i) ? "var(--active)" : "var(--paper)",
      drag: (_, py) => move(i, y.invert(py)), key: (dx, dy) => move(i, findRow(data, state)[i] + STEP * (dy || dx)),
    })),
    handle("split", at, top, {
      label: tr`split after`, value: split, min: 0, max: seen.x.length, text: tr`${split} on the left, ${seen.x.length - split} on the right`,
      drag: (px) => border(Math.round((px - left) / slot)), key: (dx, dy) => border(split + (dx || dy)),
      shape: [
        svg("line", { x1: at, x2: at, y1: top - 4, y2: bottom, stroke: "var(--ink)", "stroke-width": byHand ? 2 : 1, "stroke-dasharray": byHand ? null : "3 5" }),
        svg("rect", { x: at - 18, y: 0, width: 36, height: 24, fill: "transparent" }),
        svg("rect", { x: at - 6, y: 24, width: 12, height: bottom - 24, fill: "transparent" }),
        svg("path", { d: `M${at - 4},5L${at - 12},12L${at - 4},19ZM${at + 4},5L${at + 12},12L${at + 4},19Z`, fill: byHand ? "var(--ink)" : "var(--quiet)" }),
      ],
    }),
    text(...(at + 20 + measure(invite, SMALL) < right ? [at + 20, 12, invite, { size: SMALL, fill: "var(--quiet)" }] : [at - 20, 12, invite, { anchor: "end", size: SMALL, fill: "var(--quiet)" }])),
  ];
}

/** A number as long as it fits; where rounding would hide what tells it from its neighbours, nothing. */
function fit(heads, value, room, reach) {
  for (const head of heads) {
    for (const places of [3, 2, 1, 0]) {
      const words = head + short(value, places);
      if (measure(words, SMALL) <= room && Math.abs(Number(value.toFixed(places)) - value) <= 0.02 * reach) return words;
    }
  }
  return null;
}

/** Blocks on top, merges below them down to the root. */
function drawTree(seen, now, box, slot, top) {
  const [left, , right] = box;
  const [height, gap] = [58, 20];
  const reach = Math.max(...seen.x) - Math.min(...seen.x) || 1;
  const spot = (node, level) => {
    const wide = Math.min(Math.max((node.last + 1 - node.first) * slot - 6, 34), 150);
    const centre = Math.min(Math.max(left + ((node.first + node.last + 1) / 2) * slot, left + wide / 2), right - wide / 2);
    return [centre - wide / 2, top + level * (height + gap), wide];
  };
  const index = (level, place) => seen.frames.findIndex((frame) => frame.level === level && (level === 0 || frame.place === place));
  const lines = [];
  const boxes = seen.levels.flatMap((nodes, level) => nodes.map((final, place) => {
    const waits = level > 0 && index(level, place) > now.at;
    const node = level === 0 && now.blocks ? now.blocks[place] : final;
    const made = now.frame.level === level && (level === 0 ? node.count === now.frame.column + 1 : now.frame.place === place);
    const [x, y, wide] = spot(node, level);
    if (level) {
      for (const child of seen.levels[level - 1].slice(2 * place, 2 * place + 2)) {
        const [cx, cy, cw] = spot(child, level - 1);
        lines.push(svg("line", { x1: cx + cw / 2, y1: cy + height, x2: x + wide / 2, y2: y, stroke: made ? "var(--ink)" : "var(--grid)", "stroke-width": made ? 2.4 : 1.4 }));
      }
    }
    const state = waits ? "waiting" : node.count === 0 ? "masked" : made ? "active" : "done";
    const words = waits ? [] : node.count === 0 ? ["n 0"] : [`n ${node.count}`, fit(["mean ", ""], node.mean, wide - 6, reach), fit(["M2 "], node.M2, wide - 4, Math.max(node.M2, reach))].filter(Boolean);
    const said = waits ? tr`not yet merged` : tr`n ${node.count}, mean ${short(node.mean)}, M2 ${short(node.M2)}`;
    return target(`node-${level}-${place}`, { label: level ? tr`merge ${span(node)}: ${said}` : tr`block ${span(node)}: ${said}`, press: () => ({ frame: level ? index(level, place) : seen.frames.findLastIndex((frame) => frame.level === 0) }), pressed: made },
      cell(x, y, wide, height, "", { state, heavy: made }),
      words.map((line, i) => text(x + wide / 2, y + height / 2 + 16 * (i - (words.length - 1) / 2), line, { anchor: "middle", size: SMALL, bold: made, fill: `var(--on-${state})`, class: state === "masked" ? "on-masked" : null })));
  }));
  const heads = seen.levels.map((_, level) => text(left - 8, top + level * (height + gap) + height / 2, level ? `+${level}` : tr`block`, { anchor: "end", size: SMALL, fill: "var(--quiet)" }));
  return { draw: [lines, boxes, heads], height: seen.levels.length * (height + gap) - gap };
}

/** M2 of this step as a bar: what lies inside the two sides, and between their means. The whole row's M2 is the whole width. */
function drawShares(seen, now, box, top) {
  const [left, , right] = box;
  const whole = Math.max(seen.true * seen.x.length, 1e-9);
  const parts = now.blocks
    ? now.blocks.filter((part) => part.count).map((part) => ({ name: span({ ...part, last: part.first + part.count - 1 }), size: part.M2, fill: "var(--welford)" }))
    : [
      { name: tr`inside ${span(now.a)}`, size: now.a.M2, fill: "var(--welford)" },
      { name: tr`inside ${span(now.b)}`, size: now.b.M2, fill: "var(--welford)", hatch: "masked" },
      { name: tr`between the means`, size: now.node.between, fill: "var(--chan)" },
    ];
  let at = left;
  const pieces = parts.map(({ size, fill, hatch }) => {
    const wide = Math.max(Math.min((size / whole) * (right - left), right - at), 0) || 0;
    const made = wide > 0.2 && [
      svg("rect", { x: at, y: top, width: wide, height: 20, fill, stroke: "var(--ink)" }),
      hatch && svg("rect", { x: at, y: top, width: wide, height: 20, fill: `url(#hatch-${hatch})`, "pointer-events": "none" })];
    at += wide;
    return made;
  });
  const words = now.blocks ? [{ words: tr`inside each block, by Welford; frame: the whole row's M2`, fill: "var(--welford)" }]
    : parts.map(({ name, size, fill, hatch }) => ({ words: tr`${name}: ${short(size)}`, fill, hatch }));
  const key = legend(words, left, top + 36, right - left);
  return {
    draw: [
      svg("rect", { x: left, y: top, width: right - left, height: 20, fill: "none", stroke: "var(--quiet)", "stroke-dasharray": "3 4" }),
      pieces, text(left - 8, top + 10, "M2", { anchor: "end", bold: true }), key.draw],
    height: 36 + key.height,
  };
}
