import type { ModelFile, ModelMessage, ModelRequest, ModelText, ModelTool } from '@countersign/server'
import { toProviderText } from '@countersign/server/model-kit'
import type {
  ChatCompletionAssistantMessageParam,
  ChatCompletionContentPart,
  ChatCompletionCreateParamsNonStreaming,
  ChatCompletionFunctionTool,
  ChatCompletionMessageParam,
} from 'openai/resources/chat/completions'
import { cannotTake, dataUrl, fileName } from '../files.js'
import type { ChatOptions } from '../options.js'
import { outputFormat } from '../output.js'
import { thinkingParts, thoughtFields } from './reasoning.js'

type Body = Omit<ChatCompletionCreateParamsNonStreaming, 'stream' | 'stream_options'>

/** Converts a conversation to a Chat Completions request. */
export function toChatRequest(
  { system, messages, tools, output }: ModelRequest,
  { model, params = {} }: Pick<ChatOptions, 'model' | 'params'>,
): Body {
  const { tools: provided = [], stream_options: _, ...others } = params
  const all = [...tools.map(toFunction), ...provided]
  const question = messages.findLastIndex(({ role }) => role === 'user')
  return {
    ...(output && { response_format: { type: 'json_schema', json_schema: outputFormat(output) } }),
    ...others,
    model,
    messages: [
      ...(system === undefined ? [] : [{ role: 'system' as const, content: system }]),
      ...messages.flatMap((message, index) => toMessages(message, messages[index - 1], index > question)),
    ],
    ...(all.length > 0 && { tools: all }),
  }
}

function toFunction({ name, description, parameters }: ModelTool): ChatCompletionFunctionTool {
  return { type: 'function', function: { name, description, parameters: { ...parameters } } }
}

function toMessages(
  message: ModelMessage,
  before: ModelMessage | undefined,
  sameQuestion: boolean,
): readonly ChatCompletionMessageParam[] {
  switch (message.role) {
    case 'system':
      return [{ role: 'system', content: message.content }]
    case 'user':
      return [{ role: 'user', content: userContent(message.content) }]
    case 'assistant':
      return assistantMessages(message, sameQuestion)
    case 'tool': {
      // This API has neither provider-executed calls nor approval requests for them.
      const ours = before?.role === 'assistant' ? functionCalls(before).map(({ id }) => id) : []
      return message.content.flatMap((answer) =>
        answer.type === 'tool-result' && ours.includes(answer.toolCallId)
          ? [
              {
                role: 'tool' as const,
                tool_call_id: answer.toolCallId,
                content: toProviderText(answer.outcome),
              },
            ]
          : [],
      )
    }
    default:
      return message satisfies never
  }
}

type Turn = Extract<ModelMessage, { role: 'assistant' }>

function functionCalls({ content }: Turn) {
  return content.filter((part) => part.type === 'tool-call').filter((call) => !call.providerExecuted)
}

function assistantMessages(turn: Turn, sameQuestion: boolean): readonly ChatCompletionMessageParam[] {
  const texts = turn.content.filter((part) => part.type === 'text')
  const thoughts = turn.content.filter((part) => part.type === 'reasoning')
  const calls = functionCalls(turn)
  if (texts.length === 0 && calls.length === 0) return []
  const text = texts.map((part) => part.text).join('')
  const refused = texts.some(({ metadata }) => metadata?.refusal === true)
  const thinking = sameQuestion ? thinkingParts(thoughts) : []
  const message: ChatCompletionAssistantMessageParam = {
    role: 'assistant',
    ...(refused ? { content: null, refusal: text } : text !== '' && { content: text }),
    ...(calls.length > 0 && {
      tool_calls: calls.map((call) => ({
        id: call.id,
        type: 'function' as const,
        function: { name: call.name, arguments: call.arguments || '{}' },
      })),
    }),
  }
  // The SDK's types lack the fields that compatible servers add.
  return [
    {
      ...message,
      ...thoughtFields(thoughts, sameQuestion),
      ...(thinking.length > 0 && {
        content: [...thinking, ...(text === '' ? [] : [{ type: 'text', text }])],
      }),
    } as ChatCompletionAssistantMessageParam,
  ]
}

function userContent(content: readonly (ModelText | ModelFile)[]): string | ChatCompletionContentPart[] {
  // Some compatible servers accept only plain text.
  const texts = content.filter((part) => part.type === 'text')
  const [only] = texts
  return content.length === 1 && only !== undefined ? only.text : content.map(toPart)
}

function toPart(part: ModelText | ModelFile): ChatCompletionContentPart {
  if (part.type === 'text') return { type: 'text', text: part.text }
  const { media, source } = part
  if (media === 'image' && source.type !== 'file')
    return {
      type: 'image_url',
      image_url: { url: source.type === 'url' ? source.value : dataUrl(source) },
    }
  if (media === 'audio' && source.type === 'data')
    return {
      type: 'input_audio',
      input_audio: { data: source.value, format: /wav/.test(source.mimeType) ? 'wav' : 'mp3' },
    }
  if (media === 'document' && source.type === 'data')
    return { type: 'file', file: { filename: fileName(source), file_data: dataUrl(source) } }
  if (media === 'document' && source.type === 'file') return { type: 'file', file: { file_id: source.value } }
  throw cannotTake('Chat Completions', part)
}
