// Lesson 10: what the VJP of a norm takes out of wdy, for rows of three numbers, which are points in space. Up is the direction 1.

import { FONT, SMALL, along, arrow, choice, decimal, handle, joinSentences, labels, number, path, slider, svg, text, toggle, tr } from "../../kit/kit.js";

const UP = 24; // degrees from which the plane is looked at
const REACH = 2.55; // half the drawing's height, in the units of wdy
const DISC = 2.4;
const ZERO = 5e-4; // shorter than that is a point, and 0
const ROOT = Math.sqrt(3);

// ---- vectors of three numbers

const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const add = (a, b, factor = 1) => a.map((value, i) => value + factor * b[i]);
const times = (a, factor) => a.map((value) => value * factor);
const length = (a) => Math.sqrt(dot(a, a));
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const average = (a) => (a[0] + a[1] + a[2]) / 3;
const radians = (degrees) => (degrees * Math.PI) / 180;

// the drawing's own axes, each of length 1: two in the plane at right angles to 1, then 1 itself
const FRAME = [times([1, -1, 0], Math.SQRT1_2), times([1, 1, -2], 1 / Math.sqrt(6)), times([1, 1, 1], 1 / ROOT)];

/** A vector of that length in the plane, turned about 1. */
const inPlane = (degrees, size = 1) => add(times(FRAME[0], size * Math.cos(radians(degrees))), FRAME[1], size * Math.sin(radians(degrees)));

/** The row's gradient taken apart: wdy = c2 + alongXhat + left, and left is dx / rstd. RMSNorm has no c2. */
export function explain(state) {
  const { kind, eps } = state;
  const x = add(times(inPlane(state.xTurn), state.xStd * ROOT), [1, 1, 1], state.xMean);
  const wdy = add(inPlane(state.turn, state.length), [1, 1, 1], state.mean);
  const centred = kind === "layer_norm" ? add(x, [1, 1, 1], -average(x)) : x;
  const rstd = 1 / Math.sqrt(dot(centred, centred) / 3 + eps);
  const xhat = times(centred, rstd);
  const takeOut = (v) => {
    const [c1, c2] = [dot(xhat, v) / 3, kind === "layer_norm" ? average(v) : 0];
    return { c1, c2, left: add(add(v, xhat, -c1), [1, 1, 1], -c2) };
  };
  const { c1, c2, left } = takeOut(wdy);
  return { x, wdy, rstd, xhat, c1, c2, left, dx: times(left, rstd), again: takeOut(left).left, kept: eps * rstd ** 2, alongXhat: times(xhat, c1) };
}

// ---- words

const clean = (value) => (Math.abs(value) < ZERO ? 0 : value);
const vector = (values) => `[${values.map((value) => decimal(clean(value))).join(", ")}]`;

export function makeTitle({ kind, eps }, seen) {
  const [whole, left] = [length(seen.wdy), length(seen.left)];
  if (seen.kept >= 0.005) return tr`With eps = ${number(eps)}, ${number(100 * seen.kept, 2)} % of the part of wdy along xhat reaches dx`;
  if (whole < ZERO) return tr`wdy is 0, and so is dx`;
  const both = kind === "layer_norm"; // the part along 1 and the part along xhat
  if (left < 0.02 * whole) return both ? tr`All of wdy lies along 1 and xhat: nothing of it reaches dx` : tr`All of wdy lies along xhat: nothing of it reaches dx`;
  return both ? tr`Of wdy's length ${decimal(whole)}, ${decimal(left)} is left: its parts along 1 and along xhat are gone` : tr`Of wdy's length ${decimal(whole)}, ${decimal(left)} is left: only its part along xhat is gone`;
}

