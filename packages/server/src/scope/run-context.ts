/** What the application says about a run; handed to tools and decisions as it is. */
export type RunContext = Readonly<Record<string, unknown>> & {
  /** Who is speaking, from the application's own authentication, never from the request's body. */
  readonly subject?: string | undefined
}
