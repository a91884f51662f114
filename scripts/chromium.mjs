import { execFileSync } from 'node:child_process'
import { accessSync, constants, existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

const names = ['chromium', 'chromium-browser', 'google-chrome']

function onPath() {
  const folders = (process.env.PATH ?? '').split(delimiter).filter(Boolean)
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find(isExecutable)
}

function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

function installOnDebian() {
  if (!existsSync('/etc/debian_version') || process.getuid?.() !== 0) return
  const options = { stdio: 'inherit', env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } }
  execFileSync('apt-get', ['update', '-qq'], options)
  execFileSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'chromium'], options)
}

/**
 * The path of a Chromium for the page tests: `CHROME_PATH`, else one on PATH, else, on Debian as root, one
 * installed with apt. Otherwise throws an error that mentions `CHROME_PATH`.
 */
export function findChromium() {
  const named = process.env.CHROME_PATH
  if (named) {
    if (isExecutable(named)) return named
    throw new Error(
      `CHROME_PATH is ${named}, which is no executable file. Set it to the path of a Chromium or Chrome.`,
    )
  }
  const found = onPath()
  if (found) return found
  try {
    installOnDebian()
  } catch (cause) {
    throw new Error('Chromium could not be installed. Set CHROME_PATH to the path of a Chromium or Chrome.', {
      cause,
    })
  }
  const installed = onPath()
  if (installed) return installed
  throw new Error(
    'No Chromium found for the page tests. Set CHROME_PATH to the path of a Chromium or Chrome.',
  )
}
