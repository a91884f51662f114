export interface Frame {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
  readonly ms: number
  readonly webp: Uint8Array
}
export function animatedWebp(animation: {
  readonly width: number
  readonly height: number
  readonly frames: readonly Frame[]
}): Buffer
export function chunksOf(file: Buffer): { name: string; data: Buffer }[]
export function readAnimation(file: Buffer): { width: number; height: number; durations: number[] }
