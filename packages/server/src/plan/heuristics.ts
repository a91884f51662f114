import type { ToolAnnotations } from '@countersign/core'
import type { AgentTool } from '../tools/toolkit.js'

/** Options of {@link shouldRequireApproval}. */
export interface HeuristicOptions {
  /**
   * `substring` (the default) finds a keyword anywhere, even `write` in `rewrite_summary`: too many approval requests are the safe mistake.
   * `word` finds it at the beginning of a word (`deleteFile`, `Deletes a file`, `execution`).
   */
  readonly match?: 'substring' | 'word' | undefined
  /** Further keywords: `send`, `drop`, `run`, `kill` are not built in. */
  readonly keywords?: readonly string[] | undefined
}

/** What the heuristic reads. */
export interface DescribedTool {
  readonly name: string
  readonly description?: string | undefined
  readonly annotations?: ToolAnnotations | undefined
}

const KEYWORDS = ['execute', 'command', 'delete', 'remove', 'write', 'shell']

/**
 * Guesses from a tool's description whether it should require approval. Annotations beat keywords. It is only a guess: it misses
 * a `send_email` or a `drop_table` without annotations.
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
 * What the hints say, or undefined without hints. As in MCP, a tool that is not read-only may be destructive unless it
 * says otherwise; a tool that claims to be both requires approval.
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

/** Without its final e, a keyword also matches derived words: deleting, removal, execution. */
function hasWord(text: string, keywords: readonly string[]): boolean {
  const words = (text.match(/\p{Lu}+(?!\p{Ll})|\p{Lu}?\p{Ll}+/gu) ?? []).map((word) => word.toLowerCase())
  const stems = keywords.map((keyword) => keyword.replace(/e$/, ''))
  return words.some((word) => stems.some((stem) => word.startsWith(stem)))
}

const NOTICE =
  'This tool can change or reach things outside this conversation. Check its arguments before you approve.'

/** The message for a tool without one: its description or its name, and a fixed notice. */
export function generateApprovalMessage({ name, description }: DescribedTool): string {
  return `${description?.trim() || name}\n\n${NOTICE}`
}

/**
 * Makes the tools that the heuristic selects require approval. A tool that states itself whether it needs approval is unchanged, in
 * both directions. Tools that are not passed through here are never guessed about.
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
