/**
 * Ways to break the client that the exploration has to notice. Each edit replaces a text that stands exactly `times` (default once) in its
 * file; where it does not, the client has changed and the mutation has to be written anew.
 */
const client = 'client/src'
const machine = 'core/src/machine'

export const mutants = [
  {
    name: 'drop the skipped flag',
    edits: [{ file: `${client}/runner.ts`, find: 'this.skipped = true', put: 'this.skipped = false' }],
  },
  {
    name: 'clear the pending flag before the stream ends',
    edits: [
      {
        file: `${client}/runner.ts`,
        find: 'onEvent: (event) => session.dispatch(event)',
        put: `onEvent: (event) => {
        if (event.type === 'RUN_FINISHED') this.run = undefined
        session.dispatch(event)
      }`,
      },
    ],
  },
  {
    name: 'drop the generation check on events',
    edits: [
      { file: `${client}/run.ts`, find: 'if (!ended) host.onEvent(event)', put: 'host.onEvent(event)' },
      { file: `${client}/run.ts`, find: "if (ended) return { type: 'aborted' }", put: '' },
    ],
  },
  {
    name: 'drop the generation check on client tools',
    edits: [
      {
        file: `${client}/runner.ts`,
        find: 'if (generation !== this.generation) return',
        put: '',
        times: 3,
      },
    ],
  },
  {
    name: 're-check after a failed stream',
    edits: [
      {
        file: `${client}/runner.ts`,
        find: "skipped && end.type === 'success' && this.#continue()",
        put: 'skipped && this.#continue()',
      },
    ],
  },
  {
    name: 'continue with an unanswered sibling',
    edits: [
      {
        file: `${client}/continuation.ts`,
        find: 'return hasUnsentAnswer(state) && areAllToolsComplete(state)',
        put: 'return hasUnsentAnswer(state)',
      },
    ],
  },
  {
    name: 'resend an answer',
    edits: [
      {
        file: `${machine}/runs.ts`,
        find: "? 'unknown' : 'waiting'",
        put: "? 'waiting' : 'waiting'",
      },
    ],
  },
  {
    name: 'accept a second answer',
    edits: [
      {
        file: `${machine}/approvals.ts`,
        find: "if (call.approval.approved !== undefined) return { status: 'already-answered' }",
        put: '',
      },
      {
        file: `${machine}/approvals.ts`,
        find: "if (call.state !== 'approval-requested')\n    return { status: 'closed'",
        put: "if (call.state !== 'approval-requested' && call.state !== 'approval-responded')\n    return { status: 'closed'",
      },
      {
        file: `${machine}/acts.ts`,
        find: "if (found.status !== 'open' || !moveCall(state, found.call, 'approval-responded')) return none",
        put: "if (found.status !== 'open') return none\n  moveCall(state, found.call, 'approval-responded')",
      },
    ],
  },
  {
    name: 'match by call id instead of approval id',
    edits: [
      {
        file: `${machine}/approvals.ts`,
        find: 'const call = state.approvals.get(approvalId)',
        put: 'const call = state.approvals.get(approvalId) ?? state.calls.get(approvalId)',
      },
    ],
  },
  {
    name: 'send the queue before the answers',
    edits: [
      {
        file: `${client}/runner.ts`,
        find: "if (!(skipped && end.type === 'success' && this.#continue())) this.sendQueued()",
        put: "this.sendQueued()\n      if (!this.run && skipped && end.type === 'success') this.#continue()",
      },
    ],
  },
  {
    name: 'forget unsent answers on abort',
    edits: [
      {
        file: `${machine}/runs.ts`,
        find: "if (isAttached(state, item)) returnUnsettled(state, item, run.phase === 'streaming')",
        put: "if (end.type !== 'aborted' && isAttached(state, item)) returnUnsettled(state, item, run.phase === 'streaming')",
      },
    ],
  },
  {
    name: 'let a snapshot answer',
    edits: [
      {
        file: `${machine}/snapshot.ts`,
        find: 'const approval = readApproval(part.approval) ?? known.approval',
        put: `const given = part.approval?.approved
  if (known.approval && given !== undefined) {
    known.approval = { ...known.approval, approved: given, delivery: 'waiting' }
    known.state = 'approval-responded'
    state.unsent.add(known)
    return none
  }
  const approval = readApproval(part.approval) ?? known.approval`,
      },
    ],
  },
]
