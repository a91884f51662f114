import { type ApprovalChoice, approvalQueue, approvalView } from '@countersign/client'
import { type ModelEvent, type ModelRequest, scriptedModel, tool } from '@countersign/server'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { call, calls, connect, lastText, says } from './engine.js'

/** A chat over SSE with an agent that wants to mail at each word of the person, and a dialog that shows one request at a time. */
async function openDialog() {
  const sent: string[] = []
  const prompts: ModelRequest[] = []
  const mail = tool({
    name: 'send_email',
    description: 'Sends a mail.',
    input: z.object({ to: z.string() }),
    needsApproval: true,
    scopes: ['once', 'session'],
    message: ({ to }) => `Mail ${to}?`,
    execute: ({ to }) => {
      sent.push(to)
      return 'sent'
    },
  })
  let count = 0
  const model = scriptedModel((request): readonly ModelEvent[] => {
    prompts.push(request)
    if (request.messages.at(-1)?.role !== 'user') return says('That is settled.')
    count += 1
    return calls(call(`c${count}`, 'send_email', { to: `${count}@example.org` }))
  })
  const { chat } = await connect('sse', { model, tools: [mail] })
  const queue = approvalQueue(chat)

  /** What the dialog shows now. */
  function shown() {
    const { current } = queue.getSnapshot()
    return current && approvalView(current)
  }
  /** Presses a button of the dialog, as a person reads it. */
  function press(label: ApprovalChoice['label']) {
    const choice = shown()?.choices.find((one) => one.label === label)
    if (!choice) throw new Error(`The dialog has no button "${label}".`)
    return chat.addToolApprovalResponse(choice.response)
  }
  return { chat, sent, prompts, shown, press }
}

test('S3.101 over SSE with a mock backend, Cancel: nothing runs, the model is told, the next call asks again', async () => {
  const { chat, sent, prompts, shown, press } = await openDialog()
  await chat.sendMessage('Mail them.')
  expect(shown()).toMatchObject({ title: { text: 'send_email' }, message: { text: 'Mail 1@example.org?' } })
  expect(await press('Cancel')).toEqual({ status: 'sent' })
  expect(sent).toEqual([])
  expect(JSON.stringify(prompts.at(-1)?.messages.at(-1))).toContain('denied')
  expect([lastText(chat), shown()]).toEqual(['That is settled.', undefined])
  await chat.sendMessage('Once more.')
  expect(shown()?.message?.text).toBe('Mail 2@example.org?')
})

test('S3.101 over SSE with a mock backend, Approve Once: this call runs once, the next call asks again', async () => {
  const { chat, sent, shown, press } = await openDialog()
  await chat.sendMessage('Mail them.')
  expect(await press('Approve Once')).toEqual({ status: 'sent' })
  expect(sent).toEqual(['1@example.org'])
  expect([lastText(chat), shown()]).toEqual(['That is settled.', undefined])
  await chat.sendMessage('Once more.')
  expect(shown()?.message?.text).toBe('Mail 2@example.org?')
  expect(sent).toEqual(['1@example.org'])
})

test('S3.101 over SSE with a mock backend, Always (This Session): this call runs, and later ones without a question', async () => {
  const { chat, sent, shown, press } = await openDialog()
  await chat.sendMessage('Mail them.')
  expect(await press('Always (This Session)')).toEqual({ status: 'sent' })
  await chat.sendMessage('Once more.')
  await chat.sendMessage('And again.')
  expect(shown()).toBeUndefined()
  expect(sent).toEqual(['1@example.org', '2@example.org', '3@example.org'])
  expect(chat.getSnapshot().status).toBe('ready')
})
