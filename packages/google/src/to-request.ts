import type { ModelFile, ModelMessage, ModelRequest, ModelToolResult } from '@countersign/server'
import { isSuccess, parseJson, toProviderText } from '@countersign/server/model-kit'
import type { Content, GenerateContentConfig, GenerateContentParameters, Part } from '@google/genai'
import { modelParts } from './model-parts.js'
import type { GoogleOptions } from './options.js'

/** Converts an engine request to one of the SDK. */
export function toRequest(
  request: ModelRequest,
  { model, params = {} }: GoogleOptions,
  abortSignal: AbortSignal,
): GenerateContentParameters {
  const { output } = request
  const own = params.tools ?? []
  const declared = request.tools.map(({ name, description, parameters }) => ({
    name,
    description,
    parametersJsonSchema: parameters,
  }))
  const tools = [...(declared.length > 0 ? [{ functionDeclarations: declared }] : []), ...own]
  // Models before Gemini 3 refuse a response schema together with tools.
  const isInstructed = output !== undefined && tools.length > 0 && /gemini-[12]\b/.test(model)
  const format = { responseMimeType: 'application/json', responseJsonSchema: output }
  const system = systemText(request, isInstructed)
  const config: GenerateContentConfig = {
    ...(output !== undefined && !isInstructed && format),
    ...params,
    ...(system !== '' && { systemInstruction: system }),
    ...(tools.length > 0 && { tools }),
    abortSignal,
  }
  return { model, contents: contents(request.messages, model), config }
}

/** The provider accepts system text only in one place, before the conversation. `isInstructed`: it says what the reply must look like. */
function systemText({ system = '', messages, output }: ModelRequest, isInstructed: boolean): string {
  const said = messages.flatMap((message) => (message.role === 'system' ? [message.content] : []))
  const form = `Reply with JSON only, without a code fence, that fits this JSON Schema: ${JSON.stringify(output)}`
  return [system, ...said, isInstructed ? form : ''].filter((text) => text !== '').join('\n\n')
}

/**
 * Joins only adjacent messages of the model, because a turn with calls must be followed by one with equally
 * many results. Drops empty messages.
 */
function contents(messages: readonly ModelMessage[], model: string): Content[] {
  const results = resultsOf(messages)
  const joined: { readonly role: string; readonly parts: Part[] }[] = []
  for (const message of messages) {
    if (message.role === 'system') continue
    const role = message.role === 'assistant' ? 'model' : 'user'
    const parts =
      message.role === 'assistant'
        ? modelParts(message.content, results, model)
        : message.role === 'user'
          ? message.content.flatMap(userPart)
          : message.content.flatMap((answer) => resultPart(answer, results))
    if (parts.length === 0) continue
    const before = joined.at(-1)
    if (before?.role === 'model' && role === 'model') before.parts.push(...parts)
    else joined.push({ role, parts: [...parts] })
  }
  return joined
}

/** Results of provider-executed calls, by call: they belong to the model's turn. */
function resultsOf(messages: readonly ModelMessage[]): ReadonlyMap<string, ModelToolResult> {
  const provided = new Set<string>()
  const results = new Map<string, ModelToolResult>()
  for (const { role, content } of messages) {
    if (role === 'assistant')
      for (const part of content)
        if (part.type === 'tool-call' && part.providerExecuted) provided.add(part.id)
    if (role === 'tool')
      for (const answer of content)
        if (answer.type === 'tool-result' && provided.has(answer.toolCallId))
          results.set(answer.toolCallId, answer)
  }
  return results
}

function userPart(part: Extract<ModelMessage, { role: 'user' }>['content'][number]): readonly Part[] {
  if (part.type === 'file') return [filePart(part)]
  return part.text === '' ? [] : [{ text: part.text }]
}

function filePart({ source }: ModelFile): Part {
  if (source.type === 'data') return { inlineData: { data: source.value, mimeType: source.mimeType } }
  const { value: fileUri, mimeType } = source
  return { fileData: { fileUri, ...(mimeType !== undefined && { mimeType }) } }
}

/** The result of a call that ran here. This provider has no approval requests, so answers to those of other providers are left out. */
function resultPart(
  answer: Extract<ModelMessage, { role: 'tool' }>['content'][number],
  provided: ReadonlyMap<string, ModelToolResult>,
): readonly Part[] {
  if (answer.type !== 'tool-result' || provided.has(answer.toolCallId)) return []
  const { toolCallId: id, toolName: name, outcome } = answer
  const text = toProviderText(outcome)
  const isText = isSuccess(outcome) && typeof outcome.value === 'string'
  const value = isText ? text : (parseJson(text) ?? null)
  return [
    { functionResponse: { id, name, response: isSuccess(outcome) ? { output: value } : { error: value } } },
  ]
}
