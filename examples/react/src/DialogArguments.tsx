import type { ApprovalArguments } from '@countersign/client'
import { MaskedNote } from './MaskedNote.js'
import { Segments } from './SafeText.js'

interface DialogArgumentsProps {
  shown: ApprovalArguments
  exact: boolean
  onExpand: () => void
  onExact: () => void
}

/** The arguments as the person must see them before saying yes. */
export function DialogArguments({
  shown: { text, revealable },
  exact,
  onExpand,
  onExact,
}: DialogArgumentsProps) {
  return (
    <div className="dialog-arguments">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <pre className="code-block" tabIndex={0}>
        <Segments shown={text} />
        {text.hidden > 0 && <span className="argument-more">…</span>}
      </pre>
      {text.hidden > 0 && (
        <button type="button" className="button link" onClick={onExpand}>
          Show all
        </button>
      )}
      {text.suspicious && (
        <p className="arguments-warning">
          Careful: some characters here are invisible or look like others. They are written out or underlined.
        </p>
      )}
      {revealable && <MaskedNote exact={exact} onToggle={onExact} />}
    </div>
  )
}
