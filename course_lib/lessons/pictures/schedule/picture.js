// Lessons 12 and 16: the programs of a launch, in an order that a seed drew or that the learner chooses. Python has found out what each program
// does next for all that it can find in memory; this walks those tables, and keeps account of what orders which operation.

import { FONT, MONO, SMALL, arrow, breakCode, button, cell, choice, code, count, handle, joinClauses, joinSentences, list, measure, number, slider, stepper, svg, target, text, tr } from "../../kit/kit.js";

const MARKS = { L: () => tr`load`, S: () => tr`store`, T: () => tr`lock taken`, w: () => tr`tried in vain`, F: () => tr`lock given back`, A: () => tr`other atomic`, B: () => tr`barrier` };
const FILLS = { L: "waiting", S: "active", T: "done", w: "masked", F: "done", A: "active", B: "masked" };
const [LOAD, STORE, ATOMIC_READ, ATOMIC_WRITE] = [0, 1, 2, 3];
const CONFLICTS = [[STORE, ATOMIC_WRITE], [LOAD, STORE, ATOMIC_READ, ATOMIC_WRITE], [STORE], [LOAD, STORE]];
const LONGEST = 400; // operations by hand
const END = -1;

// ---- what a program does

const same = (one, other) => one.length === other.length && one.every((value, i) => value === other[i]);
const find = (world, { tensor, elements }) => elements.map((element) => world.memory[tensor][element]);

/** The next operation of a program; null at its end, or where no run has shown what comes. */
export function findNext(launch, world, program) {
  const node = world.at[program] === END ? [] : launch.nodes[program][world.at[program]] ?? [];
  if (!node.length) return null;
  const [kind, line, tensor, elements, order, shared, following] = node;
  return { program, node: world.at[program], kind, line, tensor, elements, order, shared: shared === 1, following };
}

/** The same with what it finds, leaves and changes now; null if it is not known. */
function tryNext(launch, world, program) {
  const operation = findNext(launch, world, program);
  if (!operation) return null;
  const found = find(world, operation);
  const known = operation.following.find((row) => same(row[0], found));
  if (!known) return null;
  const done = { ...operation, found, left: known[1] ?? found, after: known[2], changed: known[3] === 1 };
  return { ...done, mark: markOf(done, listLocks(launch)) };
}

const locks = new Map(); // launch -> the places of its locks

const listPlaces = (tensor, elements) => elements.map((element) => `${tensor}[${element}]`);

/** Numbers that some program takes by a compare and swap, or gives back by setting them to 0: "lock[0]". */
function listLocks(launch) {
  if (!locks.has(launch)) {
    const given = ([, left]) => left !== null && left.every((value) => value === 0);
    const taken = launch.nodes.flat().filter(([kind, , , , , , following]) => kind === "cas" || (kind === "xchg" && following.some(given)));
    locks.set(launch, new Set(taken.flatMap(([, , tensor, elements]) => listPlaces(tensor, elements))));
  }
  return locks.get(launch);
}

/** One letter for an operation: the keys of MARKS. */
function markOf({ kind, left, changed, tensor, elements }, of_locks) {
  if (kind === "load" || kind === "store" || kind === "barrier") return kind[0].toUpperCase();
  const is_lock = listPlaces(tensor, elements).some((place) => of_locks.has(place));
  if (is_lock && kind === "xchg" && !left.some((value) => value !== 0)) return "F";
  if (!changed) return kind === "xchg" && !is_lock ? "A" : "w";
  return is_lock && (kind === "cas" || kind === "xchg") ? "T" : "A";
}

function begin(launch) {
  const zero = () => Array.from({ length: launch.programs }, () => 0);
  return {
    memory: Object.fromEntries(launch.tensors.map(({ name, values }) => [name, [...values]])),
    at: launch.nodes.map((nodes) => (nodes.length ? 0 : END)),
    steps: [], races: [], pairs: new Set(), changedBy: {}, started: new Set(), last: {},
    clocks: launch.nodes.map(zero), released: {}, tracks: {},
  };
}

/** Let a program do its next operation, in `world`; false if it has none that is known. */
function advance(launch, world, program) {
  const step = tryNext(launch, world, program);
  if (!step) return false;
  world.steps.push(step);
  world.started.add(program);
  world.last[program] = step;
  noteOrder(world, step);
  step.elements.forEach((element, i) => {
    world.memory[step.tensor][element] = step.left[i];
    if (step.changed) world.changedBy[`${step.tensor}[${element}]`] = program;
  });
  world.at[program] = step.after;
  return true;
}

/** What is ordered before this step, and which earlier ones on the same elements nothing orders: vector clocks, as Python's scheduler has them. */
function noteOrder(world, step) {
  if (step.kind === "barrier" || !step.elements.length) return;
  const [now, clock] = [world.steps.length, world.clocks[step.program]];
  const atomic = step.kind !== "load" && step.kind !== "store";
  const wrote = step.kind === "cas" ? step.changed : step.kind !== "load";
  const places = listPlaces(step.tensor, step.elements);
  if (atomic) {
    const there = places.map((place) => world.released[place]).filter(Boolean);
    if (!["relaxed", "release"].includes(step.order)) there.forEach((other) => other.forEach((at, p) => { clock[p] = Math.max(clock[p], at); }));
    if (wrote && !["relaxed", "acquire"].includes(step.order)) {
      clock[step.program] = now;
      const known = clock.map((at, p) => Math.max(at, ...there.map((other) => other[p])));
      places.forEach((place) => { world.released[place] = known; });
    }
  }
  const how = atomic || step.order === "relaxed" ? (wrote ? ATOMIC_WRITE : ATOMIC_READ) : wrote ? STORE : LOAD;
  const earlier = new Map(); // number of a step that nothing orders before this one -> the first place where they meet
  for (const other of CONFLICTS[how]) for (const place of places) {
    (world.tracks[place]?.[other] ?? []).forEach((number, program) => {
      if (program !== step.program && number > clock[program] && !earlier.has(number)) earlier.set(number, place);
    });
  }
  for (const [number, where] of [...earlier].sort(([a], [b]) => a - b)) {
    const first = world.steps[number - 1];
    const pair = [first.line, first.kind, step.line, step.kind, step.tensor].join("|");
    if (world.pairs.has(pair)) continue;
    world.pairs.add(pair);
    world.races.push({ first: number, second: now, where });
  }
  for (const place of places) ((world.tracks[place] ??= [[], [], [], []])[how])[step.program] = now;
}

