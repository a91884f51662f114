export interface RedisServer {
  readonly url: string
  /** Kills it at once; anything not yet on disk is lost. */
  kill(): Promise<void>
  /** Starts it again on the same port. */
  restart(): Promise<void>
  stop(): Promise<void>
}

export function findRedisServer(): string | undefined
export function startRedis(
  command: string,
  options?: { keep?: boolean; cluster?: boolean },
): Promise<RedisServer>
export function redisForTests(
  untested: string,
): Promise<{ readonly url: string; stop(): Promise<void> } | undefined>
