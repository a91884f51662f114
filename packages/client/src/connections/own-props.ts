import { isRecord, type RunAgentInput } from '@countersign/core'

/** A request whose `forwardedProps.countersign` has these members as well. */
export function withCountersignProps(
  input: RunAgentInput,
  members: Readonly<Record<string, unknown>>,
): RunAgentInput {
  const { forwardedProps } = input
  const props = isRecord(forwardedProps) ? forwardedProps : {}
  const own = isRecord(props.countersign) ? props.countersign : {}
  return { ...input, forwardedProps: { ...props, countersign: { ...own, ...members } } }
}
