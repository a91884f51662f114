import { type Prose as Piece, parseMarkdown } from '@countersign/example-page/markdown'
import { CopyButton } from '@countersign/registry/react/copy-button'
import { createElement, memo, type ReactNode } from 'react'

/** The assistant's text. Blocks are compared by value, so that only the growing one renders. */
export function Prose({ text }: { text: string }) {
  return (
    <div className="prose" dir="auto">
      {parseMarkdown(text).map((block, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: text only grows, so a block keeps its place
        <Block key={index} block={block} />
      ))}
    </div>
  )
}

const Block = memo(
  ({ block }: { block: Piece }) => render(block, 0),
  (before, after) => JSON.stringify(before.block) === JSON.stringify(after.block),
)

function render(piece: Piece, key: number): ReactNode {
  if (typeof piece === 'string') return piece
  const { tag, attributes, children } = piece
  if (tag === 'pre') return <Code key={key} text={children.join('')} />
  return createElement(tag, { key, ...attributes }, children.length > 0 ? children.map(render) : undefined)
}

function Code({ text }: { text: string }) {
  return (
    <div className="copied-code">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <pre className="code-block" tabIndex={0}>
        {text}
      </pre>
      <CopyButton label="Copy code" text={text} />
    </div>
  )
}
