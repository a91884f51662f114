/** A small subset of Markdown, as data. The page renders it as elements, so no text can become markup. */
export type Block =
  | { kind: 'paragraph'; text: string }
  | { kind: 'heading'; text: string }
  | { kind: 'list'; ordered: boolean; items: string[] }
  | { kind: 'code'; text: string }

export type Inline =
  | { kind: 'text'; text: string }
  | { kind: 'code'; text: string }
  | { kind: 'strong'; text: string }

/** Paragraphs, headings, lists and fenced code. An unclosed fence, as while text streams in, already counts as code. */
export function parseBlocks(text: string): Block[] {
  const blocks: Block[] = []
  let fence: string[] | undefined
  let isNew = true
  for (const line of text.split('\n')) {
    if (/^\s*```/.test(line)) {
      if (fence) blocks.push({ kind: 'code', text: fence.join('\n') })
      fence = fence ? undefined : []
      isNew = true
    } else if (fence) {
      fence.push(line)
    } else if (line.trim() === '') {
      isNew = true
    } else {
      addLine(blocks, line, isNew)
      isNew = false
    }
  }
  if (fence) blocks.push({ kind: 'code', text: fence.join('\n') })
  return blocks
}

function addLine(blocks: Block[], line: string, isNew: boolean): void {
  const last = blocks.at(-1)
  const item = /^\s*(?:[-*]|(\d+)[.)]) +(.*)$/.exec(line)
  const heading = /^#{1,6} +(.*)$/.exec(line)
  if (item) {
    const ordered = item[1] !== undefined
    if (last?.kind === 'list' && last.ordered === ordered) last.items.push(item[2] ?? '')
    else blocks.push({ kind: 'list', ordered, items: [item[2] ?? ''] })
  } else if (heading) {
    blocks.push({ kind: 'heading', text: heading[1] ?? '' })
  } else if (last?.kind === 'paragraph' && !isNew) {
    last.text += `\n${line}`
  } else {
    blocks.push({ kind: 'paragraph', text: line })
  }
}

/** Code in backticks and text between double asterisks; everything else stays as it is. */
export function parseInline(text: string): Inline[] {
  const pieces: Inline[] = []
  let from = 0
  for (const found of text.matchAll(/`([^`\n]+)`|\*\*([^*\n]+)\*\*/g)) {
    if (found.index > from) pieces.push({ kind: 'text', text: text.slice(from, found.index) })
    const [, code, strong] = found
    pieces.push(code === undefined ? { kind: 'strong', text: strong ?? '' } : { kind: 'code', text: code })
    from = found.index + found[0].length
  }
  if (from < text.length) pieces.push({ kind: 'text', text: text.slice(from) })
  return pieces
}
