// Small worlds whose every timeline is played, and a larger one for random ones. Each is about one guard.
const question = [['c', 'send', { n: 1 }]]
const gated = { needsApproval: true }
const ann = (name, more = {}) => ({ name, kind: 'answer', context: { factor: true }, ...more })
const deny = { payload: { approved: false } }

export const models = [
  {
    name: 'two tabs say yes, and the one that has it stands still',
    question,
    points: ['claim', 'renew', 'renewed', 'complete', 'audit', 'run'],
    environment: ['stall'],
    actors: [ann('one'), ann('two', { process: 'p2' })],
    most: 1,
  },
  {
    name: 'one says yes and one says no, and time runs out',
    question,
    time: 10,
    points: ['claim', 'renew', 'complete', 'audit', 'run'],
    environment: ['expire', 'stall'],
    actors: [ann('one'), ann('two', { process: 'p2', ...deny })],
    most: 1,
  },
  {
    name: 'one edits, one does not, and only one has a second factor',
    question,
    confirm: true,
    tool: { ...gated, allowEdits: true },
    points: ['claim', 'renew', 'confirm', 'run'],
    actors: [
      ann('one', { payload: { approved: true, editedArgs: { n: 2 } }, context: { factor: false } }),
      ann('two', { process: 'p2' }),
    ],
    most: 1,
  },
  {
    name: 'one edits with a second factor, and one says yes without',
    question,
    confirm: true,
    tool: { ...gated, allowEdits: true },
    points: ['claim', 'renew', 'confirm', 'run'],
    actors: [
      ann('one', { payload: { approved: true, editedArgs: { n: 2 } } }),
      ann('two', { process: 'p2', context: { factor: false } }),
    ],
    most: 1,
  },
  {
    name: 'a no of somebody without a second factor settles nothing',
    question,
    confirm: true,
    points: ['claim', 'renew', 'confirm', 'run'],
    actors: [ann('one', { ...deny, context: { factor: false } }), ann('two', { process: 'p2' })],
    most: 1,
  },
  {
    name: 'an open run is answered by somebody else than the one who opened it',
    confirm: true,
    points: ['claim', 'renew', 'confirm', 'audit', 'run'],
    environment: ['stall'],
    actors: [
      {
        name: 'opener',
        kind: 'live',
        context: { factor: true },
        answers: [
          { who: 'thief', factor: false },
          { who: 'owner', factor: true },
        ],
      },
    ],
    most: 1,
  },
  {
    name: 'the policy changes its mind between the answer and the start',
    question,
    policy: true,
    points: ['claim', 'renew', 'policy', 'audit', 'run'],
    environment: ['block', 'stall'],
    actors: [ann('one'), ann('two', { process: 'p2' })],
    most: 1,
  },
  {
    name: 'what was bound changes between the answer and the start',
    question,
    bind: true,
    points: ['claim', 'renew', 'bind', 'audit', 'run'],
    environment: ['change', 'expire'],
    actors: [ann('one')],
    most: 1,
  },
  {
    name: 'a process is killed, and another takes the answer',
    question,
    points: ['claim', 'renew', 'complete', 'audit', 'run'],
    environment: ['crash p1', 'stall'],
    actors: [ann('one'), ann('two', { process: 'p2' })],
    most: 1,
  },
  {
    name: 'a process is killed with an idempotent call, and another runs it again',
    question,
    tool: { ...gated, idempotent: true },
    points: ['claim', 'renew', 'complete', 'audit', 'run'],
    environment: ['crash p1', 'stall'],
    actors: [ann('one'), ann('two', { process: 'p2' })],
    most: 2,
  },
  {
    name: 'a slow audit trail costs nobody the lease',
    question,
    points: ['audit', 'run'],
    environment: ['tick', 'tick', 'tick', 'tick'],
    actors: [ann('one')],
    most: 1,
  },
  {
    name: 'a call of the client is handed out while its claim is held',
    question,
    tool: { ...gated, location: 'client' },
    points: ['claim', 'renew', 'renewed', 'complete', 'audit'],
    environment: ['stall', 'stall'],
    actors: [ann('one'), ann('two', { process: 'p2' })],
  },
  {
    name: 'a session approval is ended while its call waits',
    granted: true,
    concurrency: 1,
    points: ['look', 'use', 'used', 'audit', 'slow', 'run', 'revoke', 'revoked'],
    actors: [
      {
        name: 'one',
        kind: 'speak',
        turn: {
          calls: [
            ['s', 'slow', {}],
            ['c', 'send', { n: 1 }],
          ],
        },
      },
      { name: 'ender', kind: 'revoke' },
    ],
  },
  {
    name: 'a mandate is revoked while its call waits',
    granted: true,
    mandate: true,
    concurrency: 1,
    points: ['use', 'used', 'audit', 'slow', 'run', 'revoke', 'revoked'],
    actors: [
      {
        name: 'one',
        kind: 'speak',
        turn: {
          calls: [
            ['s', 'slow', {}],
            ['c', 'send', { n: 1 }],
          ],
        },
      },
      { name: 'ender', kind: 'revoke' },
    ],
  },
  {
    name: 'a policy forbids what a session approval allowed',
    granted: true,
    policy: true,
    points: ['look', 'use', 'audit', 'policy', 'run'],
    environment: ['block'],
    actors: [{ name: 'one', kind: 'speak', turn: { calls: [['c', 'send', { n: 1 }]] } }],
    most: 1,
  },
  {
    name: 'one run is posted twice',
    points: ['made', 'slow', 'read'],
    actors: [
      { name: 'one', kind: 'speak', turn: { calls: [['s', 'slow', {}]] } },
      { name: 'one again', kind: 'speak', runId: 'run_one' },
    ],
  },
  {
    name: 'an answer comes late',
    granted: true,
    isOld: true,
    points: ['claim'],
    actors: [ann('late', { payload: { approved: true, scope: 'session' } })],
    most: 0,
    turns: 0,
  },
]

/** Everything at once, for random timelines. */
export const everything = {
  name: 'everything at once',
  question,
  confirm: true,
  policy: true,
  bind: true,
  tool: { ...gated, allowEdits: true },
  points: [
    'claim',
    'renew',
    'renewed',
    'complete',
    'confirm',
    'policy',
    'bind',
    'audit',
    'run',
    'read',
    'revoke',
  ],
  environment: ['stall', 'tick', 'tick', 'expire', 'block', 'change', 'crash p1'],
  actors: [
    ann('one'),
    ann('two', { process: 'p2' }),
    ann('three', { process: 'p2', payload: { approved: true, editedArgs: { n: 2 } } }),
    ann('four', { context: { factor: false } }),
    ann('five', { ...deny }),
  ],
  most: 1,
}