/** The launch after the first `at` operations of `path`. */
export function replay(launch, path, at = path.length) {
  const world = begin(launch);
  for (const program of path.slice(0, at)) if (!advance(launch, world, program)) break;
  return world;
}

const isDone = (world, program) => world.at[program] === END;

/** The operations that a program goes round and round until somebody else changes memory; null if it can get on. */
function findCircle(launch, world, program) {
  const alone = { ...world, at: [...world.at] };
  const seen = new Map(); // node -> number of its operation
  const steps = [];
  while (!seen.has(alone.at[program])) {
    seen.set(alone.at[program], steps.length);
    const step = tryNext(launch, alone, program);
    if (!step || step.changed || step.after === END) return null;
    steps.push(step);
    alone.at[program] = step.after;
  }
  return steps.slice(seen.get(alone.at[program]));
}

const isStuck = (launch, world, program) => findCircle(launch, world, program) !== null;

/** Of a load that is made again and again: some of what it finds is integers that nobody has set. */
function isAwaited(launch, world, { tensor, elements }) {
  return launch.tensors.find(({ name }) => name === tensor).integers && elements.some((element) => world.memory[tensor][element] === 0);
}

const countUnderWay = (world) => [...world.started].filter((program) => !isDone(world, program)).length;

/** Programs that may move: begun and not done, or not begun while there is room. */
function listAble(launch, world, resident) {
  const under_way = countUnderWay(world);
  return launch.nodes.map((_, program) => program).filter((program) => findNext(launch, world, program) && (world.started.has(program) || under_way < resident));
}

function isDeadlock(launch, world, resident) {
  const able = listAble(launch, world, resident);
  return able.length > 0 && able.every((program) => isStuck(launch, world, program));
}

/** How many operations of `path` there are up to its first race, or to its end if that is a deadlock; else 0. */
function findFault(launch, path, resident) {
  const world = replay(launch, path);
  return world.races[0]?.second ?? (isDeadlock(launch, world, resident) ? world.steps.length : 0);
}

/** `path` and what follows if everybody who can moves in turn. */
function runOn(launch, path, resident) {
  const [world, longer] = [replay(launch, path), [...path]];
  for (let turn = 0; longer.length < LONGEST; turn++) {
    const able = listAble(launch, world, resident).filter((program) => !isStuck(launch, world, program));
    if (!able.length) break;
    const program = able[turn % able.length];
    if (!advance(launch, world, program)) break;
    longer.push(program);
  }
  return longer;
}

// ---- the threads of one program

/** What a thread does from `step` on, a load for which it finds `value`: until it does the same as the others again. */
function follow(launch, program, step, value, memory) {
  const stray = { value, extra: [], later: new Map() }; // operations that only it does; line -> what it does there
  const rows = (node) => launch.nodes[program][node] ?? [];
  let next = step.following.find((row) => row[0][0] === value)?.[2] ?? END;
  while (next !== END && rows(next).length) {
    const [kind, line, tensor, elements, , , following] = rows(next);
    const here = elements.map((element) => memory[tensor]?.[element]);
    const row = following.find(([found]) => same(found, here)) ?? following[0];
    const done = { kind, line, tensor, elements, found: row[0], left: row[1] ?? row[0] };
    done.mark = markOf({ ...done, changed: row[3] === 1 }, listLocks(launch));
    stray.later.set(line, done);
    stray.extra.push(done);
    next = row[2];
  }
  return stray;
}

