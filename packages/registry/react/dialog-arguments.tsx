import type { ApprovalArguments } from '@countersign/client'
import { MaskedNote } from './masked-note'
import { Segments } from './safe-text'

interface DialogArgumentsProps {
  shown: ApprovalArguments | undefined
  /** How many characters of the request are not shown. */
  hidden: number
  /** Some of its characters are hidden or look like others. */
  suspicious: boolean
  /** The user has asked to see everything. */
  expanded: boolean
  exact: boolean
  onExpand: () => void
  onExact: () => void
}

/** The arguments, as the user must see them before approving. */
export function DialogArguments({
  shown,
  hidden,
  suspicious,
  expanded,
  exact,
  onExpand,
  onExact,
}: DialogArgumentsProps) {
  return (
    <div className="dialog-arguments" data-whole={expanded || undefined}>
      {shown && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
        <pre className="code-block" tabIndex={0}>
          <Segments shown={shown.text} />
          {shown.text.hidden > 0 && <span className="argument-more">…</span>}
        </pre>
      )}
      {hidden > 0 && (
        <button type="button" className="button link" onClick={onExpand}>
          Show all
        </button>
      )}
      {suspicious && (
        <p className="arguments-warning">
          Careful: some characters here are invisible or look like others. They are written out or underlined.
        </p>
      )}
      {shown?.revealable && <MaskedNote exact={exact} onToggle={onExact} />}
    </div>
  )
}
