// Read by the type checker alone (`pnpm run types`): S0.1, S0.10, S0.15, S3.1 to S3.4 and S3.50.
import type { ApprovalDecision, ApprovalPolicy, ApprovalScope, ToolAnnotations } from '@countersign/core'
import {
  type AgentTool,
  ApprovalRequiredError,
  type ApprovalRequiredException,
  type PolicyCall,
  tool,
} from '@countersign/server'
import { heuristicApproval } from '@countersign/server/plan'
import { expectTypeOf } from 'vitest'
import { z } from 'zod'

const base = { name: 'read', description: 'Reads', input: z.object({ path: z.string() }), execute: () => 1 }

// S0.1 S0.10 a boolean, or a sync or async function of the validated input; or nothing
const omitted = tool(base)
const always = tool({ ...base, needsApproval: true })
const sync = tool({ ...base, needsApproval: ({ path }) => path.startsWith('/etc/') })
const later = tool({ ...base, needsApproval: async ({ path }, { toolCallId }) => path === toolCallId })
expectTypeOf([omitted, always, sync, later]).toExtend<readonly AgentTool[]>()
// S0.10 the input's type comes from the schema
tool({
  name: 'count',
  description: 'Counts',
  input: z.object({ n: z.string().transform(Number) }),
  needsApproval: (input) => {
    expectTypeOf(input).toEqualTypeOf<{ n: number }>()
    return input.n > 3
  },
  execute: () => 1,
})
// @ts-expect-error S0.10 the schema has no such field
tool({ ...base, needsApproval: ({ file }) => file === '' })
// @ts-expect-error S0.10 text is no decision
tool({ ...base, needsApproval: () => 'yes' })

// S0.15 a schema known at run time only: the input is unknown
tool({
  ...base,
  input: z.unknown(),
  needsApproval: (input) => {
    expectTypeOf(input).toBeUnknown()
    return true
  },
})

expectTypeOf<ApprovalDecision>().toEqualTypeOf<'approve' | 'deny'>()
expectTypeOf<ApprovalScope>().toEqualTypeOf<'once' | 'session'>()
expectTypeOf<ApprovalPolicy['required']>().toEqualTypeOf<boolean>()
expectTypeOf<NonNullable<ApprovalPolicy['options']>[number]>().toEqualTypeOf<'deny' | 'once' | 'session'>()

expectTypeOf<ApprovalRequiredException>().toEqualTypeOf<ApprovalRequiredError>()
expectTypeOf(new ApprovalRequiredError({ toolName: 'pay' })).toExtend<Error>()

// S3.50
expectTypeOf(always.location).toEqualTypeOf<'server'>()
expectTypeOf(always.approval).toEqualTypeOf<ApprovalPolicy | undefined>()
expectTypeOf<AgentTool['location']>().toEqualTypeOf<'server' | 'client'>()
expectTypeOf<PolicyCall['annotations']>().toEqualTypeOf<ToolAnnotations>()
expectTypeOf(heuristicApproval([omitted])).toExtend<readonly (typeof omitted)[]>()
