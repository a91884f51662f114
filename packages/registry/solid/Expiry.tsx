import { Show } from 'solid-js'

/** Until when the request can be answered, in the user's time zone. */
export function Expiry(props: { at: string }) {
  const date = () => new Date(props.at)
  return (
    <Show when={!Number.isNaN(date().getTime())}>
      <p class="approval-expiry">
        Answer until{' '}
        <time dateTime={props.at}>
          {date().toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' })}
        </time>
      </p>
    </Show>
  )
}