/** The program's operations from here to its end, without tries in vain, and how far each of four threads has come. */
export function explainThreads(launch, steps, moves, memory = {}) {
  const own = steps.filter((step) => step.mark !== "w");
  const widest = Math.max(1, ...own.map((step) => step.elements.length));
  const threads = Math.min(4, Math.max(2, widest));
  const has = (thread, step) => step.kind === "barrier" || step.kind === "load" || step.elements.length > 1 || step.shared || thread === 0;
  const skip = (thread, at) => { while (at < own.length && !has(thread, own[at])) at++; return at; };
  const at = Array.from({ length: threads }, (_, thread) => skip(thread, 0));
  // the result of an atomic is handed to all threads by one of them, and all of them meet there; a barrier lets nobody on before all are there
  const blocked = (thread) => {
    const step = own[at[thread]];
    if (!step) return "";
    const behind = (place) => at.some((other) => other < place);
    if (step.kind === "barrier" && behind(at[thread])) return tr`waits at the barrier`;
    if (step.shared && thread > 0 && at[0] <= at[thread]) return step.mark === "T" ? tr`waits for thread 0's lock` : tr`waits for thread 0's answer`;
    if (own[at[thread] - 1]?.shared && behind(at[thread] - 1)) return tr`waits until all threads have the answer`;
    return "";
  };
  const strays = new Map(); // thread -> what it does after it has found another number than thread 0
  for (const thread of moves) {
    const step = own[at[thread]];
    if (!step || blocked(thread)) continue;
    if (thread > 0 && step.kind === "load" && step.elements.length === 1) {
      const place = placeOf(step);
      const written = own.slice(0, at[0]).findLast((other, i) => i > at[thread] && other.kind !== "load" && other.elements.length === 1 && placeOf(other) === place);
      if (written && written.left[0] !== step.found[0]) strays.set(thread, { line: step.line, place, ...follow(launch, step.program, step, written.left[0], memory) });
    }
    at[thread] = skip(thread, at[thread] + 1);
  }
  const lines = new Set(own.map((step) => step.line));
  for (const stray of strays.values()) stray.extra = stray.extra.filter((step) => !lines.has(step.line));
  const release = own.findLastIndex((step) => step.mark === "F");
  const open = release >= 0 && at[0] > release;
  const late = open ? at.map((_, thread) => thread).filter((thread) => own.some((step, i) => i >= at[thread] && step.kind === "store" && step.elements.length > 1)) : [];
  return { own, threads, at, has, blocked: at.map((_, thread) => blocked(thread)), open, late, strays };
}

/** The threads of a program, and how far they have come. */
function lookInside(launch, path, who, moves) {
  const { steps } = replay(launch, path);
  const first = steps.findIndex((step) => step.program === who && step.kind === "load"); // memory changes for a late thread by its own program alone
  const { memory } = replay(launch, path, Math.max(first, 0));
  return explainThreads(launch, steps.filter((step) => step.program === who), moves, memory);
}

/** The elements of an operation that a thread of so many does. */
const share = (elements, thread, threads) => elements.slice(Math.floor((thread * elements.length) / threads), Math.floor(((thread + 1) * elements.length) / threads));

// ---- words

const sayRange = (first, last) => tr`${first} to ${last}`;
const placeOf = ({ tensor, elements }) => {
  if (!elements.length) return tensor;
  const [low, high] = [Math.min(...elements), Math.max(...elements)];
  return `${tensor}[${low === high ? low : sayRange(low, high)}]`;
};
const verbOf = ({ kind }) => (kind === "load" || kind === "store" ? kind : `atomic_${{ fadd: "add", umax: "max", umin: "min" }[kind] ?? kind}`);
const several = (values) => (values.every((value) => value === values[0]) ? number(values[0]) : joinClauses([...values.slice(0, 6).map((value) => number(value)), ...(values.length > 6 ? ["..."] : [])]));

function describeStep(step) {
  const place = placeOf(step);
  if (step.kind === "barrier") return tr`its threads meet at a barrier`;
  if (!step.elements.length) return tr`${step.kind}s nothing: every lane is masked`;
  return {
    L: tr`loads ${place} and finds ${several(step.found)}`, S: tr`stores ${several(step.left)} to ${place}`, T: tr`takes ${place}`,
    F: tr`gives back ${place}`, w: tr`tries ${place} in vain, because its value is ${several(step.left)}`,
    A: step.kind === "add" ? tr`adds ${several(step.left.map((value, i) => value - step.found[i]))} to ${place}, and gets the old value ${several(step.found)}` : tr`sets ${place} to ${several(step.left)} in one atomic operation`,
  }[step.mark];
}

/** How a program stands: done, waits (for a place, and who changed it last), or its next operation. */
export function describeProgram(launch, world, program, room = Infinity) {
  if (isDone(world, program)) return { status: "done", words: tr`done` };
  const last = world.last[program];
  const place = last ? placeOf(last) : "";
  const looked = last && findCircle(launch, world, program)?.find((step) => placeOf(step) === place);
  if (looked && (looked.kind !== "load" || isAwaited(launch, world, looked))) {
    const by = world.changedBy[place];
    const words = by !== undefined ? tr`waits for ${place}, changed last by program ${by}` : looked.kind === "load" ? tr`waits for ${place}, which no program has written` : tr`waits for ${place}, which no program has changed`;
    return { status: "waits", place, by, words };
  }
  if (!last && countUnderWay(world) >= room) return { status: "shut out", words: tr`has not started: there is room for ${count(room, "program")} at a time` };
  const next = findNext(launch, world, program);
  if (!next) return { status: "unknown", words: tr`the next operation was not computed` };
  if (last?.mark === "w") return { status: "running", words: tr`tried ${place} in vain; its value has changed since` };
  const words = next.kind === "barrier" ? tr`a barrier` : tr`${verbOf(next)} on ${placeOf(next)}`;
  return { status: last ? "running" : "not started", words: tr`next, line ${next.line}: ${words}` };
}

const describeRace = (world, { first, second, where }) => {
  const [one, other] = [world.steps[first - 1], world.steps[second - 1]];
  return tr`Race on ${where}: program ${one.program} at line ${one.line} (${verbOf(one)}) and program ${other.program} at line ${other.line} (${verbOf(other)}), and nothing orders these two operations.`;
};

/** What a complete run has left, first column of each shared tensor that is not of integers. */
const readOutcome = (launch, world) => launch.tensors.filter((tensor) => !tensor.integers).flatMap(({ name, columns }) => world.memory[name].filter((_, i) => i % columns === 0));
const sayOutcome = (values) => values.map((value) => number(value)).join(" | ");
const goalOf = (launch, reached) => (launch.outcomes ?? []).map(sayOutcome).find((words) => !reached.includes(words) && !words.includes("NaN"));

