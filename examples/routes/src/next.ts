import { answerResponse, grantsResponse, handleChat, rejoinResponse } from '@countersign/server'
import { corsHeaders } from './origins.js'
import { GO_ON_FOR, type RouteParts } from './parts.js'

type Route = (request: Request) => Promise<Response>

/**
 * The routes as functions from `Request` to `Response`, for Next.js and anything else that speaks the Fetch
 * API. Each route file of the application exports its own:
 *
 * ```ts
 * // app/api/chat/route.ts
 * export const { POST, GET, DELETE, OPTIONS } = routes.chat
 * // app/api/chat/answers/route.ts
 * export const { POST, OPTIONS } = routes.answers
 * // app/api/grants/route.ts
 * export const { GET, DELETE, OPTIONS } = routes.grants
 * ```
 */
export function nextRoutes({ agent, sessions, origins, live }: RouteParts) {
  /** Authentication comes before every route: each gets the user along with the request, and none is reached without one. */
  const forUser =
    (route: (request: Request, user: string) => Promise<Response>): Route =>
    async (request) => {
      const { headers } = request
      const user = sessions.userOf(headers.get('authorization'), headers.get('cookie'))
      const response = user === undefined ? new Response(null, { status: 401 }) : await route(request, user)
      return readable(request, response)
    }

  const readable = ({ headers }: Request, response: Response): Response => {
    for (const [name, value] of Object.entries(corsHeaders(headers.get('origin'), origins)))
      response.headers.set(name, value)
    return response
  }
  const OPTIONS: Route = async (request) => readable(request, new Response(null, { status: 204 }))

  const run = forUser((request, subject) => rejoinResponse(agent, request, { context: { subject } }))
  const grants = forUser((request, subject) =>
    grantsResponse(agent, request, { context: { subject }, origins }),
  )
  return {
    chat: {
      POST: forUser((request, subject) =>
        handleChat(agent, request, { context: { subject }, live, goOnFor: GO_ON_FOR }),
      ),
      // rejoins a run after a disconnect
      GET: run,
      // stops one
      DELETE: run,
      OPTIONS,
    },
    answers: {
      POST: forUser((request, subject) => answerResponse(agent, request, { context: { subject }, origins })),
      OPTIONS,
    },
    grants: { GET: grants, DELETE: grants, OPTIONS },
  }
}
