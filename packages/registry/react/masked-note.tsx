/** Shown if the server masks or changes arguments for display; offers to show the exact ones. */
export function MaskedNote({ exact, onToggle }: { exact: boolean; onToggle: () => void }) {
  return (
    <p className="approval-note">
      {exact ? 'These are the exact arguments.' : 'The server masks or completes some values for display.'}{' '}
      <button type="button" className="button link" onClick={onToggle}>
        {exact ? 'Show as the server shows them' : 'Show the exact arguments'}
      </button>
    </p>
  )
}
