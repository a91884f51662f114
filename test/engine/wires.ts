import { createServer } from 'node:http'
import { type Connection, fetchServerSentEvents, postAnswers, stream } from '@countersign/client'
import { webSocket } from '@countersign/client/web-socket'
import { type Agent, type AnswerQueue, answerQueue } from '@countersign/server'
import {
  socketServerLimits,
  toNodeAnswerHandler,
  toNodeHandler,
  toSocketHandler,
} from '@countersign/server/node'
import { onTestFinished } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { listening } from './listening.js'

const subject = 'person-1'

/** Every way to an agent of ours: with a request for each answer, and with a channel into the open run. */
export const ways: Readonly<Record<string, (agent: Agent) => Connection | Promise<Connection>>> = {
  'in-process': (agent) => stream((input, { signal }) => agent.run(input, { signal, context: { subject } })),
  sse: async (agent) => fetchServerSentEvents((await serve(agent, false)).url),
  'in-process, live': inProcessLive,
  'sse and post, live': async (agent) => {
    const { url } = await serve(agent, true)
    return { ...fetchServerSentEvents(url), ...postAnswers(`${url}answers`) }
  },
  'web socket, live': async (agent) => {
    const { url } = await serve(agent, true)
    const socket = webSocket(url, { WebSocket })
    onTestFinished(() => socket.close())
    return socket
  },
}

/** In one process, an answer goes straight into the queue of its run. */
function inProcessLive(agent: Agent): Connection {
  const open = new Map<string, AnswerQueue>()
  return {
    connect(input, { signal }) {
      const answers = answerQueue()
      open.set(input.runId, answers)
      return agent.run(input, { signal, context: { subject }, answers })
    },
    async answer({ runId, resume }) {
      const answers = open.get(runId)
      for (const entry of resume) {
        const delivery = await answers?.put(entry)
        if (delivery?.status !== 'taken') throw new Error('the run has ended')
      }
    },
  }
}

/** The agent behind a server on the loopback interface: chat, answers and sockets. */
export async function serve(agent: Agent, live: boolean, goOnFor = 0) {
  const context = () => ({ subject })
  const chat = toNodeHandler(agent, { context, live, goOnFor })
  const answers = toNodeAnswerHandler(agent, { context })
  const server = createServer((request, response) =>
    request.url?.startsWith('/answers') ? answers(request, response) : chat(request, response),
  )
  const sockets = new WebSocketServer({ server, ...socketServerLimits })
  sockets.on('connection', toSocketHandler(agent, { context, goOnFor }))
  const url = `http://${await listening(server)}/`
  onTestFinished(() => {
    for (const socket of sockets.clients) socket.terminate()
  })
  return { server, sockets, url }
}
