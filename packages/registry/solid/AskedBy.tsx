import { askedBy } from '@countersign/client/ui'
import type { DisplayText } from '@countersign/core'
import { Index, Show } from 'solid-js'
import { Segments } from './SafeText.js'

/** The subagents that ask, and for whom. Their names come from the server, so each is quoted. */
export function AskedBy(props: { askers: readonly DisplayText[] }) {
  return (
    <Show when={props.askers.length > 0}>
      <p class="asked-by">
        <Index each={askedBy(props.askers)}>
          {(asker) => (
            <>
              {asker().before}{' '}
              <q>
                <Segments shown={asker().name} />
              </q>
            </>
          )}
        </Index>
      </p>
    </Show>
  )
}
