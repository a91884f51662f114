// Read by the type checker alone (`pnpm run types`): S4.33 to S4.36 and what U.18 names of this package.
import {
  areAllToolsComplete,
  type ChatSnapshot,
  type ChatState,
  clientTool,
  type Delivery,
  type InferTools,
  type MessagePart,
  type ToolCallApproval,
  type ToolCallPart,
  type ToolCallState,
  tool,
  toolDefinition,
  type UIMessage,
  type WithOutput,
} from '@countersign/core'
import { expectTypeOf } from 'vitest'
import { z } from 'zod'

// S4.33 the five states of the seed and five more
expectTypeOf<ToolCallState>().toEqualTypeOf<
  | 'awaiting-input'
  | 'input-streaming'
  | 'input-complete'
  | 'approval-requested'
  | 'approval-responded'
  | 'executing'
  | 'complete'
  | 'error'
  | 'denied'
  | 'cancelled'
>()

// S4.34 fields of the part
expectTypeOf<ToolCallPart['type']>().toEqualTypeOf<'tool-call'>()
expectTypeOf<ToolCallPart['id']>().toEqualTypeOf<string>()
expectTypeOf<ToolCallPart['name']>().toEqualTypeOf<string>()
expectTypeOf<ToolCallPart['arguments']>().toEqualTypeOf<string>()
expectTypeOf<ToolCallPart['state']>().toEqualTypeOf<ToolCallState>()
expectTypeOf<ToolCallPart>().toHaveProperty('approval').toEqualTypeOf<ToolCallApproval | undefined>()
expectTypeOf<ToolCallPart>().toHaveProperty('output').toEqualTypeOf<unknown>()

// S4.35 fields of the approval
expectTypeOf<ToolCallApproval['id']>().toEqualTypeOf<string>()
expectTypeOf<ToolCallApproval['needsApproval']>().toEqualTypeOf<true>()
expectTypeOf<ToolCallApproval['approved']>().toEqualTypeOf<boolean | undefined>()
expectTypeOf<ToolCallApproval['delivery']>().toEqualTypeOf<Delivery | undefined>()

// S4.36 the name of a part narrows its input and output
const remove = toolDefinition({
  name: 'remove',
  description: 'Removes a file',
  input: z.object({ path: z.string() }),
  needsApproval: (input) => input.path.startsWith('/'),
}).server((input) => ({ removed: input.path.length }))

const read = tool({
  name: 'read',
  description: 'Reads a file',
  input: z.object({ lines: z.string().transform(Number) }),
  // @ts-expect-error the input is what the schema puts out, a number
  redact: (input) => input.lines.trim(),
  execute: async (input, { idempotencyKey }) => [input.lines.toFixed(), idempotencyKey],
})

const where = clientTool({
  name: 'where',
  description: 'Where the person is',
  input: z.object({}),
  // @ts-expect-error the idempotency key belongs to the server
  execute: (_, context) => context.idempotencyKey,
})

const described = toolDefinition({
  name: 'later',
  description: 'Not placed yet',
  input: z.object({ at: z.number() }),
})

const list = [remove, read] as const
type Listed = InferTools<typeof list>
type Recorded = InferTools<{ remove: typeof remove; where: typeof where; described: typeof described }>

expectTypeOf<Listed['remove']>().toEqualTypeOf<{ input: { path: string }; output: { removed: number } }>()
expectTypeOf<Listed['read']>().toEqualTypeOf<{ input: { lines: number }; output: string[] }>()
expectTypeOf<keyof Recorded>().toEqualTypeOf<'remove' | 'where' | 'later'>()
expectTypeOf<Recorded['later']['input']>().toEqualTypeOf<{ at: number }>()

export function narrows(part: ToolCallPart<Listed>): void {
  if (part.name === 'remove') {
    expectTypeOf(part.input).toEqualTypeOf<{ path: string } | undefined>()
    expectTypeOf(part.output).toEqualTypeOf<{ removed: number } | undefined>()
  } else {
    expectTypeOf(part.name).toEqualTypeOf<'read'>()
    expectTypeOf(part.output).toEqualTypeOf<string[] | undefined>()
  }
  // @ts-expect-error there is no tool of that name
  if (part.name === 'format') return
}

