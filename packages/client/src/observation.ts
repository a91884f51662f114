import type { AGUIEvent, LocalEvent, RunAgentInput } from '@countersign/core'
import type { CommandName, CommandValues } from './command.js'
import type { RunCursor } from './connections/connection.js'

/** Something that happens in a client, reported before it takes effect. */
export type Observation =
  /** A command of the user, or of a timer (`expire`), performed here, with the argument of the method. */
  | {
      readonly [Name in CommandName]: {
        readonly type: 'command'
        readonly name: Name
        readonly value: CommandValues[Name]
      }
    }[CommandName]
  /** A stream is about to be requested: a new run by `input`, or the rest of one by its cursor. */
  | {
      readonly type: 'request'
      readonly input: RunAgentInput
      readonly rejoin?: RunCursor | undefined
    }
  /** An event or a local step is about to change the state. Includes steps that another tab took. */
  | { readonly type: 'step'; readonly step: AGUIEvent | LocalEvent }

/** See {@link ChatClient.observe}. */
export type Observer = (what: Observation) => void
