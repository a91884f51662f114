import { invariants } from './invariants.js'
import { type CallbackName, type Observed, printObserved } from './observed.js'
import type { Failure } from './shrink.js'

/**
 * A failure as a user reads it, and as tests to paste: one that plays exactly this timeline again, and one that spells it out with
 * `scriptedConnection`, to be read, changed and kept.
 */
export function printFailure(failure: Failure): string {
  const { model, decisions, played } = failure
  const found = played.violations.map(({ invariant, why }) => `${invariants[invariant]}\n  ${why}`)
  return [
    ...found,
    '',
    ...played.log.map(printObserved),
    '',
    `test('the timeline of ${model.name}', async () => {`,
    `  const model: Model = ${JSON.stringify(model)}`,
    `  const { violations } = await replay({ ChatClient, stream }, model, ${JSON.stringify(decisions)})`,
    '  expect(violations).toEqual([])',
    '})',
    '',
    ...printTest(failure),
  ].join('\n')
}

/** The timeline with a scripted connection. Where microtasks count, all offsets are swept: connections differ in how many they take. */
function printTest({ model, played }: Failure): string[] {
  const lines = written(played.log)
  const sweeps = lines.some((line) => line.includes('passMicrotasks(n)'))
  const name = JSON.stringify(played.violations.map(({ why }) => why).join(' '))
  const body = [
    'const server = scriptedConnection([], { otherwise: byHand, deaf: true })',
    'const finishTools: (() => void)[] = []',
    'const nth = (acts: Record<number, () => unknown>, count = 0) => () => void acts[++count]?.()',
    'let ids = 0',
    'const client = new ChatClient({',
    "  threadId: 'thread',",
    '  connection: server,',
    `  onPendingMessage: '${model.mode}',`,
    "  notify: 'sync',",
    "  generateId: () => 'id'.concat(String(++ids)),",
    ...(model.stages.flat().some((kind) => kind.endsWith('client')) ? [`  tools: [${clientTool}],`] : []),
    ...inCallbacks(played.log, 'onApprovalRequest', (acts) => `  onApprovalRequest: ${acts},`),
    ...inCallbacks(played.log, 'onFinish', (acts) => `  onFinish: ${acts},`),
    ...inCallbacks(played.log, 'onError', (acts) => `  onError: ${acts},`),
    '})',
    ...inCallbacks(played.log, 'listener', (acts) => `onStatus(client, ${acts}) // at each new status`),
    'const serve = async (run: number, ...steps: Steps) => (await server.request(run)).emit(...steps)',
    ...lines,
    'await passMacrotasks(5)',
    'console.log(server.timeline.print())',
  ].map((line) => `  ${line}`)
  return sweeps
    ? [
        `test.each(Array.from({ length: 60 }, (_, n) => n))(${JSON.stringify(`%i microtasks: ${JSON.parse(name)}`)}, async (n) => {`,
        ...body,
        '})',
      ]
    : [`test(${name}, async () => {`, ...body, '})']
}

const clientTool =
  "{ name: 'client_tool', description: '', location: 'client', input: anything, execute: () => new Promise<void>((done) => finishTools.push(done)) }"

function inCallbacks(
  log: readonly Observed[],
  name: CallbackName,
  print: (acts: string) => string,
): string[] {
  const acts = log.flatMap((line) =>
    line.kind === 'act' && line.moment.at === name
      ? [`${line.moment.count}: () => ${code(line.act, log)}`]
      : [],
  )
  return acts.length > 0 ? [print(`nth({ ${acts.join(', ')} })`)] : []
}

function written(log: readonly Observed[]): string[] {
  let finishing = false
  let swept = false
  return log.flatMap((line): string[] => {
    if (line.kind === 'ended') finishing = false
    switch (line.kind) {
      case 'sent':
        finishing = line.piece.some(({ type }) => type === 'RUN_FINISHED')
        return [
          `await passMacrotasks()`,
          `await serve(${line.run}, ${line.piece.map((event) => `event(${JSON.stringify(event)})`).join(', ')})`,
        ]
      case 'ended':
        return line.how === 'end' || line.how === 'aborted'
          ? []
          : ['await passMacrotasks()', `await serve(${line.run}, ${line.how}())`]
      case 'act': {
        const { at } = line.moment
        const act = `void ${code(line.act, log)}`
        if (at === 'microtask' || (at === 'between' && finishing)) {
          const wait = swept ? 'await passMicrotasks()' : 'await passMicrotasks(n)'
          swept = true
          return [wait, act]
        }
        if (at === 'between') return ['await passMacrotasks()', act]
        return at === 'same-tick' ? [act] : []
      }
      case 'tool':
        return line.what === 'returns' ? ['await passMacrotasks()', 'finishTools.shift()?.()'] : []
      case 'violation':
        return [`// Here: ${line.why}`]
      case 'request':
      case 'status':
      case 'told':
        return []
      default:
        return line satisfies never
    }
  })
}

/** An act as a call of the client. */
function code(act: string, log: readonly Observed[]): string {
  const [name, value] = act.split(' ')
  const answer = (approved: boolean) =>
    `client.addToolApprovalResponse({ id: '${value}', approved: ${approved} })`
  const first = log.some((line) => line.kind === 'act' && line.act === `approve ${value}`)
  switch (name) {
    case 'approve':
    case 'by-call':
      return answer(true)
    case 'deny':
      return answer(false)
    case 'repeat':
      return answer(first)
    case 'contradict':
      return answer(!first)
    case 'cancel':
      return `client.addToolApprovalResponse({ id: '${value}', cancel: true })`
    case 'withdraw':
      return `client.withdrawApprovalResponse('${value}')`
    case 'approve-all':
      return 'client.addToolApprovalResponses(client.getSnapshot().pendingApprovals.map(({ approval: { id } }) => ({ id, approved: true })))'
    case 'send':
      return `client.sendMessage('${value}', { forwardedProps: { said: '${value}' } })`
    default:
      return `client.${name}()`
  }
}