function makeTitle(launch, world, state, resident) {
  const race = world.races.at(-1);
  if (isDeadlock(launch, world, resident)) return tr`Deadlock: no move of any program can end a wait`;
  if (race) return tr`A race on ${race.where}: operations ${race.first} and ${race.second}`;
  const waiting = launch.nodes.map((_, p) => p).filter((p) => describeProgram(launch, world, p).status === "waits");
  if (world.at.every((at) => at === END)) return tr`Every program is done, and no race was found`;
  if (waiting.length) {
    const { by, place } = describeProgram(launch, world, waiting[0]);
    if (waiting.length > 1) return tr`Programs ${list(waiting)} wait`;
    return by !== undefined && listLocks(launch).has(place) ? tr`Program ${waiting[0]} waits, and program ${by} has the lock` : tr`Program ${waiting[0]} waits for ${place}`;
  }
  return state.at === 0 ? tr`${count(launch.programs, "program")} at the start: which program moves first?` : tr`Program ${world.steps.at(-1).program} ${describeStep(world.steps.at(-1))}`;
}

function makeCaption(launch, world, state, total, reached, resident) {
  const words = [state.hand ? tr`${launch.kernel}, an order by hand, operation ${world.steps.length} of ${total}.` : tr`${launch.kernel}, seed ${state.seed}, operation ${world.steps.length} of ${total}.`];
  const step = world.steps.at(-1);
  if (!step) {
    words.push(tr`Nothing has happened yet.`);
    if (launch.hidden) words.push(launch.hidden === 1 ? tr`1 operation on memory that no two programs share is left out.` : tr`${launch.hidden} operations on memory that no two programs share are left out.`);
  } else words.push(tr`Program ${step.program}, line ${step.line}: ${describeStep(step)}.`);
  const waiting = launch.nodes.map((_, p) => [p, describeProgram(launch, world, p)]).filter(([, how]) => how.status === "waits");
  words.push(...waiting.map(([p, how]) => tr`Program ${p} ${how.words}.`));
  if (isDeadlock(launch, world, resident)) {
    const out = launch.nodes.map((_, p) => p).filter((p) => describeProgram(launch, world, p, resident).status === "shut out");
    words.push(tr`Deadlock in ${launch.kernel}: every program that has started waits for a value, and no program is left that could change this value.`);
    if (out.length > 1) words.push(tr`Programs ${list(out)} cannot start: there is room for ${count(resident, "program")} at a time, and the programs that have started wait.`);
    if (out.length === 1) words.push(tr`Program ${out[0]} cannot start: there is room for ${count(resident, "program")} at a time, and the programs that have started wait.`);
  }
  if (world.races.length) words.push(describeRace(world, world.races.at(-1)));
  if (world.at.every((at) => at === END)) {
    const how = world.races.length ? count(world.races.length, "race") : tr`no race, no deadlock`;
    const left = sayOutcome(readOutcome(launch, world));
    words.push(left ? tr`The end: ${how}; memory holds ${left}.` : tr`The end: ${how}.`);
  }
  const goal = goalOf(launch, reached);
  if (state.hand && goal) words.push(reached.length ? tr`You have reached ${list(reached)}. Can you find an order that ends with ${goal}?` : tr`Can you find an order that ends with ${goal}?`);
  else if (state.hand && launch.outcomes?.length === 1 && reached.length) words.push(tr`Every order of the programs ends with these values.`);
  return joinSentences(words);
}

// ---- the picture

