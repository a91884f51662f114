import { type Block, type Inline, parseBlocks, parseInline } from '@countersign/example-page/markdown'
import { createMemo, createRenderEffect, Index, Match, Switch } from 'solid-js'
import { Dynamic } from 'solid-js/web'

/** The assistant's text. It only grows, so blocks and pieces keep their positions: a delta changes the last text node. */
export function Prose(props: { text: string }) {
  return (
    <div class="prose" dir="auto">
      <Index each={parseBlocks(props.text)}>{(block) => <ProseBlock block={block()} />}</Index>
    </div>
  )
}

function ProseBlock(props: { block: Block }) {
  return (
    <Switch>
      <Match when={props.block.kind === 'paragraph' && props.block}>
        {(block) => (
          <p>
            <Pieces text={block().text} />
          </p>
        )}
      </Match>
      <Match when={props.block.kind === 'heading' && props.block}>
        {(block) => (
          <p class="prose-heading">
            <Pieces text={block().text} />
          </p>
        )}
      </Match>
      <Match when={props.block.kind === 'code' && props.block}>
        {(block) => <pre class="code-block">{block().text}</pre>}
      </Match>
      <Match when={props.block.kind === 'list' && props.block}>
        {(block) => (
          <Dynamic component={block().ordered ? 'ol' : 'ul'}>
            <Index each={block().items}>
              {(item) => (
                <li>
                  <Pieces text={item()} />
                </li>
              )}
            </Index>
          </Dynamic>
        )}
      </Match>
    </Switch>
  )
}

function Pieces(props: { text: string }) {
  // Compared as a string, so that a block that did not grow is not parsed again.
  const text = createMemo(() => props.text)
  return <Index each={parseInline(text())}>{(piece) => <Piece piece={piece()} />}</Index>
}

function Piece(props: { piece: Inline }) {
  return (
    <Switch fallback={<GrowingText text={props.piece.text} />}>
      <Match when={props.piece.kind === 'code'}>
        <code>{props.piece.text}</code>
      </Match>
      <Match when={props.piece.kind === 'strong'}>
        <strong>{props.piece.text}</strong>
      </Match>
    </Switch>
  )
}

/** One text node that grows. A bare string between other pieces would be replaced with every delta. */
function GrowingText(props: { text: string }) {
  const node = document.createTextNode('')
  createRenderEffect(() => {
    node.data = props.text
  })
  return node
}