/** `touched`: whether something was moved. Before that nothing is said of the mean of what is left, which the page asks for. */
export function makeCaption({ kind, eps }, seen, touched) {
  const drift = clean(average(seen.left));
  const stretch = clean(dot(seen.left, seen.xhat) / 3);
  const words = [
    tr`xhat = ${vector(seen.xhat)}, wdy = ${vector(seen.wdy)}, rstd = ${number(seen.rstd, 3)}.`,
    kind === "layer_norm" ? tr`c2 = ${decimal(clean(seen.c2))} takes out the part along 1, c1 = ${decimal(clean(seen.c1))} the part along xhat.` : tr`c1 = ${decimal(clean(seen.c1))} takes out the part along xhat; no mean was subtracted, so there is no c2.`,
  ];
  if (!touched) return joinSentences([...words, tr`Drag the tip of the arrow wdy, or the foot of its dashed line.`]);
  words.push(
    tr`What is left is dx / rstd = ${vector(seen.left)}.`,
    drift === 0 ? tr`The mean of this vector is ${decimal(drift)}, so a step along it cannot change the mean of the row.` : tr`The mean of this vector is ${decimal(drift)}, so a step along it changes the mean of the row.`,
  );
  if (length(add(seen.again, seen.left, -1)) < ZERO) words.push(eps === 0 ? tr`Taking out both parts once more changes nothing: the matrix is a projector.` : tr`Taking out both parts once more changes less than the drawing shows; only at eps = 0 is the matrix a projector.`);
  else words.push(tr`Of the ${decimal(clean(seen.c1))} along xhat, ${decimal(stretch)} is left: the share eps \u00b7 rstd\u00b2 = ${number(seen.kept, 2)}. Taking out both parts once more would leave ${vector(seen.again)}: the matrix is no projector.`);
  return joinSentences(words);
}

// ---- the picture

const degrees = (value) => `${value}\u00b0`;

export function picture(data) {
  return {
    start: data.start,
    explain,
    controls: [
      [choice("kind", tr`norm`, Object.entries(data.kinds)), slider("eps", "eps", { values: data.eps }), toggle("where", tr`all that can be left`)],
      [slider("turn", tr`turn wdy`, { min: 0, max: 359, format: degrees }), slider("mean", tr`mean of wdy`, { min: -1, max: 1, step: 0.05 }), slider("xTurn", tr`turn x`, { min: 0, max: 359, format: degrees })],
      [slider("xMean", tr`mean of x`, { min: -2, max: 2, step: 0.5 }), slider("xStd", tr`std of x`, { values: data.stds }), slider("view", tr`walk around`, { min: 0, max: 359, format: degrees })],
    ],
    render(state, width) {
      const seen = explain(state);
      const wide = width >= 760;
      const space = { width: wide ? width * 0.56 : width, height: wide ? 420 : 340 };
      const bars = wide ? { left: space.width + 16, top: 40, width: width - space.width - 24 } : { left: 8, top: space.height + 10, width: width - 16 };
      const title = makeTitle(state, seen);
      return {
        title, caption: makeCaption(state, seen, Object.entries(data.start).some(([name, value]) => state[name] !== value)),
        alt: tr`Space with the direction 1 upwards and the plane at right angles to it: the arrow wdy, the parts taken out of it along 1 and along xhat, and the arrow that is left. Beside it the length along each direction, in wdy and in what is left.`,
        height: wide ? space.height : space.height + 250,
        draw: [drawSpace(state, seen, space), drawBars(state, seen, bars)],
      };
    },
  };
}

/** From space to the drawing and, for a point of the plane, back. */
function makeCamera(view, { width, height }) {
  const [azimuth, elevation] = [radians(view), radians(UP)];
  const scale = Math.min(width / 2 / 2.6, height / 2 / REACH);
  const [cx, cy] = [width / 2, height / 2];
  const show = (v) => {
    const [a, b, up] = FRAME.map((axis) => dot(axis, v));
    const depth = Math.cos(azimuth) * a + Math.sin(azimuth) * b;
    return [cx + scale * (-Math.sin(azimuth) * a + Math.cos(azimuth) * b), cy - scale * (Math.cos(elevation) * up - Math.sin(elevation) * depth)];
  };
  const aside = (px) => (px - cx) / scale;
  const depthAt = (py) => (py - cy) / scale / Math.sin(elevation);
  /** Of the point of the plane that lies so far aside and so deep: how it is turned, and how long it is. */
  const polar = (u, w) => {
    const [a, b] = [-Math.sin(azimuth) * u + Math.cos(azimuth) * w, Math.cos(azimuth) * u + Math.sin(azimuth) * w];
    return { turn: Math.round(((Math.atan2(b, a) * 180) / Math.PI + 360) % 360), length: Math.min(Math.hypot(a, b), 2.3) };
  };
  return { show, aside, depthAt, polar, rise: (pixels) => pixels / scale / Math.cos(elevation) / ROOT, lift: (mean) => mean * ROOT * scale * Math.cos(elevation) };
}

