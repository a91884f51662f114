import { isDeepStrictEqual } from 'node:util'
import type { FilePart, SourcePart, TextPart } from '@countersign/core'
import type { CallToolResult, ContentBlock, EmbeddedResource } from '@modelcontextprotocol/sdk/types.js'

/** Text that the server read from a resource of its own. */
export type McpResourceText = TextPart & {
  readonly uri: string
  readonly mimeType?: string | undefined
}

/** A part of a result: text, the text of a resource, a file (image, audio, binary resource), or a link to a resource. */
export type McpPart = TextPart | McpResourceText | FilePart | SourcePart

/** What a tool of an MCP server returned. */
export interface McpResult {
  readonly content: readonly McpPart[]
  /** JSON that follows the tool's output schema. Text that only repeats it is omitted from `content`. */
  readonly structuredContent?: Readonly<Record<string, unknown>> | undefined
}

/** A successful result, as content parts. */
export function readResult({ content, structuredContent }: CallToolResult): McpResult {
  // Shorter texts can't repeat it. Each of many would be compared with all of it.
  const least = JSON.stringify(structuredContent)?.length ?? Number.POSITIVE_INFINITY
  const said = content.filter(
    (block) => block.type !== 'text' || block.text.length < least || !repeats(block.text, structuredContent),
  )
  return { content: said.map(partOf), ...(structuredContent !== undefined && { structuredContent }) }
}

/** The message of a failed result (`isError`). */
export function readFailure({ content }: CallToolResult): string {
  const texts = content.flatMap((block) => (block.type === 'text' ? [block.text] : []))
  return texts.join('\n').trim() || 'It failed and did not say why.'
}

function partOf(block: ContentBlock): McpPart {
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text }
    case 'image':
    case 'audio':
      return fileOf(block.type, block.data, block.mimeType)
    case 'resource':
      return resourceOf(block.resource)
    case 'resource_link': {
      const { uri, title, name, mimeType, description } = block
      const metadata = { name, ...(mimeType && { mimeType }), ...(description && { description }) }
      return { type: 'source', id: uri, url: uri, title: title ?? name, metadata }
    }
    default:
      return block satisfies never
  }
}

function resourceOf(resource: EmbeddedResource['resource']): McpPart {
  const { uri, mimeType } = resource
  if ('text' in resource) return { type: 'text', text: resource.text, uri, ...(mimeType && { mimeType }) }
  const type = mimeType ?? 'application/octet-stream'
  return { ...fileOf(mediaOf(type), resource.blob, type), metadata: { uri } }
}

function fileOf(media: FilePart['media'], value: string, mimeType: string): FilePart {
  return { type: 'file', media, source: { type: 'data', value, mimeType } }
}

function mediaOf(mimeType: string): FilePart['media'] {
  const [kind] = mimeType.split('/', 1)
  return kind === 'image' || kind === 'audio' || kind === 'video' ? kind : 'document'
}

/** Servers repeat structured content as text, for clients that don't support it; a model need not read it twice. */
function repeats(text: string, structured: CallToolResult['structuredContent']): boolean {
  try {
    return isDeepStrictEqual(JSON.parse(text), structured)
  } catch {
    return false
  }
}
