/** Every workload, by the name that `--only` takes, in the order of the report. */
export const workloads = {
  cold: () => import('./cold.mjs'),
  collected: () => import('./collected.mjs'),
  w1: () => import('./w1-text.mjs'),
  w2: () => import('./w2-arguments.mjs'),
  w3: () => import('./w3-history.mjs'),
  w4: () => import('./w4-calls.mjs'),
  w5: () => import('./w5-sse.mjs'),
  w6: () => import('./w6-frameworks.mjs'),
  w7: () => import('./w7-size.mjs'),
  w8: () => import('./w8-memory.mjs'),
  w9: () => import('./w9-burst.mjs'),
  'server-history': () => import('./server-history.mjs'),
  'server-turn': () => import('./server-turn.mjs'),
  'server-approval': () => import('./server-approval.mjs'),
}
