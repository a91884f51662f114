import type { PreviewLine, PreviewView } from '@countersign/client'
import { CHANGED, markOfNew, signOf } from '@countersign/client/ui'
import { Index, Show } from 'solid-js'
import { Segments } from './SafeText.js'

interface PreviewProps {
  view: PreviewView
  /** The user has asked to see everything. */
  expanded: boolean
}

/** What the call would do and, if that has changed, what the user saw before. */
export function Preview(props: PreviewProps) {
  return (
    <section class="preview" aria-label="Preview" data-whole={props.expanded || undefined}>
      <Show when={props.view.previous}>
        <p class="preview-changed">{CHANGED}</p>
      </Show>
      <Lines view={props.view} isBefore={false} expanded={props.expanded} />
      <Show when={props.view.previous}>
        {(previous) => (
          <details class="preview-previous">
            <summary>What you saw before</summary>
            <Lines view={previous()} isBefore expanded={props.expanded} />
          </details>
        )}
      </Show>
    </section>
  )
}

/** They scroll, and take the focus for that, only once all of them are shown. */
function Lines(props: PreviewProps & { isBefore: boolean }) {
  const hasLines = () => props.view.lines.length > 0 && props.view.columns.length === 0
  return (
    <>
      <Show when={props.view.total}>
        {(total) => (
          <p class={`preview-total ${classOf(total())}`}>
            <Cell line={total()} at={0} isBefore={props.isBefore} />
          </p>
        )}
      </Show>
      <Show when={props.view.columns.length > 0}>
        <div class="listing preview-lines" tabIndex={props.expanded ? 0 : undefined}>
          <table>
            <thead>
              <tr>
                <Index each={props.view.columns}>
                  {(column) => (
                    <th scope="col">
                      <Segments shown={column()} />
                    </th>
                  )}
                </Index>
              </tr>
            </thead>
            <tbody>
              <Index each={props.view.lines}>
                {(line) => (
                  <tr class={classOf(line())}>
                    <Index each={line().cells}>
                      {(_, at) => (
                        <td>
                          <Cell line={line()} at={at} isBefore={props.isBefore} />
                        </td>
                      )}
                    </Index>
                  </tr>
                )}
              </Index>
            </tbody>
          </table>
        </div>
      </Show>
      <Show when={hasLines()}>
        <div class="preview-lines" data-kind={props.view.kind} tabIndex={props.expanded ? 0 : undefined}>
          <Index each={props.view.lines}>
            {(line) => (
              <div class={classOf(line())}>
                <Cell line={line()} at={0} isBefore={props.isBefore} />
              </div>
            )}
          </Index>
        </div>
      </Show>
    </>
  )
}

/** The first cell of a line has its sign in front and, if it is new, says so. */
function Cell(props: { line: PreviewLine; at: number; isBefore: boolean }) {
  const sign = () => signOf(props.line)
  return (
    <Show when={props.line.cells[props.at]}>
      {(cell) => (
        <>
          <Show when={sign().sign}>
            <span class="preview-sign" aria-hidden="true">
              {sign().sign}
            </span>
            <span class="visually-hidden">{sign().word}</span>
          </Show>
          <span class="preview-text">
            <Segments shown={cell()} />
            <Show when={cell().hidden > 0}>
              <span class="argument-more">…</span>
            </Show>
          </span>
          <Show when={props.at === 0 && props.line.isNew}>
            <span class="preview-new">{markOfNew(props.isBefore)}</span>
          </Show>
        </>
      )}
    </Show>
  )
}

function classOf({ change, isNew }: PreviewLine): string {
  return `preview-line is-${change}${isNew ? ' is-new' : ''}`
}