function drawSpace(state, seen, box) {
  const camera = makeCamera(state.view, box);
  const { show } = camera;
  const ring = (one, other, size) => path(Array.from({ length: 73 }, (_, i) => show(add(times(one, size * Math.cos(radians(5 * i))), other, size * Math.sin(radians(5 * i))))), { stroke: "var(--quiet)", "stroke-width": 1, fill: "var(--masked)", "fill-opacity": 0.18 });
  const zero = [0, 0, 0];
  const corner = add(seen.left, seen.alongXhat);
  const foot = add(seen.wdy, [1, 1, 1], -state.mean);
  const tips = Object.fromEntries(Object.entries({ wdy: seen.wdy, left: seen.left, xhat: seen.xhat, corner, zero, foot, one: times(FRAME[2], 2.3), again: seen.again }).map(([name, v]) => [name, show(v)]));
  const between = (one, other) => [(tips[one][0] + tips[other][0]) / 2, (tips[one][1] + tips[other][1]) / 2];
  const far = (a, b, least) => Math.hypot(tips[a][0] - tips[b][0], tips[a][1] - tips[b][1]) >= least;
  const edges = [0, 1, 2].map((i) => ({ tip: show(times([Number(i === 0), Number(i === 1), Number(i === 2)], 1.8)), words: `x[${i}]` }));
  const around = ([x, y]) => [[x, y], [x, y - 14], [x, y + 14], [x - 18, y], [x + 18, y], [x, y - 28], [x, y + 28]]; // a name that matters is never left out
  const moved = length(add(seen.again, seen.left, -1)) > 0.05;
  const lines = [["zero", "wdy"], ["wdy", "corner"], ["corner", "left"], ["zero", "left"], ["zero", "xhat"]].flatMap(([a, b]) => along([tips[a], tips[b]], 3));
  return [
    ring(FRAME[0], FRAME[1], DISC),
    path([show(times(FRAME[2], -2.1)), tips.one], { stroke: "var(--quiet)", "stroke-width": 1.2, "stroke-dasharray": "9 3" }),
    edges.map(({ tip }) => path([tips.zero, tip], { stroke: "var(--quiet)", "stroke-width": 0.8 })),
    state.where && drawReach(state, seen, show, ring),
    arrow(tips.zero, tips.xhat, { colour: "var(--x)", width: 2.4 }),
    arrow(tips.zero, tips.wdy, { colour: "var(--dy)", width: 2.6 }),
    far("wdy", "corner", 1) && arrow(tips.wdy, tips.corner, { colour: "var(--mean)", width: 2, "stroke-dasharray": "7 4" }),
    far("corner", "left", 1) && arrow(tips.corner, tips.left, { colour: "var(--ink)", width: 2, "stroke-dasharray": "2 3" }),
    arrow(tips.zero, tips.left, { colour: "var(--w)", width: 4 }),
    svg("circle", { cx: tips.left[0], cy: tips.left[1], r: 4.5, fill: "var(--w)" }),
    moved && svg("path", { d: `M${tips.again[0] - 5},${tips.again[1] - 5}l10,10m0,-10l-10,10`, stroke: "var(--ink)", "stroke-width": 2 }),
    drawHandles(state, seen, camera, tips),
    labels([
      { at: around(tips.wdy), words: "wdy", gap: 13, bold: true, fill: "var(--dy)" },
      { at: around(tips.left), words: tr`left`, gap: 10, bold: true, fill: "var(--w)" },
      { at: around(tips.xhat), words: "xhat", gap: 13, bold: true, fill: "var(--x)" },
      far("wdy", "corner", 30) && { at: [between("wdy", "corner")], words: tr`c2 term`, fill: "var(--mean)" },
      far("corner", "left", 30) && { at: [between("corner", "left")], words: tr`c1 term` },
      moved && { at: [tips.again], words: tr`once more`, size: SMALL },
      { at: [tips.one], words: "1", bold: true, fill: "var(--quiet)" },
      ...edges.map(({ tip, words }) => ({ at: [tip], words, size: SMALL, fill: "var(--quiet)", gap: 4 })),
      { at: [[box.width / 2, box.height - 24]], words: tr`drag wdy, its foot on the plane, or xhat`, size: SMALL, fill: "var(--quiet)" },
    ].filter(Boolean), [0, 0, box.width, box.height], [...lines, ...["wdy", "foot", "xhat", "left"].map((name) => [tips[name][0] - 9, tips[name][1] - 9, tips[name][0] + 9, tips[name][1] + 9])]),
  ];
}

