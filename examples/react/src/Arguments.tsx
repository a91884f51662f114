import { hiddenIn, lengthOfCut, type ShownArgument, showArguments } from '@countersign/example-page/arguments'
import { SafeText, Segments } from './SafeText.js'

interface ArgumentsProps {
  input: unknown
  /** Show everything, however long. */
  expanded?: boolean
  /** Without it nothing can be expanded, as while the arguments still arrive. */
  onExpand?: () => void
}

/** The arguments of a call, as the person must see them before saying yes. Renders nothing where there are none. */
export function Arguments({ input, expanded = false, onExpand }: ArgumentsProps) {
  const shown = showArguments(input, expanded ? Number.POSITIVE_INFINITY : undefined)
  const hidden = hiddenIn(shown)
  if (shown.length === 0) return null
  return (
    <div className="arguments">
      <dl className="arguments-list">
        {shown.map((argument) => (
          <Argument key={argument.key ?? ''} argument={argument} />
        ))}
      </dl>
      {hidden > 0 && onExpand && (
        <button type="button" className="button link" onClick={onExpand}>
          Show all {lengthOfCut(shown).toLocaleString('en')} characters
        </button>
      )}
      {shown.some((argument) => argument.shown.suspicious) && (
        <p className="arguments-warning">
          Careful: some characters here are invisible or look like others. They are written out or underlined.
        </p>
      )}
    </div>
  )
}

function Argument({ argument: { key, shown, isText } }: { argument: ShownArgument }) {
  return (
    <>
      <dt className="argument-key">{key === undefined ? 'value' : <SafeText text={key} />}</dt>
      <dd className={isText ? 'argument-value' : 'argument-value is-json'}>
        {shown.segments.length === 0 && shown.hidden === 0 ? (
          <span className="argument-empty">empty</span>
        ) : (
          <Segments shown={shown} />
        )}
        {shown.hidden > 0 && (
          <span className="argument-more">… {shown.hidden.toLocaleString('en')} more</span>
        )}
      </dd>
    </>
  )
}