export function picture(data) {
  const names = Object.keys(data.launches);
  const of = (state) => data.launches[state.launch];
  const pathOf = (state) => state.hand ?? of(state).orders[data.rooms.indexOf(state.room) * data.seeds.length + data.seeds.indexOf(state.seed)];
  const has_threads = names.some((name) => listLocks(data.launches[name]).size || data.launches[name].nodes.flat().some(([kind]) => kind === "barrier"));
  const first = data.chosen;
  // another kernel, another seed: the timeline begins anew
  const fresh = (make) => (stage) => make({ get state() { return stage.state; }, get host() { return stage.host; }, set: (changes) => stage.set({ ...changes, at: 0, hand: null, moves: [], who: 0 }) });
  const drive = (state, program) => {
    const [launch, path] = [of(state), pathOf(state)];
    const at = Math.min(state.at, path.length);
    const hand = path[at] === program ? path : [...path.slice(0, at), program];
    if (hand.length > LONGEST) return null;
    const world = replay(launch, hand, at + 1);
    if (world.steps.length <= at) return null;
    return { hand, at: at + 1, ...remember(state, launch, world) };
  };
  const remember = (state, launch, world) => {
    if (!world.at.every((node) => node === END)) return {};
    const [reached, words] = [state.reached[state.launch] ?? [], sayOutcome(readOutcome(launch, world))];
    return reached.includes(words) ? {} : { reached: { ...state.reached, [state.launch]: [...reached, words] } };
  };
  const finish = (state) => {
    const path = pathOf(state);
    const hand = runOn(of(state), path.slice(0, state.at), state.room);
    return { hand, at: hand.length, ...remember(state, of(state), replay(of(state), hand)) };
  };
  return {
    start: { launch: first, seed: data.seeds[0], room: data.rooms[0], view: data.view, at: data.at_fault ? findFault(data.launches[first], data.launches[first].orders[0], data.rooms[0]) : 0, hand: null, who: 0, moves: [], reached: {} },
    follow: (name, path) => { const { steps, races, memory, at } = replay(data.launches[name], path); return { steps: steps.map(({ program, kind, line, tensor, elements, found, left, mark }) => ({ program, kind, line, tensor, elements, found, left, mark })), races, memory, at, deadlock: isDeadlock(data.launches[name], replay(data.launches[name], path), data.rooms[0]) }; },
    threads: (name, path, who, moves) => { const launch = data.launches[name]; const { late, open, at, blocked, strays } = lookInside(launch, path, who, moves); return { late, open, at, blocked, strays: [...strays].map(([thread, { value, extra, later }]) => [thread, value, extra.map(({ kind, line }) => [kind, line]), [...later.values()].filter(({ kind }) => kind === "store").map(({ left }) => left)]) }; },
    controls: [
      [fresh(choice("launch", tr`kernel`, names))],
      [
        ...(has_threads || data.view === "threads" ? [choice("view", tr`look at`, [["programs", tr`the programs`], ["threads", tr`the threads of one program`]])] : []),
        ...(data.rooms.length > 1 ? [fresh(choice("room", tr`room for`, data.rooms.map((room) => [room, count(room, "program")])))] : []),
        fresh(slider("seed", tr`seed`, { values: data.seeds, format: String })),
      ],
      [stepper("at", tr`operation`, (state) => pathOf(state).length + 1, { interval: 500, format: (value, last) => tr`${value} of ${last}` }),
        button(tr`By hand from the start`, (state) => (state.view === "threads" ? { moves: [], hand: [], at: 0 } : { hand: [], at: 0 })), button(tr`Let the rest run`, finish)],
    ],
    off: (state) => (state.view === "threads" ? ["at", "seed"] : []),
    render(state, width) {
      const launch = of(state);
      const path = pathOf(state);
      const whole = replay(launch, path);
      const world = replay(launch, path, state.at);
      const wide = width >= 820;
      const left_width = wide ? Math.round(width * 0.55) : width;
      const shown = state.view === "programs"
        ? drawPrograms(launch, whole, world, state, left_width, { drive: (program) => drive(state, program), able: listAble(launch, world, state.room) })
        : drawThreads(launch, path, state, left_width);
      const place = wide ? { left: left_width + 24, top: 4, width: width - left_width - 24 } : { left: 0, top: shown.height + 18, width };
      const listing = drawCode(launch, shown.code, place);
      const reached = state.reached[state.launch] ?? [];
      const title = shown.title ?? makeTitle(launch, world, state, state.room);
      const caption = shown.caption ?? makeCaption(launch, world, state, path.length, reached, state.room);
      return { title, caption, height: Math.max(shown.height, place.top + listing.height), draw: [shown.draw, listing.draw] };
    },
  };
}

const ROW = 56;

function drawPrograms(launch, whole, world, state, width, { drive, able }) {
  const at = world.steps.length;
  const [left, top] = [10, 34]; // the point at the start is not to be cut off
  const length = Math.max(whole.steps.length, ...(state.hand ? [launch.orders[0].length, 8] : [1]));
  const step = Math.min(26, (width - left - 10) / length);
  const x = (operations) => left + operations * step;
  const raced = new Set(world.races.flatMap((race) => [race.first, race.second]));
  const rows = launch.nodes.map((_, program) => {
    const y = top + program * ROW;
    const how = describeProgram(launch, world, program, state.room);
    const own = whole.steps.map((each, i) => [each, i + 1]).filter(([each]) => each.program === program);
    const can = able.includes(program);
    return [
      svg("line", { x1: left, x2: x(length), y1: y + 36, y2: y + 36, stroke: "var(--grid)" }),
      drawHolds(whole, program, x, y + 48, at),
      own.map(([each, i]) => drawMark(each, i, x, y + 26, step, { future: i > at, now: i === at, raced: raced.has(i) })),
      can
        ? target(`move-${program}`, { label: how.words, press: () => drive(program) },
          svg("rect", { x: 2, y: y + 1, width: 66, height: 21, rx: 4, fill: "var(--control)", stroke: "var(--edge)" }), text(35, y + 12, tr`move ${program} \u25b8`, { anchor: "middle", size: FONT }))
        : text(4, y + 12, tr`program ${program}`, { halo: true, fill: "var(--quiet)" }),
      text(78, y + 12, fit(how.words, width - 80, how.status === "waits"), { size: SMALL, halo: true, bold: how.status === "waits", fill: how.status === "done" ? "var(--quiet)" : "var(--ink)" }),
    ];
  });
  const bottom = top + launch.programs * ROW;
  const races = world.races.slice(-1).map(({ first, second }) => {
    const [one, other] = [world.steps[first - 1], world.steps[second - 1]].map(({ program }) => top + program * ROW + 36);
    return arrow([x(first - 0.5), one + Math.sign(other - one) * 11], [x(second - 0.5), other - Math.sign(other - one) * 11], { colour: "var(--fault)", width: 2.5 });
  });
  const key = drawKey(whole, raced.size > 0, width, bottom + 16);
  const memory = drawMemory(launch, world, width, key.bottom + 14);
  const grip = handle("at", x(at), 14, {
    label: tr`operation`, value: at, min: 0, max: whole.steps.length, text: at ? tr`${at}, program ${world.steps.at(-1).program} ${describeStep(world.steps.at(-1))}` : tr`0, the start`, radius: 8,
    drag: (px) => ({ at: Math.min(Math.max(Math.round((px - left) / step), 0), whole.steps.length) }),
    key: (dx, dy) => ({ at: Math.min(Math.max(at + (dx || dy), 0), whole.steps.length) }),
  });
  return {
    height: memory.bottom, code: {
      now: world.steps.at(-1)?.line, raced: [...raced].map((i) => world.steps[i - 1].line), noun: "program",
      markers: launch.nodes.map((_, name) => ({ name, line: findNext(launch, world, name)?.line, waits: describeProgram(launch, world, name).status === "waits" })),
    },
    draw: [
      svg("line", { x1: x(0), x2: x(length), y1: 14, y2: 14, stroke: "var(--grid)", "stroke-width": 3 }),
      // beside the words of each program, not through them
      [[14, top], ...launch.nodes.map((_, program) => [top + program * ROW + 24, top + (program + 1) * ROW])].map(([from, to]) =>
        svg("line", { x1: x(at), x2: x(at), y1: from, y2: to, stroke: "var(--ink)", "stroke-width": 1.5, "stroke-dasharray": "3 3" })),
      races, rows, grip, key.draw, memory.draw,
    ],
  };
}