/** Where `left` can be for every wdy: a line at right angles to 1 and xhat, or the plane at right angles to xhat; with eps, more. */
function drawReach({ kind }, seen, show, ring) {
  const across = cross(FRAME[2], seen.xhat);
  const only = times(across, 1 / length(across));
  if (seen.kept >= ZERO) return kind === "layer_norm" ? ring(FRAME[0], FRAME[1], DISC * 0.97) : null;
  if (kind === "rms_norm") return ring(only, times(cross(seen.xhat, only), 1 / length(seen.xhat)), DISC);
  return path([show(times(only, -DISC)), show(times(only, DISC))], { stroke: "var(--w)", "stroke-width": 1.6, "stroke-dasharray": "10 3 2 3" });
}

function drawHandles(state, seen, camera, tips) {
  const turned = (key, value, by) => ({ [key]: (value + by * 5 + 360) % 360 });
  const clamp = (value, least, most) => Math.min(Math.max(value, least), most);
  const mean = (value) => ({ mean: Number(clamp(value, -1, 1).toFixed(2)) });
  const [u, w] = [camera.aside(tips.foot[0]), camera.depthAt(tips.foot[1])];
  const square = (x, y, size) => svg("rect", { x: x - size, y: y - size, width: 2 * size, height: 2 * size, fill: "var(--x)", stroke: "var(--ink)", "stroke-width": 2 });
  return [
    handle("foot", ...tips.foot, {
      label: tr`wdy in the plane`, value: state.turn, min: 0, max: 360, text: tr`turned ${state.turn} degrees, ${decimal(state.length)} long`, radius: 5, fill: "var(--paper)",
      drag: (px, py) => camera.polar(camera.aside(px), camera.depthAt(py)),
      key: (dx, dy) => (dx ? turned("turn", state.turn, dx) : { length: Number(clamp(state.length + dy * 0.1, 0, 2.3).toFixed(2)) }),
    }),
    handle("xhat", ...tips.xhat, {
      label: tr`x, turned about 1`, value: state.xTurn, min: 0, max: 360, text: tr`turned ${state.xTurn} degrees`, radius: 7,
      drag: (px, py) => ({ xTurn: camera.polar(camera.aside(px), camera.depthAt(py + camera.lift(average(seen.xhat)))).turn }),
      key: (dx, dy) => turned("xTurn", state.xTurn, dx || dy),
      shape: [svg("circle", { cx: tips.xhat[0], cy: tips.xhat[1], r: 15, fill: "transparent" }), square(...tips.xhat, 6)],
    }),
    handle("wdy", ...tips.wdy, {
      label: tr`wdy: aside, and up along 1`, value: state.mean, min: -1, max: 1, text: tr`mean ${decimal(state.mean)}, turned ${state.turn} degrees`, fill: "var(--dy)",
      drag: (px, py) => ({ ...camera.polar(camera.aside(px), w), ...mean(camera.rise(tips.foot[1] - py)) }),
      key: (dx, dy) => (dx ? turned("turn", state.turn, dx) : mean(state.mean + dy * 0.05)),
    }),
  ];
}

/** How long wdy and what is left are along each direction: a hollow bar and a full one. */
function drawBars(state, seen, { left, top, width }) {
  const across = cross(FRAME[2], seen.xhat);
  const rows = [[tr`along 1`, FRAME[2]], [tr`along xhat`, times(seen.xhat, 1 / length(seen.xhat))], [tr`across both`, times(across, 1 / length(across))]];
  const middle = left + width / 2;
  const scale = (width / 2 - 8) / 2.9;
  const bar = (value, y, look) => svg("rect", { x: Math.min(middle, middle + value * scale), y, width: Math.abs(value) * scale, height: 14, ...look });
  return [
    text(left, top, tr`Length along each direction`, { bold: true }),
    rows.map(([name, direction], i) => {
      const [before, after] = [dot(seen.wdy, direction), dot(seen.left, direction)].map(clean);
      const y = top + 26 + i * 64;
      return [
        text(left, y, name, { size: FONT }),
        text(left + width, y, tr`wdy ${decimal(before)}, left ${decimal(after)}`, { anchor: "end", size: SMALL }),
        bar(before, y + 12, { fill: "none", stroke: "var(--dy)", "stroke-width": 2 }),
        bar(after, y + 30, { fill: "var(--w)" }),
        svg("line", { x1: middle, x2: middle, y1: y + 9, y2: y + 48, stroke: "var(--quiet)" }),
      ];
    }),
    text(left, top + 26 + 3 * 64 - 2, tr`hollow: wdy. Full: what is left, dx / rstd`, { size: SMALL, fill: "var(--quiet)" }),
  ];
}
