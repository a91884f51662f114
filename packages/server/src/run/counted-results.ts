import type { AGUIEvent, ToolMessage } from '@countersign/core'
import type { Emit } from '../scope/channel.js'

/** Counts one more result. An error of it ends the run. */
export type HoldResult = (result: Pick<ToolMessage, 'toolCallId' | 'content'>) => void

interface CountedResults {
  /** Counts a result as soon as its tool has ended, and says whether there was room. */
  keep(toolCallId: string, content: string): boolean
  /** Counts the results that were not counted before. Once there was no room for one, each rejects after it was passed on. */
  counted(emit: Emit<AGUIEvent>): Emit<AGUIEvent>
}

/** Counts each result of a run once, whether it comes of a tool, of the ledger or of the model's provider. */
export function countResults(hold: HoldResult = () => {}): CountedResults {
  const kept: string[] = []
  const keyOf = (toolCallId: string, { length }: string | readonly unknown[]) => `${length} ${toolCallId}`
  let refusal: { readonly error: unknown } | undefined
  return {
    keep(toolCallId, content) {
      try {
        hold({ toolCallId, content })
      } catch (error) {
        refusal ??= { error }
        return false
      }
      kept.push(keyOf(toolCallId, content))
      return true
    },
    counted: (emit) => (event) => {
      if (event.type !== 'TOOL_CALL_RESULT') return emit(event)
      const at = kept.indexOf(keyOf(event.toolCallId, event.content))
      if (at < 0) hold(event)
      else kept.splice(at, 1)
      const sent = emit(event)
      if (refusal === undefined) return sent
      const { error } = refusal
      return Promise.resolve(sent).then(() => {
        throw error
      })
    },
  }
}