/** `words`, or as many of their clauses as there is room for. */
function fit(words, room, bold = false) {
  let parts = words;
  const findEnd = () => Math.max(...[",", ":", "\uff0c", "\uff1a"].map((sign) => parts.lastIndexOf(sign)));
  while (measure(parts, SMALL, bold ? "600" : "normal") > room && findEnd() > 0) parts = parts.slice(0, findEnd());
  return parts;
}

function drawMark({ mark }, i, x, y, step, { future, now, raced }) {
  const half = mark === "w" || mark === "F" || mark === "B";
  const width = Math.max(step - 1, 2);
  const look = future ? { fill: "transparent", ink: "var(--quiet)", "stroke-dasharray": "2 3" } : { state: raced ? "fault" : FILLS[mark], heavy: raced };
  return svg("g", {},
    cell(x(i - 1) + 0.5, half ? y + 5 : y, width, half ? 15 : 20, step >= 13 ? mark : "", { ...look, size: FONT }),
    now && svg("path", { d: `M${x(i - 0.5) - 5},${y - 8}h10l-5,6Z`, fill: "var(--ink)" }));
}

/** A bar under the stretch in which a program has a lock: until somebody gives that lock back, whoever it is. */
function drawHolds(whole, program, x, y, at) {
  const bars = [];
  const since = new Map(); // place -> the operation that took it
  whole.steps.slice(0, at).forEach((step, i) => {
    const place = placeOf(step);
    if (step.mark === "T" && step.program === program) since.set(place, i);
    if (step.mark === "F" && since.has(place)) { bars.push([since.get(place), i + 1]); since.delete(place); }
  });
  for (const from of since.values()) bars.push([from, at]);
  return bars.map(([from, to]) => svg("line", { x1: x(from), x2: x(to), y1: y, y2: y, stroke: "var(--done)", "stroke-width": 4 }));
}

function drawKey(whole, raced, width, top) {
  const used = [...Object.keys(MARKS).filter((mark) => whole.steps.some((step) => step.mark === mark)).map((mark) => [mark, mark === "A" && !whole.steps.some((step) => step.mark === "T") ? tr`atomic` : MARKS[mark](), FILLS[mark]]), ...(whole.steps.some((step) => step.mark === "T") ? [["", tr`has the lock`, null]] : []), ...(raced ? [["", tr`in a race: the arrow joins the latest two`, "fault"]] : [])];
  let [x, y] = [2, top];
  const draw = used.map(([mark, words, state]) => {
    const room = 24 + measure(words, SMALL) + 14;
    if (x + room > width && x > 2) { x = 2; y += 24; }
    const at = x;
    x += room;
    return [state ? cell(at, y - 9, 18, 18, mark, { state, size: SMALL }) : svg("line", { x1: at, x2: at + 18, y1: y, y2: y, stroke: "var(--done)", "stroke-width": 4 }), text(at + 24, y, words, { size: SMALL, fill: "var(--quiet)" })];
  });
  return { draw, bottom: y + 12 };
}

const MOST_ROWS = 4;

function drawMemory(launch, world, width, top) {
  const step = world.steps.at(-1);
  const of_locks = listLocks(launch);
  const isSet = ({ name, integers }, element, value) => integers && value && (!of_locks.size || of_locks.has(`${name}[${element}]`)); // beside locks, a flag has no colour of its own
  // integers are called by their numbers in words, and so are their rows
  const nameRow = ({ name, integers, columns, values }, r) => (values.length === columns ? name : integers ? `${name}[${sayRange(r * columns, (r + 1) * columns - 1)}]` : `${name}[${r}]`);
  const left = 2 + Math.max(60, ...launch.tensors.map((tensor) => measure(nameRow(tensor, 0), FONT) + 12));
  const draw = [];
  let y = top;
  for (const tensor of launch.tensors) {
    const { name, columns, integers } = tensor;
    const values = world.memory[name];
    const many = Math.max(1, Math.min(columns, Math.floor((width - left) / 56)));
    const size = Math.min(76, (width - left) / many);
    const rows = Math.min(values.length / columns, MOST_ROWS);
    for (let r = 0; r < rows; r++) {
      draw.push(text(2, y + 12, nameRow(tensor, r)));
      for (let c = 0; c < many; c++) {
        const element = r * columns + c;
        const touched = step?.tensor === name && step.elements.includes(element);
        draw.push(cell(left + c * size, y, size - 4, 24, number(values[element]), { state: touched && step.changed ? "active" : isSet(tensor, element, values[element]) ? "done" : "waiting", heavy: touched, size: SMALL + 0.5 }));
        const by = world.changedBy[`${name}[${element}]`];
        if (integers && values[element] && by !== undefined) draw.push(text(left + c * size + (size - 4) / 2, y + 33, tr`program ${by}`, { anchor: "middle", size: SMALL, fill: "var(--quiet)" }));
      }
      y += integers ? 46 : 28;
    }
    const hidden = columns - many;
    if (hidden > 0 || values.length / columns > rows) draw.push(text(left, y + 8, hidden > 0 ? tr`${count(hidden, "more column")} not drawn` : tr`${values.length / columns - rows} more rows not drawn`, { size: SMALL, fill: "var(--quiet)" })), (y += 20);
    y += 4;
  }
  return { draw, bottom: y + 4 };
}

