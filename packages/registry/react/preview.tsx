import type { PreviewLine, PreviewView } from '@countersign/client'
import { CHANGED, focusWhole, markOfNew, signOf } from '@countersign/client/ui'
import { Segments } from './safe-text'
import { takeFocus } from './take-focus'

interface PreviewProps {
  view: PreviewView
  /** The user has asked to see everything. */
  expanded: boolean
}

/** What the call would do and, if that has changed, what the user saw before. */
export function Preview({ view, expanded }: PreviewProps) {
  return (
    <section className="preview" aria-label="Preview" data-whole={expanded || undefined}>
      {view.previous && <p className="preview-changed">{CHANGED}</p>}
      <Lines view={view} isBefore={false} expanded={expanded} />
      {view.previous && (
        <details className="preview-previous">
          <summary>What you saw before</summary>
          <Lines view={view.previous} isBefore expanded={expanded} />
        </details>
      )}
    </section>
  )
}

/** The preview of edited arguments. It takes the focus, away from the button that asked for it. */
export function EditedPreviewOf({ onExpand, ...shown }: PreviewProps & { onExpand: () => void }) {
  return (
    <div ref={takeFocus} tabIndex={-1} className="preview-edited">
      <Preview {...shown} />
      {shown.view.hidden > 0 && (
        <button
          type="button"
          className="button link"
          onClick={({ currentTarget }) => {
            focusWhole(currentTarget)
            onExpand()
          }}
        >
          Show all
        </button>
      )}
    </div>
  )
}

/** They scroll, and take the focus for that, only once all of them are shown. */
function Lines({ view, isBefore, expanded }: PreviewProps & { isBefore: boolean }) {
  const { kind, total, columns, lines } = view
  return (
    <>
      {total && (
        <p className={`preview-total ${classOf(total)}`}>
          <Cell line={total} at={0} isBefore={isBefore} />
        </p>
      )}
      {columns.length > 0 ? (
        <div className="listing preview-lines" tabIndex={expanded ? 0 : undefined}>
          <table>
            <thead>
              <tr>
                {columns.map((column, at) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: the columns stay in their order
                  <th scope="col" key={at}>
                    <Segments shown={column} />
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {lines.map((line, row) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: the rows stay in their order
                <tr key={row} className={classOf(line)}>
                  {line.cells.map((_, at) => (
                    // biome-ignore lint/suspicious/noArrayIndexKey: the cells stay in their order
                    <td key={at}>
                      <Cell line={line} at={at} isBefore={isBefore} />
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        lines.length > 0 && (
          <div className="preview-lines" data-kind={kind} tabIndex={expanded ? 0 : undefined}>
            {lines.map((line, row) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the lines stay in their order
              <div key={row} className={classOf(line)}>
                <Cell line={line} at={0} isBefore={isBefore} />
              </div>
            ))}
          </div>
        )
      )}
    </>
  )
}

/** The first cell of a line has its sign in front and, if it is new, says so. */
function Cell({ line, at, isBefore }: { line: PreviewLine; at: number; isBefore: boolean }) {
  const cell = line.cells[at]
  const { sign, word } = signOf(line)
  if (!cell) return null
  return (
    <>
      {sign !== '' && (
        <>
          <span className="preview-sign" aria-hidden="true">
            {sign}
          </span>
          <span className="visually-hidden">{word}</span>
        </>
      )}
      <span className="preview-text">
        <Segments shown={cell} />
        {cell.hidden > 0 && <span className="argument-more">…</span>}
      </span>
      {at === 0 && line.isNew && <span className="preview-new">{markOfNew(isBefore)}</span>}
    </>
  )
}

function classOf({ change, isNew }: PreviewLine): string {
  return `preview-line is-${change}${isNew ? ' is-new' : ''}`
}