export function typedEverywhere(snapshot: ChatSnapshot<Listed>, message: UIMessage<Listed>): void {
  for (const part of snapshot.pendingApprovals) {
    if (part.name === 'remove') expectTypeOf(part.input?.path).toEqualTypeOf<string | undefined>()
  }
  for (const part of message.parts) if (part.type === 'tool-call') narrows(part)
}

// Parts are discriminated by `type`, and open to nothing else
expectTypeOf<MessagePart['type']>().toEqualTypeOf<
  'text' | 'reasoning' | 'file' | 'source' | 'data' | 'tool-call' | 'tool-result'
>()

// What is published cannot be written to
export function readOnly(message: UIMessage, part: ToolCallPart): void {
  // @ts-expect-error parts are read-only
  message.parts.push(part)
  // @ts-expect-error states are moved by the machine alone
  part.state = 'complete'
}

// U.18 the name a reader of the seed looks for
expectTypeOf(areAllToolsComplete).toEqualTypeOf<(state: ChatState) => boolean>()

// F55 H29 a client tool that only throws, as where another program runs it, gives what it was declared to give.
const chosen = toolDefinition({
  name: 'choose',
  description: 'Lets the person choose.',
  input: z.object({ from: z.array(z.string()) }),
  output: z.object({ index: z.number() }),
})
const elsewhere = () => {
  throw new Error('This runs in the page.')
}
type Thrown = InferTools<{
  client: ReturnType<typeof placedInClient>
  later: ReturnType<typeof placedLater>
  server: ReturnType<typeof placedOnServer>
}>
export const placedInClient = () => chosen.client(elsewhere)
export const placedLater = () => chosen.client(async () => elsewhere())
export const placedOnServer = () => chosen.server(elsewhere)
expectTypeOf<Thrown['choose']>().toEqualTypeOf<{ input: { from: string[] }; output: { index: number } }>()
const bare = clientTool({ name: 'bare', description: 'x', input: z.object({}), execute: elsewhere })
expectTypeOf<InferTools<[typeof bare]>['bare']['output']>().toEqualTypeOf<unknown>()
// What a function returns still counts for more than what was declared, and is still checked by it.
const narrower = chosen.client(() => ({ index: 1 as const }))
expectTypeOf<InferTools<[typeof narrower]>['choose']['output']>().toEqualTypeOf<{ index: 1 }>()
// @ts-expect-error it does not give what was declared
chosen.client(() => 'first')

// F55 H29 a tool knows who the person is without a cast.
export const mine = chosen.server((_, { context }) => {
  expectTypeOf(context.subject).toEqualTypeOf<string | undefined>()
  expectTypeOf(context['database']).toEqualTypeOf<unknown>()
  return { index: 0 }
})

// T31 the value of a structured reply is typed beside the tools: partial while it streams, whole at the end
const trip = z.object({ city: z.string(), stops: z.array(z.object({ name: z.string() })) })
type WithTrip = InferTools<[typeof remove]> & WithOutput<typeof trip>
declare const parts: UIMessage<WithTrip>['parts']
for (const part of parts) {
  if (part.type === 'tool-call' && part.name === 'remove')
    expectTypeOf(part.input).toEqualTypeOf<{ path: string } | undefined>()
  if (part.type !== 'text') continue
  expectTypeOf(part.text).toEqualTypeOf<string>()
  if (part.outputState === 'partial') {
    expectTypeOf(part.output.city).toEqualTypeOf<string | undefined>()
    expectTypeOf(part.output.stops?.[0]?.name).toEqualTypeOf<string | undefined>()
  }
  if (part.outputState === 'final') expectTypeOf(part.output).toEqualTypeOf<z.infer<typeof trip>>()
  if (part.outputState === undefined) expectTypeOf(part.output).toEqualTypeOf<undefined>()
}
