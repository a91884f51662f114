import { omitUndefined } from '@countersign/core'
import {
  type Attributes,
  type Context,
  context,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import type { ModelMessage } from './model/model.js'
import type { ModelFinished, Observe, RunEvent, RunFields } from './observe/events.js'

export interface OpenTelemetryOptions {
  /** `trace.getTracer('my-app')` of `@opentelemetry/api`. */
  readonly tracer: Tracer
  /**
   * Also records the texts of messages, and the arguments and results of tools, as the attributes that the conventions have for them. They
   * contain what users write. Default `false`.
   */
  readonly recordContent?: boolean | undefined
}

/**
 * An observer that makes spans of the runs of an agent, by the semantic conventions for generative AI:
 * `createAgent({ observe: opentelemetry({ tracer }) })`.
 *
 * `invoke_agent` is the span of a run, a child of the span that is active where the run starts, such as that of the HTTP request. Its
 * children are `chat <model>` for each call of the model, `execute_tool <tool>` for each call of a server tool, and `approval <tool>` from an
 * approval request to its answer or to the end of the run. A tool runs in the context of its span, and a model in that of its own, so spans
 * that are made inside are their children. Needs `@opentelemetry/api` 1.9 and a context manager, as the SDK for Node sets one.
 */
export function opentelemetry({ tracer, recordContent = false }: OpenTelemetryOptions): Observe {
  /** The open spans of each run: that of the run under `run`, the others by what they are about. */
  const runs = new Map<string, RunSpans>()

  function observe(event: RunEvent): void {
    const key = keyOf(event)
    if (event.type === 'run-started') {
      const attributes = {
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.conversation.id': event.threadId,
        'countersign.run.id': event.runId,
        'countersign.owner.hash': event.ownerHash,
      }
      const kind = SpanKind.INTERNAL
      const span = tracer.startSpan('invoke_agent', { kind, attributes, startTime: event.at })
      runs.set(key, { span, parent: trace.setSpan(context.active(), span), children: new Map() })
      return
    }
    const run = runs.get(key)
    if (run === undefined) return
    if (event.type === 'run-finished') {
      for (const span of run.children.values()) span.end(event.at)
      run.span.setAttributes({
        'countersign.run.outcome': event.outcome,
        ...omitUndefined({ 'countersign.finish_reason': event.finishReason }),
        ...usageOf(event.usage),
      })
      finish(run.span, event, event.code)
      runs.delete(key)
      return
    }
    child(run, event)
  }

  function child(run: RunSpans, event: Exclude<RunEvent, { type: 'run-started' | 'run-finished' }>): void {
    const start = (name: string, kind: SpanKind, attributes: Attributes) => {
      const own = { ...attributes, 'gen_ai.conversation.id': event.threadId, 'countersign.step': event.step }
      const span = tracer.startSpan(name, { kind, attributes: own, startTime: event.at }, run.parent)
      run.children.set(childKey(event), span)
    }
    const end = (attributes: Attributes, code?: string) => {
      const span = run.children.get(childKey(event))
      run.children.delete(childKey(event))
      if (span === undefined) {
        run.span.addEvent(`countersign.${event.type}`, attributes, event.at)
        return
      }
      span.setAttributes(attributes)
      finish(span, event, code)
    }
    switch (event.type) {
      case 'model-started': {
        const { system } = event.content ?? {}
        start(`chat ${modelName(event.model)}`, SpanKind.CLIENT, {
          'gen_ai.operation.name': 'chat',
          'gen_ai.provider.name': providerName(event.model),
          'gen_ai.request.model': modelName(event.model),
          ...omitUndefined({
            'gen_ai.system_instructions': system && JSON.stringify([{ type: 'text', content: system }]),
            'gen_ai.input.messages': genAiMessages(event.content?.messages),
          }),
        })
        break
      }
      case 'model-finished':
        end(
          {
            ...usageOf(event.usage),
            ...(event.finishReason !== undefined && {
              'gen_ai.response.finish_reasons': [event.finishReason],
            }),
            ...omitUndefined({
              'countersign.first_event_ms': event.firstEventAfter,
              'gen_ai.output.messages': genAiMessages(event.content?.messages, event.finishReason),
            }),
          },
          event.code,
        )
        break
      case 'call-started':
        start(`execute_tool ${event.toolName}`, SpanKind.INTERNAL, {
          ...toolAttributes(event),
          'gen_ai.operation.name': 'execute_tool',
          'countersign.approved': event.approved,
          ...omitUndefined({ 'gen_ai.tool.call.arguments': event.content?.input }),
        })
        break
      case 'call-finished':
        end(omitUndefined({ 'gen_ai.tool.call.result': event.content?.output }), event.code)
        break
      case 'approval-requested':
        start(`approval ${event.toolName}`, SpanKind.INTERNAL, {
          ...toolAttributes(event),
          'countersign.approval.id': event.approvalId,
        })
        break
      case 'approval-settled':
        end(
          omitUndefined({
            ...toolAttributes(event),
            'countersign.approval.id': event.approvalId,
            'countersign.approval.decision': event.decision,
            'countersign.approval.via': event.via,
          }),
        )
        break
      case 'approval-refused':
      case 'call-refused':
        run.span.addEvent(
          `countersign.${event.type}`,
          omitUndefined({ ...toolAttributes(event), 'error.type': event.code }),
          event.at,
        )
        break
      default:
        event satisfies never
    }
  }

  return Object.assign(observe, {
    content: recordContent,
    within<T>(event: RunEvent, work: () => Promise<T>): Promise<T> {
      const span = runs.get(keyOf(event))?.children.get(childKey(event))
      return span === undefined ? work() : context.with(trace.setSpan(context.active(), span), work)
    },
  })
}

interface RunSpans {
  readonly span: Span
  /** The context of its children. */
  readonly parent: Context
  readonly children: Map<string, Span>
}

function keyOf({ ownerHash, threadId, runId }: RunFields): string {
  return JSON.stringify([ownerHash, threadId, runId])
}

/** The same for the start and the end of one thing. */
function childKey(event: RunEvent): string {
  if (event.type.startsWith('approval')) return `approval ${'toolCallId' in event ? event.toolCallId : ''}`
  return 'toolCallId' in event ? `call ${event.toolCallId}` : 'model'
}

function finish(span: Span, { at }: RunFields, code: string | undefined): void {
  if (code !== undefined) {
    span.setAttribute('error.type', code)
    span.setStatus({ code: SpanStatusCode.ERROR, message: code })
  }
  span.end(at)
}

function toolAttributes({
  toolCallId,
  toolName,
}: {
  readonly toolCallId?: string | undefined
  readonly toolName?: string | undefined
}): Attributes {
  return omitUndefined({
    'gen_ai.tool.name': toolName,
    'gen_ai.tool.call.id': toolCallId,
    'gen_ai.tool.type': 'function',
  })
}

function usageOf(usage: ModelFinished['usage']): Attributes {
  const sum = (name: 'inputTokens' | 'outputTokens' | 'cachedInputTokens' | 'cacheWriteInputTokens') => {
    const counts = usage.flatMap((one) => one[name] ?? [])
    return counts.length === 0 ? undefined : counts.reduce((total, count) => total + count, 0)
  }
  return omitUndefined({
    'gen_ai.usage.input_tokens': sum('inputTokens'),
    'gen_ai.usage.output_tokens': sum('outputTokens'),
    'gen_ai.usage.cache_read.input_tokens': sum('cachedInputTokens'),
    'gen_ai.usage.cache_creation.input_tokens': sum('cacheWriteInputTokens'),
  })
}

function providerName(model: string): string {
  const provider = model.split('/', 1)[0] ?? model
  return provider === 'google' ? 'gcp.gemini' : provider
}

function modelName(model: string): string {
  return model.slice(model.indexOf('/') + 1)
}

/** Messages in the form of the conventions. */
function genAiMessages(json: string | undefined, finishReason?: string): string | undefined {
  if (json === undefined) return undefined
  const messages: readonly ModelMessage[] = JSON.parse(json)
  return JSON.stringify(
    messages.map(({ role, content }) => ({
      role,
      parts: typeof content === 'string' ? [{ type: 'text', content }] : content.map(genAiPart),
      ...(finishReason !== undefined && { finish_reason: finishReason }),
    })),
  )
}

function genAiPart(part: Exclude<ModelMessage['content'], string>[number]): Attributes {
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return { type: part.type, content: part.text }
    case 'tool-call':
      return { type: 'tool_call', id: part.id, name: part.name, arguments: part.arguments }
    case 'tool-result':
      return { type: 'tool_call_response', id: part.toolCallId, response: JSON.stringify(part.outcome) }
    case 'approval-response':
      return { type: part.type, id: part.toolCallId, approved: part.approved }
    case 'file':
      return { type: part.type, modality: part.media }
    default:
      return part satisfies never
  }
}
