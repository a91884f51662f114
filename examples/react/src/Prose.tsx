import { type Block, type Inline, parseBlocks, parseInline } from '@countersign/example-page/markdown'
import { memo } from 'react'

/** The assistant's text. Blocks are compared by value, so that only the growing one renders. */
export function Prose({ text }: { text: string }) {
  return (
    <div className="prose" dir="auto">
      {parseBlocks(text).map((block, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: text only grows, so a block keeps its place
        <ProseBlock key={index} block={block} />
      ))}
    </div>
  )
}

const ProseBlock = memo(
  function ProseBlock({ block }: { block: Block }) {
    switch (block.kind) {
      case 'paragraph':
        return (
          <p>
            <Pieces text={block.text} />
          </p>
        )
      case 'heading':
        return (
          <p className="prose-heading">
            <Pieces text={block.text} />
          </p>
        )
      case 'code':
        return <pre className="code-block">{block.text}</pre>
      case 'list':
        return <Items ordered={block.ordered} items={block.items} />
      default:
        return block satisfies never
    }
  },
  (before, after) => JSON.stringify(before.block) === JSON.stringify(after.block),
)

function Items({ ordered, items }: { ordered: boolean; items: readonly string[] }) {
  const List = ordered ? 'ol' : 'ul'
  return (
    <List>
      {items.map((item, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: text only grows, so an item keeps its place
        <li key={index}>
          <Pieces text={item} />
        </li>
      ))}
    </List>
  )
}

function Pieces({ text }: { text: string }) {
  return parseInline(text).map((piece, index) => {
    // biome-ignore lint/suspicious/noArrayIndexKey: text only grows, so a piece keeps its place
    return <Piece key={index} piece={piece} />
  })
}

function Piece({ piece }: { piece: Inline }) {
  switch (piece.kind) {
    case 'text':
      return piece.text
    case 'code':
      return <code>{piece.text}</code>
    case 'strong':
      return <strong>{piece.text}</strong>
    default:
      return piece satisfies never
  }
}
