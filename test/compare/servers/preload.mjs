// Loaded before every server of the comparison: how a scenario moves the server's clock, and ends it when an answer arrives.
import { Server } from 'node:http'

const month = 30 * 24 * 60 * 60 * 1000
let shift = Number(process.env.CLOCK_SHIFT ?? 0)
const now = () => RealDate.now() + shift
const RealDate = Date

globalThis.Date = new Proxy(RealDate, {
  construct: (target, given, made) => Reflect.construct(target, given.length === 0 ? [now()] : given, made),
  get: (target, key) => (key === 'now' ? now : Reflect.get(target, key)),
})
process.on('SIGUSR2', () => {
  shift += month
})

const { emit } = Server.prototype
Server.prototype.emit = function (name, request, ...rest) {
  if (name === 'request' && request.headers['x-kill'] === 'arrived')
    request.on('end', () => process.kill(process.pid, 'SIGKILL'))
  return emit.call(this, name, request, ...rest)
}
