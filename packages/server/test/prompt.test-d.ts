// Read by the type checker alone: S0.17, S0.18 and S0.22 to S0.24.
import type {
  AnyPart,
  AssistantPart,
  AssistantPromptMessage,
  PromptPart,
  PromptToolResult,
  ResponsePart,
  StreamPart,
  ToolApprovalRequestPart,
  ToolApprovalResponsePart,
  ToolMessagePart,
  ToolPromptMessage,
} from '@countersign/server/prompt'
import { expectTypeOf } from 'vitest'

// S0.17 all members are read-only
expectTypeOf<ToolApprovalRequestPart>().toEqualTypeOf<{
  readonly type: 'tool-approval-request'
  readonly approvalId: string
  readonly toolCallId: string
  readonly metadata?: unknown
}>()

// S0.18
expectTypeOf<ToolApprovalResponsePart>().toEqualTypeOf<{
  readonly type: 'tool-approval-response'
  readonly approvalId: string
  readonly approved: boolean
  readonly reason?: string
  readonly scope?: 'once' | 'session'
  readonly providerExecuted?: boolean
  readonly options?: Readonly<Record<string, unknown>>
}>()

// S0.22 the request is a member of every union of what a run answers; parts are plain JSON, so the encoded form is the part
expectTypeOf<ToolApprovalRequestPart>().toExtend<ResponsePart>()
expectTypeOf<ToolApprovalRequestPart>().toExtend<StreamPart>()
expectTypeOf<ToolApprovalRequestPart>().toExtend<AnyPart>()

export function describe(part: StreamPart): string {
  switch (part.type) {
    case 'text-delta':
    case 'reasoning-delta':
    case 'source':
    case 'tool-call':
    case 'tool-result':
    case 'finish':
      return part.type
    default:
      // @ts-expect-error a switch without the request is not exhaustive
      return part satisfies never
  }
}

export function describeWhole(part: ResponsePart): string {
  switch (part.type) {
    case 'text':
    case 'reasoning':
    case 'file':
    case 'source':
    case 'data':
    case 'tool-call':
    case 'tool-result':
      return part.type
    case 'tool-approval-request':
      return part.approvalId
    default:
      return part satisfies never
  }
}

// S0.23
expectTypeOf<ToolApprovalResponsePart>().toExtend<PromptPart>()
expectTypeOf<ToolMessagePart>().toEqualTypeOf<PromptToolResult | ToolApprovalResponsePart>()
expectTypeOf<ToolPromptMessage['content']>().toEqualTypeOf<readonly ToolMessagePart[]>()

// S0.24
expectTypeOf<ToolApprovalRequestPart>().toExtend<AssistantPart>()
expectTypeOf<AssistantPromptMessage['content']>().toEqualTypeOf<readonly AssistantPart[]>()
