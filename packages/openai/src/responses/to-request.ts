import type { ModelFile, ModelMessage, ModelRequest, ModelText, ModelTool } from '@countersign/server'
import type {
  FunctionTool,
  ResponseCreateParamsNonStreaming,
  ResponseInputContent,
  ResponseInputItem,
} from 'openai/resources/responses/responses'
import { cannotTake, dataUrl, fileName } from '../files.js'
import type { ResponsesOptions } from '../options.js'
import { outputFormat } from '../output.js'
import { turnItems } from './turn.js'

type Body = Omit<ResponseCreateParamsNonStreaming, 'stream'>

/** Converts a conversation to a request of the Responses API. */
export function toResponsesRequest(
  { system, messages, tools, output }: ModelRequest,
  { model, params = {} }: Pick<ResponsesOptions, 'model' | 'params'>,
): Body {
  const { tools: provided = [], text, ...others } = params
  const format = output && ({ type: 'json_schema', ...outputFormat(output) } as const)
  const all = [...tools.map(toFunction), ...provided]
  return {
    ...others,
    ...((format || text) && { text: { ...(format && { format }), ...text } }),
    model,
    ...(system !== undefined && { instructions: system }),
    input: messages.flatMap((message, index) =>
      toItems(message, messages[index + 1], params.store !== false),
    ),
    ...(all.length > 0 && { tools: all }),
  }
}

function toFunction({ name, description, parameters }: ModelTool): FunctionTool {
  return {
    type: 'function',
    name,
    description,
    parameters: { ...parameters },
    // Strict mode requires every property and allows no defaults, which schemas of tools seldom meet.
    strict: false,
  }
}

function toItems(
  message: ModelMessage,
  next: ModelMessage | undefined,
  stored: boolean,
): readonly ResponseInputItem[] {
  switch (message.role) {
    case 'system':
      return [{ role: 'system', content: message.content }]
    case 'user':
      return [{ role: 'user', content: message.content.map(toContent) }]
    case 'assistant':
      return turnItems(message.content, next?.role === 'tool' ? next.content : [], stored)
    // Included in the preceding assistant turn.
    case 'tool':
      return []
    default:
      return message satisfies never
  }
}

function toContent(part: ModelText | ModelFile): ResponseInputContent {
  if (part.type === 'text') return { type: 'input_text', text: part.text }
  const { media, source } = part
  if (media !== 'image' && media !== 'document') throw cannotTake('The Responses API', part)
  if (media === 'image') {
    return source.type === 'file'
      ? { type: 'input_image', detail: 'auto', file_id: source.value }
      : {
          type: 'input_image',
          detail: 'auto',
          image_url: source.type === 'url' ? source.value : dataUrl(source),
        }
  }
  switch (source.type) {
    case 'file':
      return { type: 'input_file', file_id: source.value }
    case 'url':
      return { type: 'input_file', file_url: source.value }
    case 'data':
      return { type: 'input_file', filename: fileName(source), file_data: dataUrl(source) }
    default:
      return source satisfies never
  }
}
