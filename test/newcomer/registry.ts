import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const exec = promisify(execFile)
const root = join(import.meta.dirname, '../..')

/** A registry on this machine that has our packages as they would be published, and nothing else. */
export interface Registry {
  /** Sends npm here for `@countersign/*`, and leaves everything else where it is. */
  readonly env: Readonly<Record<string, string>>
  close(): void
}

interface Packed {
  readonly name: string
  readonly version: string
  readonly manifest: object
  readonly tarball: Buffer
}

/** Packs the packages (they have to be built) and serves them on a free port. */
export async function serveRegistry(names: readonly string[]): Promise<Registry> {
  const packages = new Map((await packAll(names)).map((packed) => [packed.name, packed]))
  // npm keeps what it has read by its address, and a port may come again with other packages behind it
  const base = `/${crypto.randomUUID()}/`
  const server = createServer((request, response) => {
    const [name, file] = decodeURIComponent((request.url ?? '').slice(base.length)).split('/-/')
    const packed = request.url?.startsWith(base) ? packages.get(name ?? '') : undefined
    if (packed === undefined) response.writeHead(404).end()
    else if (file !== undefined) response.end(packed.tarball)
    else response.end(JSON.stringify(describe(packed, `http://${request.headers.host}${base}`)))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return {
    env: { 'npm_config_@countersign:registry': `http://127.0.0.1:${port}${base}` },
    close: () => server.close(),
  }
}

async function packAll(names: readonly string[]): Promise<readonly Packed[]> {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-registry-'))
  const { packageManager } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const filters = names.flatMap((name) => ['--filter', `@countersign/${name}`])
  const pack = ['-r', ...filters, 'pack', '--pack-destination', folder]
  try {
    await exec('npm', ['exec', '--yes', `--package=${packageManager}`, '--', 'pnpm', ...pack], { cwd: root })
    return await Promise.all(readdirSync(folder).map((file) => readPacked(join(folder, file))))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function readPacked(file: string): Promise<Packed> {
  const { stdout } = await exec('tar', ['-xzOf', file, 'package/package.json'])
  const manifest = JSON.parse(stdout)
  return { name: manifest.name, version: manifest.version, manifest, tarball: readFileSync(file) }
}

/** What npm asks a registry about a package. */
function describe({ name, version, manifest }: Packed, base: string): object {
  const tarball = `${base}${name}/-/${version}.tgz`
  return {
    name,
    'dist-tags': { latest: version },
    versions: { [version]: { ...manifest, dist: { tarball } } },
  }
}
