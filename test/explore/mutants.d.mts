export const mutants: readonly {
  readonly name: string
  readonly edits: readonly {
    readonly file: string
    readonly find: string
    readonly put: string
    /** How often the text stands in its file. Default 1. */
    readonly times?: number
  }[]
}[]
