/**
 * Ways to break the client that the exploration has to notice. Each edit replaces a text that stands exactly `times` (default once) in its
 * file; where it does not, the client has changed and the mutation has to be written anew.
 */
const client = 'client/src'
const machine = 'core/src/machine'

export const mutants = [
  {
    name: 'drop the skipped flag',
    edits: [
      { file: `${client}/runner.ts`, find: 'if (run) skipped = true', put: 'if (run) skipped = false' },
    ],
  },
  {
    name: 'clear the pending flag before the stream ends',
    edits: [
      {
        file: `${client}/run.ts`,
        find: 'this.#session.dispatch(event)',
        put: `this.#session.dispatch(event)
    if (event.type === 'RUN_FINISHED') this.end({ type: 'success' }, true)`,
      },
    ],
  },
  {
    name: 'drop the generation check on events',
    edits: [
      {
        file: `${client}/run.ts`,
        find: `if (this.#ended) return
    this.#session.dispatch(event)`,
        put: 'this.#session.dispatch(event)',
      },
      { file: `${client}/run.ts`, find: ' && !this.#ended', put: '', times: 3 },
      { file: `${client}/run.ts`, find: "if (this.#ended) return { type: 'aborted' }", put: '' },
    ],
  },
  {
    name: 'drop the generation check on client tools',
    edits: [
      {
        file: `${client}/tool-jobs.ts`,
        find: 'if (signal.aborted) return',
        put: '',
        times: 3,
      },
      {
        file: `${client}/client-tools.ts`,
        find: 'if (context.signal.aborted) throw context.signal.reason',
        put: '',
      },
    ],
  },
  {
    name: 're-check after a failed stream',
    edits: [
      {
        file: `${client}/runner.ts`,
        find: "mustCheck && end.type === 'success' && continueIfReady()",
        put: 'mustCheck && continueIfReady()',
      },
    ],
  },
  {
    name: 'continue with an unanswered sibling',
    edits: [
      {
        file: `${client}/runner.ts`,
        find: 'hasUnsentAnswer(state) && areAllToolsComplete(state)',
        put: 'hasUnsentAnswer(state)',
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
        file: `${machine}/approval-answer.ts`,
        find: "if (approval.approved !== undefined) return { status: 'already-answered' }",
        put: '',
      },
      {
        file: `${machine}/approval-answer.ts`,
        find: "reason === 'approval-requested' ? {",
        put: "reason === 'approval-requested' || reason === 'approval-responded' ? {",
      },
    ],
  },
  {
    name: 'match by call id instead of approval id',
    edits: [
      {
        file: `${machine}/approval-answer.ts`,
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
        find: "if (!(mustCheck && end.type === 'success' && continueIfReady())) sendQueued()",
        put: "sendQueued()\n      if (!run && mustCheck && end.type === 'success') continueIfReady()",
      },
    ],
  },
  {
    name: 'forget unsent answers on abort',
    edits: [
      {
        file: `${machine}/runs.ts`,
        find: 'for (const item of carried) {\n      if (refusal',
        put: "if (end.type !== 'aborted') for (const item of carried) {\n      if (refusal",
      },
    ],
  },
  {
    name: 'let a snapshot answer',
    edits: [
      {
        file: `${machine}/snapshot.ts`,
        find: 'const approval = readApproval(part.approval) ?? call.approval',
        put: `const given = part.approval?.approved
  if (call.approval && given !== undefined) {
    call.approval = { ...call.approval, approved: given, delivery: 'waiting' }
    call.state = 'approval-responded'
    state.unsent.add(call)
    return undefined
  }
  const approval = readApproval(part.approval) ?? call.approval`,
      },
    ],
  },
]
