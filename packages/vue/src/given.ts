import type { ChatClient, ChatClientOptions, ToolMap } from '@countersign/client'
import { type MaybeRefOrGetter, toRaw, toValue } from 'vue'

/** A shared client or options: what every composable accepts, in any combination. */
export type Given<Tools extends ToolMap> = Partial<ChatClientOptions<Tools>> & {
  readonly client?: ChatClient<Tools> | undefined
}

/** The current options. Each is tracked, even in a reactive object; none is a proxy, because a chat compares by identity. */
export function given<Tools extends ToolMap>(
  options: MaybeRefOrGetter<Given<Tools> | undefined>,
): Given<Tools> {
  return mapped({ ...toValue(options) }, (name, now) => toRaw(now[name])) as Given<Tools>
}

/** An object with the same keys and mapped values. */
export function mapped<From extends object, Made>(
  from: From,
  make: (name: keyof From, from: From) => Made,
): Record<string, Made> {
  const names = Object.keys(from) as (keyof From)[]
  return Object.fromEntries(names.map((name) => [name, make(name, from)]))
}
