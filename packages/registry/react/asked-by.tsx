import { askedBy } from '@countersign/client/ui'
import type { DisplayText } from '@countersign/core'
import { Fragment } from 'react'
import { Segments } from './safe-text'

/** The subagents that ask, and for whom. Their names come from the server, so each is quoted. */
export function AskedBy({ askers }: { askers: readonly DisplayText[] }) {
  if (askers.length === 0) return null
  return (
    <p className="asked-by">
      {askedBy(askers).map(({ before, name }) => (
        <Fragment key={before + name.text}>
          {before}{' '}
          <q>
            <Segments shown={name} />
          </q>
        </Fragment>
      ))}
    </p>
  )
}
