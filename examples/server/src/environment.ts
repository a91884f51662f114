import { existsSync } from 'node:fs'

/** Reads a `.env` file, if there is one, into the environment of this process. Variables that are already set keep their value. */
export function readEnvFile(file: string): void {
  if (existsSync(file)) process.loadEnvFile(file)
}
