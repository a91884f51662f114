/** Shown if the server masks or changes arguments for display; offers to show the exact ones. */
export function MaskedNote(props: { exact: boolean; onToggle: () => void }) {
  return (
    <p class="approval-note">
      {props.exact
        ? 'These are the exact arguments.'
        : 'The server masks or completes some values for display.'}{' '}
      <button type="button" class="button link" onClick={() => props.onToggle()}>
        {props.exact ? 'Show as the server shows them' : 'Show the exact arguments'}
      </button>
    </p>
  )
}