/** The kernel's lines, with a marker for each of `markers` ({name, line, waits}) at its next operation. */
function drawCode(launch, { now, raced, markers, noun }, { left, top, width }) {
  const gutter = 17 * Math.min(markers.length, Math.max(4, ...launch.source.map(([number]) => markers.filter((each) => each.line === number).length)));
  const code_left = left + gutter + 32;
  const room = Math.floor((left + width - code_left) / MONO);
  const title = noun === "thread" ? tr`${launch.kernel}: a marker is a thread, at its next line` : tr`${launch.kernel}: a marker is a program, at its next line`;
  const draw = [text(left, top + 10, title, { size: SMALL, fill: "var(--quiet)" })];
  let y = top + 34;
  for (const [line, indent, words] of launch.source) {
    const parts = breakCode(words, room - indent);
    const height = 19 + 15 * (parts.length - 1);
    const frame = { x: code_left - 30, y: y - 10, width: left + width - code_left + 29, height, rx: 3 };
    if (line === now) draw.push(svg("rect", { ...frame, fill: "var(--grid)" }));
    if (raced.includes(line)) draw.push(svg("rect", { ...frame, fill: "none", stroke: "var(--fault)", "stroke-width": 2, "stroke-dasharray": "6 3" }));
    draw.push(text(code_left - 5, y, String(line), { anchor: "end", size: SMALL, fill: "var(--quiet)" }));
    parts.forEach((part, i) => draw.push(code(code_left + (indent + (i ? 4 : 0)) * MONO, y + 15 * i, part)));
    markers.filter((each) => each.line === line).forEach(({ name, waits }, i) => draw.push(
      svg("circle", { cx: left + 9 + 17 * i, cy: y, r: 8, fill: waits ? "var(--masked)" : "var(--active)", stroke: "var(--ink)", "stroke-width": waits ? 1.5 : 1, "stroke-dasharray": waits ? "2.5 2" : null }),
      text(left + 9 + 17 * i, y, String(name), { anchor: "middle", size: SMALL, bold: true, fill: waits ? "var(--on-masked)" : "var(--on-active)" })));
    y += height;
  }
  const done = markers.filter((each) => each.line === undefined).map((each) => each.name);
  if (done.length) draw.push(text(left, y + 8, tr`done: ${list(done)}`, { size: SMALL, fill: "var(--quiet)" }));
  return { draw, height: y + 20 - top };
}

