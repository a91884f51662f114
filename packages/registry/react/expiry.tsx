/** Until when the request can be answered, in the user's time zone. */
export function Expiry({ at }: { at: string }) {
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return null
  return (
    <p className="approval-expiry">
      Answer until{' '}
      <time dateTime={at}>{date.toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' })}</time>
    </p>
  )
}
