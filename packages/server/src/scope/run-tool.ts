import type { AnyServerTool, Message, ToolContext } from '@countersign/core'
import type { ReadyCall } from '../tools/call.js'
import { executeTool, type ToolRun } from '../tools/execute.js'
import type { Execution } from '../tools/execution.js'
import { progressEvent } from '../tools/progress.js'
import { askPerson } from './ask-person.js'
import type { RunScope } from './scope.js'

/** What depends on how the call was allowed. */
interface ToolStart
  extends Pick<ToolRun, 'signal' | 'leave'>,
    Pick<ToolContext, 'approved' | 'idempotencyKey' | 'preview'> {
  readonly messages: readonly Message[]
  /** The message of the call, which gets the parts that the tool writes. */
  readonly messageId: string
}

/** Runs a server tool once, with everything that a run offers to its tools. */
export function runTool(
  scope: RunScope,
  call: ReadyCall,
  tool: AnyServerTool,
  { signal, leave, messageId, ...start }: ToolStart,
): Promise<Execution> {
  const { threadId, runId, context, observer } = scope
  const progress = (data: unknown) => progressEvent(call.id, call.name, data)
  return executeTool({
    ...{ tool, input: call.input, signal, leave, observer, maxSize: scope.settings.limits.resultSize },
    context: { toolCallId: call.id, threadId, runId, context, ...start },
    stream: async (data) => scope.emit(progress(data)),
    report: (data) => scope.report(progress(data)),
    write: (part) => scope.written.write(part, messageId),
    ask: (question, over) => askPerson(scope, call, question, over),
  })
}