/** Inside one program: what is one operation to the other programs is done by many threads, each in its own time. */
function drawThreads(launch, path, state, width) {
  const who = state.who;
  const seen = lookInside(launch, path, who, state.moves);
  const { own, threads, at, has, blocked, late, open, strays } = seen;
  const left = 84;
  const step = Math.min(56, (width - left - 2) / Math.max(own.length, 1));
  const chips = launch.nodes.map((_, program) => target(`who-${program}`, { label: tr`Look at the threads of program ${program}`, pressed: program === who, press: () => ({ who: program, moves: [] }) },
    svg("rect", { x: 2 + program * 40, y: 0, width: 34, height: 24, rx: 4, fill: program === who ? "var(--chosen)" : "var(--control)", stroke: "var(--edge)" }),
    text(19 + program * 40, 12, String(program), { anchor: "middle", fill: program === who ? "var(--on-chosen)" : "var(--ink)" })));
  const top = 78;
  const head = own.map((each, i) => [
    text(left + (i + 0.5) * step, top - 26, each.mark, { anchor: "middle", bold: true }), text(left + (i + 0.5) * step, top - 10, String(each.line), { anchor: "middle", size: SMALL, fill: "var(--quiet)" })]);
  const is_block = (each) => each.kind === "store" && each.elements.length > 1;
  // the operations that only a late thread does stand where it does nothing else
  const strayAt = (thread, i) => strays.get(thread)?.extra[own.slice(own.findIndex(({ line }) => line === strays.get(thread).line), i).filter((each) => !has(thread, each)).length];
  const cells = (thread, each, i, y) => {
    const done = i < at[thread];
    const stray = strays.get(thread);
    const box = (mark, kind) => cell(left + i * step + 1, y + 1, step - 2, 22, mark, { state: kind, heavy: i === at[thread], size: SMALL + 0.5 });
    if (has(thread, each)) {
      const wrong = (stray && (each.line === stray.line || is_block(each))) || (late.includes(thread) && is_block(each) && !done);
      return box(done ? each.mark : "", wrong ? "fault" : done ? FILLS[each.mark] : "waiting");
    }
    const extra = stray && own.findIndex(({ line }) => line === stray.line) < i ? strayAt(thread, i) : undefined;
    if (extra) return box(extra.mark, "fault");
    return svg("line", { x1: left + i * step + step / 2 - 4, x2: left + i * step + step / 2 + 4, y1: y + 12, y2: y + 12, stroke: "var(--edge)" });
  };
  const standing = (thread, over) => {
    if (blocked[thread]) return blocked[thread];
    const stray = strays.get(thread);
    const words = over ? tr`done` : tr`next, line ${own[at[thread]].line}`;
    return stray ? tr`found ${number(stray.value)} in ${stray.place}; ${words}` : words;
  };
  const rows = Array.from({ length: threads }, (_, thread) => {
    const y = top + thread * 44;
    const over = at[thread] >= own.length;
    return [
      over || blocked[thread]
        ? text(2, y + 12, tr`thread ${thread}`, { fill: "var(--quiet)" })
        : target(`thread-${thread}`, { label: tr`Move thread ${thread}: line ${own[at[thread]].line}`, press: () => ({ moves: [...state.moves, thread] }) },
          svg("rect", { x: 2, y: y + 1, width: 76, height: 22, rx: 4, fill: "var(--control)", stroke: "var(--edge)" }), text(40, y + 12, tr`thread ${thread} \u25b8`, { anchor: "middle", size: SMALL + 0.5 })),
      own.map((each, i) => cells(thread, each, i, y)),
      text(left, y + 33, standing(thread, over), { size: SMALL, bold: Boolean(blocked[thread] || strays.has(thread)), fill: "var(--quiet)" }),
    ];
  });
  const bottom = top + threads * 44;
  const stores = own.map((each, i) => [each, i]).filter(([each]) => is_block(each));
  const memory = stores.map(([each, i], row) => {
    const y = bottom + 30 + row * 48;
    const size = Math.min(64, (width - left) / threads);
    return [text(2, y + 12, placeOf(each).split("[")[0]), Array.from({ length: threads }, (_, thread) => {
      const mine = share(each.elements, thread, threads);
      if (!mine.length) return null;
      const stored = at[thread] > i;
      const { left: values } = strays.get(thread)?.later.get(each.line) ?? each;
      const kind = stored && !strays.has(thread) ? "active" : late.includes(thread) || (stored && strays.has(thread)) ? "fault" : "waiting";
      return [cell(left + thread * size, y, size - 4, 24, stored ? several(mine.map((element) => values[each.elements.indexOf(element)])) : tr`old`, { state: kind, size: SMALL }),
        text(left + thread * size + (size - 4) / 2, y + 34, mine.length > 1 ? sayRange(mine[0], mine.at(-1)) : `[${mine[0]}]`, { anchor: "middle", size: SMALL, fill: "var(--quiet)" })];
    })];
  });
  const height = bottom + 30 + stores.length * 48 + 10;
  const strayed = [...strays.keys()].sort();
  const stray = strays.get(strayed[0]);
  const all_done = at.every((each) => each >= own.length);
  const title = !own.length ? tr`Program ${who} has no operation on shared memory in this order`
    : late.length ? (late.length > 1 ? tr`The lock is open, and threads ${list(late)} have not stored` : tr`The lock is open, and thread ${late[0]} has not stored`)
      : strayed.length > 1 ? tr`Threads ${list(strayed)} found ${number(stray.value)} in ${stray.place}, and thread 0 did not` : strayed.length ? tr`Thread ${strayed[0]} found ${number(stray.value)} in ${stray.place}, and thread 0 did not`
        : all_done ? tr`Program ${who}: all its threads are done` : open ? tr`The lock is open, and every thread has stored` : tr`Program ${who}, inside: which thread moves next?`;
  const waits = blocked.map((why, thread) => why && tr`Thread ${thread} ${why}.`).filter(Boolean);
  const loads_number = own.some((each) => each.kind === "load" && each.elements.length === 1);
  const missed = stray ? own.find(({ line }) => line === stray.line).found : [];
  const asks = strayed.length === 0 && own.length > 0 && late.length === 0 && !open;
  const caption = joinSentences([
    tr`${launch.kernel}, program ${who}, drawn with ${threads} threads; a program of four warps has 128 threads.`,
    own.length ? tr`All threads load and store a block, each thread its own columns. Thread 0 stores a single number, and gives back a lock, for all threads.` : tr`Choose another program or another seed.`,
    loads_number ? tr`Each thread loads a single number for itself.` : "",
    ...waits,
    strayed.length === 1 ? tr`Thread ${strayed[0]} loaded late: it found ${number(stray.value)} where thread 0 had found ${several(missed)}.` : "",
    strayed.length > 1 ? tr`Threads ${list(strayed)} loaded late: they found ${number(stray.value)} where thread 0 had found ${several(missed)}.` : "",
    strayed.length ? tr`A thread that finds another number takes another branch.` : "",
    late.length ? tr`The next program may take the lock now, and then loads old columns.` : "",
    (late.length || strayed.length) && launch.barriers.length ? tr`The check of the order of operations says, for example: ${launch.barriers[0]}` : "",
    asks ? (loads_number ? tr`Can a thread find another number than thread 0?` : tr`Can a thread give the lock back before the other threads have stored?`) : "",
  ].filter(Boolean));
  return {
    title, caption, height,
    code: {
      now: undefined, raced: late.length ? stores.map(([each]) => each.line) : strayed.length ? [stray.line] : [], noun: "thread",
      markers: at.map((place, name) => ({ name, line: own[place]?.line, waits: Boolean(blocked[name]) })),
    },
    draw: [
      chips, text(8 + launch.programs * 40, 12, tr`program`, { size: SMALL, fill: "var(--quiet)" }),
      own.length > 0 && text(2, top - 10, tr`line`, { size: SMALL, fill: "var(--quiet)" }), head, own.length > 0 && rows,
      stores.length > 0 && text(2, bottom + 12, tr`memory, by the thread that stores it`, { size: SMALL, fill: "var(--quiet)" }), memory,
    ],
  };
}
