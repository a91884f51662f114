import type { ArgumentField } from '@countersign/client'
import { focusWhole } from '@countersign/client/ui'
import { Segments } from './safe-text'

interface ArgumentsProps {
  fields: readonly ArgumentField[]
  /** How many characters are not shown. */
  hidden: number
  /** Some characters are hidden or look like others. */
  suspicious: boolean
  /** The user has asked to see everything. */
  expanded?: boolean
  /** Absent if it cannot be expanded, for example while the arguments stream. */
  onExpand?: () => void
}

/** The arguments of a call, as the user must see them before approving. Renders nothing if there are none. */
export function Arguments({ fields, hidden, suspicious, expanded = false, onExpand }: ArgumentsProps) {
  if (fields.length === 0 && hidden === 0 && !suspicious) return null
  return (
    <div className="arguments" data-whole={expanded || undefined} tabIndex={onExpand && -1}>
      <dl className="arguments-list">
        {fields.map((field, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the fields of one call stay in their order
          <Argument key={index} field={field} />
        ))}
      </dl>
      {hidden > 0 && onExpand && (
        <button
          type="button"
          className="button link"
          onClick={({ currentTarget }) => {
            focusWhole(currentTarget)
            onExpand()
          }}
        >
          Show all: {hidden.toLocaleString('en')} more characters
        </button>
      )}
      {suspicious && (
        <p className="arguments-warning">
          Careful: some characters here are invisible or look like others. They are written out or underlined.
        </p>
      )}
    </div>
  )
}

function Argument({ field: { key, value, isText } }: { field: ArgumentField }) {
  return (
    <>
      <dt className="argument-key">{key === undefined ? 'value' : <Segments shown={key} />}</dt>
      <dd className={isText ? 'argument-value' : 'argument-value is-json'}>
        {value.segments.length === 0 && value.hidden === 0 ? (
          <span className="argument-empty">empty</span>
        ) : (
          <Segments shown={value} />
        )}
        {value.hidden > 0 && (
          <span className="argument-more">… {value.hidden.toLocaleString('en')} more</span>
        )}
      </dd>
    </>
  )
}
