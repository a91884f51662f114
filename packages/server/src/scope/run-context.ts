/** What the application knows about a run, passed to tools and decisions unchanged. */
export type RunContext = Readonly<Record<string, unknown>> & {
  /** The user, from the application's own authentication, never from the request's body. */
  readonly subject?: string | undefined
}
