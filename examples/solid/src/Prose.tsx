import {
  type ProseElement,
  type Prose as ProsePiece,
  parseMarkdown,
} from '@countersign/example-page/markdown'
import { CopyButton } from '@countersign/registry/solid/CopyButton'
import { createRenderEffect, Index, Show } from 'solid-js'
import { Dynamic } from 'solid-js/web'

/** The assistant's text. It only grows, so pieces keep their positions: a delta changes the last text node. */
export function Prose(props: { text: string }) {
  return (
    <div class="prose" dir="auto">
      <Pieces pieces={parseMarkdown(props.text)} />
    </div>
  )
}

function Pieces(props: { pieces: readonly ProsePiece[] }) {
  return <Index each={props.pieces}>{(piece) => <Piece piece={piece()} />}</Index>
}

function Piece(props: { piece: ProsePiece }) {
  const text = () => (typeof props.piece === 'string' ? props.piece : '')
  const element = () => (typeof props.piece === 'string' ? undefined : props.piece)
  return (
    <Show when={element()} fallback={<GrowingText text={text()} />}>
      {(element) => <Element element={element()} />}
    </Show>
  )
}

function Element(props: { element: ProseElement }) {
  const code = () => props.element.children.join('')
  return (
    <Show
      when={props.element.tag === 'pre'}
      fallback={
        <Dynamic component={props.element.tag} {...props.element.attributes}>
          <Pieces pieces={props.element.children} />
        </Dynamic>
      }
    >
      <div class="copied-code">
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
        <pre class="code-block" tabIndex={0}>
          {code()}
        </pre>
        <CopyButton label="Copy code" text={code()} />
      </div>
    </Show>
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
