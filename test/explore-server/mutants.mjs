/**
 * Ways to break the guards that the exploration has to notice. `by` names the model that does, and each edit replaces a text that
 * stands exactly once in its file.
 */
const server = (path) => `server/src/${path}`
const start = server('answers/run-claimed.ts')
const fresh = server('run/fresh-calls.ts')
const swap = (file, find, put) => ({ file, find, put })

export const mutants = [
  {
    name: 'confirm is asked with the context of the run',
    by: 'an open run is answered by somebody else than the one who opened it',
    edits: [
      swap(server('answers/confirm.ts'), '{ context, request }))', '{ context: scope.context, request }))'),
    ],
  },
  {
    name: 'confirm is not asked',
    by: 'one edits, one does not, and only one has a second factor',
    edits: [swap(server('answers/settle.ts'), "kind === 'repeat' || (await", 'true || (await')],
  },
  {
    name: 'confirm sees the arguments that were asked about, not those that run',
    by: 'one edits with a second factor, and one says yes without',
    edits: [
      swap(
        server('answers/confirm.ts'),
        "settlement.kind === 'run' ? copyOf(settlement.call.args) : JSON.parse(verdict.canonical)",
        'JSON.parse(verdict.canonical)',
      ),
    ],
  },
  {
    name: 'a grant is checked at gating only',
    by: 'a session approval is ended while its call waits',
    edits: [swap(fresh, "(asks ? standing.kind === 'granted' :", '(asks ? granted :')],
  },
  {
    name: 'a grant that was ended while the ledger answered still counts',
    by: 'a session approval is ended while its call waits',
    edits: [swap(server('gate/grants.ts'), 'changesOf(ledger) === before', 'true')],
  },
  {
    name: 'a grant is used before the audit trail is told',
    by: 'a session approval is ended while its call waits',
    edits: [
      swap(
        fresh,
        '  if (granted) {\n    await auditGrant',
        "  const stands = granted && (await findPermission(scope, call, 'use')).kind === 'granted'\n  if (granted) {\n    await auditGrant",
      ),
      swap(fresh, "(asks ? standing.kind === 'granted' :", '(asks ? stands :'),
    ],
  },
  {
    name: 'the lease is not looked at before the start',
    by: 'two tabs say yes, and the one that has it stands still',
    edits: [swap(start, '!(await holdsLease(scope, claim))', 'false')],
  },
  {
    name: 'the word of the ledger may be older than the lease',
    by: 'two tabs say yes, and the one that has it stands still',
    edits: [
      swap(server('answers/claim.ts'), 'if (now() < asked + leaseMs) return true', 'return true'),
      swap(start, 'now() >= renewed + approvals.leaseMs', 'false'),
    ],
  },
  {
    name: 'the standing denials may be read for longer than the lease',
    by: 'two tabs say yes, and the one that has it stands still while it reads the standing denials',
    edits: [swap(start, 'now() >= renewed + approvals.leaseMs', 'false')],
  },
  {
    name: 'the lease is kept only once the call runs',
    by: 'a slow audit trail costs nobody the lease',
    edits: [
      swap(
        server('answers/run-claimed.ts'),
        'const stopRenewing = keepLease(scope, claim)',
        'const stopRenewing = () => {}',
      ),
    ],
  },
  {
    name: 'expiry is looked at in verification only',
    by: 'one says yes and one says no, and time runs out',
    edits: [swap(start, 'now() >= verdict.claims.expiresAt', 'false')],
  },
  {
    name: 'the policy is not asked again before an approved call starts',
    by: 'the policy changes its mind between the answer and the start',
    edits: [
      swap(
        start,
        'await askPolicy(scope, call, gate)',
        'await askPolicy(scope, call, gate, () => undefined)',
      ),
    ],
  },
  {
    name: 'the policy is asked before the audit trail is told',
    by: 'the policy changes its mind between the answer and the start',
    edits: [
      swap(
        server('answers/run-claimed.ts'),
        "    if (tool.location === 'server') await audit(patient, { event: 'started', ...auditNames(claim) })\n    const start = await decideStart(patient, claim, claimed).catch((error: unknown) =>\n      notStarted(scope, call, error),\n    )\n",
        "    const start = await decideStart(patient, claim, claimed).catch((error: unknown) =>\n      notStarted(scope, call, error),\n    )\n    if (tool.location === 'server') await audit(patient, { event: 'started', ...auditNames(claim) })\n",
      ),
    ],
  },
  {
    name: 'the policy is not asked again before a call with a grant starts',
    by: 'a policy forbids what a session approval allowed',
    edits: [
      swap(
        fresh,
        'const gate = await decideGate(scope, call, context, { needed }).catch(unlessLeft)\n  const idempotencyKey',
        'const gate = await decideGate(scope, call, context, { needed, policy: () => undefined }).catch(unlessLeft)\n  const idempotencyKey',
      ),
    ],
  },
  {
    name: 'what was bound is not read again',
    by: 'what was bound changes between the answer and the start',
    edits: [swap(start, '!(await isStillBound(scope, verdict, asked, gate))', 'false')],
  },
  {
    name: 'a refused answer does not wait for the call that another one runs',
    by: 'what was bound changes while one tab is refused and another has the call',
    edits: [
      swap(
        server('answers/open-call.ts'),
        "status === 'conflict' && !site.superseded ? await",
        'false ? await',
      ),
    ],
  },
  {
    name: 'the preview is not computed again before the start',
    by: 'what was shown changes between the request and the start, and changes back',
    edits: [swap(start, 'return hash === approvedPreview ?', 'return true ?')],
  },
  {
    name: 'the preview is compared before the claim',
    by: 'what was shown changes between the request and the start, and changes back',
    edits: [
      swap(
        server('answers/prepare.ts'),
        "return { kind: 'run', verdict, call, asked, answer, approvedPreview, mandate }",
        "return { kind: 'run', verdict, call, asked, answer, approvedPreview, mandate, now: await computePreview(scope, call, gate) } as never",
      ),
      swap(
        server('answers/prepare.ts'),
        "import { askPolicy } from '../gate/gate.js'",
        "import { askPolicy } from '../gate/gate.js'\nimport { computePreview } from '../gate/preview.js'",
      ),
      swap(
        start,
        '  const preview = await computePreview(scope, call, gate)\n',
        '  const { now: preview } = claimed as ClaimedCall & { now: ComputedPreview }\n',
      ),
      swap(start, 'const { approvals, now } = scope', 'const { approvals, now: time } = scope'),
      swap(start, 'const renewed = now()', 'const renewed = time()'),
      swap(start, 'now() >= renewed', 'time() >= renewed'),
      swap(start, 'now() >= verdict', 'time() >= verdict'),
    ],
  },
  {
    name: 'the preview of the call as the model made it is bound to edits',
    by: 'edits are approved with their preview, and it changes',
    edits: [
      swap(
        start,
        'const preview = await computePreview(scope, call, gate)',
        'const preview = await computePreview(scope, asked, gate)',
      ),
      swap(
        server('answers/prepare.ts'),
        'const approvedPreview = isEdited ? await previewOfEdits(scope, verdict, approved) : claims.previewHash',
        'const approvedPreview = claims.previewHash',
      ),
    ],
  },
  {
    name: 'the call starts before onAudit has returned',
    by: 'one says yes and one says no, and time runs out',
    edits: [
      swap(
        server('answers/run-claimed.ts'),
        "if (tool.location === 'server') await audit(",
        "if (tool.location === 'server') void audit(",
      ),
    ],
  },
  {
    name: 'a repeat runs the call again',
    by: 'two tabs say yes, and the one that has it stands still',
    edits: [
      swap(
        server('answers/settle.ts'),
        "if (claim.status === 'claimed') {",
        "if (claim.status === 'claimed' || (claim.status === 'repeat' && kind === 'run')) {",
      ),
      swap(server('answers/settle.ts'), 'const { revision } = claim', 'const revision = 0'),
      swap(start, '!(await holdsLease(scope, claim))', 'false'),
    ],
  },
  {
    name: 'a second claim succeeds, and its lease with it',
    by: 'two tabs say yes, and the one that has it stands still',
    edits: [
      swap(
        server('ledger/ledger-row.ts'),
        "      return { result: sameOr(record, current.answer, answer, { status: 'in-progress' }) }",
        "      return { result: { status: 'claimed', revision: 0 }, state: { ...current, answer, holder } }",
      ),
    ],
  },
  {
    name: 'an interrupted call is taken over though its tool is not idempotent',
    by: 'two tabs say yes, and the one that has it stands still',
    edits: [
      swap(
        server('ledger/ledger-row.ts'),
        "if (current.phase !== 'interrupted' || !record.idempotent)",
        "if (current.phase !== 'interrupted')",
      ),
      swap(server('answers/settle.ts'), 'call.tool.idempotent ?', 'true ?'),
    ],
  },
  {
    name: 'a call of the client is handed out after its claim was lost',
    by: 'a call of the client is handed out while its claim is held',
    edits: [
      swap(
        server('ledger/ledger-row.ts'),
        "if (late && isStart) return { result: { status: 'fenced' } }",
        '',
      ),
      swap(server('answers/run-claimed.ts'), "if (recorded !== 'held') {", 'if (false) {'),
    ],
  },
  {
    name: 'a run that is open is started again',
    by: 'one run is posted twice',
    edits: [swap(server('run/open-runs.ts'), 'if (isRunOpen(ledger, name)) return false', '')],
  },
  {
    name: 'a late answer starts a turn of the model',
    by: 'an answer comes late',
    edits: [swap(server('run/run.ts'), 'bringsNothing && ', 'false && ')],
  },
]
