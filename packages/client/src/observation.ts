import type { AGUIEvent, LocalEvent, RunAgentInput } from '@countersign/core'
import type { CommandName, CommandValues } from './command.js'
import type { RunCursor } from './connections/connection.js'

/** What happens in a client, told before it takes effect. */
export type Observation =
  /** A person's command, or the clock's (`expire`), done here: what a method of the client was called with. */
  | {
      readonly [Name in CommandName]: {
        readonly type: 'command'
        readonly name: Name
        readonly value: CommandValues[Name]
      }
    }[CommandName]
  /** A stream is about to be asked for: a new run by `input`, or the rest of one by its cursor. */
  | {
      readonly type: 'request'
      readonly input: RunAgentInput
      readonly rejoin?: RunCursor | undefined
    }
  /** An event or a local step is about to change the state; those that another tab took are told as well. */
  | { readonly type: 'step'; readonly step: AGUIEvent | LocalEvent }

/** See {@link ChatClient.observe}. */
export type Observer = (what: Observation) => void
