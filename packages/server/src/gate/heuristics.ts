import type { ToolAnnotations } from '@countersign/core'
import type { AgentTool } from '../tools/toolkit.js'

/** Options of {@link shouldRequireApproval}. */
export interface HeuristicOptions {
  /**
   * `substring` (the default) finds a keyword anywhere, and so `write` in `rewrite_summary`: asking too often is the safe mistake.
   * `word` finds it where a word begins with it (`deleteFile`, `Deletes a file`, `execution`).
   */
  readonly match?: 'substring' | 'word' | undefined
  /** Further keywords: `send`, `drop`, `run`, `kill` are not among the built-in ones. */
  readonly keywords?: readonly string[] | undefined
}

/** What the heuristic looks at. */
export interface DescribedTool {
  readonly name: string
  readonly description?: string | undefined
  readonly annotations?: ToolAnnotations | undefined
}

const KEYWORDS = ['execute', 'command', 'delete', 'remove', 'write', 'shell']

/**
 * Guesses from what a tool says of itself whether a person should be asked. Annotations beat keywords. A guess: it knows nothing of
 * a `send_email` or a `drop_table` that is not annotated.
 */
export function shouldRequireApproval(
  { name, description = '', annotations = {} }: DescribedTool,
  { match = 'substring', keywords = [] }: HeuristicOptions = {},
): boolean {
  const hinted = readHints(annotations)
  if (hinted !== undefined) return hinted
  const all = [...KEYWORDS, ...keywords].map((keyword) => keyword.toLowerCase())
  const found = match === 'word' ? hasWord : hasText
  return [name, description].some((text) => found(text, all))
}

/**
 * What the hints say, or nothing where there are none to go by. As in MCP, what is not said to be read-only may destroy unless it
 * says otherwise; a tool that says both is asked about.
 */
function readHints(annotations: ToolAnnotations): boolean | undefined {
  const { readOnlyHint, destructiveHint, openWorldHint } = annotations
  if (destructiveHint !== undefined) return destructiveHint
  if (readOnlyHint !== undefined) return !readOnlyHint
  return openWorldHint === true ? true : undefined
}

function hasText(text: string, keywords: readonly string[]): boolean {
  const lower = text.toLowerCase()
  return keywords.some((keyword) => lower.includes(keyword))
}

/** Without its last e a keyword also begins what is made of it: deleting, removal, execution. */
function hasWord(text: string, keywords: readonly string[]): boolean {
  const words = (text.match(/\p{Lu}+(?!\p{Ll})|\p{Lu}?\p{Ll}+/gu) ?? []).map((word) => word.toLowerCase())
  const stems = keywords.map((keyword) => keyword.replace(/e$/, ''))
  return words.some((word) => stems.some((stem) => word.startsWith(stem)))
}

const NOTICE =
  'This tool can change or reach things outside this conversation. Check its arguments before you approve.'

/** What a person is told about a tool that has no message of its own: its description, or its name, and a fixed notice. */
export function generateApprovalMessage({ name, description }: DescribedTool): string {
  return `${description?.trim() || name}\n\n${NOTICE}`
}

/**
 * The tools, those that the heuristic points at asking from now on. A tool that says itself whether it asks is left as it is, in
 * both directions; nothing is guessed about tools that are not passed through here.
 */
export function heuristicApproval<Tool extends AgentTool>(
  tools: readonly Tool[],
  options: HeuristicOptions = {},
): readonly Tool[] {
  return tools.map((tool) => {
    const decided = tool.needsApproval !== undefined || tool.approval !== undefined
    if (decided || !shouldRequireApproval(tool, options)) return tool
    return { ...tool, needsApproval: true, message: tool.message ?? generateApprovalMessage(tool) }
  })
}
