// What is explored. A model is a server and the bounds of what goes otherwise than planned (see `Model` in lib/model.ts).

const gated = ['gated']
const every = [
  'approve',
  'approve-all',
  'deny',
  'cancel',
  'withdraw',
  'repeat',
  'contradict',
  'by-call',
  'stop',
  'send',
  'retry',
]
const decisive = ['approve', 'deny', 'stop', 'send']
const faults = ['error', 'cut', 'end']

const shapes = {
  'one request': [gated],
  'chain of 2': [gated, gated],
  'chain of 3': [gated, gated, gated],
  'parallel 2': [['gated', 'gated']],
  'parallel 3': [['gated', 'gated', 'gated']],
  'chain with a parallel pair': [gated, ['gated', 'gated']],
  'parallel pair, then one': [['gated', 'gated'], gated],
  'client tool beside a request': [['gated', 'client']],
  'client tool behind a request': [['gated-client'], gated],
  'client tool, then a request': [['client'], gated],
  'a snapshot that says yes': [['snapshot'], gated],
}
const all = Object.keys(shapes)
const modes = ['cancel', 'queue']

function model(shape, mode, label, bounds) {
  const name = `${shape}, ${mode}, ${label}`
  return { name, stages: shapes[shape], mode, acts: every, faults, deviations: 1, ...bounds }
}

const inBothModes = (make) => modes.flatMap(make)

/** One deviation at every moment there is: between events, in each microtask around an end, inside of callbacks. */
const single = { microtasks: 10, early: true, callbacks: true, late: true, fine: true }

/** Two deviations, in those microtasks that show. */
const pairs = { deviations: 2, maxFaults: 2, microtasks: 10, sparse: true }

/** Three answers out of turn. */
const triples = {
  deviations: 3,
  acts: ['approve', 'deny'],
  faults: undefined,
  microtasks: 10,
  sparse: true,
}

/** All of it, for `pnpm explore`; what takes longest comes first. */
export const everything = [
  ...['chain of 2', 'parallel 2', 'client tool beside a request'].map((shape) =>
    model(shape, 'cancel', 'two deviations of any kind', pairs),
  ),
  ...all.map((shape) => model(shape, 'cancel', 'two deviations', { ...pairs, acts: decisive })),
  ...['chain of 2', 'parallel 2', 'chain with a parallel pair', 'client tool behind a request'].map((shape) =>
    model(shape, 'queue', 'two deviations', { ...pairs, acts: decisive }),
  ),
  ...inBothModes((mode) => [
    ...['parallel 3', 'chain of 3'].map((shape) => model(shape, mode, 'three answers', triples)),
    model('one request', mode, 'two deviations at every microtask', {
      ...pairs,
      sparse: false,
      acts: decisive,
    }),
    model('parallel 2', mode, 'two deviations in callbacks', {
      ...pairs,
      callbacks: true,
      acts: decisive,
      late: true,
    }),
    ...all.map((shape) => model(shape, mode, 'one deviation', single)),
  ]),
]

/** What fits into a test, and what shows every mutation. */
export const brief = inBothModes((mode) => [
  ...all.map((shape) =>
    model(shape, mode, 'one deviation', { microtasks: 10, sparse: true, callbacks: true, late: true }),
  ),
  model('one request', mode, 'two deviations', { ...pairs, maxFaults: 1, acts: decisive, microtasks: 2 }),
])

/** A longer timeline than can be explored whole: up to 8 stages of up to 3 calls, up to 12 deviations. */
export function randomModel(random) {
  const pick = (list) => list[Math.floor(random() * list.length)]
  const kinds = ['gated', 'gated', 'gated', 'gated-client', 'client', 'snapshot']
  const some = (count, make) => Array.from({ length: 1 + Math.floor(random() * count) }, make)
  return {
    name: 'random',
    stages: some(8, () => some(3, () => pick(kinds))),
    mode: pick(['cancel', 'queue', 'reject']),
    acts: every,
    deviations: 12,
    faults,
    maxFaults: 3,
    microtasks: 10,
    early: true,
    callbacks: true,
    late: true,
    fine: random() < 0.5,
  }
}
