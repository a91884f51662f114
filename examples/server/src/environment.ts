import { existsSync } from 'node:fs'

/** Reads a `.env` file into the environment of this process, where there is one. What is set already stays as it is. */
export function readEnvFile(file: string): void {
  if (existsSync(file)) process.loadEnvFile(file)
}
