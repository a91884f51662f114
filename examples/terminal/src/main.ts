import { displayText } from '@countersign/core'
import { chat } from './chat.js'
import { CALLED_WRONGLY, exitCodeOf } from './exit-code.js'
import { helpText, parseCommand } from './options.js'

// A reader such as `head` that has ended: nobody sees any more what is asked or done.
process.stdout.on('error', () =>
  process.exit(exitCodeOf({ interrupted: false, failed: true, deniedUnasked: 0 })),
)

const command = parseCommand(process.argv.slice(2))
switch (command.kind) {
  case 'help':
    end(0, helpText)
    break
  case 'invalid':
    console.error(displayText(command.message).text)
    end(CALLED_WRONGLY, '--help lists what can be given.\n')
    break
  case 'chat':
    await chat(command.settings).then(
      (ending) => end(exitCodeOf(ending)),
      (error: unknown) => {
        console.error(displayText(error instanceof Error ? error.message : String(error)).text)
        end(exitCodeOf({ interrupted: false, failed: true, deniedUnasked: 0 }))
      },
    )
    break
  default:
    command satisfies never
}

/** Exits once all output is written, even if the input stays open. */
function end(code: number, lastWords = ''): void {
  process.stdout.write(lastWords, () => process.exit(code))
}
