/** Runs the compiler of TypeScript 7. Resolves to the exit status and everything it printed. */
export function tsc(...args: string[]): Promise<{ status: number; output: string }>
